"""A person's own query to a server: it answers as a database does, only reads, has an end, and sees its own team alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.project_session import EXECUTION, KEY, NEEDS, PROJECT, RULES, VERSION
from ctxmgr.store.read_query import FINDING_COLUMNS, NAMES, ReadQuery, Rows
from ctxmgr.store.read_query_on_server import ServerReadQuery
from ctxmgr.store.repositories.shared_state import SummaryRow
from tests import builders as b
from tests.store.divided import Divided

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"
RECORDS: list[dict[str, Any]] = [
    b.build("session", "s", b.at(0), process="p", workflow="w", source={"importer": "codex"},
            meta={"title": "Ship it", "cwd": "/home/dev/shop"}),
    *b.steps("s", ["Read:a.py -> text", "!Bash:make -> boom", "?Bash:sleep"], process="p"),
    b.event("s", 9, "usage", {"inputTokens": 7, "outputTokens": 3, "model": "m"}, agent="coder"),
    b.event("s", 10, "user_message", {"text": "it's \u2028 100 %"}),
    b.build("note", "s", b.at(4), id="n1", entries=[b.entry_id("s", 1)], content="flaky", tags=["x"], author="ann"),
    b.build("snapshot", "s", b.at(5), id="s1", entries=[], summary="half", reasoning="r", hash="0"),
    *(
        b.build("event", PROJECT, b.at(7 + number), id=f"p{number}", type=kind, agent="arch", data=data)
        for number, (kind, data) in enumerate([
            (KEY, {"changes": [{"key": "k", "value": "plain", "type": "string"}, {"key": "l", "value": [1], "type": "json"}]}),
            (RULES, {"set": [{"agent": "a", "resourceType": "artifact", "pattern": "*", "permission": "read", "priority": 5}]}),
            (NEEDS, {"set": [{"agent": "a", "pattern": "b/*", "need": "required", "maxTokens": 9}]}),
            (VERSION, {"op": "put", "version": 1, "by": "arch", "artifacts": [
                {"id": "art_1", "agent": "arch", "name": "a", "type": "text", "hash": "0" * 64, "size": 1, "tokens": 1,
                 "counter": "c", "dependencies": [
                     {"id": "art_2", "agent": "arch", "name": "b", "type": "required"}]}]}),
        ])
    ),
    b.build("entry", "s", b.at(3), id="x1", agent="coder", action=EXECUTION, inputType=EXECUTION, process="p",
            input={"task": "T", "artifacts": ["art_1"], "tokenCount": 4, "contextVersion": 1}),
    b.build("result", "s", b.at(8), entry="x1", status="ok", output={"artifacts": [], "tokenCount": 2}, durationMs=1500),
    b.build("continuation", "s", b.at(6), id="c1", source="coder", target="tester", reason="stuck", attempts=2),
]  # fmt: skip


def _asking(store: Store) -> ServerReadQuery:
    return ServerReadQuery(cast("PostgresqlEngine", store.engine))


SUMMARY = SummaryRow("short", 3, 4, lossless=False)


@pytest.fixture
def reader(server_store: Store) -> ServerReadQuery:
    """Return what asks a small history."""
    server_store.append(RECORDS)
    server_store.shared.keep_summary("0" * 64, "brief", "c", SUMMARY)
    return _asking(server_store)


def _asked(reader: ServerReadQuery, query: str, *values: object, most: int = 100, seconds: float = 20) -> Rows:
    return reader.run(query, values, most=most, seconds=seconds)


_columns: dict[str, list[str]] = {}
"""The columns of the views: a statement for each, and all databases of the run have the same."""


def _columns_of(reader: ServerReadQuery, name: str) -> list[str]:
    if not _columns:
        _columns.update(reader.views())
    return _columns[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "findings"])
def test_each_view_answers_as_a_database_does(reader: ServerReadQuery, tmp_path: Path, name: str) -> None:
    """Names, columns and values of a view are those of a database with the same records."""
    with closing(open_store(str(tmp_path / "s.db"), create=True)) as store:
        store.append(RECORDS)
        store.shared.keep_summary("0" * 64, "brief", "c", SUMMARY)
        engine: Any = store.engine
        there = ReadQuery(cast("SqliteEngine", engine))
        columns = there.views()[name]
        wanted = there.run(f"SELECT * FROM {name} ORDER BY 1, 2", most=100, seconds=20)

    found = _asked(reader, f"SELECT * FROM {name} ORDER BY 1, 2")

    assert list(found.columns) == columns == _columns_of(reader, name)
    if name == "artifacts":  # no file holds what is on a server
        assert [row[5] for row in found.rows] == [None]
        found.rows, wanted.rows = ([(*row[:5], *row[6:]) for row in each.rows] for each in (found, wanted))
    assert found.rows == wanted.rows != []


def test_what_is_no_text_to_the_server_is_marked(server_store: Store) -> None:
    """A record that holds NUL, or half of a character, has its other values all the same, and a sign in that place."""
    odd = "\0\0 \\u0000 \\\0 \\\\ud800 \U0001f600 \ud800 \udc00\udc00 é"
    server_store.append([b.event("s", 1, "user_message", {"text": odd})])
    found = _asked(_asking(server_store), "SELECT text, agent, id FROM events WHERE day = '2026-01-22'")
    assert found.rows == [(re.sub("[\0\ud800-\udfff]", "\ufffd", odd), None, b.event("s", 1, "x", {})["id"])]


def test_findings_stand_beside_the_views(reader: ServerReadQuery) -> None:
    """What the detectors found is asked like a view, and only where a query names it."""
    assert reader.find_views("SELECT * FROM Findings, entries -- notes\n WHERE cause <> 'events'") == {"findings", "entries"}
    row: list[Any] = [None] * len(FINDING_COLUMNS)
    row[0], row[7], row[14] = "s", 3, "a \0 and \ud800"
    reader.fill([row])
    found = _asked(reader, "SELECT session, count, cause, idx FROM findings JOIN entries USING (session) WHERE idx = ?", "1")
    assert found.rows == [("s", 3, "a \ufffd and ?", 1)]


@pytest.mark.parametrize(
    ("query", "values", "rows"),
    [
        ("SELECT idx FROM entries WHERE idx BETWEEN ? - 1 AND ? ORDER BY idx;  ", ("1", "1"), [(0,), (1,)]),
        ("SELECT '?' AS a, $$?$$ AS b, $x$ ?$y$ $x$ AS c, E'\\'?' AS d -- ?\n /* ? /* ? */ ? */", (),
         [("?", "?", " ?$y$ ", "'?")]),
        ('SELECT 1 AS "a?;", 2 AS "%s"', (), [(1, 2)]),
        ("SELECT count(*), count(*) FROM entries -- the end", (), [(4, 4)]),
        ("SELECT 1.5, 2.0, 1e400::numeric, 'x'::bytea, ARRAY[1, 2], TIMESTAMP 'infinity', '{\"a\":1}'::json, TRUE, NULL", (),
         [(1.5, 2, "inf", "78", "[1, 2]", "infinity", '{"a":1}', True, None)]),
        ("WITH entries AS (SELECT 7 AS idx) SELECT * FROM entries", (), [(7,)]),
        ("VALUES (1), (2)", (), [(1,), (2,)]),
        ("SELECT action, count(*) FILTER (WHERE status = 'error') FROM entries WHERE action = 'Bash' GROUP BY action "
         "HAVING count(*) > ?", ("1",), [("Bash", 1)]),
        ("SELECT data::json ->> 'model', data::json #>> '{model}' FROM events WHERE type = 'usage'", (), [("m", "m")]),
        ("SELECT tag FROM notes, json_array_elements_text(tags::json) AS tag", (), [("x",)]),
        ("TABLE usage_by_day", (), [("2026-01-22", "coder", "m", 1, 7, 3)]),
    ],
)  # fmt: skip
def test_a_query_is_read_as_the_server_reads_it(
    reader: ServerReadQuery, query: str, values: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> None:
    """Values stand where a ? is outside of texts, names and comments; whatever comes back can be told as JSON."""
    assert _asked(reader, query, *values).rows == rows


REFUSED = [
    "DELETE FROM ctxmgr.entry", "UPDATE session SET id = 'x'", "INSERT INTO findings VALUES ('x')", "DROP TABLE ctxmgr.record",
    "CREATE TABLE x (y int)", "CREATE TEMP TABLE x (y int)", "COPY (SELECT 1) TO PROGRAM 'touch /tmp/x'", "SET ROLE postgres",
    "COPY ctxmgr.record TO '/tmp/x'", "BEGIN", "COMMIT", "ROLLBACK", "DO $$ BEGIN END $$", "CALL x()", "LISTEN x", "NOTIFY x",
    "EXPLAIN SELECT 1", "SELECT 1; DELETE FROM ctxmgr.entry", "SELECT 1; SELECT 2", "; SELECT 1",
    "SELECT 1) AS a; COMMIT; SELECT (1",
    "SELECT 1) AS a, (DELETE FROM ctxmgr.entry RETURNING seq", "WITH x AS (DELETE FROM entries RETURNING 1) SELECT * FROM x",
    "SELECT pg_read_file('/etc/passwd')", "SELECT \"pg_read_file\"('/etc/passwd')", "SELECT U&\"\\0070g_sleep\"(1)",
    "SELECT pg_terminate_backend(1)", "SELECT pg_advisory_lock(1)", "SELECT set_config('role', 'tester', false)",
    "SELECT lo_create(7)", "SELECT query_to_xml('SELECT pg_sleep(9)', true, true, '')", "SELECT nextval('ctxmgr.place')",
    "SELECT * FROM ctxmgr.record", "SELECT * FROM record", "SELECT * INTO x FROM entries",
    "SELECT * FROM nosuch", "SELEC 1", "SELECT 1 FROM entries WHERE idx = ?", "", " ", "-- nothing", ";", "SELECT '\ud800'",
    "SELECT 'open", "SELECT $$open", "SELECT 1 /* open", "SELECT 1/0",
    "SELECT 1) AS a\0", "SELECT " + "(" * 50_000,
]  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_nothing_but_reading_is_possible(reader: ServerReadQuery, admin: psycopg.Connection[Any], query: str) -> None:
    """Each is refused with words of ours, and changes nothing; the store can be asked and written afterwards."""
    before = admin.execute("SELECT count(*) FROM pg_class").fetchall()
    with pytest.raises(InvalidInput) as refused:
        _asked(reader, query)
    assert refused.value.hint
    assert admin.execute("SELECT count(*) FROM pg_class").fetchall() == before
    assert _asked(reader, "SELECT count(*) FROM entries").rows == [(4,)]


def test_rows_and_time_have_an_end(reader: ServerReadQuery) -> None:
    """So many rows come, and it is told whether there are more; a query without an end is stopped, with what came before."""
    assert [_asked(reader, "SELECT idx FROM entries", most=most).more for most in (3, 4)] == [True, False]
    endless = _asked(reader, ENDLESS.format("x"), most=5)
    assert (len(endless.rows), endless.more) == (5, True)
    stopped = _asked(reader, ENDLESS.format("count(*)"), seconds=0.2)
    assert (stopped.rows, stopped.stopped) == ([], "it took longer than 0.2 s")
    slow = (
        "SELECT x, CASE WHEN x > 1000 THEN (SELECT count(*) FROM generate_series(1, 10000000000)) END "
        "FROM generate_series(1, 2000) AS x"
    )
    some = _asked(reader, slow, seconds=0.5, most=5000)
    assert 100 < len(some.rows) <= 1000
    assert some.stopped == "it took longer than 0.5 s"


@pytest.fixture
def divided() -> Divided:
    """Return a store of two teams with a session each."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    with closing(administer(made.url("owner"))) as owner:
        owner.init()
        for role, team, writes in (("alice", "one", True), ("eve", "one", False), ("bob", "two", True)):
            owner.grant(made.roles[role], team, writes=writes)
    for role in ("alice", "bob"):
        with closing(made.open(role)) as store:
            store.append(b.steps(role, ["Bash:x"]))
    return made


