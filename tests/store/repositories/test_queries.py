"""Pages of a session begin near their first row and are those that counting would give; prefixes of ids; totals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import sqlite_utils
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import Conflict, InvalidInput, NotFound
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine
from ctxmgr.store.repositories import queries
from ctxmgr.store.repositories.queries import Rows, page, row_count
from ctxmgr.store.search.find import Search
from ctxmgr.store.write import batch
from ctxmgr.store.write.append import Appender
from ctxmgr.types.plain_records import MESSAGE_TYPES, build
from ctxmgr.types.query import Filters
from tests.builders import at, entry, entry_id, event, key_of, result, write
from tests.conftest import STORE_FILES
from tests.store.counting import CountingEngine, counted

if TYPE_CHECKING:
    from ctxmgr.store.repositories.queries import Series

SERIES: tuple[Series, ...] = ("all", "event", "message")
_EVENTS = "SELECT seq, 'event' FROM event WHERE session = :key"
_PLAIN: dict[Series, str] = {
    "all": f"SELECT seq, 'entry' FROM entry WHERE session = :key UNION ALL {_EVENTS}",
    "event": _EVENTS,
    "message": f"{_EVENTS} AND type IN ({', '.join(repr(name) for name in MESSAGE_TYPES)})",
}

_word = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["entry", "result", "message", "usage", "error", "note"]))
_batches = st.lists(st.lists(_word, min_size=1, max_size=14), min_size=1, max_size=6)


def _record(session: str, what: str, number: int) -> Record:
    if what == "entry":
        return entry(session, number)
    if what == "result":
        return result(session, number // 2)
    if what == "note":
        return build("note", session, at(number), id=f"n{number}", entries=[entry_id(session, 0)], content="c")
    return event(session, number, what, after=number)


def _batches_of(words: Sequence[Sequence[tuple[str, str]]]) -> list[list[Record]]:
    number = 0
    made: list[list[Record]] = []
    for few in words:
        made.append([])
        for session, what in few:
            number += 1
            made[-1].append(_record(session, what, number))
    return made


def _all_places(store: Store, key: int, series: Series) -> list[tuple[int, str]]:
    return cast("list[tuple[int, str]]", store.engine.query(f"{_PLAIN[series]} ORDER BY seq", {"key": key}))


def _require_every_page(store: Store, limits: Sequence[int]) -> None:
    for session in ("a", "b"):
        key = store.sessions.key(session)
        for series in SERIES if key is not None else ():
            assert key is not None
            rows = _all_places(store, key, series)
            assert row_count(store.engine, key, series) == len(rows)
            for newest_first in (False, True):
                ordered = rows[::-1] if newest_first else rows
                for limit in limits:
                    for offset in range(len(rows) + 2):
                        found = page(store.engine, key, series, offset, limit, newest_first=newest_first)
                        assert found == (ordered[offset : offset + limit], len(rows))


@pytest.mark.parametrize("kind", sorted(STORE_FILES))
@given(words=_batches, step=st.integers(1, 5), again=st.booleans(), taken_back=st.booleans())
@settings(max_examples=25)
def test_every_page_is_that_of_an_offset(
    kind: str, words: list[list[tuple[str, str]]], step: int, again: bool, taken_back: bool
) -> None:
    """Whatever is appended in whatever batches, each page and each total is what going through all rows gives."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "STEP", step)
        place = str(Path(folder, STORE_FILES[kind]))
        store = open_store(place, create=True)
        store.append([entry("a", 0)])
        for records in _batches_of(words):
            if taken_back:
                with pytest.raises(Conflict):
                    store.append([event("a", 9_000, "message"), entry("b", 9_000), entry("a", 0, "Other")])
            store.append(records)
            store.append(records)  # known by now
            if again:
                store.close()
                store = open_store(place)
        _require_every_page(store, (1, 3))
        store.close()


def _interrupted(store: Store, records: list[Record]) -> None:
    with store.engine.transaction():
        store.append(records)
        raise InterruptedError


