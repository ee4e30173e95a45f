"""A session is live while a process has it open, and not a moment longer."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.log import session_lock
from ctxmgr.log.session_lock import is_gone, is_live, live_sessions, lock_session


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Path of a log in a folder of its own."""
    return str(tmp_path / "logs" / "a.jsonl")


def test_asking_creates_nothing(target: str) -> None:
    """Questions about a target that nobody ever opened make no file and no folder."""
    assert not is_live(target, "s")
    assert live_sessions(target) == set()
    assert not Path(target).parent.exists()


def test_a_session_is_live_until_released(target: str) -> None:
    """A lock makes one session live, releasing it ends that, twice is harmless, and no file is left."""
    held = lock_session(target, "s", "p")
    assert is_live(target, "s")
    assert not is_live(target, "s2")
    assert live_sessions(target) == {"s"}

    held.release()
    held.release()
    assert not is_live(target, "s")
    assert not Path(target + ".live").exists()


def test_a_second_process_is_refused(target: str) -> None:
    """The error names the holder's pid; once the holder is gone the session is free."""
    held = lock_session(target, "s", "p")
    with pytest.raises(Busy) as caught:
        lock_session(target, "s", "q")

    assert str(os.getpid()) in str(caught.value.hint)
    held.release()
    lock_session(target, "s", "q").release()


def test_joining_keeps_the_session_live(target: str) -> None:
    """Who joins holds the session too: it stays live, and refused to others, when the first one leaves."""
    first = lock_session(target, "s", "p")
    second = lock_session(target, "s", "q", join=True)
    first.release()

    assert is_live(target, "s")
    with pytest.raises(Busy):
        lock_session(target, "s", "r")
    second.release()
    assert not is_live(target, "s")


def test_one_process_id_is_live_once(target: str) -> None:
    """Even who joins may not use the id of a live process."""
    held = lock_session(target, "s", "p")
    with pytest.raises(Busy):
        lock_session(target, "s", "p", join=True)
    held.release()


def test_a_killed_holder_frees_the_session(target: str) -> None:
    """After `kill -9` nothing has to be cleaned up."""
    program = """
import signal, sys
from ctxmgr.log.session_lock import lock_session
held = lock_session(sys.argv[1], "s", "p")
print(1, flush=True)
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program, target], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert live_sessions(target) == {"s"}
        assert not is_gone(target, "s", "p")
        with pytest.raises(Busy, match="live process") as caught:
            lock_session(target, "s", "q")
        assert str(process.pid) in str(caught.value.hint)
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert not is_live(target, "s")
    assert is_gone(target, "s", "p")
    assert not is_gone(target, "s", "q")
    lock_session(target, "s", "q").release()
    assert not is_gone(target, "s", "q")


def test_a_forked_child_does_not_hold_its_parents_session(target: str) -> None:
    """When the parent lets go while a child lives on, the session is free."""
    held = lock_session(target, "s", "p")
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(ready, 1)
        os._exit(0)
    os.close(ready)
    assert is_live(target, "s")

    held.release()

    assert not is_live(target, "s")
    os.close(go)
    os.waitpid(child, 0)


@pytest.mark.parametrize(
    "session", ["a/b", "../../x", ".", "", "~2F", "a+b", "ü\ud800", "\0", "x" * 5_000, "CON", "a\nb", "-rf"]
)
def test_session_ids_never_become_paths(target: str, session: str) -> None:
    """Odd ids stay inside the folder, and no two of them share a lock."""
    others = ["a", "a~2Fb", "x" * 4_999, "~", "a+", "con"]
    held = [lock_session(target, other, "p/q") for other in others]
    held.append(lock_session(target, session, "../p"))

    assert is_live(target, session)
    assert live_sessions(target) >= {*others} | ({session} if session else set())
    assert len(os.listdir(target + ".live")) == len(held)
    assert os.listdir(Path(target).parent) == ["a.jsonl.live"]
    for one in held:
        one.release()


def test_lock_files_are_private(target: str) -> None:
    """The folder has mode 0700 and the lock file 0600."""
    held = lock_session(target, "s", "p")
    folder = Path(target + ".live")

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]
    held.release()


def test_garbage_in_the_folder_is_ignored(target: str) -> None:
    """Files that are no lock files make nobody live and stop nobody."""
    folder = Path(target + ".live")
    folder.mkdir(parents=True, mode=0o700)
    (folder / "s+old").write_bytes(b"\xff{")
    (folder / "note").write_text("x")
    (folder / "s+dir").mkdir()
    (folder / "s+link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "s+pipe")

    assert live_sessions(target) == set()
    assert not is_live(target, "s")
    lock_session(target, "s", "q").release()


def test_a_target_that_cannot_have_a_folder_is_an_error(tmp_path: Path) -> None:
    """Where the folder can't be made, the caller gets a typed error with a hint."""
    (tmp_path / "file").touch()

    with pytest.raises(StorageFailed) as caught:
        lock_session(str(tmp_path / "file" / "a.jsonl"), "s", "p")
    assert caught.value.hint


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """The folder of locked files goes with its last holder, and locking and releasing side by side loses nobody."""
    target = str(tmp_path / "run.jsonl")
    kept = lock_session(target, "other", "p0")
    failures: list[BaseException] = []

    def come_and_go(name: str) -> None:
        try:
            for turn in range(50):
                lock_session(target, f"{name}-{turn}", "p").release()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=come_and_go, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    kept.release()
    for thread in threads:
        thread.join()

    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_lets_its_successor_be(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits to take the folder away, and finds that it is gone, does not take the new one that has its name."""
    folder = Path(target + ".live")
    folder.mkdir(parents=True)
    lock = session_lock.lock_within

    def replaced_meanwhile(gate: int, patience: float) -> bool:
        if patience == 0.0:
            folder.rmdir()
            folder.mkdir()
        return lock(gate, patience)

    monkeypatch.setattr(session_lock, "lock_within", replaced_meanwhile)
    session_lock._remove_if_empty(str(folder))  # pyright: ignore[reportPrivateUsage]
    assert folder.is_dir()


def test_what_killed_recorders_left_is_removed(target: str) -> None:
    """The next opener removes the files of dead processes and leaves those of live ones; the folder goes with the last."""
    live = lock_session(target, "live", "p")
    folder = Path(target + ".live")
    for name in ("one+p", "two+p", "three+~2F"):
        (folder / name).write_text('{"session": "x", "process": "p", "pid": 1}')
    other = lock_session(target, "other", "p")

    assert sorted(os.listdir(folder)) == ["live+p", "other+p"]
    assert live_sessions(target) == {"live", "other"}
    live.release()
    other.release()
    assert not folder.exists()


def test_a_killed_recorder_leaves_nothing_for_long(target: str) -> None:
    """After `kill -9` of many recorders one more comes and goes, and no file is left."""
    program = """
import os, sys
from ctxmgr.log.session_lock import lock_session
held = [lock_session(sys.argv[1], f"s{number}", "p") for number in range(5)]
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", program, target]).returncode == -9
    assert len(os.listdir(target + ".live")) == 5
    lock_session(target, "next", "p").release()
    assert not Path(target + ".live").exists()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a system without /proc")
def test_a_folder_that_can_never_be_made_is_refused() -> None:
    """A file system that answers as if a folder had been removed does not hold up for ever."""
    with pytest.raises(StorageFailed, match="can't mark session as live"):
        lock_session("/proc/x.jsonl", "s", "p")
