"""A second process yields what one process would have, or it is lost: it is never in the way, and leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.store.worker_process import WAITING, ProcessLost, SecondProcess, is_of_use, run_in_second_process

ROOT = Path(__file__).parents[2]
WORK = "tests.store.second_process_work"


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second process be of use whatever machine this is."""
    monkeypatch.delenv("CTXMGR_PROCESSES", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", {0: {0, 1}}.get, raising=False)


@pytest.fixture
def _nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Require that no descriptor stays open and no process behind, not even as a zombie."""
    started: list[subprocess.Popen[bytes]] = []

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    open_before = os.listdir("/dev/fd")
    yield
    assert os.listdir("/dev/fd") == open_before
    assert [process.args for process in started if process.returncode is None] == []


def told(items: SecondProcess) -> tuple[list[object], str | None]:
    """Return what came, and why no more did, None at the end."""
    came: list[object] = []
    try:
        came.extend(items)
    except ProcessLost as lost:
        return came, str(lost)
    return came, None


def gone(process: int) -> bool:
    """Whether a process that was ours has ended and was told off."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.usefixtures("_nothing_left")
def test_what_it_yields_is_what_was_yielded_there() -> None:
    """Plain data comes as it was sent, in order, small and large."""
    items = [None, True, -(2**90), 0.1, float("inf"), "a\0ü\ud800😀", b"\xff\0", [1, [2, ()]], {"a": {1: (2,)}}, {1, 2}]
    assert told(run_in_second_process(f"{WORK}:echo", *items)) == (items, None)
    assert told(run_in_second_process(f"{WORK}:echo")) == ([], None)
    assert told(run_in_second_process(f"{WORK}:counted", 20_000)) == (
        [(number, f"item {number}") for number in range(20_000)],
        None,
    )
    large = ["x" * 30_000_000, b"y" * 30_000_001, "ß" * 10_000_000]
    assert told(run_in_second_process(f"{WORK}:echo", *large)) == (large, None)


@pytest.mark.usefixtures("_nothing_left")
@pytest.mark.parametrize(
    ("function", "arguments", "came", "why"),
    [
        ("raising", (), [1, 2], "LookupError: no third one"),
        ("odd", (), [1], "ValueError: unmarshallable"),
        ("babbling", (b"",), [1], "ended before"),
        ("babbling", (b"rubbish",), [1], "ended before"),
        ("babbling", (b"Traceback (most recent call last): nothing of ours" * 3,), [1], "no frame"),
        ("babbling", (b"ctx item" + (10).to_bytes(8, "little") + b"half",), [1], "ended before"),
        ("babbling", (b"ctx item" + (4).to_bytes(8, "little") + b"\xffodd",), [1], "ended before"),
        ("babbling", (b"ctx item\1",), [1], "no frame"),
        ("echo_of_nothing", (), [], "AttributeError"),
    ],
)
def test_what_goes_wrong_there_is_told_behind_what_came_whole(
    function: str, arguments: tuple[object, ...], came: list[object], why: str
) -> None:
    """An error, a kill, what is no data and rubbish all end in the same way, and asking again says the same."""
    items = run_in_second_process(f"{WORK}:{function}", *arguments)
    assert told(items)[0] == came
    with pytest.raises(ProcessLost, match=why):
        next(items)


@pytest.mark.usefixtures("_nothing_left")
def test_what_a_killed_process_had_sent_is_kept() -> None:
    """All but what was waiting to be sent comes whole and in order."""
    items = run_in_second_process(f"{WORK}:killed")
    came = told(items)[0]
    assert came == list(range(len(came)))
    assert 8 - WAITING - 1 <= len(came) <= 8
    with pytest.raises(ProcessLost, match="ended before"):
        next(items)


@pytest.mark.usefixtures("_nothing_left")
@pytest.mark.parametrize("executable", ["", "/nowhere/python", "/bin/true", str(ROOT)])
def test_what_can_not_be_started_is_lost(monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    """Without an interpreter that can be started there is no item, and no other error than the one that says so."""
    monkeypatch.setattr(sys, "executable", executable)
    came, why = told(run_in_second_process(f"{WORK}:echo", "x" * 1_000_000))
    assert came == []
    assert why
    monkeypatch.undo()
    assert told(run_in_second_process("tests.store.no_such_module:echo", 1))[1] is not None


@pytest.mark.usefixtures("_nothing_left")
def test_with_one_processor_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started where it would only take turns with this process, or where that is not wanted."""

    def start(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(subprocess, "Popen", start)
    assert is_of_use()
    monkeypatch.setenv("CTXMGR_PROCESSES", "1")
    assert not is_of_use()
    assert told(run_in_second_process(f"{WORK}:echo", 1)) == ([], "it can't be started: there is no processor for it")
    monkeypatch.setenv("CTXMGR_PROCESSES", "2")
    assert is_of_use()
    monkeypatch.setattr(os, "sched_getaffinity", {0: {3}}.get, raising=False)
    assert not is_of_use()
    assert told(run_in_second_process(f"{WORK}:echo", 1)) == ([], "it can't be started: there is no processor for it")


@pytest.mark.usefixtures("_nothing_left")
def test_a_process_that_is_not_wanted_any_more_is_ended(tmp_path: Path) -> None:
    """Closed, left, forgotten or full of what nobody reads: the process is gone and its lock is free."""
    lock = tmp_path / "lock"
    with run_in_second_process(f"{WORK}:holding", str(lock)) as left:
        process = next(left)
        assert not gone(process)
    assert gone(process)
    assert list(left) == []

    forgotten = run_in_second_process(f"{WORK}:holding", str(lock))
    process = next(forgotten)
    del forgotten
    assert gone(process)

    closed = run_in_second_process(f"{WORK}:echo", *["x" * 1_000_000] * 20)
    assert len(list(islice(closed, 3))) == 3
    closed.close()
    closed.close()
    run_in_second_process(f"{WORK}:counted", 1_000_000).close()
    with lock.open() as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_it_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    """When the process that asked is killed, the other one ends too, also in the middle of long work."""
    lock = tmp_path / "lock"
    asking = _started(f"""
items = run_in_second_process("{WORK}:holding", {str(lock)!r})
print(next(items), flush=True)
sys.stdin.read()
""")
    assert asking.stdout is not None
    assert int(asking.stdout.readline())
    with lock.open() as held:
        with pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        asking.kill()
        asking.communicate()
        deadline = time.monotonic() + 60
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                assert time.monotonic() < deadline
                time.sleep(0.01)


@pytest.mark.usefixtures("_nothing_left")
def test_an_interrupt_of_the_terminal_is_for_the_process_that_asked(tmp_path: Path) -> None:
    """The other process goes on; the one that waits for it is interrupted, and ends it."""
    assert told(run_in_second_process(f"{WORK}:interrupted")) == ([1, 2], None)
    lock = tmp_path / "lock"
    with pytest.raises(KeyboardInterrupt), run_in_second_process(f"{WORK}:interrupting", str(lock)) as items:
        next(items)
    with lock.open() as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(ProcessLost):
        next(items)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.slow
def test_a_fork_leaves_it_alone_and_an_end_leaves_nothing() -> None:
    """A forked process lets go of it without ending it; a program may end while it runs."""
    said = _said("""
items = run_in_second_process("tests.store.second_process_work:counted", 50_000)
next(items)
if not (fork := os.fork()):
    items.close()
    os._exit(0)
os.waitpid(fork, 0)
print(len(list(items)))
left = run_in_second_process("tests.store.second_process_work:counted", 50_000)
print(next(left))
""")
    assert said == ("49999\n(0, 'item 0')\n", "", 0)


@pytest.mark.cases(1)
@pytest.mark.parametrize("isolated", [False, True])
def test_the_package_is_the_same_there_and_nothing_is_printed(tmp_path: Path, isolated: bool) -> None:
    """From an archive, in an isolated interpreter and with another program in the way, the same modules are imported."""
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in [*(ROOT / "ctxmgr").rglob("*.py"), ROOT / "tests" / "store" / "second_process_work.py"]:
            zipped.write(path, path.relative_to(ROOT))
        for folder in ("tests", "tests/store"):
            zipped.writestr(f"{folder}/__init__.py", "")
    (tmp_path / "marshal.py").write_text("raise SystemExit")
    (tmp_path / "_thread.py").write_text("raise SystemExit")

    said = _said(f'print(*run_in_second_process("{WORK}:printing"))', place=archive, folder=tmp_path, isolated=isolated)
    assert said == (f"{archive / 'ctxmgr' / '__init__.py'}\n", "", 0)


def _said(code: str, place: Path = ROOT, folder: Path = ROOT, *, isolated: bool = False) -> tuple[str, str, int]:
    """Run a program to its end, and return what it said."""
    ended = _started(code, place, folder, isolated=isolated)
    output, complaint = ended.communicate(timeout=120)
    return output, complaint, ended.returncode


def _started(code: str, place: Path = ROOT, folder: Path = ROOT, *, isolated: bool = False) -> subprocess.Popen[str]:
    lines = f"""
import os, sys
sys.path.insert(0, {os.path.relpath(place, folder)!r})
from ctxmgr.store.worker_process import run_in_second_process
os.sched_getaffinity = lambda _: {{0, 1}}
"""
    return subprocess.Popen(
        [sys.executable, *(["-I"] if isolated else []), "-c", lines + code],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
