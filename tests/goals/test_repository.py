"""Recording an action reads and writes the same however many actions there were before."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.detect import monitor as engine
from ctxmgr.goals import Goals, state_files
from ctxmgr.goals.changes import fold
from ctxmgr.goals.state import WINDOW, State
from ctxmgr.types.goal import StartRequest
from tests.goals.scene import act, begun, open_goals, ticking


class Traffic:
    """Counts the bytes that pass this thread's reads and writes: another one syncs the log when its second is over."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.written = self.read = 0
        write, pread = os.write, os.pread

        own = threading.get_ident()

        def count_write(descriptor: int, data: Any) -> int:
            self.written += len(data) if threading.get_ident() == own else 0
            return write(descriptor, data)

        def count_pread(descriptor: int, length: int, offset: int) -> bytes:
            data = pread(descriptor, length, offset)
            self.read += len(data) if threading.get_ident() == own else 0
            return data

        patched.setattr(os, "write", count_write)
        patched.setattr(os, "pread", count_pread)


def _grow(folder: Path, actions: int) -> None:
    """Make a goal with so many actions, most of them without waiting for the disk."""
    goals = begun(folder, hold=True, durability="process")
    for number in range(actions):
        act(goals, "look", {"path": f"file-{number % 1000:04}", "n": f"{number:07}"}, f"{number:07} lines")
    goals.close()


@pytest.mark.requirement("H-flat")
def test_the_bytes_of_one_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An action behind 1,000 others writes and reads as many bytes as one behind 50, in a fresh process and a held one."""
    figures: list[tuple[int, int]] = []
    for actions in (50, 1000):
        folder = tmp_path / str(actions)
        folder.mkdir()
        _grow(folder, actions)
        with monkeypatch.context() as patched:
            traffic = Traffic(patched)
            act(open_goals(folder), "edit", {"path": "a", "n": "x"}, "done it")
            figures.append((traffic.written, traffic.read))

    assert figures[1][0] <= figures[0][0] * 1.05
    assert figures[1][1] <= figures[0][1] * 1.05


@pytest.mark.requirement("H-flat")
def test_a_fresh_process_replays_a_bounded_tail(tmp_path: Path) -> None:
    """However long the history, a process that starts has at most as much to fold in as the state may lag."""
    from ctxmgr.goals.repository import LAG

    goals = begun(tmp_path, hold=True, durability="process")
    for number in range(2 * LAG + 10):
        act(goals, "look", {"n": number})
    fresh = open_goals(tmp_path)
    fresh.state()

    assert 0 < fresh._repository.replayed < LAG  # pyright: ignore[reportPrivateUsage]


@pytest.mark.slow
@pytest.mark.requirement("H-flat")
def test_the_state_does_not_grow_with_the_actions() -> None:
    """After 3,000 actions with large arguments and results the state is as large as after 300, and within bounds."""
    sizes: list[int] = []
    state = State()
    fold(state, {"kind": "event", "session": "s", "type": "goal", "data": {"op": "create", "text": "g"}})
    for number in range(3000):
        fold(state, {
            "kind": "entry", "session": "s", "id": f"{number:08}", "action": "edit", "agent": "a", "status": "ok",
            "input": {"path": f"{number:08}", "content": "x" * 5000}, "output": ["y" * 50] * 100, "task": "goal/1",
        })  # fmt: skip
        if number in (299, 2999):
            sizes.append(len(str(state.to_json())))

    assert sizes[1] <= sizes[0] * 1.02
    assert sizes[1] < WINDOW * 4_000


def test_a_new_action_costs_no_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is asked only about an action that came before in the same order."""
    asked: list[int] = []
    monitor = engine.Monitor

    def counted(*given: Any, **named: Any) -> Any:
        asked.append(1)
        return monitor(*given, **named)

    monkeypatch.setattr(engine, "Monitor", counted)
    goals = begun(tmp_path)
    for number in range(50):
        act(goals, "look", {"n": number})
    assert asked == []
    act(goals, "look", {"n": 49})
    assert asked


@pytest.mark.requirement("H-loops")
def test_loops_are_written_only_when_they_change(tmp_path: Path) -> None:
    """An action that is no loop leaves ``loops.json`` alone."""
    goals = begun(tmp_path)
    path = tmp_path / ".agent_context" / state_files.LOOPS
    before = path.stat().st_ino
    act(goals, "look", {"n": 1})
    assert path.stat().st_ino == before
    for _ in range(4):
        act(goals, "run", {})
    assert path.stat().st_ino != before


def test_large_trees_are_worked_on(tmp_path: Path) -> None:
    """A goal of a thousand tasks takes an action like any other."""
    from ctxmgr.types.goal import TaskDraft

    make: Callable[..., Goals] = open_goals
    goals = make(tmp_path, clock=ticking())
    goals.start(StartRequest(goal="g", tasks=[TaskDraft(description=str(number)) for number in range(1000)]))
    assert act(goals, "look").node == "t1"
    assert len(goals.brief().text) < 300


def test_a_goal_whose_folder_is_gone_is_released(tmp_path: Path) -> None:
    """Closing a goal that somebody removed while it was held ends without an error, and holds no file open."""
    goals = begun(tmp_path, hold=True)
    shutil.rmtree(tmp_path / ".agent_context")
    goals.close()

    assert goals._repository._journal is None  # pyright: ignore[reportPrivateUsage]
    assert not (tmp_path / ".agent_context").exists()