def test_what_was_taken_back_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append that is rolled back from outside leaves counts and milestones as they were, for what is appended next too."""
    monkeypatch.setattr(batch, "STEP", 2)
    with closing(open_store(MEMORY, create=True)) as store:
        store.append([entry("a", 0), event("a", 0, "message"), entry("a", 1)])

        with pytest.raises(InterruptedError):
            _interrupted(store, [entry("a", 50), event("a", 50, "message")])
        store.append([event("a", 1, "usage"), event("a", 2, "message"), entry("a", 2)])

        _require_every_page(store, (2,))


def test_a_page_skips_less_than_a_step() -> None:
    """However far a page is, fewer rows than lie between two milestones are passed over to reach it, in each series."""
    with closing(open_store(MEMORY, create=True)) as store:
        store.append(
            record
            for number in range(3 * batch.STEP)
            for record in (entry("a", number), event("a", number, "message" if number % 2 else "usage", after=number))
        )
        key = store.sessions.key("a") or 0
        engine = CountingEngine(store.engine)
        for series in SERIES:
            for offset in range(0, row_count(store.engine, key, series), 101):
                for newest_first in (False, True):
                    page(engine, key, series, offset, 20, newest_first=newest_first)

        skipped = [int(values["skip"]) for values in engine.values if "skip" in values]
        assert len(skipped) > 50
        assert max(skipped) < batch.STEP


def test_the_reader_pages_by_milestones() -> None:
    """Pages of everything, of events and of messages come from milestones; with a filter they are what it keeps."""
    with closing(open_store(MEMORY, create=True)) as store:
        store.append(_record("a", what, number) for number, what in enumerate(("entry", "message", "usage") * 400))
        key = store.sessions.key("a") or 0
        engine = CountingEngine(store.engine)
        rows = Rows(engine)

        assert rows.places(key, Filters(), "all", 1_000, 5) == (_all_places(store, key, "all")[1_000:1_005], 1_200, True)
        assert rows.places(key, Filters(), "event", 700, 5) == (_all_places(store, key, "event")[700:705], 800, True)
        found, total = rows.messages(key, None, 390, 20)
        assert ([row["id"] for row in found], total) == ([f"a-v{number:04}" for number in range(1_171, 1_201, 3)], 400)
        assert not [text for text in engine.statements if "OFFSET :offset" in text or "SELECT count(*)" in text]
        kept = rows.places(key, Filters(event_type=["usage"]), "event", 390, 20)
        assert [place for place, _ in kept[0]] == [place + 1 for place, _ in _all_places(store, key, "message")[390:]]


def test_what_was_copied_out_of_order_has_no_milestones() -> None:
    """Rows that keep the places of another store, and come late, are counted and paged through in the order of places."""
    records = [entry("a", 0), event("a", 0, "message"), entry("a", 1), event("a", 1, "message"), event("a", 2, "usage")]
    with closing(open_store(MEMORY, create=True)) as store:
        appender = Appender(store.engine, masked=False, sums=False)
        with store.engine.transaction():
            appender.copy([(place, records[place]) for place in (0, 2, 3)])
        with store.engine.transaction():
            appender.copy([(place, records[place]) for place in (1, 4)])
        key = store.sessions.key("a") or 0
        rows = Rows(store.engine, exact=True)

        assert store.engine.query("SELECT * FROM milestone") == []
        assert rows.places(key, Filters(), "all", 1, 3) == ([(1, "event"), (2, "entry"), (3, "event")], 5, True)
        assert rows.places(key, Filters(), "event", 0, 2, newest_first=True) == ([(4, "event"), (3, "event")], 3, True)
        assert [row["id"] for row in rows.messages(key, None, 0, 9)[0]] == ["a-v0000", "a-v0001"]


_COPIED = {
    "session": "key, id, entries, seq, first, last",
    "record": "seq, session, kind, id, ts, body, sum",
    "entry": "seq, session, idx, agent, action, input_type, process, ts, status, result",
    "event": "seq, session, type, agent, entry, after, ts",
}


def _of_version_two(place: Path, store: Store) -> None:
    """Write the rows of a store into one of schema 2, as the program of that time made it."""
    engine = SqliteEngine(str(place))
    with engine.transaction():
        scripts = sqlite_utils.Migrations("ctxmgr")
        for name, script in schema.SCRIPTS[:2]:
            scripts(name=name)(_script(script))
        scripts.apply(sqlite_utils.Database(cast("Any", engine)._connection))
        for table, columns in _COPIED.items():
            marks = ", ".join("?" * (columns.count(",") + 1))
            engine.many(
                f"INSERT INTO {table} ({columns}) VALUES ({marks})", store.engine.query(f"SELECT {columns} FROM {table}")
            )
        engine.execute("PRAGMA user_version = 2")
    engine.close()


def _script(text: str) -> Callable[[Any], None]:
    def run(database: Any) -> None:
        for statement in text.split(";\n"):
            if statement.strip():
                database.execute(statement)

    return run


def test_an_older_store_gets_what_it_would_have_counted(tmp_path: Path) -> None:
    """A store of schema 2 has, once it is opened, the counts and milestones of one that was written now, and goes on so."""
    words = ("entry", "message", "usage", "result", "thought")
    first = [_record("ab"[number % 3 == 0], words[number % 5], number) for number in range(4_000)]
    then = [_record("ab"[number % 3 == 0], words[number % 5], number) for number in range(4_000, 6_000)]
    told = ["SELECT * FROM milestone", "SELECT key, entries, events, messages FROM session"]
    with closing(open_store(MEMORY, create=True)) as fresh:
        fresh.append(first)
        _of_version_two(tmp_path / "history.db", fresh)
        with closing(open_store(str(tmp_path / "history.db"))) as older:
            assert len(older.engine.query(told[0])) > 6
            for records in ([], then):
                fresh.append(records)
                older.append(records)
                for question in told:
                    assert older.engine.query(question) == fresh.engine.query(question)


_said = st.tuples(
    st.sampled_from(["entry", "message", "user_message", "usage", "interrupt"]),
    st.sampled_from(["coder", "tester", None]),
    st.sampled_from(["p1", "p2", None]),
    st.booleans(),
)


@given(told=st.lists(_said, min_size=1, max_size=24))
@settings(max_examples=60)
def test_what_was_said_at_an_entry_is_what_reading_all_events_finds(
    told: list[tuple[str, str | None, str | None, bool]],
) -> None:
    """The messages of an entry are its own, and those on the way to it since its agent's last one in the same process."""
    records: list[Record] = []
    last: str | None = None
    for number, (what, agent, process, tied) in enumerate(told):
        if what == "entry":
            fields = {} if process is None else {"process": process}
            records.append(entry("s", number, agent=agent or "coder", **fields))
            last = str(records[-1]["id"])
        else:
            fields = {} if agent is None else {"agent": agent}
            records.append(event("s", number, what, after=number, **fields, **({"entry": last} if tied and last else {})))
    with closing(open_store(MEMORY, create=True)) as store:
        store.append(records)
        key, rows = store.sessions.key("s") or 0, Rows(store.engine)
        for place, record in enumerate(records):
            if record["kind"] != "entry":
                continue
            expected = [str(said["id"]) for said in _on_the_way(records, place)]
            shown = rows.entry_by_id(key, str(record["id"]))
            found, total = rows.messages(key, shown, 1, 3)
            assert ([row["id"] for row in found], total) == (expected[1:4], len(expected))


