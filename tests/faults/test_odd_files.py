"""Pipes, devices and sparse files in the place of a log: nobody waits for them, and no hole is read."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.history.formats import holds_own_records, looks_like, read_head
from ctxmgr.history.live.record_sources import LogTail
from ctxmgr.importers.codex.head import read_log
from ctxmgr.importers.log_files import open_plain
from ctxmgr.log import reader
from ctxmgr.log.journal import Journal
from ctxmgr.store import open_store
from ctxmgr.store.repositories.bookkeeping import FileState

GIGA = 1 << 30


@pytest.fixture(autouse=True)
def _no_endless_wait() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError("it waits for something that never comes")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    yield
    signal.alarm(0)


def _ignore(offset: int, length: int, reason: str) -> None:
    del offset, length, reason


READERS: dict[str, Callable[[Path], object]] = {
    "head": read_head,
    "own records": holds_own_records,
    "state": FileState.read,
    "Codex": lambda path: list(read_log(path, _ignore)),
    "Claude Code": open_plain,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_file_that_is_none_is_refused(what: str, name: str, tmp_path: Path) -> None:
    """A log may be replaced by a pipe after it was looked at; who opens it then neither waits nor reads without end."""
    path = tmp_path / "log.jsonl"
    os.mkfifo(path) if what == "pipe" else path.symlink_to("/dev/zero")

    with pytest.raises(OSError, match="not a regular file"):
        READERS[name](path)


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_followed_log_that_becomes_a_pipe_is_away(what: str, tmp_path: Path) -> None:
    """A follower takes a pipe in the place of its log for a log that is not there."""
    path = tmp_path / "log.jsonl"
    os.mkfifo(path) if what == "pipe" else path.symlink_to("/dev/zero")

    assert LogTail(path).poll() is None


def _entry(number: int) -> dict[str, Any]:
    return {"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "agent": "a", "action": "look", "input": number,
            "ts": "2026-01-22T10:00:00Z"}  # fmt: skip


def _sparse(path: Path, before: bytes, after: bytes) -> None:
    """Write a file with a hole of some gigabytes, and leave it out where the file system can't hold one."""
    with path.open("wb") as stream:
        stream.write(before)
        stream.truncate(8 * GIGA)
        stream.seek(0, os.SEEK_END)
        stream.write(after)
    if os.stat(path).st_blocks > 1 << 16 or not hasattr(os, "SEEK_DATA") or not Path("/proc/self/io").exists():
        pytest.skip("no sparse files here, or nothing tells how much is read")


def _bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


LINE = b"".join(json.dumps(_entry(number)).encode() + b"\n" for number in (0, 1))
BEHIND = b"".join(json.dumps(_entry(number)).encode() + b"\n" for number in (2, 3))


@pytest.mark.cases(1)
@pytest.mark.parametrize("torn", [b"", b'{"v":1,"kind":"en'], ids=["NULs alone", "a torn record and NULs"])
def test_a_hole_is_passed_over_and_not_read(torn: bytes, tmp_path: Path) -> None:
    """What lies before and behind a hole is read, the hole is told as damage, and its gigabytes are not read."""
    path = tmp_path / "log.jsonl"
    _sparse(path, LINE + torn, b"\n" * bool(torn) + BEHIND)
    damage: list[tuple[int, int]] = []
    began = _bytes_read()

    read = [
        line.record["input"] for line in reader.read(path, damage=lambda offset, length, _: damage.append((offset, length)))
    ]
    assert read == [0, 1, 2, 3]
    assert [offset for offset, _ in damage] == [len(LINE)]
    assert 8 * GIGA - len(LINE) <= damage[0][1] <= 8 * GIGA
    assert len(list(getattr(LogTail(path).poll(), "records"))) == 4  # noqa: B009 - None has no records
    assert holds_own_records(path)
    with closing(open_store(str(path))) as store:
        assert [record["input"] for record in store.sessions.records(None)] == [0, 1, 2, 3]
    assert _bytes_read() - began < GIGA


def test_a_log_that_ends_in_a_hole_is_read_and_written_on(tmp_path: Path) -> None:
    """A file that was made large in advance is followed to its last line, and what is appended lies behind the hole."""
    path = tmp_path / "log.jsonl"
    _sparse(path, LINE, b"")
    began = _bytes_read()

    batch = LogTail(path).poll()
    assert batch is not None
    assert [record["input"] for record in batch.records] == [0, 1]
    with Journal(path) as journal:
        journal.append([_entry(4)])
    assert [line.record["input"] for line in reader.read(path)] == [0, 1, 4]
    assert _bytes_read() - began < GIGA


def test_a_file_of_nuls_looks_like_binary_data() -> None:
    """There is no JSON in it that could be damaged."""
    assert looks_like(b"\0" * 100) == "binary data"
