"""Stores of earlier versions on a server: what is read before a migration, and what goes on during and behind one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from ctxmgr.errors import Damaged, StorageFailed
from ctxmgr.store import administer, open_store
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.server_store import report_alive
from ctxmgr.store.write.append import Appender
from ctxmgr.store.write.append_on_server import ServerAppender
from ctxmgr.types.query import Filters
from tests.builders import entry, steps, write
from tests.store.common_chain import chain_together


@pytest.fixture
def former(server_url: str, admin: psycopg.Connection[Any]) -> Iterator[str]:
    """Make a store of the first version, with records of three sessions, and return its URL."""
    admin.execute("DROP SCHEMA IF EXISTS ctxmgr CASCADE")
    engine = PostgresqlEngine(server_url)
    for statement in postgresql_schema.statements():
        engine.run(statement)
    with engine.transaction():
        engine.execute("ALTER TABLE ctxmgr.session ADD COLUMN sum TEXT")
        Appender(engine).append([*steps("a", ["Bash:x"] * 3), *steps("b", ["Bash:y"] * 2), *steps("c", ["Read:z"])])
        chain_together(engine)
    engine.close()
    yield server_url
    admin.execute("DROP SCHEMA ctxmgr CASCADE")


@pytest.fixture
def previous(former: str) -> str:
    """Make a store of the second version of that of the first, with more records, and return its URL."""
    engine = PostgresqlEngine(former)
    with engine.transaction():
        postgresql_schema.advance(engine, 1, 2)
    ServerAppender(engine, masked=True).append([entry("b", 40, "Bash", {"command": "x"})])
    engine.close()
    return former


def test_a_store_of_two_versions_before_is_only_migrated(former: str, admin: psycopg.Connection[Any]) -> None:
    """What is too old to be read is not changed by opening it, and can be migrated in one go."""
    with pytest.raises(Damaged, match="can't be read any more") as refused:
        open_store(former)
    assert "ctxmgr store migrate" in str(refused.value.hint)
    before = admin.execute("SELECT seq, body, sum FROM ctxmgr.record ORDER BY seq").fetchall()
    with closing(administer(former)) as owner:
        assert owner.migrate() == (1, postgresql_schema.LATEST)
        assert owner.init() == (postgresql_schema.LATEST, postgresql_schema.LATEST)
    assert admin.execute("SELECT seq, body, sum FROM ctxmgr.record ORDER BY seq").fetchall() == before
    with closing(open_store(former)) as store:
        write(store, "d", ["Bash:b"])
        assert store.examine().damaged == []


def test_a_store_of_the_version_before_is_read_and_not_changed(previous: str, admin: psycopg.Connection[Any]) -> None:
    """Before it is migrated a store is read and verified; appending is refused, and says what to run."""
    store = open_store(previous, create=True)
    assert store.sessions.count() == 3
    assert store.examine().damaged == []
    with pytest.raises(StorageFailed, match="older") as refused:
        write(store, "a", ["Bash:b"])
    assert "ctxmgr store migrate" in str(refused.value.hint)
    assert store.queries.search(None, Filters(), "all", "x", 0, 10)[1] > 0
    admin.execute("INSERT INTO ctxmgr.search_text (seq, session, text) SELECT seq, session, 'indexed bash' FROM ctxmgr.record")
    admin.execute("INSERT INTO ctxmgr.state (name, value) SELECT 'search.mark', max(seq) FROM ctxmgr.record")
    assert store.queries.search(None, Filters(), "all", "bash", 0, 10)[1] == 6
    for write_down in (
        store.index,
        lambda: store.leases.take("s", "me", 0.0, 1.0),
        lambda: report_alive(store.engine, [("s", "p")]),
    ):
        admin.execute("DELETE FROM ctxmgr.state WHERE name = 'search.mark'")
        with pytest.raises(StorageFailed, match="another version"):
            write_down()
    assert store.queries.entries(2, Filters(), 0, None)[1] == 3
    store.tell()
    store.wait(0.01)
    assert store.engine.schema_version() == 2
    store.close()


def test_a_migrated_store_goes_on_with_its_sums(previous: str, admin: psycopg.Connection[Any]) -> None:
    """No record is rewritten; what was recorded before and behind the migration is verified, and the seam between them."""
    before = admin.execute("SELECT seq, body, sum FROM ctxmgr.record ORDER BY seq").fetchall()
    reader, store = open_store(previous, readonly=True), open_store(previous)
    assert store.migrate() == (2, postgresql_schema.LATEST)
    assert store.migrate() == (postgresql_schema.LATEST, postgresql_schema.LATEST)
    assert admin.execute("SELECT seq, body, sum FROM ctxmgr.record ORDER BY seq").fetchall() == before
    store.append([entry("a", 50, "Bash", {"command": "x"}), entry("a", 51, "Bash", {"command": "x"})])
    store.append([entry("b", 52, "Bash", {"command": "x"})])
    write(store, "d", ["Bash:b"])
    assert reader.queries.entries(1, Filters(), 0, None)[1] == 5
    assert store.examine().damaged == []
    last_of_a = max(
        int(row[0])
        for row in store.engine.query("SELECT seq FROM record WHERE session = 1 AND seq <= :end", {"end": len(before)})
    )
    for seq in (2, last_of_a):
        admin.execute("UPDATE ctxmgr.record SET body = body || ' ' WHERE seq = %s", (seq,))
        assert [item.kind for item in store.examine().damaged] == ["altered"], seq
        admin.execute("UPDATE ctxmgr.record SET body = rtrim(body) WHERE seq = %s", (seq,))
    admin.execute("DELETE FROM ctxmgr.record WHERE seq = (SELECT min(seq) FROM ctxmgr.record WHERE seq > %s)", (len(before),))
    assert [item.kind for item in store.examine().damaged] == ["altered"]
    reader.close()
    store.close()


def test_a_migration_keeps_readers_out_for_moments_only(previous: str, admin: psycopg.Connection[Any]) -> None:
    """Whatever is built over the large tables is built before any of them is locked for readers, who go on meanwhile."""
    tables = [f"ctxmgr.{name}" for name in ("record", "entry", "event", "search_text", "session")]
    held = "SELECT count(*) FROM pg_locks WHERE pid = %s AND mode = 'AccessExclusiveLock' AND relation = ANY (%s::regclass[])"
    built = 0
    with psycopg.connect(previous) as connection, closing(open_store(previous, readonly=True)) as reader:
        for statement in postgresql_schema.MIGRATIONS[3]:
            ((locked,),) = admin.execute(held, (connection.info.backend_pid, tables)).fetchall()
            large = any(f"{table} " in statement for table in tables)
            if large and ("CREATE INDEX" in statement or "CREATE UNIQUE INDEX" in statement):
                built += 1
                assert locked == 0, statement
            if large and "PRIMARY KEY" in statement:
                assert "USING INDEX" in statement
            if not locked:
                assert reader.queries.entries(1, Filters(), 0, None)[1] == 3
            connection.execute(statement.encode())
        connection.rollback()
    assert built == 9


def test_writers_go_on_while_a_store_is_migrated(former: str) -> None:
    """A store of the third version is written as it is; while it becomes the latest nothing is lost, doubled or reordered."""
    engine = PostgresqlEngine(former)
    with engine.transaction():
        postgresql_schema.advance(engine, 1, 3)
    engine.close()
    ended, failed, written = threading.Event(), list[BaseException](), dict[str, int]()

    def record(session: str, batch: int) -> None:
        try:
            with closing(open_store(former)) as own:
                while not ended.is_set():
                    first = written.get(session, 0)
                    own.append([entry(session, first + each, "Bash", {"command": "x"}) for each in range(batch)])
                    written[session] = first + batch
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=record, args=(f"w{batch}", batch)) for batch in (1, 7)]
    for thread in threads:
        thread.start()
    while len(written) < 2 and not failed:
        ended.wait(0.01)
    with closing(open_store(former)) as store:
        assert store.migrate() == (3, postgresql_schema.LATEST)
        then = dict(written)
        while any(written[session] < count + 10 for session, count in then.items()) and not failed:
            ended.wait(0.01)
        ended.set()
        for thread in threads:
            thread.join()
        assert failed == []
        for session, count in written.items():
            key = store.sessions.key(session)
            assert key is not None
            found = [each["id"] for each in store.sessions.records(key, ("entry",))]
            assert found == [entry(session, number, "Bash", {})["id"] for number in range(count)]
        assert store.examine().damaged == []


@pytest.mark.cases(1)
@pytest.mark.parametrize("version", [5, 6])
def test_a_store_of_a_version_before_is_written_and_migrated(former: str, admin: psycopg.Connection[Any], version: int) -> None:
    """Its indexes hold until it is migrated, reading changes none; then fewer of them find and refuse the same."""
    engine = PostgresqlEngine(former)
    with engine.transaction():
        postgresql_schema.advance(engine, 1, version)
    engine.close()

    def names() -> set[str]:
        rows = admin.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = 'ctxmgr' AND tablename IN ('record', 'entry')"
        )
        return {str(row[0]) for row in rows.fetchall()}

    before = names()
    with closing(open_store(former, readonly=True)) as reader, closing(open_store(former)) as writer:
        old = [entry("a", number, "Bash", {"command": "x"}, status="ok") for number in range(60, 200)]
        writer.append([*old, entry("a", 200, "Bash", {"command": "y"})])
        assert reader.queries.search(None, Filters(), "all", "x", 0, 10)[1] > 0
        assert names() == before
        with closing(open_store(former)) as owner:
            assert owner.migrate() == (version, postgresql_schema.LATEST)
        assert before - names() == {"record_by_id", "entry_by_status"}
        assert names() - before == {"entry_not_done"}
        assert writer.append([*old, entry("a", 201, "Bash", {"command": "z"}, status="error")]).known == len(old)
        for store in (reader, writer):
            key = store.sessions.key("a")
            assert key is not None
            counted = {
                status: store.queries.entries(key, Filters(status=[status]), 0, None)[1] for status in ("ok", "error", "open")
            }
            assert counted == {"ok": 143, "error": 1, "open": 1}
            assert store.examine().damaged == []
    with pytest.raises(psycopg.errors.UniqueViolation):
        admin.execute("INSERT INTO ctxmgr.record (seq, session, kind, id, body) SELECT 9999, session, kind, id, '' FROM "
                      "ctxmgr.record LIMIT 1")  # fmt: skip


def test_many_who_begin_a_store_at_once_make_it_once(server_url: str, admin: psycopg.Connection[Any]) -> None:
    """Whoever waited for the one that makes the tables finds them."""
    ready = threading.Barrier(8)

    def begin(_: int) -> None:
        ready.wait()
        open_store(server_url, create=True).close()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            admin.execute("DROP SCHEMA IF EXISTS ctxmgr CASCADE")
            list(pool.map(begin, range(8)))
    assert admin.execute("SELECT count(*) FROM ctxmgr.schema_version").fetchall() == [(postgresql_schema.LATEST,)]
