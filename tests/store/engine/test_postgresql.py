"""The PostgreSQL engine: what it asks the server, and what is made of the server's errors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import psycopg
import pytest

from ctxmgr.errors import Busy, CtxmgrError, Damaged, Denied, NotFound, StorageFailed
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import postgresql as engines
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.dialect import TABLES
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.types.query import Filters
from tests.builders import steps, write

SECRET = "gehe/im"


def test_reading_makes_no_tables(server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A database without our tables is no store, and opening it for reading leaves it so."""
    admin.execute("DROP SCHEMA IF EXISTS ctxmgr CASCADE")
    with pytest.raises(NotFound, match="no store at"):
        open_store(server_url, readonly=True)
    assert admin.execute("SELECT to_regnamespace('ctxmgr')").fetchone() == (None,)
    open_store(server_url, create=True).close()
    open_store(server_url, readonly=True).close()


def test_psycopg_prints_nothing() -> None:
    """A connection that psycopg closes because a signal ended its query is no news for a person: stderr is ours."""
    lines = ("import logging, ctxmgr.store.engine.postgresql", "logging.getLogger('psycopg').warning('closing connection')")
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


def test_a_newer_schema_is_refused(server_store: Store, server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A store of a newer program is not touched."""
    admin.execute("INSERT INTO ctxmgr.schema_version (version) VALUES (99)")
    try:
        with pytest.raises(Damaged, match="newer ctxmgr"):
            open_store(server_url, create=True)
    finally:
        admin.execute("DELETE FROM ctxmgr.schema_version WHERE version = 99")


def test_the_tables_are_those_that_statements_are_qualified_for(server_store: Store, admin: psycopg.Connection[Any]) -> None:
    """Every table of the schema is known to the spelling, and the other way round; numbers and times are wide enough."""
    found = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'ctxmgr'").fetchall()
    assert sorted(name for (name,) in found) == sorted(TABLES)
    columns = admin.execute(
        "SELECT data_type, collation_name FROM information_schema.columns WHERE table_schema = 'ctxmgr' "
        "AND table_name NOT IN ('schema_version', 'member')"
    ).fetchall()
    assert set(columns) == {("bigint", None), ("text", "C"), ("double precision", None), ("bytea", None)}


@pytest.mark.parametrize("text", ["a\0b", "\0", "\ufdd0", "\ufdd0\ufdd1\0", "\U0010ffff", "é\0\ufdd2", "%s%(x)s'\"\\"])
def test_every_text_comes_back_as_it_was(server_store: Store, text: str) -> None:
    """PostgreSQL knows no NUL: it is spelled in a way that comes back, beginnings included."""
    server_store.engine.execute("INSERT INTO state (name, value) VALUES (:name, :value)", {"name": text, "value": f"{text}end"})
    assert server_store.engine.query("SELECT name, value FROM state WHERE name = :name", {"name": text}) == [
        (text, f"{text}end")
    ]
    starting = server_store.engine.query(
        "SELECT name FROM state WHERE value >= :t AND value < :u", {"t": text, "u": text + "\U0010ffff"}
    )
    assert starting == [(text,)]


def test_nothing_is_set_on_a_connection(server_store: Store, admin: psycopg.Connection[Any]) -> None:
    """What a pooler would hand to the next client stays as it was: settings, locks, listeners; what is rare is not prepared."""
    write(server_store, "s", ["Bash:a"] * 20)
    for _ in range(20):
        server_store.queries.entries(1, Filters(), 0, None)
    list(server_store.sessions.records(None))
    assert server_store.engine.query("SELECT count(*) FROM pg_prepared_statements")[0][0] == 0
    assert server_store.engine.query("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')") == [
        ("0", "0")
    ]
    assert "ctxmgr" not in str(server_store.engine.query("SHOW search_path")[0][0])
    held = admin.execute(
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE locktype = 'advisory' AND datname = current_database()"
    ).fetchone()
    assert held == (0,)


@pytest.mark.long
def test_who_waits_too_long_for_the_writers_lock_is_told_busy(
    server_store: Store, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that never ends does not hold up another one for good, and nothing of the other is written."""
    monkeypatch.setattr(engines, "_BEGIN", engines._BEGIN.replace("'10s'", "'100ms'"))  # pyright: ignore[reportPrivateUsage]
    write(server_store, "s", ["Bash:a"])
    with admin.transaction():
        admin.execute("SELECT pg_advisory_xact_lock(%s)", (engines.WRITERS,))
        with pytest.raises(Busy):
            write(server_store, "s", ["Bash:b"])
    write(server_store, "s", ["Bash:c"])
    assert server_store.queries.entries(1, Filters(), 0, None)[1] == 2


def _end_connections(admin: psycopg.Connection[Any]) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'ctxmgr' AND datname = current_database()"
    )


