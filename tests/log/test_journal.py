"""What was acknowledged is in the log, whole, once, and chained, whatever the disk and other writers do."""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import Busy, InvalidInput, NotFound, StorageFailed
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.journal import Journal, read
from tests.journals import ids, read_log, record

SEED = 20_261_121


def test_an_append_is_one_write_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records of an append leave in one system call, and the file's length is returned."""
    writes: list[bytes] = []
    write = os.write
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or write(fd, data))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        length = journal.append([record(1), record(2), record(3)])
        monkeypatch.undo()

    assert len(writes) == 1
    assert writes[0].count(b"\n") == 3
    assert length == path.stat().st_size
    assert ids(path) == ["e1", "e2", "e3"]


def test_records_are_masked_and_chained(tmp_path: Path) -> None:
    """The sums verify over the masked bytes, across reopening, and a sum that a record brings along is replaced."""
    path = tmp_path / "a.jsonl"
    secret = "ghp_" + "a1" * 18
    for number in range(3):
        with Journal(path) as journal:
            journal.append([{**record(number, text=secret), "sum": "0" * 16}])

    lines, damage = read_log(path)

    assert [line.sum_ok for line in lines] == [True] * 3
    assert damage == []
    assert secret.encode() not in path.read_bytes()
    assert lines[0].record["input"] == {"text": "ghp_[masked:github]"}


def test_masking_can_be_turned_off(tmp_path: Path) -> None:
    """Without masking the record is kept as given."""
    with Journal(tmp_path / "a.jsonl", mask=False) as journal:
        journal.append([record(1, text="ghp_" + "a1" * 18)])

    assert read_log(tmp_path / "a.jsonl")[0][0].record["input"]["text"] == "ghp_" + "a1" * 18


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """A new log has mode 0600 and every new folder 0700."""
    path = tmp_path / "one" / "two" / "a.jsonl"
    before = os.umask(umask)
    try:
        Journal(path).close()
    finally:
        os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_a_missing_log_is_not_made_unasked(tmp_path: Path) -> None:
    """With create=False a missing file is an error and stays missing."""
    with pytest.raises(NotFound):
        Journal(tmp_path / "a.jsonl", create=False)

    assert not (tmp_path / "a.jsonl").exists()


def test_only_regular_files_are_logs(tmp_path: Path) -> None:
    """A pipe or a folder is refused without waiting for anybody."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(InvalidInput):
        Journal(tmp_path / "pipe")
    with pytest.raises(StorageFailed):
        Journal(tmp_path)


def test_a_record_that_is_no_json_writes_nothing(tmp_path: Path) -> None:
    """One bad record of an append keeps all of them out."""
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal, pytest.raises(InvalidInput):
        journal.append([record(1), record(2, bad=float("nan"))])

    assert path.stat().st_size == 0


@pytest.mark.slow
def test_a_record_just_within_the_limit_can_be_read(tmp_path: Path) -> None:
    """What an append accepts, a reader accepts, sum included; one byte more is refused."""
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        spare = MAX_LINE - 27 - len(json.dumps(record(1, t=""), separators=(",", ":")))
        journal.append([record(1, t="x" * spare)])
        with pytest.raises(InvalidInput):
            journal.append([record(2, t="x" * (spare + 1))])

    assert ids(path) == ["e1"]


@pytest.mark.slow
def test_every_cut_keeps_what_is_before_it_and_takes_an_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at each of 20,000 bytes: whole records before the cut are read, the next append is whole, nothing else.

    Each cut is read from two records before it, every hundredth from the start.
    """
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append([record(number, text="x\n{" * 100) for number in range(50)])
    whole = path.read_bytes()
    lines = list(read(path))
    starts = [line.offset for line in lines] + [len(whole)]
    assert len(whole) > 20_000
    with path.open("r+b", buffering=0) as stream:
        for cut in range(len(whole) - 1, -1, -1):
            stream.truncate(cut)
            journal.append([record("new")])
            kept = sum(end - 1 <= cut for end in starts[1:])
            first = 0 if cut % 100 == 0 else max(0, kept - 2)
            found, damage = read_log(path, starts[first], lines[first - 1].total if first else "")

            assert [line.record["id"] for line in found] == [f"e{number}" for number in range(first, kept)] + ["enew"]
            assert all(line.sum_ok for line in found)
            assert damage == ([] if cut in starts or cut + 1 in starts else [starts[kept]]), cut
    journal.close()


@pytest.mark.parametrize("size", [0, 100_000])
def test_writers_in_one_process_keep_one_chain(tmp_path: Path, size: int) -> None:
    """Two journals and two threads that take turns on one file leave whole lines and one unbroken chain."""
    path = tmp_path / "a.jsonl"
    journals = [Journal(path), Journal(path)]

    def work(worker: int) -> None:
        for number in range(20):
            journals[number % 2].append([record(f"{worker}-{number}", text="x" * size)])

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for journal in journals:
        journal.close()

    lines, damage = read_log(path)
    assert len({line.record["id"] for line in lines}) == len(lines) == 40
    assert all(line.sum_ok for line in lines)
    assert damage == []


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        os._exit(1)
    os._exit(0)


