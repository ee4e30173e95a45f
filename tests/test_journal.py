"""What was acknowledged is in the log, whole, once, and chained, whatever the disk and other writers do."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import Busy, InvalidInput, NotFound, StorageFailed
from ctxmgr.journal import Journal, Line, read
from ctxmgr.wire import MAX_LINE, Record

SEED = 20_261_121


def _record(number: object, **more: object) -> Record:
    return {"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "agent": "a", "action": "b", "input": more}


def _read(path: Path, start: int = 0, last: str = "") -> tuple[list[Line], list[int]]:
    offsets: list[int] = []

    def note(offset: int, length: int, reason: str) -> None:
        del length, reason
        offsets.append(offset)

    return list(read(path, start, note, last)), offsets


def _ids(path: Path) -> list[object]:
    return [line.record["id"] for line in _read(path)[0]]


def test_an_append_is_one_write_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records of an append leave in one system call, and the file's length is returned."""
    writes: list[bytes] = []
    write = os.write
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: writes.append(data) or write(fd, data))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        length = journal.append([_record(1), _record(2), _record(3)])
        monkeypatch.undo()

    assert len(writes) == 1
    assert writes[0].count(b"\n") == 3
    assert length == path.stat().st_size
    assert _ids(path) == ["e1", "e2", "e3"]


def test_records_are_masked_and_chained(tmp_path: Path) -> None:
    """The sums verify over the masked bytes, across reopening, and a sum that a record brings along is replaced."""
    path = tmp_path / "a.jsonl"
    secret = "ghp_" + "a1" * 18
    for number in range(3):
        with Journal(path) as journal:
            journal.append([{**_record(number, text=secret), "sum": "0" * 16}])

    lines, damage = _read(path)

    assert [line.sum_ok for line in lines] == [True] * 3
    assert damage == []
    assert secret.encode() not in path.read_bytes()
    assert lines[0].record["input"] == {"text": "ghp_[masked:github]"}


def test_masking_can_be_turned_off(tmp_path: Path) -> None:
    """Without masking the record is kept as given."""
    with Journal(tmp_path / "a.jsonl", mask=False) as journal:
        journal.append([_record(1, text="ghp_" + "a1" * 18)])

    assert _read(tmp_path / "a.jsonl")[0][0].record["input"]["text"] == "ghp_" + "a1" * 18


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
        journal.append([_record(1), _record(2, bad=float("nan"))])

    assert path.stat().st_size == 0


def test_a_record_just_within_the_limit_can_be_read(tmp_path: Path) -> None:
    """What an append accepts, a reader accepts, sum included; one byte more is refused."""
    path = tmp_path / "a.jsonl"
    with Journal(path) as journal:
        spare = MAX_LINE - 27 - len(json.dumps(_record(1, t=""), separators=(",", ":")))
        journal.append([_record(1, t="x" * spare)])
        with pytest.raises(InvalidInput):
            journal.append([_record(2, t="x" * (spare + 1))])

    assert _ids(path) == ["e1"]


def test_every_cut_keeps_what_is_before_it_and_takes_an_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at each of 20,000 bytes: whole records before the cut are read, the next append is whole, nothing else.

    Each cut is read from two records before it, every hundredth from the start.
    """
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append([_record(number, text="x\n{" * 100) for number in range(50)])
    whole = path.read_bytes()
    lines = list(read(path))
    starts = [line.offset for line in lines] + [len(whole)]
    assert len(whole) > 20_000
    with path.open("r+b", buffering=0) as stream:
        for cut in range(len(whole) - 1, -1, -1):
            stream.truncate(cut)
            journal.append([_record("new")])
            kept = sum(end - 1 <= cut for end in starts[1:])
            first = 0 if cut % 100 == 0 else max(0, kept - 2)
            found, damage = _read(path, starts[first], lines[first - 1].total if first else "")

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
            journals[number % 2].append([_record(f"{worker}-{number}", text="x" * size)])

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for journal in journals:
        journal.close()

    lines, damage = _read(path)
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
    journal.append([_record("first")])
    ready, go = os.pipe()

    def work(worker: int) -> None:
        os.close(go)
        os.read(ready, 1)  # returns when the parent closes its end
        for number in range(200):
            journal.append([_record(f"{worker}-{number}", text="x" * (number % 7) * 100)])

    children = [_fork(lambda worker=worker: work(worker)) for worker in range(8)]
    os.close(go)
    os.close(ready)

    assert _wait(children) == [0] * 8
    journal.append([_record("last")])
    journal.close()
    lines, damage = _read(path)
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
            journal.append([_record(1)])

    assert _wait([_fork(work)]) == [0]
    with pytest.raises(Busy):
        journal.append([_record(1)])
    assert path.stat().st_size == 0

    os.close(holder)
    journal.append([_record(1)])
    journal.close()
    assert _ids(path) == ["e1"]


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    """At each of many file size limits the append that does not fit raises, cuts its bytes off, and recording resumes."""
    program = """