def _on_the_way(records: list[Record], place: int) -> list[Record]:
    own = records[place]
    before = [
        number for number, other in enumerate(records[:place])
        if other["kind"] == "entry" and (other["agent"], other.get("process")) == (own["agent"], own.get("process"))
    ]  # fmt: skip
    start = before[-1] if before else -1
    said = [(number, each) for number, each in enumerate(records) if each.get("type") in MESSAGE_TYPES]
    return [
        each for number, each in said
        if each.get("entry") == own["id"]
        or ("entry" not in each and start < number < place
            and (each.get("agent") in (None, own["agent"]) or each["type"] in ("user_message", "interrupt")))
    ]  # fmt: skip


def test_prefixes_of_entries(store: Store) -> None:
    """An entry is found by its whole id first, then by a prefix that fits one only, within its session."""
    store.append([entry("s", number, id=name) for number, name in enumerate(("ab", "abc", "abd", "%x"))])
    store.append([entry("t", 0, id="only-there")])
    key = key_of(store, "s")

    found = {text: store.queries.entry_by_id(key, text) for text in ("ab", "abc", "%", "", "only", "ABC", "_")}
    assert {text: view.id if view else None for text, view in found.items()} == {
        "ab": "ab", "abc": "abc", "%": "%x", "": None, "only": None, "ABC": None, "_": None,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="entry ids start with"):
        store.queries.entry_by_id(key, "a")


