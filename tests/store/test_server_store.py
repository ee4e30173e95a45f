"""A store on a server: appends side by side, a chain of sums for each session, places that readers may rely on, migration."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from ctxmgr.errors import Damaged, InvalidInput, StorageFailed
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.engine import postgresql as engines
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.project_session import EXECUTION
from ctxmgr.store.server_store import report_alive
from ctxmgr.store.write.append import Appender
from ctxmgr.store.write.append_on_server import ServerAppender
from ctxmgr.types.query import Filters
from tests.builders import at, entry, event, result, steps, write
from tests.store.common_chain import chain_together

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
def store(server_url: str) -> Iterator[Store]:
    """Open an empty store on the server."""
    opened = open_store(server_url, create=True)
    yield opened
    opened.close()


def _engine(store: Store) -> PostgresqlEngine:
    return cast("PostgresqlEngine", store.engine)


def _settled(store: Store) -> int:
    return int(store.engine.query("SELECT settled()")[0][0])


def test_an_append_does_not_wait_for_one_to_another_session(store: Store, server_url: str) -> None:
    """While one transaction holds its session, another session is written; what is read of all stops before the first."""
    write(store, "first", ["Bash:a"])
    other = open_store(server_url)
    known = _settled(store)
    with _engine(store).appending():
        write(store, "first", ["Bash:b"])
        write(other, "second", ["Bash:c"])
        assert other.sessions.count() == 2
        assert _settled(other) == known
    assert _settled(other) == store.engine.query("SELECT max(seq) FROM record")[0][0]
    other.close()


def test_whoever_reads_behind_what_is_settled_misses_nothing(store: Store, server_url: str) -> None:
    """A reader that follows all sessions by one place, while many write, sees each record once."""
    done = threading.Event()

    def append(name: str) -> None:
        own = open_store(server_url)
        for number in range(25):
            own.append([entry(name, number, "Bash", {"command": name})])
            if number % 7 == 0:
                with _engine(own).appending():
                    own.append([event(name, number, "message", {"text": "a"})])
                    own.append([event(name, 100 + number, "message", {"text": "b"})])
        own.close()

    threads = [threading.Thread(target=append, args=(f"s{number}",)) for number in range(4)]
    seen: list[int] = []

    def follow() -> None:
        own, place = open_store(server_url), 0
        while True:
            last = done.is_set()
            upto = _settled(own)
            rows = own.engine.query("SELECT seq FROM record WHERE seq > :low AND seq <= :high ORDER BY seq", {
                "low": place, "high": upto,
            })  # fmt: skip
            seen.extend(int(row[0]) for row in rows)
            place = max(place, upto)
            if last:
                own.close()
                return

    reader = threading.Thread(target=follow)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert seen == [int(row[0]) for row in store.engine.query("SELECT seq FROM record ORDER BY seq")]
    assert len(seen) == 4 * (25 + 8)
    found = store.examine()
    assert (found.records, found.damaged) == (132, [])


def test_many_writers_of_one_session_leave_no_gap(store: Store, server_url: str) -> None:
    """Singles and batches of several writers get indexes without gaps, and every table follows from the records."""

    def append(name: str) -> None:
        own = open_store(server_url)
        for number in range(12):
            first = 1000 * int(name) + 10 * number
            own.append([entry("s", first + each, process=name) for each in range(1 + number % 3)])
        own.close()

    threads = [threading.Thread(target=append, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    indexes = [int(row[0]) for row in store.engine.query("SELECT idx FROM entry ORDER BY seq")]
    assert indexes == list(range(4 * 24))
    assert store.examine().damaged == []


def test_results_find_their_entries_over_appends(store: Store) -> None:
    """A result completes its entry in the same append, in a later one and, come too early, in an earlier one."""

    def done(number: int) -> dict[str, Any]:
        return {"v": 1, "kind": "result", "session": "s", "entry": entry("s", number, "Bash", {})["id"], "status": "error",
                "usage": {"inputTokens": 2, "outputTokens": 3}}  # fmt: skip

    def begun(number: int) -> dict[str, Any]:
        return {key: value for key, value in entry("s", number, "Bash", {}).items() if key not in ("status", "output")}

    for batch in ([begun(0), done(0)], [begun(1)], [done(1)], [done(2)], [begun(2)], [done(4), done(3)],
                  [begun(3), begun(4), event("s", 1, "message", {"text": "x"})], [begun(5)]):  # fmt: skip
        assert store.append(batch).added == len(batch)
    assert [row[0] for row in store.engine.query("SELECT status FROM entry ORDER BY idx")] == ["error"] * 5 + ["open"]
    assert store.sessions.usage(1) == {"inputTokens": 10, "outputTokens": 15}
    assert store.examine().damaged == []


def test_an_append_of_many_sessions_leaves_what_single_ones_do(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of many sessions and of every kind, mixed, appended together in one round trip: all is as in a file."""
    done: list[bool] = []
    append = PostgresqlEngine.append

    def heard(self: PostgresqlEngine, *values: Any) -> Any:
        done.append((answer := append(self, *values)) is not None)
        return answer

    monkeypatch.setattr(PostgresqlEngine, "append", heard)
    monkeypatch.setattr(PostgresqlEngine, "appending", None)  # nothing goes step by step
    names = [f"s{number}" for number in range(7)] + ["\0", "\ufdd0", "Ü", "\ud800"]
    records: list[dict[str, Any]] = []
    for number in range(240):
        name, other = names[number % len(names)], names[number * 5 % len(names)]
        begun = entry(name, number, "Bash", {"command": f"x{number}"}, process=f"p{number % 2}")
        records.append({key: value for key, value in begun.items() if number % 3 == 0 or key not in ("status", "output")})
        records.append(event(other, number, "agent_message_chunk" if number % 2 else "plan", {"text": "y"}))
        if number % 3 == 1:
            records.append(result(name, number, "done", usage={"inputTokens": number, "outputTokens": 1}))
        if number % 3 == 2 and number > 40:
            records.append(result(names[(number - 33) % len(names)], number - 33, "late", status="error"))
        records += _others(number, other)
    with closing(open_store(str(tmp_path / "a.db"), create=True)) as file:
        place = 0
        sizes = (1, 2, 40, 250, 3, 1, 170, 60, 1, 1, 700)
        for size in sizes:
            for each in (store, file):
                assert each.append(records[place : place + size]).added == len(records[place : place + size])
            place += size
        assert place > len(records)
        for name in names:
            keys = [each.sessions.key(name) for each in (store, file)]
            for table, columns in _FOLLOWING.items():
                told = [each.engine.query(f"SELECT {columns} FROM {table}", {"key": key})
                        for each, key in zip((store, file), keys, strict=True)]  # fmt: skip
                assert [tuple(row) for row in told[0]] == [tuple(row) for row in told[1]], (name, table)
    assert done == [True] * len(sizes)
    assert store.examine().damaged == []


