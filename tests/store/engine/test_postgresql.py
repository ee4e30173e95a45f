"""The PostgreSQL engine: what its URL may say, what it asks the server, and what is made of the server's errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import psycopg
import pytest

from ctxmgr.errors import Busy, CtxmgrError, Damaged, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import postgresql as engines
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.dialect import TABLES, postgresql, replace_statement
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_url import connection_options, printable_location
from ctxmgr.store.repositories.bookkeeping import ServerLeases
from ctxmgr.types.query import Filters
from tests.builders import entry, steps, write

SECRET = "gehe/im"


@pytest.fixture
def store(server_url: str) -> Iterator[Store]:
    """Open an empty store on the server."""
    opened = open_store(server_url, create=True)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("location", "printed"),
    [
        ("postgresql://me:gehe%2Fim@db/x", "postgresql://me@db/x"),
        (
            "postgresql://me@db:5433/x?password=gehe/im&sslmode=require",
            "postgresql://me@db:5433/x?password=***&sslmode=require",
        ),
        ("postgresql:///x?host=/run/pg&sslpassword=gehe/im", "postgresql:///x?host=/run/pg&sslpassword=***"),
        ("postgresql://db/x", "postgresql://db/x"),
        ("history.db", "history.db"),
        ("postgresql://[::bad", "postgresql://***"),
        ("postgresql://me:pa/gehe/im@db/x", "postgresql://***"),
        ("postgresql://me:12?gehe/im@db/x", "postgresql://***"),
        ("postgresql://me:p@a#gehe/im@db/x", "postgresql://***"),
        ("postgresql:///x?host=@abstract", "postgresql:///x?host=%40abstract"),
        ("host=db user=me password=gehe/im", "***"),
        ("user=me password = 'gehe/im'", "***"),
        ("postgresql:me:gehe/im@db/x", "***"),
    ],
)
def test_a_url_is_shown_without_secrets(location: str, printed: str) -> None:
    """Whatever way a password came into a URL, it is not printed."""
    assert printable_location(location) == printed


@pytest.mark.parametrize(
    "location",
    ["postgresql://me:gehe%2Fim@db/x", "postgresql://db/x?password=gehe/im", "postgresql://me:@db/x?sslpassword=gehe/im"],
)
def test_a_password_in_a_url_is_refused(location: str) -> None:
    """A URL with a password is not used, and the refusal says where passwords belong without repeating it."""
    with pytest.raises(InvalidInput, match="names a password") as refused:
        open_store(location)
    assert SECRET not in f"{refused.value.message}{refused.value.hint}"
    assert "PGPASSFILE" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("location", "mode"),
    [
        ("postgresql://db.example/x", "verify-full"), ("postgresql://10.0.0.7/x", "verify-full"),
        ("postgresql://localhost,db.example/x", "verify-full"), ("postgresql://db.example/x?sslmode=require", "require"),
        ("postgresql://localhost/x", None), ("postgresql://127.0.0.1/x", None), ("postgresql:///x?host=/run/pg", None),
        ("postgresql:///x", None), ("postgresql://localhost/x?hostaddr=203.0.113.5", "verify-full"),
        ("postgresql:///x?hostaddr=203.0.113.5", "verify-full"), ("postgresql:///x?hostaddr=127.0.0.1", None),
    ],
)  # fmt: skip
def test_beyond_this_machine_the_server_has_to_prove_its_name(location: str, mode: str | None) -> None:
    """Off the loopback TLS with a verified name is the default; only who says otherwise has it otherwise."""
    assert connection_options(location).get("sslmode") == mode


def test_variables_of_libpq_count_as_what_the_url_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of a variable leaves this machine too; a service says itself which of its hosts and how."""
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.5")
    assert connection_options("postgresql://localhost/x")["sslmode"] == "verify-full"
    monkeypatch.setenv("PGHOSTADDR", "203.0.113.5,203.0.113.6")
    assert connection_options("postgresql://localhost/x")["target_session_attrs"] == "read-write"
    monkeypatch.setenv("PGSERVICE", "own")
    assert not {"sslmode", "target_session_attrs"} & set(connection_options("postgresql://db1.example,db2.example/x"))


@pytest.mark.parametrize(
    ("location", "wanted"),
    [
        ("postgresql://localhost/x", None), ("postgresql://db1.example,db2.example/x", "read-write"),
        ("postgresql:///x?host=/run/a,/run/b", "read-write"),
        ("postgresql://db1.example,db2.example/x?target_session_attrs=any", "any"),
    ],
)  # fmt: skip
def test_of_several_hosts_the_one_that_can_be_written_is_taken(location: str, wanted: str | None) -> None:
    """A replica is not taken for the primary server, unless the URL says so."""
    assert connection_options(location).get("target_session_attrs") == wanted