import resource, sys
from ctxmgr.errors import StorageFailed
from ctxmgr.journal import Journal, read
path, limit = sys.argv[1], int(sys.argv[2])
acknowledged = []
journal = Journal(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
refused = 0
for number in range(40):
    record = {"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "input": "x" * (number * 7)}
    before = __import__("os").path.getsize(path)
    try:
        journal.append([record])
        acknowledged.append(record["id"])
    except StorageFailed as error:
        refused += 1
        assert error.hint and error.retryable
        assert __import__("os").path.getsize(path) == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append([{"v": 1, "kind": "entry", "session": "s", "id": "after"}])
damage = []
lines = list(read(path, damage=lambda *report: damage.append(report)))
assert [line.record["id"] for line in lines] == [*acknowledged, "after"]
assert all(line.sum_ok for line in lines) and not damage and refused, (damage, refused)
"""
    for limit in (1, 100, 1_000, 1_777, 4_096):
        path = tmp_path / f"{limit}.jsonl"
        done = subprocess.run([sys.executable, "-c", program, str(path), str(limit)], capture_output=True, text=True)

        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_write_error_half_way_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A short write followed by an error leaves the file as it was, and the next append is whole."""
    path = tmp_path / "a.jsonl"
    write = os.write
    journal = Journal(path)
    journal.append([_record(1)])
    before = path.read_bytes()

    def short(descriptor: int, data: bytes | memoryview) -> int:
        if isinstance(data, memoryview):
            raise OSError(code, os.strerror(code))
        return write(descriptor, data[:17])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(StorageFailed, match=r"a\.jsonl"):
        journal.append([_record(2)])
    monkeypatch.undo()

    assert path.read_bytes() == before
    journal.append([_record(3)])
    journal.close()
    assert _ids(path) == ["e1", "e3"]
    assert _read(path)[1] == []


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system takes a record in pieces, the record arrives whole: 0 torn of 200."""
    path = tmp_path / "a.jsonl"
    write = os.write
    source = random.Random(SEED)
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: source.randrange(1, 60)]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        for number in range(200):
            journal.append([_record(number)])
        monkeypatch.undo()

    lines, damage = _read(path)
    assert len(lines) == 200
    assert damage == []


def test_when_cutting_back_fails_the_torn_line_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torn tail that could not be removed stays, is reported, and costs no other record."""
    path = tmp_path / "a.jsonl"
    write = os.write
    journal = Journal(path)
    journal.append([_record(1)])

    def refuse(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    monkeypatch.setattr(os, "write", lambda fd, data: refuse() if isinstance(data, memoryview) else write(fd, data[:17]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(StorageFailed):
        journal.append([_record(2)])
    monkeypatch.undo()
    journal.append([_record(3)])
    journal.close()

    lines, damage = _read(path)
    assert [line.record["id"] for line in lines] == ["e1", "e3"]
    assert all(line.sum_ok for line in lines)
    assert len(damage) == 1


def test_level_os_syncs_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each append is followed by a sync of the file, and opening by a sync of its folder."""
    synced: list[bool] = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    journal = Journal(tmp_path / "new" / "a.jsonl", durability="os")
    assert synced == [True, True]

    journal.append([_record(1)])
    assert synced[2:] == [False]

    journal.append([_record(2)])
    assert synced[3:] == [False]


def test_a_failed_sync_is_never_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `os` the record is cut off again, the descriptor is given up, and the next append opens the file anew."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path, durability="os")
    journal.append([_record(1)])
    opened: list[object] = []
    real_open = os.open

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(StorageFailed):
        journal.append([_record(2)])
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", lambda *args: opened.append(args[0]) or real_open(*args))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    journal.append([_record(3)])
    journal.close()

    assert str(path) in opened
    assert _ids(path) == ["e1", "e3"]


def test_a_late_sync_failure_is_raised_by_the_next_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `process` a sync that failed behind the agent's back is told once; then recording goes on."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append([_record(1)])

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    journal.sync_from_thread()
    with pytest.raises(StorageFailed, match="could not be synced"):
        journal.append([_record(2)])
    monkeypatch.undo()
    journal.append([_record(3)])
    journal.close()

    assert _ids(path) == ["e1", "e3"]


def test_appended_records_are_synced_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `process` a thread syncs what was appended, without any further call."""
    synced = threading.Event()
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: synced.set())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    journal = Journal(tmp_path / "a.jsonl")
    assert not synced.is_set()

    journal.append([_record(1)])

    assert synced.wait(10)
    journal.close()


def test_closing_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that ends in order leaves nothing unsynced; a later append opens the file again."""
    synced: list[int] = []
    journal = Journal(tmp_path / "a.jsonl")
    journal.append([_record(1)])
    monkeypatch.setattr(os, "fdatasync", synced.append)

    journal.close()
    assert len(synced) == 1

    journal.append([_record(2)])
    journal.close()
    assert _ids(tmp_path / "a.jsonl") == ["e1", "e2"]


def test_no_new_thread_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be started, the append syncs by itself."""
    synced: list[int] = []

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    journal = Journal(tmp_path / "a.jsonl")
    journal.append([_record(1)])

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
                journal.append([_record(1)])
        finally:
            process.send_signal(signal.SIGKILL)

    assert caught.value.retryable
    journal.append([_record(2)])
    journal.close()
    assert _ids(path) == ["e2"]


def test_a_folder_that_may_not_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """Another user who may not write gets a typed error with a hint, and nothing is made."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    program = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from ctxmgr.errors import StorageFailed
from ctxmgr.journal import Journal
try:
    Journal(sys.argv[1])
except StorageFailed as error:
    print(error.kind, bool(error.hint))
"""
    # Modules are loaded before the user changes: the interpreter may lie where that user can't read.
    program = "import ctxmgr.journal\n" + program
    folder = tmp_path / "closed"
    folder.mkdir(0o755)
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & stat.S_IXOTH:
            folder.parent.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", program, str(folder / "a.jsonl")], capture_output=True, text=True)

    assert done.stdout == "storage True\n", done.stderr
    assert list(folder.iterdir()) == []