def _others(number: int, name: str) -> list[dict[str, Any]]:
    """Return records that are no entries, events or results; a session's processes end and begin within few records."""
    common = {"v": 1, "session": name, "ts": at(number)}
    if number % 12 == 5:
        ended = {"kind": "sessionEnd", "outcome": "failed" if number % 24 == 5 else "completed"}
        return [
            {**common, **ended, **({} if number % 36 == 5 else {"process": f"p{number % 5}"})},
            {**common, "kind": "session", "process": f"q{number}"},
            entry(name, 9000 + number, process=f"q{number}"),
        ]
    if number % 12 == 8:
        own = {
            "kind": "session",
            "process": "p0",
            "workflow": f"w{number}",
            "source": {"importer": name},
            "meta": {"n": number},
        }
        return [{**common, **own}, {**common, "kind": "unheard", "id": f"u{number}", "of": 1.5}]
    if number % 12 == 11:
        note = {"kind": "note", "id": f"n{number}", "entries": [f"e{number}", "e"], "content": "c", "tags": ["Ä", "b", "B"]}
        kept: dict[str, Any] = {
            "kind": "snapshot",
            "id": f"k{number}",
            "entries": [],
            "summary": "s",
            "reasoning": "r",
            "hash": "h",
        }
        return [{**common, **note, "supersedes": f"n{number - 12}"}, {**common, **kept}, {**common, **note, "id": f"m{number}"}]
    return []


@pytest.mark.parametrize(
    ("count", "number", "change", "added"),
    [
        (200, 130, {"input": float("nan")}, 0), (200, 130, {"action": EXECUTION, "input": {"id": "x"}}, 200), (200, 3, {}, 199),
        (200, 199, {}, 199), (1500, 1400, {"input": float("nan")}, 0), (1500, 0, {"agent": "b"}, 1500),
    ],
)  # fmt: skip
def test_what_comes_late_in_an_append_counts_for_all_of_it(
    store: Store, count: int, number: int, change: dict[str, Any], added: int
) -> None:
    """A record far behind the first that is wrong, known or not plain: all or nothing is written, and it goes on."""
    records = [entry("s", each) for each in range(count)]
    if not change:
        store.append([records[number]])
    records[number] |= change
    if added:
        assert store.append(records).added == added
    else:
        with pytest.raises(InvalidInput):
            store.append(records)
        assert store.engine.query("SELECT count(*) FROM record") == [(0,)]
    store.append([entry("s", 9999)])
    assert store.engine.query("SELECT entries FROM session") == [((count if added else 0) + 1,)]
    assert store.examine().damaged == []