def test_reading_goes_on_over_a_new_connection(server_store: Store, admin: psycopg.Connection[Any]) -> None:
    """A connection that the server ended, e.g. at a restart, is made anew, and the question is asked again."""
    write(server_store, "s", ["Bash:a"])
    _end_connections(admin)
    assert server_store.sessions.count() == 1


def test_a_connection_lost_within_a_transaction_takes_it_back(server_store: Store, admin: psycopg.Connection[Any]) -> None:
    """What was half done is not, the loss is told as retryable, and the next append works."""
    write(server_store, "s", ["Bash:a"])

    def half() -> None:
        with server_store.engine.transaction():
            server_store.engine.execute("UPDATE session SET entries = 99")
            _end_connections(admin)
            server_store.engine.query("SELECT 1")

    with pytest.raises(StorageFailed) as lost:
        half()
    assert lost.value.retryable
    assert server_store.sessions.entry_count(1) == 1
    write(server_store, "s", ["Bash:b"])
    assert server_store.sessions.entry_count(1) == 2


def test_an_append_whose_answer_was_lost_is_repeated_without_harm(server_store: Store) -> None:
    """Whoever does not know whether a commit arrived sends the same records again: they are known."""
    records = steps("s", ["Bash:a", "Bash:b"])
    server_store.append(records)
    again = server_store.append(records)
    assert (again.added, again.known) == (0, len(list(records)))


