"""One owner at a time: a live one is not disturbed, a dead or frozen one is replaced, and is refused when it thaws."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import Busy, CtxmgrError, Superseded
from ctxmgr.goals import state_files
from ctxmgr.goals.state import Owner
from ctxmgr.log.ids import now, parse_time
from ctxmgr.types.goal import BlockRequest, EndRequest, ResumeRequest, StartRequest
from tests.goals.scene import act, bare, begun, contents, done, open_goals, statuses


class Child:
    """A process that holds the goal and does one thing each time it is told to."""

    def __init__(self, folder: Path, *, freeze_in_write: bool = False) -> None:
        told, self._tell = os.pipe()
        self._hear, tells = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _live(folder, told, tells, freeze_in_write)
        os.close(told)
        os.close(tells)
        self.said = self._answer

    def _answer(self) -> str:
        return os.read(self._hear, 200).decode()

    def tell(self) -> None:
        """Have it record an action; `said` returns what became of that."""
        os.write(self._tell, b".")

    def stop(self) -> None:
        """Freeze it, and return when it is frozen."""
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_until_frozen()

    def wait_until_frozen(self) -> None:
        """Return when it is frozen."""
        os.waitpid(self.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._tell)
        os.close(self._hear)


def _live(folder: Path, told: int, tells: int, freeze_in_write: bool) -> None:
    try:
        goals = begun(folder, hold=True, clock=now)
        act(goals, "look", {"by": "child", "n": 0})
        os.write(tells, b"ready")
        number = 0
        while os.read(told, 1):
            number += 1
            if freeze_in_write:
                write = os.write

                def frozen(descriptor: int, data: bytes, write: Callable[[int, bytes], int] = write) -> int:
                    os.write = write
                    os.kill(os.getpid(), signal.SIGSTOP)
                    return write(descriptor, data)

                os.write = frozen
            try:
                act(goals, "look", {"by": "child", "n": number})
                os.write(tells, b"recorded")
            except CtxmgrError as error:
                os.write(tells, error.kind.encode())
    finally:
        os._exit(0)


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Return a process that holds the goal in the test's folder."""
    made = Child(tmp_path)
    assert made.said() == "ready"
    return made


@pytest.mark.requirement("H-owner")
def test_a_frozen_owner_is_refused_when_it_thaws(tmp_path: Path, child: Child) -> None:
    """A successor takes over from a stopped owner; what that one does afterwards is refused and changes nothing."""
    try:
        child.stop()
        successor = open_goals(tmp_path, clock=now)
        assert act(successor, "fix", {"by": "successor"})
        done(successor)
        before, state = contents(tmp_path), bare(successor.state())
        child.thaw()
        child.tell()
        assert child.said() == "superseded"
        assert contents(tmp_path) == before
        child.tell()
        assert child.said() == "superseded"
        assert contents(tmp_path) == before
        assert bare(open_goals(tmp_path).state()) == state
    finally:
        child.end()


@pytest.mark.requirement("H-owner")
def test_an_owner_frozen_in_its_write_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped with the lock in its hand, just before its bytes are written, can't add them later."""
    monkeypatch.setattr(state_files, "GRACE", 0.0)
    child = Child(tmp_path, freeze_in_write=True)
    try:
        assert child.said() == "ready"
        child.tell()
        child.wait_until_frozen()
        successor = open_goals(tmp_path, clock=now)
        assert act(successor, "fix", {"by": "successor"})
        before = contents(tmp_path)
        child.thaw()
        assert child.said() == "superseded"
        assert contents(tmp_path) == before
        assert [each.action for each in open_goals(tmp_path).state().actions] == ["look", "fix"]
    finally:
        child.end()


