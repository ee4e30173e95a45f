"""Several processes on one store: nothing is lost, nothing is numbered twice, nobody sees a half."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.errors import Busy
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import sqlite
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.types.query import Filters
from tests.builders import entry, steps, write
from tests.store import workers


def _ids(store: Store, session: str | None = None) -> list[str]:
    key = None if session is None else store.sessions.key(session)
    return [str(record["id"]) for record in store.sessions.records(key, ("entry",))]


@pytest.mark.slow
@pytest.mark.requirement("EC-6")
def test_eight_processes_append_at_once(store_path: Path) -> None:
    """Eight processes that create one store and append 100 entries each lose none, and every index is dense."""
    workers.run_together(workers.APPEND, store_path, [{"session": f"p{number}", "count": 100} for number in range(8)])

    store = open_store(str(store_path))
    assert sorted(_ids(store)) == sorted(f"p{worker}-{number}" for worker in range(8) for number in range(100))
    for key, session in store.sessions.page(0, None):
        views, total, _ = store.queries.entries(key, Filters(), 0, None)
        assert [view.index for view in views] == list(range(400 if session.session == "shared" else 50))
        assert total == session.entries
    shared = store.queries.entries(store.sessions.key("shared") or 0, Filters(), 0, None)[0]
    for worker in range(8):  # each process's own entries stand in the order in which it appended them
        own = [view.id for view in shared if view.process == f"p{worker}"]
        assert own == [f"p{worker}-{number}" for number in range(0, 100, 2)]
    assert store.verify() == (800, [])
    store.close()


@pytest.mark.slow
def test_killed_writers_lose_nothing_they_acknowledged(store_path: Path) -> None:
    """After each of ten kills every acknowledged batch is whole, and what survives has no gap."""
    acknowledged = workers.run(workers.KILLED, store_path, {"cycles": 10})

    store = open_store(str(store_path))
    assert len(acknowledged) == 10
    assert any(acknowledged)
    for cycle, batches in enumerate(acknowledged):
        views, *_ = store.queries.entries(store.sessions.key(f"c{cycle}") or 0, Filters(), 0, None)
        assert [view.id for view in views] == [f"c{cycle}-e{number:04}" for number in range(len(views))]
        assert len(views) >= 3 * batches
        if store_path.suffix == ".db":
            assert len(views) % 3 == 0
    store.close()


def test_a_kill_in_the_middle_of_a_batch_leaves_nothing_of_it(store: Store, store_path: Path) -> None:
    """A writer that dies while it hands over a batch leaves the store as it was before, ready for the next."""
    before = write(store, "s", ["Bash:old"])

    worker = workers.start(workers.SUICIDE, store_path)
    worker.communicate()

    assert worker.returncode == -signal.SIGKILL
    again = open_store(str(store_path))
    assert list(again.sessions.records(None)) == before
    again.append(steps("s", ["Bash:after"], start=1))
    assert _ids(again, "s") == ["s-e0000", "s-e0001"]
    assert again.verify()[1] == []
    again.close()


def test_readers_see_whole_batches_only(store: Store, store_path: Path) -> None:
    """A reader that looks between the records of a batch sees nothing of it, and all of it afterwards."""
    write(store, "s", ["Bash:old"])
    reader = open_store(store.location, readonly=True)
    log = store_path.read_bytes() if store_path.suffix == ".jsonl" else b""
    seen: list[int] = []

    def batch() -> Iterator[Record]:
        for record in steps("s", ["Bash:1", "Bash:2"], start=1):
            yield record
            seen.append(len(_ids(reader)))
            assert not log or store_path.read_bytes() == log

    store.append(batch())
    later = open_store(store.location, readonly=True)

    assert seen == [1, 1, 1, 1]
    assert len(_ids(later)) == 3
    for opened in (reader, later):
        opened.close()


@pytest.mark.only_files("speaks of a second SQLite connection")
def test_a_foreign_connection_may_read_while_we_write(store_path: Path) -> None:
    """A connection that is not ours, in the middle of a transaction, neither blocks writing nor sees it."""
    store = open_store(str(store_path.with_suffix(".db")), create=True)
    write(store, "s", ["Bash:old"])
    foreign = SqliteEngine(store.location)
    foreign.execute("BEGIN")
    before = foreign.query("SELECT count(*) FROM record")

    write(store, "s", ["Bash:new"] * 20)

    assert foreign.query("SELECT count(*) FROM record") == before == [(2,)]
    foreign.execute("COMMIT")
    assert foreign.query("SELECT count(*) FROM record") == [(42,)]
    foreign.close()
    store.close()


def test_a_writer_that_never_ends_is_reported_as_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another connection holds the write lock for too long, an append fails as busy and may be tried again."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    holder = SqliteEngine(store.location)
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite, "BUSY_MS", 20)

    with pytest.raises(Busy, match="another process") as caught:
        store.append([entry("s", 0)])

    assert caught.value.retryable
    holder.execute("ROLLBACK")
    assert store.append([entry("s", 0)]).added == 1
    holder.close()
    store.close()


def test_a_second_store_object_sees_what_the_first_appended(store: Store) -> None:
    """Two objects on one place, writing by turns, keep one order and one chain of sums."""
    other = open_store(store.location)
    for number in range(6):
        (store, other)[number % 2].append([entry("s", number)])

    fresh = open_store(store.location, readonly=True)
    assert _ids(fresh, "s") == [f"s-e{number:04}" for number in range(6)]
    assert fresh.verify() == (6, [])
    for opened in (other, fresh):
        opened.close()


def test_a_store_may_be_used_by_another_thread(store: Store) -> None:
    """A store opened in one thread can be written and read in another."""
    thread = threading.Thread(target=write, args=(store, "s", ["Bash:ls"]))
    thread.start()
    thread.join()

    assert _ids(store) == ["s-e0000"]