@pytest.mark.parametrize("location", ["postgresql://db/x?nonsense=1", "postgresql:///x?port"])
def test_what_libpq_cant_read_is_refused(location: str) -> None:
    """A URL that names no database as libpq takes it is invalid input."""
    with pytest.raises(InvalidInput):
        open_store(location)


def test_reading_makes_no_tables(server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A database without our tables is no store, and opening it for reading leaves it so."""
    admin.execute("DROP SCHEMA IF EXISTS ctxmgr CASCADE")
    with pytest.raises(NotFound, match="no store at"):
        open_store(server_url, readonly=True)
    assert admin.execute("SELECT to_regnamespace('ctxmgr')").fetchone() == (None,)
    open_store(server_url, create=True).close()
    open_store(server_url, readonly=True).close()


def test_a_newer_schema_is_refused(store: Store, server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A store of a newer program is not touched."""
    admin.execute("INSERT INTO ctxmgr.schema_version (version) VALUES (99)")
    try:
        with pytest.raises(Damaged, match="newer ctxmgr"):
            open_store(server_url, create=True)
    finally:
        admin.execute("DELETE FROM ctxmgr.schema_version WHERE version = 99")


def test_the_tables_are_those_that_statements_are_qualified_for(store: Store, admin: psycopg.Connection[Any]) -> None:
    """Every table of the schema is known to the spelling, and the other way round; numbers and times are wide enough."""
    found = admin.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'ctxmgr'").fetchall()
    assert sorted(name for (name,) in found) == sorted(TABLES)
    columns = admin.execute(
        "SELECT data_type, collation_name FROM information_schema.columns WHERE table_schema = 'ctxmgr' "
        "AND table_name NOT IN ('schema_version', 'member')"
    ).fetchall()
    assert set(columns) == {("bigint", None), ("text", "C"), ("double precision", None)}


@pytest.mark.parametrize(
    ("shared", "asked"),
    [
        ("SELECT body FROM record WHERE id = :id", "SELECT body FROM ctxmgr.record WHERE id = %(id)s"),
        ("SELECT ':id', 50 % 2 FROM entry NOT INDEXED", "SELECT ':id', 50 %% 2 FROM ctxmgr.entry"),
        (
            "SELECT 1 FROM entry INDEXED BY entry_by_agent CROSS JOIN record ON TRUE",
            "SELECT 1 FROM ctxmgr.entry JOIN ctxmgr.record ON TRUE",
        ),
        ("SELECT instr(body, 'x%') FROM line", "SELECT 0 < strpos(body, 'x%%') FROM line"),
        ("INSERT INTO usage VALUES (?, ?)", "INSERT INTO ctxmgr.usage VALUES (%s, %s)"),
        ("UPDATE entry SET status = :a", "UPDATE ctxmgr.entry SET status = %(a)s"),
    ],
)  # fmt: skip
def test_statements_are_spelled_for_the_server(shared: str, asked: str) -> None:
    """Names are qualified, placeholders are the driver's, hints for SQLite go, and what stands in quotes stays."""
    assert postgresql(shared).decode() == asked


def test_a_row_is_replaced_by_its_key() -> None:
    """The one spelling of "insert or replace" names the key and every other column."""
    assert replace_statement("t", "a, b", "c, d") == (
        "INSERT INTO t (a, b, c, d) VALUES (:a, :b, :c, :d) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c, d = excluded.d"
    )


@pytest.mark.parametrize("text", ["a\0b", "\0", "\ufdd0", "\ufdd0\ufdd1\0", "\U0010ffff", "é\0\ufdd2", "%s%(x)s'\"\\"])
def test_every_text_comes_back_as_it_was(store: Store, text: str) -> None:
    """PostgreSQL knows no NUL: it is spelled in a way that comes back, beginnings included."""
    store.engine.execute("INSERT INTO state (name, value) VALUES (:name, :value)", {"name": text, "value": f"{text}end"})
    assert store.engine.query("SELECT name, value FROM state WHERE name = :name", {"name": text}) == [(text, f"{text}end")]
    starting = store.engine.query(
        "SELECT name FROM state WHERE value >= :t AND value < :u", {"t": text, "u": text + "\U0010ffff"}
    )
    assert starting == [(text,)]


def test_nothing_is_set_on_a_connection(store: Store, admin: psycopg.Connection[Any]) -> None:
    """What a pooler would hand to the next client stays as it was: settings, locks, listeners; what is rare is not prepared."""
    write(store, "s", ["Bash:a"] * 20)
    for _ in range(20):
        store.queries.entries(1, Filters(), 0, None)
    list(store.sessions.records(None))
    assert store.engine.query("SELECT count(*) FROM pg_prepared_statements")[0][0] == 0
    assert store.engine.query("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')") == [("0", "0")]
    assert "ctxmgr" not in str(store.engine.query("SHOW search_path")[0][0])
    held = admin.execute(
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE locktype = 'advisory' AND datname = current_database()"
    ).fetchone()
    assert held == (0,)


@pytest.mark.long
def test_who_waits_too_long_for_the_writers_lock_is_told_busy(
    store: Store, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that never ends does not hold up another one for good, and nothing of the other is written."""
    monkeypatch.setattr(engines, "_BEGIN", engines._BEGIN.replace("'10s'", "'100ms'"))  # pyright: ignore[reportPrivateUsage]
    write(store, "s", ["Bash:a"])
    with admin.transaction():
        admin.execute("SELECT pg_advisory_xact_lock(%s)", (engines.WRITERS,))
        with pytest.raises(Busy):
            write(store, "s", ["Bash:b"])
    write(store, "s", ["Bash:c"])
    assert store.queries.entries(1, Filters(), 0, None)[1] == 2


def _end_connections(admin: psycopg.Connection[Any]) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'ctxmgr' AND datname = current_database()"
    )


def test_reading_goes_on_over_a_new_connection(store: Store, admin: psycopg.Connection[Any]) -> None:
    """A connection that the server ended, e.g. at a restart, is made anew, and the question is asked again."""
    write(store, "s", ["Bash:a"])
    _end_connections(admin)
    assert store.sessions.count() == 1


def test_a_connection_lost_within_a_transaction_takes_it_back(store: Store, admin: psycopg.Connection[Any]) -> None:
    """What was half done is not, the loss is told as retryable, and the next append works."""
    write(store, "s", ["Bash:a"])

    def half() -> None:
        with store.engine.transaction():
            store.engine.execute("UPDATE session SET entries = 99")
            _end_connections(admin)
            store.engine.query("SELECT 1")

    with pytest.raises(StorageFailed) as lost:
        half()
    assert lost.value.retryable
    assert store.sessions.entry_count(1) == 1
    write(store, "s", ["Bash:b"])
    assert store.sessions.entry_count(1) == 2


def test_an_append_whose_answer_was_lost_is_repeated_without_harm(store: Store) -> None:
    """Whoever does not know whether a commit arrived sends the same records again: they are known."""
    records = steps("s", ["Bash:a", "Bash:b"])
    store.append(records)
    again = store.append(records)
    assert (again.added, again.known) == (0, len(list(records)))


def test_a_role_that_may_not_is_denied(store: Store, server_url: str, admin: psycopg.Connection[Any]) -> None:
    """A role that may only read reads, and is refused by name of the kind when it writes."""
    admin.execute("DROP ROLE IF EXISTS onlooker")
    admin.execute("CREATE ROLE onlooker LOGIN")
    try:
        admin.execute("GRANT USAGE ON SCHEMA ctxmgr TO onlooker")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA ctxmgr TO onlooker")
        write(store, "s", ["Bash:a"])
        seen = open_store(server_url.replace("tester@", "onlooker@"))
        assert seen.sessions.count() == 1
        with pytest.raises(Denied):
            write(seen, "s", ["Bash:b"])
        seen.close()
    finally:
        admin.execute("DROP OWNED BY onlooker")
        admin.execute("DROP ROLE onlooker")


def test_a_writer_that_owns_nothing_appends_and_changes_no_record(
    store: Store, server_url: str, admin: psycopg.Connection[Any]
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


def test_a_read_only_server_is_said_to_be_so(store: Store, admin: psycopg.Connection[Any], server_url: str) -> None:
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


def test_an_error_tells_nothing_that_is_stored(store: Store) -> None:
    """The server's details quote rows; what is raised does not."""
    store.engine.execute("INSERT INTO state (name, value) VALUES ('k', 'v')")
    with pytest.raises(CtxmgrError) as raised:
        store.engine.execute("INSERT INTO state (name, value) VALUES ('k', 'topsecret')")
    assert raised.value.kind == "conflict"
    assert "topsecret" not in f"{raised.value.message}{raised.value.hint}"
    assert "(k)" not in raised.value.message


def test_an_unreachable_server_is_a_storage_failure(server_url: str) -> None:
    """A server that is not there, and a database that is not, are told apart."""
    with pytest.raises(StorageFailed, match="can't be reached"):
        open_store("postgresql://ctxmgr@/x?host=/nowhere/at/all")
    with pytest.raises(NotFound):
        open_store(server_url.replace("/test_", "/absent_"))


def test_a_lease_goes_by_the_servers_clock(store: Store) -> None:
    """A caller whose clock is an hour wrong can neither take a lease that holds nor keep one longer."""
    assert store.leases.take("s", "one", time.time(), 30.0)
    assert not store.leases.take("s", "two", time.time() + 3600, 30.0)
    assert not store.leases.take("s", "two", time.time() - 3600, 30.0)
    assert store.leases.holds("s", "one", store.clock())
    assert abs(store.clock() - time.time()) < 60


def test_a_lease_that_ran_out_is_somebody_elses(store: Store) -> None:
    """What is written under a lease is written by its holder alone: who was paused for too long learns that it is gone."""
    assert store.leases.take("s", "paused", store.clock(), 0.1)
    with store.leases.kept("s", "paused", store.clock) as kept:
        assert kept
    time.sleep(0.12)
    with store.leases.kept("s", "paused", store.clock) as kept:
        assert not kept
    assert store.leases.take("s", "next", store.clock(), 30.0)
    store.leases.release("s", "paused")
    assert store.leases.holds("s", "next", store.clock())


def test_one_of_many_contenders_gets_a_lease(store: Store, server_url: str) -> None:
    """Of contenders at once one alone is given the lease."""
    won: list[str] = []

    def contend(name: str) -> None:
        own = open_store(server_url)
        if own.leases.take("s", name, own.clock(), 30.0):
            won.append(name)
        own.close()

    threads = [threading.Thread(target=contend, args=(f"h{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


@pytest.mark.slow
def test_a_lease_changes_hands_no_sooner_than_it_ends(store: Store, server_url: str) -> None:
    """Contenders with wrong clocks: each win has a greater number than the one before, and comes a whole lease later."""
    wins: list[tuple[int, float]] = []
    until = time.monotonic() + 2.0

    def contend(name: str, skew: float) -> None:
        own = open_store(server_url)
        leases = cast("ServerLeases", own.leases)
        while time.monotonic() < until:
            if leases.take("s", name, time.time() + skew, 0.2):
                ((began,),) = own.engine.query("SELECT expires FROM lease WHERE holder = :name", {"name": name})
                wins.append((leases.fence("s", name), float(began) - 0.2))
                time.sleep(0.25)  # too long: by then it is somebody else's
        own.close()

    threads = [threading.Thread(target=contend, args=(f"h{number}", (number % 3 - 1) * 3600.0)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wins.sort()
    assert [fence for fence, _ in wins] == list(range(1, len(wins) + 1))
    assert len(wins) > 3
    assert min(later - earlier for (_, earlier), (_, later) in pairwise(wins)) >= 0.2


_HOLDER = """
import sys
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import open_store
from ctxmgr.store.engine import postgresql
from tests.builders import entry
timeout = "idle_in_transaction_session_timeout = '{}s'"
assert timeout.format(60) in postgresql._BEGIN
postgresql._BEGIN = postgresql._BEGIN.replace(timeout.format(60), timeout.format(1))
store, stopped = open_store(sys.argv[1]), sys.argv[2]
def ready():
    print("ready", flush=True)
    sys.stdin.readline()
assert store.leases.take("s", "paused", 0.0, 0.5)
if stopped == "before it writes":
    ready()
try:
    with store.leases.kept("s", "paused", store.clock) as kept:
        if stopped == "while it writes":
            ready()
        if kept:
            store.append([entry("s", 1, "Bash", {"command": "stale"})])
        print("written" if kept else "refused", flush=True)
except CtxmgrError as error:
    print("refused", error, flush=True)
"""


@pytest.mark.parametrize("stopped", ["before it writes", "while it writes"])
def test_a_paused_holder_writes_nothing_when_it_goes_on(store: Store, server_url: str, stopped: str) -> None:
    """A holder is stopped, another takes the lease with a greater number, and what the first wanted to write is refused."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, server_url, stopped], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        holder.send_signal(signal.SIGSTOP)
        ((first,),) = store.engine.query("SELECT fence FROM lease WHERE session = 's'")
        while not store.leases.take("s", "next", 0.0, 30.0):
            time.sleep(0.05)
        assert cast("ServerLeases", store.leases).fence("s", "next") > int(first)
        holder.send_signal(signal.SIGCONT)
        told, _ = holder.communicate("go\n", timeout=30)
    finally:
        holder.kill()
        holder.wait()
    assert told.startswith("refused")
    assert store.sessions.count() == 0
    assert store.leases.holds("s", "next", 0.0)


def test_a_lease_won_again_is_not_the_one_before(store: Store, server_url: str) -> None:
    """A holder whose lease ran out and was won again, by whoever has its name, writes nothing under the former number."""
    assert store.leases.take("s", "me", 0.0, 0.05)
    time.sleep(0.06)
    other = open_store(server_url)
    assert other.leases.take("s", "me", 0.0, 30.0)
    with store.leases.kept("s", "me", store.clock) as kept:
        assert not kept
    store.leases.release("s", "me")
    assert other.leases.holds("s", "me", 0.0)
    other.close()


def test_nobody_takes_a_lease_while_something_is_written_under_it(store: Store, server_url: str) -> None:
    """What is written under a lease that ends meanwhile is there before the next holder has it."""
    other, order = open_store(server_url), list[str]()
    assert store.leases.take("s", "one", 0.0, 0.3)

    def take() -> None:
        while not other.leases.take("s", "two", 0.0, 30.0):
            time.sleep(0.01)
        order.append(f"taken with {other.sessions.count()}")

    thread = threading.Thread(target=take)
    with store.leases.kept("s", "one", store.clock) as kept:
        assert kept
        thread.start()
        time.sleep(0.5)
        write(store, "s", ["Bash:a"])
        order.append("written")
    thread.join()
    assert order == ["written", "taken with 1"]
    other.close()


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


def test_a_recorder_that_fell_silent_counts_as_ended(store: Store) -> None:
    """A machine that went away leaves a last sign of life, which counts for half a minute."""
    store.engine.execute(
        "INSERT INTO live (session, process, host, seen) VALUES ('s', 'p', 'h', :seen)", {"seen": store.clock() - 31}
    )
    assert not store.is_live("s")


@pytest.mark.parametrize("trigrams", [True, False])
@pytest.mark.parametrize("indexed", ["not", "half", "all", "late"])
def test_a_search_finds_what_reading_everything_finds(
    store: Store, admin: psycopg.Connection[Any], indexed: str, trigrams: bool
) -> None:
    """With an index or without, with trigrams or without, the same rows are found; also by results that came late."""
    if not trigrams:
        admin.execute("DROP INDEX ctxmgr.search_text_trigrams")
    try:
        records = [entry("s", number, "Bash", {"command": f"Make {number:03} Übung \\n 50%_x"}) for number in range(60)]
        store.append(records[:30])
        if indexed == "half":
            store.index()
        store.append(records[30:])
        if indexed in ("all", "late"):
            store.index()
        store.append(
            [{"v": 1, "kind": "result", "session": "s", "entry": records[7]["id"], "status": "ok", "output": "Spät 1e5"}]
        )
        if indexed == "all":
            store.index()
        for needle in ("make", "MAKE 00", "übung", "007", "0", "spät", "50%_", "absent", "e5", "\n", "\\n"):
            found, total, exact = store.queries.search(None, Filters(), "all", needle, 0, 100)
            whole = [
                number for number, record in enumerate(records) if needle.casefold() in record["input"]["command"].casefold()
            ]
            if needle in ("spät", "e5"):
                whole = [7]
            assert [row.index for row, _, _ in found] == whole, needle  # pyright: ignore[reportAttributeAccessIssue]
            assert (total, exact) == (len(whole), True)
    finally:
        if not trigrams:
            admin.execute("CREATE INDEX search_text_trigrams ON ctxmgr.search_text USING gin (text ctxmgr.gin_trgm_ops)")


def test_a_stream_that_is_not_read_to_its_end_is_released(store: Store, admin: psycopg.Connection[Any]) -> None:
    """Whoever stops in the middle leaves no transaction open that would keep the server from tidying up."""
    write(store, "s", ["Bash:a"] * 600)
    rows = store.engine.stream("SELECT seq FROM record ORDER BY seq")
    next(rows)
    assert store.sessions.count() == 1
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