def test_many_places_are_read_in_several_statements() -> None:
    """However many ids and places are asked for, no statement is given more values than any SQLite can bind."""
    store = open_store(":memory:", create=True)
    write(store, "s", ["Bash:ls", "> hello"])
    watched, engine = counted(store)
    names = [f"x{number}" for number in range(2000)]

    assert list(watched.annotations.entry_bodies(key_of(store, "s"), [*names, "s-e0000"])) == ["s-e0000"]
    hits = watched.queries.places(key_of(store, "s"), Filters(), "all", 0, 10)[0]
    assert len(watched.queries.rows(hits * 2000)) == 4000
    assert max(len(values) for values in engine.values) < 999
    assert len(engine.statements) > 10
    store.close()


@pytest.mark.parametrize("most", [1, 2, 7, 19, 20, 21, 500])
def test_totals_are_the_same_however_they_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A total, exact or estimated, does not depend on whether rows are counted or stepped over."""
    store.append(
        record
        for number in range(120)
        for session in ("s", "t")
        for record in (
            entry(session, number, ("Bash", "Read", "Edit")[number * 7 % 11 % 3], agent=f"a{number % 2}"),
            result(session, number, status="error" if number % 6 == 0 else "ok"),
        )
    )
    monkeypatch.setattr(queries, "_COUNTED", most)
    asked = [
        Filters(action=["bash"]), Filters(agent=["A1"]), Filters(status=["error"]), Filters(action=["none"]),
        Filters(action=["Bash"], agent=["a0"]), Filters(action=["Edit", "Bash"]), Filters(status=["ok"], since=at(30)),
    ]  # fmt: skip
    watched, engine = counted(store)

    def totals() -> tuple[list[tuple[int, bool]], int]:
        engine.statements.clear()
        found = [watched.queries.entries(key_of(store, "t"), filters, 0, 3)[1:] for filters in asked]
        return found, sum(f" 1 OFFSET {most - 1}" in statement for statement in engine.statements)

    stepping, stepped = totals()
    monkeypatch.setattr(queries, "_IN_ORDER", ())
    counting, uncounted = totals()

    assert stepping == counting
    assert (stepped, uncounted) == (4, 0)
    assert (most == 500) == all(exact for _, exact in stepping)


def test_a_session_that_goes_while_it_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found and what is read of it are of one moment; of places that are gone by then nothing is told."""
    place = str(tmp_path / "h.db")
    with closing(open_store(place, create=True)) as store, closing(open_store(place)) as other:
        store.append([entry("a", 0, "Bash", {"command": "needle"}), event("a", 1, "message", {"text": "needle"})])
        key = store.sessions.key("a")
        assert key is not None
        places = store.queries.hits(key, Filters(), "all")
        real_find = Search.find

        def find(search: Search, most: int) -> Any:
            found = real_find(search, most)
            with other.engine.transaction():
                for table in ("entry", "event", "record"):
                    other.engine.execute(f"DELETE FROM {table}")
                other.engine.execute("DELETE FROM session")
            return found

        monkeypatch.setattr(Search, "find", find)
        rows = Rows(store.engine)
        assert len(rows.search(key, Filters(), "all", "needle", 0, 10)[0]) == 2
        assert rows.rows(places) == []
        with pytest.raises(NotFound, match="archived meanwhile"):
            rows.entries(key, Filters(), 0, 10)
        with pytest.raises(NotFound, match="archived meanwhile"):
            store.sessions.name(key)
