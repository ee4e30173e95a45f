"""When the disk refuses, nothing acknowledged is lost, no half record is left, and recording resumes by itself."""

from __future__ import annotations

import errno
import os
import random
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.log.journal import Journal
from tests.journals import ids, read_log, record

SEED = 20_261_121


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    """At each of many file size limits the append that does not fit raises, cuts its bytes off, and recording resumes."""
    program = """
import resource, sys
from ctxmgr.errors import StorageFailed
from ctxmgr.log.journal import Journal, read
path, limit = sys.argv[1], int(sys.argv[2])
acknowledged = []
journal = Journal(path)
sys.dont_write_bytecode = True  # some Pythons keep a compiled module that the limit cut off
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
    journal.append([record(1)])
    before = path.read_bytes()

    def short(descriptor: int, data: bytes | memoryview) -> int:
        if isinstance(data, memoryview):
            raise OSError(code, os.strerror(code))
        return write(descriptor, data[:17])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(StorageFailed, match=r"a\.jsonl"):
        journal.append([record(2)])
    monkeypatch.undo()

    assert path.read_bytes() == before
    journal.append([record(3)])
    journal.close()
    assert ids(path) == ["e1", "e3"]
    assert read_log(path)[1] == []


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the system takes a record in pieces, the record arrives whole: 0 torn of 200."""
    path = tmp_path / "a.jsonl"
    write = os.write
    source = random.Random(SEED)
    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: source.randrange(1, 60)]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        for number in range(200):
            journal.append([record(number)])
        monkeypatch.undo()

    lines, damage = read_log(path)
    assert len(lines) == 200
    assert damage == []


def test_when_cutting_back_fails_the_torn_line_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torn tail that could not be removed stays, is reported, and costs no other record."""
    path = tmp_path / "a.jsonl"
    write = os.write
    journal = Journal(path)
    journal.append([record(1)])

    def refuse(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    monkeypatch.setattr(os, "write", lambda fd, data: refuse() if isinstance(data, memoryview) else write(fd, data[:17]))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(StorageFailed):
        journal.append([record(2)])
    monkeypatch.undo()
    journal.append([record(3)])
    journal.close()

    lines, damage = read_log(path)
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

    journal.append([record(1)])
    assert synced[2:] == [False]

    journal.append([record(2)])
    assert synced[3:] == [False]


def test_a_failed_sync_is_never_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `os` the record is cut off again, the descriptor is given up, and the next append opens the file anew."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path, durability="os")
    journal.append([record(1)])
    opened: list[object] = []
    real_open = os.open

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    with pytest.raises(StorageFailed):
        journal.append([record(2)])
    monkeypatch.undo()

    def note(path: object, *args: Any, **options: Any) -> int:
        opened.append(path)
        return real_open(cast("str", path), *args, **options)

    monkeypatch.setattr(os, "open", note)
    journal.append([record(3)])
    journal.close()
    monkeypatch.undo()

    assert str(path) in opened
    assert ids(path) == ["e1", "e3"]


def test_a_late_sync_failure_is_raised_by_the_next_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level `process` a sync that failed behind the agent's back is told once; then recording goes on."""
    path = tmp_path / "a.jsonl"
    journal = Journal(path)
    journal.append([record(1)])

    def refuse(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", refuse)
    journal.sync_from_thread()
    with pytest.raises(StorageFailed, match="could not be synced"):
        journal.append([record(2)])
    monkeypatch.undo()
    journal.append([record(3)])
    journal.close()

    assert ids(path) == ["e1", "e3"]


def test_a_folder_that_may_not_be_written_is_a_storage_error(tmp_path: Path) -> None:
    """Another user who may not write gets a typed error with a hint, and nothing is made."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    program = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from ctxmgr.errors import StorageFailed
from ctxmgr.log.journal import Journal
try:
    Journal(sys.argv[1])
except StorageFailed as error:
    print(error.kind, bool(error.hint))
"""
    # Modules are loaded before the user changes: the interpreter may lie where that user can't read.
    program = "import ctxmgr.log.journal, ctxmgr.log.masking\n" + program
    folder = tmp_path / "closed"
    folder.mkdir(0o755)
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & stat.S_IXOTH:
            folder.parent.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", program, str(folder / "a.jsonl")], capture_output=True, text=True)

    assert done.stdout == "storage True\n", done.stderr
    assert list(folder.iterdir()) == []
