"""What a recorder commits to a database at level ``process`` is synced behind its back, within a second."""

from __future__ import annotations

import _thread
import errno
import os
import threading
from pathlib import Path

import pytest

from bench import power
from ctxmgr.errors import StorageFailed
from ctxmgr.log import anchor
from ctxmgr.log.sync_thread import SYNC_EVERY
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from tests import builders as b


class _Synced:
    """Names of the files that were synced from outside of SQLite."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failure: int = 0) -> None:
        self.names: list[str] = []
        self.once = threading.Event()
        self._failure = failure
        monkeypatch.setattr(os, "fdatasync", self._sync)

    def _sync(self, descriptor: int) -> None:
        self.names.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        self.once.set()
        if self._failure:
            raise OSError(self._failure, os.strerror(self._failure))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Name a database."""
    return tmp_path / "run.db"


def test_what_was_committed_is_synced_by_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any further call the write-ahead log is synced, and then the anchor says so; half a second is waited."""
    synced = _Synced(monkeypatch)
    recorder = Recorder(place, session="s")
    recorder.entry("a", "act", 1)

    assert synced.once.wait(20)
    assert SYNC_EVERY <= 0.5
    assert set(synced.names) == {"run.db-wal"}
    recorder.end()


def test_only_the_log_is_opened_beside_sqlite(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database and its ``-shm`` file, on which SQLite holds locks, are opened by nobody but SQLite."""
    opened: list[str] = []
    real_open = os.open

    def opening(path: str, flags: int, *arguments: int, dir_fd: int | None = None) -> int:
        if not flags & os.O_CREAT:
            opened.append(os.path.basename(os.fspath(path)))
        return real_open(path, flags, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    synced = _Synced(monkeypatch)
    recorder = Recorder(place, session="s")
    recorder.entry("a", "act", 1)
    assert synced.once.wait(20)
    recorder.end()

    assert "run.db-wal" in opened
    assert not {"run.db", "run.db-shm"} & set(opened)


def test_a_late_failure_is_told_by_the_next_append(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that failed behind the agent's back is told once; then recording goes on."""
    store = open_store(str(place), create=True)
    b.write(store, "s", ["Bash:ls"])
    synced = _Synced(monkeypatch, errno.EIO)
    b.write(store, "s", ["Bash:pwd"])
    assert synced.once.wait(20)
    told = 0
    for number in range(200):
        try:
            b.write(store, f"t{number}", ["Bash:ls"])
        except StorageFailed as error:
            told += "could not be synced" in error.message
            break
        synced.once.clear()
        synced.once.wait(1)
    monkeypatch.undo()
    b.write(store, "u", ["Bash:ls"])

    assert told == 1
    store.close()


def test_closing_syncs_what_another_connection_keeps_open(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody else has the database open, closing moves nothing into it: then the log is synced."""
    other = open_store(str(place), create=True)
    b.write(other, "s", ["Bash:ls"])
    store = open_store(str(place))
    b.write(store, "t", ["Bash:ls"])
    synced = _Synced(monkeypatch)
    store.close()

    assert "run.db-wal" in synced.names
    other.close()


def test_no_new_thread_is_no_reason_to_fail(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be started, each commit syncs by itself."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    synced = _Synced(monkeypatch)
    store = open_store(str(place), create=True)
    b.write(store, "s", ["Bash:ls"])

    assert "run.db-wal" in synced.names
    store.close()


def test_reading_syncs_and_anchors_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who only reads leaves no trace."""
    store = open_store(str(place), create=True)
    b.write(store, "s", ["Bash:ls"])
    store.close()
    kept = Path(anchor.anchor_path(str(place))).stat().st_mtime_ns
    synced = _Synced(monkeypatch)
    reading = open_store(str(place), readonly=True)
    reading.verify()
    reading.close()

    assert synced.names == []
    assert Path(anchor.anchor_path(str(place))).stat().st_mtime_ns == kept


def test_an_anchor_never_moves_back(store: Store, store_path: Path) -> None:
    """A writer that is behind another one leaves the anchor where it is."""
    b.write(store, "s", ["Bash:ls", "Read:a"])
    store.close()
    found = anchor.load(str(store_path))
    assert found is not None
    behind = anchor.Anchor(1, "0" * 16, "s", found.inode)

    assert anchor.advance(str(store_path), behind, lambda _: True)
    again = anchor.load(str(store_path))
    assert again is not None
    assert again.has_same_end(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_a_power_cut_costs_at_most_a_second(kind: str, tmp_path: Path) -> None:
    """After a real file system lost its power the history is a prefix, and nothing older than a second is gone."""
    if reason := power.available():
        pytest.skip(reason)
    found = power.apart(kind, "process", 1, tmp_path)
    if "skip" in found:
        pytest.skip(str(found["skip"]))

    assert int(str(found["acknowledged"])) > 0
    assert not found["broken"], found