def _wait(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_eight_processes_share_one_log(tmp_path: Path) -> None:
    """8 processes of 200 appends each, started together, all with the journal of their parent: all whole, one chain."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append([record("first")])
    ready, go = os.pipe()

    def work(worker: int) -> None:
        os.close(go)
        os.read(ready, 1)  # returns when the parent closes its end
        for number in range(200):
            journal.append([record(f"{worker}-{number}", text="x" * (number % 7) * 100)])

    children = [_fork(lambda worker=worker: work(worker)) for worker in range(8)]
    os.close(go)
    os.close(ready)

    assert _wait(children) == [0] * 8
    journal.append([record("last")])
    journal.close()
    lines, damage = read_log(path)
    assert len({line.record["id"] for line in lines}) == len(lines) == 1_602
    assert all(line.sum_ok for line in lines)
    assert damage == []
    for worker in range(8):
        own = [line.record["id"] for line in lines if str(line.record["id"]).startswith(f"e{worker}-")]
        assert own == [f"e{worker}-{number}" for number in range(200)]


def test_a_child_is_locked_out_by_its_parent(tmp_path: Path) -> None:
    """After a fork the child has a lock of its own: while the parent holds the file, the child gets `Busy`."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path, timeout=0.01)
    holder = os.open(path, os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)

    def work() -> None:
        with pytest.raises(Busy):
            journal.append([record(1)])

    assert _wait([_fork(work)]) == [0]
    with pytest.raises(Busy):
        journal.append([record(1)])
    assert path.stat().st_size == 0

    os.close(holder)
    journal.append([record(1)])
    journal.close()
    assert ids(path) == ["e1"]


def test_appended_records_are_synced_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `process` a thread syncs what was appended, without any further call."""
    synced = threading.Event()
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.set())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    journal = Journal(tmp_path / "a.jsonl")
    assert not synced.is_set()

    journal.append([record(1)])

    assert synced.wait(10)
    journal.close()


def test_closing_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that ends in order leaves nothing unsynced; a later append opens the file again."""
    synced: list[int] = []
    journal = Journal(tmp_path / "a.jsonl")
    journal.append([record(1)])
    monkeypatch.setattr(os, "fdatasync", synced.append)

    journal.close()
    assert len(synced) == 1

    journal.append([record(2)])
    journal.close()
    assert ids(tmp_path / "a.jsonl") == ["e1", "e2"]


def test_no_new_thread_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be started, the append syncs by itself."""
    synced: list[int] = []

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    journal = Journal(tmp_path / "a.jsonl")
    journal.append([record(1)])

    assert len(synced) == 1


def test_a_stopped_holder_makes_others_busy(tmp_path: Path) -> None:
    """When the process that holds the lock is stopped, an append gives up with `Busy` and writes nothing."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path, timeout=0.05)
    holder = """
import fcntl, os, signal, sys
stream = open(sys.argv[1], "r+b")
fcntl.flock(stream, fcntl.LOCK_EX)
print(1, flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""
    with subprocess.Popen([sys.executable, "-c", holder, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            with pytest.raises(Busy) as caught:
                journal.append([record(1)])
        finally:
            process.send_signal(signal.SIGKILL)

    assert caught.value.retryable
    journal.append([record(2)])
    journal.close()
    assert ids(path) == ["e2"]


def test_a_signal_handler_gets_an_error_and_no_deadlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that records while it interrupts an append is refused at once; the append itself is whole."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    refused: list[Busy] = []
    write = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        signal.raise_signal(signal.SIGUSR1)
        return write(descriptor, data)

    def handle(*_: object) -> None:
        with pytest.raises(Busy) as caught:
            journal.append([record("handler")])
        refused.append(caught.value)

    before = signal.signal(signal.SIGUSR1, handle)
    monkeypatch.setattr(os, "write", interrupted)
    try:
        journal.append([record(1)])
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGUSR1, before)
    journal.append([record(2)])
    journal.close()

    assert len(refused) == 1
    assert ids(path) == ["e1", "e2"]


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal opened by a relative path stays with its file when it is opened again from elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    journal = Journal("a.jsonl")
    journal.append([record(1)])
    journal.close()
    monkeypatch.chdir(tmp_path / "elsewhere")
    journal.append([record(2)])
    journal.close()

    assert ids(tmp_path / "a.jsonl") == ["e1", "e2"]
    assert not (tmp_path / "elsewhere" / "a.jsonl").exists()