def _allowed(kind: str, text: str, *, first: bool) -> None:
    """Take every word, in the place of what refuses some."""


def _one_part(query: str) -> Iterator[tuple[str, str]]:
    yield "other", query


@pytest.mark.cases(1)
@pytest.mark.parametrize("role", ["alice", "eve"])
def test_a_team_s_query_sees_that_team_alone(divided: Divided, monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    """Neither the views nor the tables behind them tell anything of another team, with whatever setting."""
    query = "SELECT session FROM sessions UNION SELECT session FROM entries"
    with closing(divided.open(role, readonly=role == "eve")) as store:
        assert _asked(_asking(store), query).rows == [("alice",)]
        monkeypatch.setattr("ctxmgr.store.read_query_on_server._require_allowed", _allowed)
        for setting in ("row_security', 'off", "ctxmgr.team', '2"):
            found = _asked(_asking(store), f"SELECT set_config('{setting}', true), id FROM ctxmgr.session")
            assert [row[1] for row in found.rows] == ["alice"]


# Spelled past the words that are refused: what the server itself holds a role to.
HARMLESS = {
    "reads no file": ("SELECT pg_read_file('/etc/passwd')", "42501"),
    "runs no program": ("COPY (SELECT 1) TO PROGRAM 'true'", None),
    "writes no record": ("SELECT ctxmgr.append_one('s', 'entry', 'e', 0, '{}', 1, 'a', 'b', NULL, NULL, FALSE, 'ok', NULL, "
                         "FALSE, NULL, NULL, '', '')", "25006"),
    "writes nothing by a CTE": ("WITH x AS (DELETE FROM ctxmgr.lease RETURNING 1) SELECT * FROM x", "0A000"),
    "draws no place": ("SELECT nextval('ctxmgr.place')", "25006"),
    "is no other role": ("SELECT set_config('role', 'tester', true)", "42501"),
    "is not let out of reading": ("SELECT set_config('transaction_read_only', 'off', true)", "25001"),
    "is one statement": ("SELECT 1) AS a; DELETE FROM ctxmgr.lease; SELECT * FROM (SELECT 1", None),
}  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("what", HARMLESS)
def test_what_keeps_a_writer_from_harm_is_the_server(divided: Divided, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Without any look at its words a query of a writer does nothing but read what the role may read."""
    monkeypatch.setattr("ctxmgr.store.read_query_on_server._require_allowed", _allowed)
    monkeypatch.setattr("ctxmgr.store.read_query_on_server._parts", _one_part)
    seen: list[str | None] = []

    def noted(place: str, error: psycopg.Error, hint: str) -> InvalidInput:
        seen.append(error.sqlstate)
        return InvalidInput(str(error), hint)

    monkeypatch.setattr("ctxmgr.store.engine.postgresql_select._error", noted)
    query, state = HARMLESS[what]
    with closing(divided.open("alice")) as store:
        with pytest.raises(InvalidInput):
            _asked(_asking(store), query)
        assert store.sessions.count() == 1
    assert seen == [state or "42601"]


def test_what_outlives_a_transaction_ends_with_the_query(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of the session and a setting are gone once the query is answered."""
    monkeypatch.setattr("ctxmgr.store.read_query_on_server._require_allowed", _allowed)
    with closing(divided.open("alice")) as store:
        found = _asked(
            _asking(store),
            "SELECT pg_advisory_lock(77)::text, set_config('statement_timeout', '0', false), pg_notify('x', 'y')",
        )
        assert len(found.rows) == 1
        with divided.superuser() as connection:
            for _ in range(100):
                if not connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 77").fetchall():
                    break
                connection.execute("SELECT pg_sleep(0.02)")
            else:
                pytest.fail("the lock is still held")


_OWN_SETTINGS = (
    "SELECT pg_backend_pid(), current_setting('statement_timeout'), current_setting('search_path'), "
    "current_setting('x.y', true)"
)


def test_a_pooler_passes_nothing_of_a_query_on(pooled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a pooler what a query set and locked ends with the connection, which nobody else is given."""
    monkeypatch.setattr("ctxmgr.store.read_query_on_server._require_allowed", _allowed)
    with psycopg.connect(pooled, prepare_threshold=None) as one, psycopg.connect(pooled, prepare_threshold=None) as other:
        before = {row[1:] for each in (one, other) for row in each.execute(_OWN_SETTINGS).fetchall()}
    with closing(open_store(pooled)) as store:
        ((process, *_),) = _asked(
            _asking(store),
            "SELECT pg_backend_pid(), pg_advisory_lock(77)::text, set_config('statement_timeout', '7', false), "
            "set_config('search_path', 'x', false), set_config('x.y', 'z', false)",
        ).rows
    with psycopg.connect(pooled, prepare_threshold=None) as one, psycopg.connect(pooled, prepare_threshold=None) as other:
        after = [row for each in (one, other) for row in each.execute(_OWN_SETTINGS).fetchall()]
        assert process not in {row[0] for row in after}
        assert {row[1:] for row in after} == before
        assert one.execute("SELECT pg_try_advisory_xact_lock(77)").fetchall() == [(True,)]


def test_queries_share_the_connections_of_a_pooler_with_writers(pooled: str) -> None:
    """Six who ask over two connections, half of them without an end, and two who write meanwhile: each is done."""

    def ask(number: int) -> bool:
        with closing(open_store(pooled, readonly=True)) as store:
            asked = _asking(store)
            if number % 2:
                return _asked(asked, ENDLESS.format("count(*)"), seconds=0.5).stopped == "it took longer than 0.5 s"
            return all(_asked(asked, f"SELECT count(*) FROM {name}").rows for name in NAMES[:3])

    def write(name: str) -> bool:
        with closing(open_store(pooled)) as store:
            return sum(store.append([b.entry(name, number, "Bash", {})]).added for number in range(10)) == 10

    with ThreadPoolExecutor(8) as pool:
        done = [*(pool.submit(ask, number) for number in range(6)), *(pool.submit(write, name) for name in "ab")]
        assert all(each.result() for each in done)


@pytest.mark.cases(1)
@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_who_is_killed_while_asking_blocks_no_pooler(pooled: str, admin: psycopg.Connection[Any], how: str) -> None:
    """The pooler drops the connection of a query whose client is gone; both that it has are there for the others."""
    running = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' "
        "AND query LIKE '%ctxmgr_select%' AND pid <> pg_backend_pid()"
    )
    former = admin.execute(running).fetchall()
    command = [sys.executable, "-m", "ctxmgr", "sql", ENDLESS.format("count(*)"), "--store", pooled, "--time-limit", "20"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as client:
        for _ in range(600):
            admin.execute("SELECT pg_sleep(0.05)")
            if begun := set(admin.execute(running).fetchall()) - set(former):
                break
        else:
            pytest.fail("the query did not begin")
        getattr(client, how)()
    with closing(open_store(pooled)) as one, closing(open_store(pooled)) as other:
        with one.engine.transaction():  # both connections at once
            assert other.sessions.count() == 0
            assert one.append([b.entry("s", 1, "Bash", {})]).added == 1
        assert _asked(_asking(other), "SELECT count(*) FROM entries").rows == [(1,)]
    for (process,) in begun:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", (process,))