def test_a_role_that_may_not_is_denied(server_store: Store, server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A role that may only read reads, and is refused by name of the kind when it writes."""
    admin.execute("DROP ROLE IF EXISTS onlooker")
    admin.execute("CREATE ROLE onlooker LOGIN")
    try:
        admin.execute("GRANT USAGE ON SCHEMA ctxmgr TO onlooker")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA ctxmgr TO onlooker")
        write(server_store, "s", ["Bash:a"])
        seen = open_store(server_url.replace("tester@", "onlooker@"))
        assert seen.sessions.count() == 1
        with pytest.raises(Denied):
            write(seen, "s", ["Bash:b"])
        seen.close()
    finally:
        admin.execute("DROP OWNED BY onlooker")
        admin.execute("DROP ROLE onlooker")


def test_a_writer_that_owns_nothing_appends_and_changes_no_record(
    server_store: Store, server_url: str, admin: psycopg.Connection[Any]
) -> None:
    """The rights that docs/servers.md gives to writers are enough, and records are beyond them."""
    admin.execute("DROP ROLE IF EXISTS recording")
    admin.execute("CREATE ROLE recording LOGIN")
    try:
        admin.execute("GRANT USAGE ON SCHEMA ctxmgr TO recording")
        admin.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ctxmgr TO recording")
        admin.execute("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ctxmgr TO recording")
        admin.execute("REVOKE UPDATE, DELETE ON ctxmgr.record FROM recording")
        own = open_store(server_url.replace("tester@", "recording@"), create=True)
        write(own, "s", ["Bash:a", "!Read:b -> no"])
        own.index()
        assert own.leases.take("s", "me", own.clock(), 1.0)
        assert own.sessions.entry_count(1) == 2
        for change in ("UPDATE record SET body = '{}'", "DELETE FROM record"):
            with pytest.raises(Denied):
                own.engine.execute(change)
        own.close()
    finally:
        admin.execute("DROP OWNED BY recording")
        admin.execute("DROP ROLE recording")


def test_a_read_only_server_is_said_to_be_so(server_store: Store, admin: psycopg.Connection[Any], server_url: str) -> None:
    """After a fail-over the old server may only be read: writing there fails as something to be tried again."""
    name = server_url.partition("/test_")[2].partition("?")[0]
    admin.execute(f"ALTER DATABASE test_{name} SET default_transaction_read_only = on".encode())
    try:
        other = open_store(server_url)
        with pytest.raises(StorageFailed, match="can't be written now"):
            write(other, "s", ["Bash:a"])
        other.close()
    finally:
        admin.execute("SET default_transaction_read_only = off")
        admin.execute(f"ALTER DATABASE test_{name} RESET default_transaction_read_only".encode())


def test_an_error_tells_nothing_that_is_stored(server_store: Store) -> None:
    """The server's details quote rows; what is raised does not."""
    server_store.engine.execute("INSERT INTO state (name, value) VALUES ('k', 'v')")
    with pytest.raises(CtxmgrError) as raised:
        server_store.engine.execute("INSERT INTO state (name, value) VALUES ('k', 'topsecret')")
    assert raised.value.kind == "conflict"
    assert "topsecret" not in f"{raised.value.message}{raised.value.hint}"
    assert "(k)" not in raised.value.message


def test_an_unreachable_server_is_a_storage_failure(server_url: str) -> None:
    """A server that is not there, and a database that is not, are told apart."""
    with pytest.raises(StorageFailed, match="can't be reached"):
        open_store("postgresql://ctxmgr@/x?host=/nowhere/at/all")
    with pytest.raises(NotFound):
        open_store(server_url.replace("/test_", "/absent_"))


def test_a_recorder_gives_signs_of_life(server_url: str) -> None:
    """While a recorder is open its session is live for every machine, and no longer when it has ended."""
    from ctxmgr.recorder import Recorder

    recorder = Recorder(server_url, session="s", episode=False)
    seen = open_store(server_url, readonly=True)
    assert seen.is_live("s")
    assert not seen.is_live("other")
    recorder.end()
    assert not seen.is_live("s")
    seen.close()


def test_a_recorder_that_fell_silent_counts_as_ended(server_store: Store) -> None:
    """A machine that went away leaves a last sign of life, which counts for half a minute."""
    server_store.engine.execute(
        "INSERT INTO live (session, process, host, seen) VALUES ('s', 'p', 'h', :seen)", {"seen": server_store.clock() - 31}
    )
    assert not server_store.is_live("s")


def test_a_stream_that_is_not_read_to_its_end_is_released(server_store: Store, admin: psycopg.Connection[Any]) -> None:
    """Whoever stops in the middle leaves no transaction open that would keep the server from tidying up."""
    write(server_store, "s", ["Bash:a"] * 600)
    rows = server_store.engine.stream("SELECT seq FROM record ORDER BY seq")
    next(rows)
    assert server_store.sessions.count() == 1
    rows.close()  # pyright: ignore[reportAttributeAccessIssue]
    open_ones = admin.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ctxmgr' AND state LIKE 'idle in%' "
        "AND datname = current_database()"
    )
    assert open_ones.fetchone() == (0,)


def test_the_schema_is_the_same_on_every_statement() -> None:
    """Each statement of the schema makes one thing in our own schema, with a key or a column wherever one is named."""
    made = postgresql_schema.statements()
    assert len(made) > len(TABLES)
    assert all("ctxmgr" in statement for statement in made)


def test_an_engine_forgotten_by_its_owner_lets_go(server_url: str, admin: psycopg.Connection[Any]) -> None:
    """An engine that nobody holds any more has no connection open."""
    engine = PostgresqlEngine(server_url)
    (pid,) = engine.query("SELECT pg_backend_pid()")[0]
    del engine
    for _ in range(100):
        if admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is None:
            return
        time.sleep(0.02)
    raise AssertionError("the connection is still open")


def test_no_password_reaches_an_error_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password from the environment is in no message of a failed connection."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with pytest.raises(CtxmgrError) as raised:
        open_store("postgresql://ctxmgr@127.0.0.1:1/x")
    assert SECRET not in f"{raised.value.message}{raised.value.hint}"
    assert os.environ["PGPASSWORD"] == SECRET