@pytest.mark.requirement("H-owner")
def test_a_live_owner_is_not_replaced_by_accident(tmp_path: Path, child: Child) -> None:
    """While the owner runs others are refused as busy; taking over is said outright, steering and reading are free."""
    try:
        other = open_goals(tmp_path, clock=now)
        for work in (lambda: act(other, "x"), lambda: done(other), lambda: other.start(StartRequest(goal=None)), other.resume):
            with pytest.raises(Busy):
                work()
        other.block(BlockRequest(id="t2", reason="not yet"))
        assert "Create mathx" in other.brief().text
        child.tell()
        assert child.said() == "recorded"
        assert statuses(open_goals(tmp_path).state())["t2"] == "blocked"
        assert open_goals(tmp_path).state().actions_total == 2

        answer = other.resume(ResumeRequest(take_over=True))
        assert answer.took_over
        assert answer.previous is not None
        assert answer.previous.pid == child.pid
        child.tell()
        assert child.said() == "superseded"
    finally:
        child.end()


@pytest.mark.requirement("H-owner", "H-resume")
def test_a_dead_owner_is_replaced_at_once(tmp_path: Path, child: Child) -> None:
    """What a killed process held is free, and its last acknowledged action is there."""
    child.end()
    goals = open_goals(tmp_path, clock=now)
    assert act(goals, "go on")
    state = open_goals(tmp_path).state()
    assert (state.actions_total, state.owner.pid, state.owner.epoch) == (2, None, 2)


def test_commands_follow_each_other(tmp_path: Path) -> None:
    """Desks that hold nothing take turns without any claim in the history."""
    begun(tmp_path)
    for number in range(3):
        act(open_goals(tmp_path), "look", {"n": number})
    assert open_goals(tmp_path).state().owner.epoch == 0


def test_a_fork_is_somebody_else(tmp_path: Path) -> None:
    """A forked child does not write as its parent, who lives."""
    goals = begun(tmp_path, hold=True, clock=now)
    act(goals, "look", {"n": 0})
    hear, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            act(goals, "look", {"n": 1})
            os.write(tells, b"recorded")
        except Busy:
            os.write(tells, b"busy")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(hear, 100) == b"busy"
    os.close(hear)
    os.close(tells)
    assert act(goals, "look", {"n": 2})


def test_an_owner_elsewhere_has_a_lease() -> None:
    """Of an owner on another machine only the time of its last record is known: it counts as alive for 30 seconds."""
    elsewhere = Owner(pid=1, host="elsewhere.example", boot="x", start="1")
    stamp = "2026-01-01T00:00:00Z"
    moment = parse_time(stamp) or 0.0
    assert state_files.is_alive(elsewhere, stamp, moment + 29)
    assert not state_files.is_alive(elsewhere, stamp, moment + 31)
    assert not state_files.is_alive(elsewhere, None, moment)


@pytest.mark.parametrize(
    "change", [{"boot": "another"}, {"start": "0"}, {"pid": -1}, {"pid": 1 << 40}, {"pid": True}, {"pid": "1"}]
)
def test_a_reused_process_id_is_not_the_owner(change: dict[str, object]) -> None:
    """An owner is known by its start and the machine's, not by a number that another process may have by now."""
    parent = Owner(**state_files.identity()).replace(pid=os.getppid(), start=state_files.process_start(os.getppid()))
    assert state_files.is_alive(parent, None, 0.0)
    assert not state_files.is_alive(parent.replace(**change), None, 0.0)


def test_superseded_is_final_until_asked_again(tmp_path: Path) -> None:
    """A superseded owner may go on only by resuming, and then supersedes the other."""
    first, second = begun(tmp_path, hold=True, clock=now), open_goals(tmp_path, hold=True, clock=now)
    second.start(StartRequest(goal=None))
    with pytest.raises(Superseded):
        first.done(EndRequest())
    with pytest.raises(Superseded):
        first.block(BlockRequest(id="t2", reason="x"))
    first.resume()
    before = contents(tmp_path)
    first.resume()
    assert contents(tmp_path) == before
    assert act(first, "look")
    with pytest.raises(Superseded):
        act(second, "look")