def test_a_connection_lost_between_two_parts_of_an_append_takes_it_back(store: Store, admin: psycopg.Connection[Any]) -> None:
    """What was sent before is not written; the loss is told as retryable, and the next append works."""
    store.append([entry("s", 0)])

    def records() -> Iterator[dict[str, Any]]:
        for number in range(1, 200):
            if number == 150:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'ctxmgr' AND datname = current_database()"
                )
            yield entry("s", number)

    with pytest.raises(StorageFailed) as lost:
        store.append(records())
    assert lost.value.retryable
    assert store.sessions.entry_count(1) == 1
    assert store.append([entry("s", number) for number in range(1, 200)]).added == 199
    assert store.examine().damaged == []


_IDS = "(SELECT id FROM record WHERE record.session = :key AND record.seq = {})"
_FOLLOWING = {
    "session WHERE key = :key": "entries, events, messages, first, last, workflow, source, meta, sum",
    "entry WHERE session = :key ORDER BY idx": f"idx, agent, action, process, ts, status, {_IDS.format('entry.result')}",
    "event WHERE session = :key ORDER BY seq": "type, agent, entry, after, ts",
    "process WHERE session = :key ORDER BY process": f"process, started, outcome, {_IDS.format('process.seq')}",
    "note_entry WHERE session = :key ORDER BY entry, note": f"entry, {_IDS.format('note_entry.note')}",
    "note_tag WHERE session = :key ORDER BY tag, note": f"tag, {_IDS.format('note_tag.note')}",
    "superseded WHERE session = :key ORDER BY note": "note, successor",
    "usage WHERE session = :key ORDER BY seq": f"input, output, {_IDS.format('usage.seq')}",
    "milestone WHERE session = :key ORDER BY series, number": f"series, number, {_IDS.format('milestone.seq')}",
}
"""Rows that follow from the records of a session, places by the ids of the records that stand there."""


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


@pytest.mark.parametrize("together", [1, 3])
def test_who_waited_for_a_session_gives_it_back_before_the_disk_is_waited_for(
    store: Store, server_url: str, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Behind a writer that held the session for long an append commits at once, and waits for the disk after that."""
    waited: list[bytes] = []
    ask = engines._asked  # pyright: ignore[reportPrivateUsage]

    def heard(connection: psycopg.Connection[Any], statement: bytes, *rest: Any) -> Any:
        waited.extend([statement] if statement == engines._ON_DISK else [])  # pyright: ignore[reportPrivateUsage]
        return ask(connection, statement, *rest)

    monkeypatch.setattr(engines, "_asked", heard)
    write(store, "s", ["Bash:a"])
    records = [entry("s", 10 + each, "Bash", {"command": "x"}) for each in range(together)]
    with closing(open_store(server_url)) as other:
        write(other, "other", ["Bash:a"])  # what is slow the first time is done
        waited.clear()
        thread = threading.Thread(target=lambda: other.append(records))
        with _engine(store).appending():
            store.append([entry("s", 9, "Bash", {"command": "x"})])
            thread.start()
            while not store.engine.query(_WAITING):
                thread.join(0.01)
            thread.join(0.01)
        thread.join()
    assert len(waited) == 1
    assert store.sessions.entry_count(1) == 2 + together
    assert store.examine().damaged == []


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("field", ["session", "id", "agent", "action", "process", "tag"])
def test_a_name_that_no_index_can_hold_is_refused(store: Store, field: str, together: int) -> None:
    """A server finds by names of up to 2.7 KB: a longer one is the caller's, not damage, and nothing is written."""
    name = "".join(f"{number * number:x}" for number in range(9_999))  # can't be pressed into the room
    records = [entry("s", number, "Bash", {"command": "x"}) for number in range(together)]
    if field == "tag":
        records.append({"v": 1, "kind": "note", "session": "s", "id": "n", "entries": ["x"], "content": "c", "tags": [name]})
    else:
        records[-1][field] = name
    with pytest.raises(InvalidInput, match="so long a name"):
        store.append(records)
    assert store.engine.query("SELECT count(*) FROM record") == [(0,)]


def test_indexing_stops_before_what_is_not_committed(store: Store, server_url: str) -> None:
    """An append goes on while another session is indexed; what it writes is found by reading until it is indexed too."""
    write(store, "first", ["Bash:needle one"])
    other = open_store(server_url)
    with _engine(store).appending():
        write(store, "first", ["Bash:needle two"])
        write(other, "second", ["Bash:needle three"])
        assert other.index()
        assert not other.index()
        assert other.unindexed() > 0
    for indexed in (False, True):
        found, total, _ = other.queries.search(None, Filters(), "all", "needle", 0, 10)
        assert (len(found), total) == (3, 3), indexed
        other.index()
    assert other.unindexed() == 0
    other.close()


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
