"""A person's own query: it reads the documented views and nothing else, and neither time nor rows are without end."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store, open_store, read_query
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.read_query import FINDING_COLUMNS, NAMES, ReadQuery, Rows
from tests import builders as b

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {} FROM n"


def _records() -> list[dict[str, Any]]:
    return [
        b.build("session", "s", b.at(0), process="p", workflow="w", source={"importer": "codex"},
                meta={"title": "Ship it", "cwd": "/home/dev/shop"}),
        *b.steps("s", ["Read:a.py -> text", "!Bash:make -> boom", "?Bash:sleep"], process="p"),
        b.event("s", 9, "usage", {"inputTokens": 7, "outputTokens": 3, "model": "m"}, agent="coder"),
        b.build("note", "s", b.at(4), id="n1", entries=[b.entry_id("s", 1)], content="flaky", tags=["x"], author="ann"),
    ]  # fmt: skip


@pytest.fixture(params=["store.db", "log.jsonl", "read-only.db"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ReadQuery]:
    """Yield what asks a small history, in each kind of store."""
    place = str(tmp_path / str(request.param))
    with closing(open_store(place, create=True)) as store:
        store.append(_records())
    with closing(open_store(place, readonly=request.param != "store.db")) as store:
        yield _asking(store)


def _asking(store: Store) -> ReadQuery:
    engine: Any = store.engine
    return ReadQuery(cast("SqliteEngine", engine))


def _asked(reader: ReadQuery, query: str, *values: object, most: int = 100, seconds: float = 20) -> Rows:
    return reader.run(query, values, most=most, seconds=seconds)


def test_each_view_can_be_asked(reader: ReadQuery) -> None:
    """Every view that is documented has columns, and a query of all of them is answered."""
    told = reader.views()

    assert tuple(told) == NAMES
    for name, columns in told.items():
        assert _asked(reader, f"SELECT * FROM {name}").columns == tuple(columns)
    assert told["findings"] == list(FINDING_COLUMNS)


def test_the_views_tell_what_was_recorded(reader: ReadQuery) -> None:
    """Sessions, entries with their results, usage and notes are as they were recorded; the names are not folded."""
    assert _asked(
        reader, "SELECT session, title, project, importer, entries, failed, open, input_tokens FROM sessions"
    ).rows == [("s", "Ship it", "/home/dev/shop", "codex", 3, 1, 1, 7)]
    assert _asked(reader, "SELECT idx, action, status, output, error FROM entries ORDER BY idx").rows == [
        (0, "Read", "ok", "text", None), (1, "Bash", "error", None, "boom"), (2, "Bash", "open", None, None),
    ]  # fmt: skip
    assert _asked(reader, "SELECT day, agent, model, responses, input_tokens, output_tokens FROM usage_by_day").rows == [
        ("2026-01-22", "coder", "m", 1, 7, 3)
    ]
    assert _asked(reader, "SELECT content, author, tags FROM notes").rows == [("flaky", "ann", '["x"]')]


def test_counting_names_no_column(reader: ReadQuery) -> None:
    """Rows are counted, also those of a query's own table, for which SQLite reads no column at all."""
    assert _asked(reader, "SELECT count(*) FROM entries").rows == [(3,)]
    assert _asked(reader, "WITH n AS (SELECT 1 UNION ALL SELECT 2) SELECT count(*) FROM n").rows == [(2,)]


REFUSED = [
    "ATTACH 'other.db' AS o", "DETACH main", "PRAGMA journal_mode = DELETE", "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON", "PRAGMA user_version = 99", "DELETE FROM entry", "DELETE FROM entries",
    "UPDATE session SET id = 'x'", "INSERT INTO findings (session) VALUES ('x')", "DROP VIEW entries", "DROP TABLE record",
    "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "CREATE TRIGGER t AFTER INSERT ON entry BEGIN SELECT 1; END",
    "VACUUM", "VACUUM INTO 'copy.db'", "REINDEX", "ANALYZE", "BEGIN", "COMMIT", "SAVEPOINT a", "ALTER TABLE entry ADD COLUMN x",
    "SELECT load_extension('x')", "SELECT fts3_tokenizer('x')", "SELECT log_body(0, 10)", "SELECT value FROM state",
    "SELECT body FROM record", "SELECT holder FROM lease", "SELECT sql FROM sqlite_master",
    "SELECT sql FROM sqlite_temp_schema",
    "SELECT name FROM pragma_table_info('record')", "SELECT file FROM pragma_database_list",
    "WITH x AS (SELECT value FROM state) SELECT * FROM x", "WITH entries AS (SELECT value FROM state) SELECT * FROM entries",
    "WITH x AS (SELECT load_extension('x')) SELECT * FROM x", "SELECT * FROM (SELECT value FROM state) AS entries",
    "WITH record AS (SELECT load_extension('x') AS body) SELECT * FROM record", "SELECT (SELECT max(value) FROM state)",
    "SELECT 1; DELETE FROM entry", "EXPLAIN DELETE FROM entry", "SELECT * FROM nosuch", "SELEC 1", "", "  ", "-- nothing",
    "SELECT 1 FROM entries WHERE idx = ?", "INSERT INTO note_tag VALUES (1, 'a', 2) RETURNING tag",
]  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_nothing_but_reading_is_possible(reader: ReadQuery, query: str) -> None:
    """Each is refused with words of ours; afterwards the history is as it was, and can be asked."""
    with pytest.raises(InvalidInput) as refused:
        _asked(reader, query)

    assert refused.value.hint
    assert _asked(reader, "SELECT count(*) FROM entries").rows == [(3,)]


@pytest.mark.parametrize("query", REFUSED)
def test_no_file_is_changed_or_made(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused query leaves the bytes of the database, and the folder, as they are."""
    monkeypatch.chdir(tmp_path)
    with closing(open_store("s.db", create=True)) as store:
        store.append(_records())
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    with closing(open_store("s.db", readonly=True)) as store, pytest.raises(InvalidInput):
        _asked(_asking(store), query)

    after = {each.name: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith(("-shm", "-wal"))}
    assert after == {name: content for name, content in before.items() if not name.endswith(("-shm", "-wal"))}


def test_a_writable_store_writes_again_after_a_query(tmp_path: Path) -> None:
    """What a query forbids its connection is forbidden for the query alone."""
    with closing(open_store(str(tmp_path / "s.db"), create=True)) as store:
        store.append(_records())
        reader = _asking(store)
        with pytest.raises(InvalidInput):
            _asked(reader, "DELETE FROM entry")
        store.append(b.steps("t", ["Read:b.py -> text"]))
        assert _asked(reader, "SELECT count(*) FROM sessions").rows == [(2,)]


def test_rows_beyond_the_limit_are_left_out(reader: ReadQuery) -> None:
    """So many rows come and no more, and it is told whether there are more."""
    assert (_asked(reader, "SELECT idx FROM entries", most=2).more, _asked(reader, "SELECT idx FROM entries", most=3).more) == (
        True, False,
    )  # fmt: skip
    endless = _asked(reader, ENDLESS.format("x"), most=5)
    assert (len(endless.rows), endless.more) == (5, True)


def test_a_query_that_never_ends_is_stopped(reader: ReadQuery) -> None:
    """The time is up even where no row ever comes; what came before is kept."""
    found = _asked(reader, ENDLESS.format("count(*)"), seconds=0.2)

    assert (found.rows, found.stopped) == ([], "it took longer than 0.2 s")
    assert _asked(reader, "SELECT 1").rows == [(1,)]


@pytest.mark.parametrize("place", ["_memory_used", "__call__"])
def test_an_interrupt_reaches_the_caller(place: str, reader: ReadQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is raised while SQLite works, as Ctrl-C is, comes out as itself, wherever it comes."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(read_query.Watch, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        _asked(reader, ENDLESS.format("count(*)"))


def test_values_are_plain(reader: ReadQuery) -> None:
    """Columns of one name are told apart, bytes are digits, infinities text; a value stands in the place of a mark."""
    found = _asked(reader, "SELECT 1 AS a, 2 AS a, 3 AS a_2, x'00ff', 9e999, NULL, ?", "'; DROP TABLE entry")

    assert found.columns[:3] == ("a", "a_2", "a_2_2")
    assert found.rows[0][3:] == ("00ff", "inf", None, "'; DROP TABLE entry")


@pytest.mark.parametrize("name", ["store.db", "log.jsonl"])
def test_half_a_character_fails_no_query(name: str, tmp_path: Path) -> None:
    """One record whose action holds half a surrogate pair is shown mended, beside all others."""
    place = str(tmp_path / name)
    with closing(open_store(place, create=True)) as store:
        store.append([*_records(), b.entry("s", 7, action="Odd\ud800")])
    with closing(open_store(place, readonly=True)) as store:
        found = _asked(_asking(store), "SELECT action FROM entries")
    assert [row[0][:3] for row in found.rows] == ["Rea", "Bas", "Bas", "Odd"]


def test_what_a_query_names_is_known(reader: ReadQuery) -> None:
    """The views are found wherever a query names them, so that findings are judged only where they are wanted."""
    assert reader.find_views("SELECT * FROM (SELECT * FROM findings) JOIN sessions USING (session)") == {"findings", "sessions"}
    assert "findings" not in reader.find_views("SELECT 'findings' FROM entries")
    assert reader.find_views("SELECT 1 WHERE EXISTS (SELECT 1 FROM findings)") == {"findings"}


@pytest.mark.parametrize("query", ["EXPLAIN QUERY PLAN {}", "explain {}", " -- so\n/* and\nso */ Explain query plan {}"])
def test_a_query_may_ask_for_its_plan(reader: ReadQuery, query: str) -> None:
    """What such a query names is known as well, and its plan is told."""
    asked = query.format("SELECT action FROM entries")
    assert reader.find_views(asked) == {"entries"}
    assert _asked(reader, asked).rows


def test_a_hostile_store_is_only_read(tmp_path: Path) -> None:
    """A store with views and triggers of somebody else gives no more than what the documented views select."""
    place = tmp_path / "s.db"
    with closing(open_store(str(place), create=True)) as store:
        store.append(_records())
    with closing(sqlite3.connect(place)) as foreign:
        foreign.execute("CREATE VIEW entries AS SELECT value AS idx FROM state")
        foreign.execute("DROP VIEW artifacts")
        foreign.execute("CREATE VIEW artifacts AS SELECT load_extension('x') AS id")
        foreign.commit()
    with closing(open_store(str(place), readonly=True)) as store:
        reader = _asking(store)
        assert _asked(reader, "SELECT count(*) FROM entries").rows == [(3,)]
        with pytest.raises(InvalidInput):
            _asked(reader, "SELECT id FROM artifacts")
