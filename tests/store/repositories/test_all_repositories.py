"""Sessions, leases, imported files and prefixes: the smaller answers of a store."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store, open_store
from ctxmgr.store.archive.retention import archived_sessions
from ctxmgr.store.project_session import PACKAGE, PROJECT
from ctxmgr.store.repositories import queries
from ctxmgr.store.repositories.bookkeeping import FileState
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters
from tests.builders import at, entry, event, result, steps, write
from tests.store.counting import counted


def _key(store: Store, session: str) -> int:
    key = store.sessions.key(session)
    assert key is not None
    return key


def test_a_session_is_described_by_its_records(store: Store) -> None:
    """A session's row tells workflow, source, title, agents in order of appearance, counts, times, and outcome."""
    store.append([
        build("session", "s", at(0), process="p", workflow="invoice", source={"importer": "x"}, meta={"title": "Fix it"}),
        *steps("s", ["Bash:ls", "!Read:a", "?Edit:b", "> hello"], agent="Writer"),
        entry("s", 3, status="denied", agent="reviewer"),
        entry("s", 4, status="interrupted", agent="WRITER"),
        build("note", "s", at(90), id="n", entries=["s-e0000"], content="note"),
        build("sessionEnd", "s", at(60), outcome="failed", process="p"),
    ])  # fmt: skip

    view = store.sessions.view(_key(store, "s"))
    assert (view.session, view.workflow, view.source, view.title) == ("s", "invoice", {"importer": "x"}, "Fix it")
    assert view.agents == ["Writer", "reviewer"]
    assert (view.entries, view.open, view.failed, view.events, view.notes) == (5, 1, 3, 1, 1)
    assert (view.started, view.last, view.outcome) == (at(0), at(60), "failed")  # the note came later, and goes on with nothing
    assert [(process.process, process.started, process.outcome) for process in view.processes] == [("p", at(0), "failed")]


def test_tokens_are_summed_once(store: Store) -> None:
    """Tokens of API responses, results and finished entries are added up; what is no number is left out."""
    store.append([
        event("s", 0, "usage", {"inputTokens": 100, "outputTokens": 10}),
        event("s", 1, "usage", {"inputTokens": True, "outputTokens": "7"}),
        event("s", 2, "usage", ["no", "object"]),
        event("s", 3, "message", {"inputTokens": 5_000}),
        entry("s", 0), result("s", 0, {"usage": {"inputTokens": 9_000}}, usage={"inputTokens": 20, "outputTokens": 2}),
        entry("s", 1, status="ok", usage={"inputTokens": 3, "outputTokens": 1}),
        entry("s", 2, given={"usage": {"inputTokens": 9_000}}),
    ])  # fmt: skip

    assert store.sessions.usage(_key(store, "s")) == {"inputTokens": 123, "outputTokens": 13}


def test_the_latest_session_is_the_one_with_the_latest_record(store: Store) -> None:
    """The latest session is told by time, among untimed ones by what was written last; timed ones come first."""
    assert store.sessions.latest() is None
    store.append([build("entry", "untimed", None, id="e", agent="a", action="x")])
    assert store.sessions.name(store.sessions.latest() or 0) == "untimed"
    store.append([entry("old", 1), entry("new", 50), entry("old", 2), entry("middle", 10)])
    store.append([build("entry", "also untimed", None, id="e", agent="a", action="x")])

    assert store.sessions.name(store.sessions.latest() or 0) == "new"
    names = [view.session for _, view in store.sessions.page(0, None)]
    assert names == ["new", "middle", "old", "also untimed", "untimed"]
    assert [view.session for _, view in store.sessions.page(1, 2)] == names[1:3]
    assert store.sessions.last_moment(_key(store, "new")) == parse_time(at(50))


def test_sessions_are_paged_by_agent(store: Store) -> None:
    """Of sessions with an agent, in any case of letters, the page and the count agree."""
    for number in range(5):
        write(store, f"s{number}", ["Bash:ls"], agent="Ärger" if number % 2 else "other")

    assert [view.session for _, view in store.sessions.page(0, None, "äRGER")] == ["s3", "s1"]
    assert (store.sessions.count("ÄRGER"), store.sessions.count("nobody"), store.sessions.count()) == (2, 0, 5)


def test_prefixes_of_sessions(store: Store) -> None:
    """A session is found by its whole id first, then by a prefix that fits one only; the empty text fits none."""
    store.append([entry(session, 0) for session in ("ab", "abc", "abd", "x%_", "x\U0010fffd")])

    assert store.sessions.name(_key(store, "ab")) == "ab"
    assert store.sessions.name(_key(store, "abc")) == "abc"
    assert store.sessions.name(_key(store, "x%")) == "x%_"
    assert [store.sessions.key(text) for text in ("", "b", "%", "_", "AB")] == [None] * 5
    for text in ("a", "x"):
        with pytest.raises(InvalidInput, match="several session ids"):
            store.sessions.key(text)


def test_prefixes_of_entries(store: Store) -> None:
    """An entry is found by its whole id first, then by a prefix that fits one only, within its session."""
    store.append([entry("s", number, id=name) for number, name in enumerate(("ab", "abc", "abd", "%x"))])
    store.append([entry("t", 0, id="only-there")])
    key = _key(store, "s")

    found = {text: store.queries.entry_by_id(key, text) for text in ("ab", "abc", "%", "", "only", "ABC", "_")}
    assert {text: view.id if view else None for text, view in found.items()} == {
        "ab": "ab", "abc": "abc", "%": "%x", "": None, "only": None, "ABC": None, "_": None,
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="entry ids start with"):
        store.queries.entry_by_id(key, "a")


def test_prefixes_of_snapshots(store: Store) -> None:
    """A snapshot is found by its whole id first, then by a prefix that fits one only."""
    common: dict[str, Any] = {"entries": [], "summary": "s", "reasoning": "r", "hash": "h"}
    store.append([build("snapshot", "s", at(0), id=name, **common) for name in ("p", "pq", "pr")])
    key = _key(store, "s")

    found = {text: store.annotations.snapshot(key, text) for text in ("p", "pq", "x", "")}
    assert {text: view.id if view else None for text, view in found.items()} == {"p": "p", "pq": "pq", "x": None, "": None}
    store.append([build("snapshot", "t", at(0), id=name, **common) for name in ("zab", "zac")])
    with pytest.raises(InvalidInput, match="snapshot ids start with"):
        store.annotations.snapshot(_key(store, "t"), "za")


def test_continuations_come_back_in_order(store: Store) -> None:
    """Recorded continuations of a session come back oldest first, whole."""
    records = [build("continuation", "s", at(number), id=f"c{number}", target="a", extra=[number]) for number in range(3)]
    store.append([*records, build("continuation", "t", at(0), id="c0")])

    assert store.annotations.continuations(_key(store, "s")) == records


@pytest.mark.only_files("a server goes by its own clock")
def test_a_lease_is_held_by_one(store: Store) -> None:
    """A lease keeps others out until it expires or is given back; its holder may take it again."""
    leases = store.leases
    assert leases.take("s", "a", 1000.0, 30)
    assert leases.take("s", "a", 1010.0, 30)

    assert not leases.take("s", "b", 1039.9, 30)
    assert leases.held_until("s", 1039.0) == 1040.0
    leases.release("s", "b")
    assert not leases.take("s", "b", 1039.9, 30)
    assert leases.take("other", "b", 1000.0, 30)
    assert leases.take("s", "b", 1040.0, 30)
    leases.release("s", "b")
    assert leases.held_until("s", 1041.0) is None
    assert leases.take("s", "a", 1041.0, 30)


@pytest.mark.only_files("a server goes by its own clock")
def test_a_lease_from_another_clock_does_not_hold_for_ever(store: Store) -> None:
    """A lease that lies further in the future than any we give is taken over."""
    assert store.leases.take("s", "a", 1_000_000.0, 30)

    assert store.leases.take("s", "b", 1000.0, 30)


def test_imported_files_are_remembered_by_their_state(store: Store, tmp_path: Path) -> None:
    """A file counts as read while size, time, inode and beginning are the same; sessions know their files."""
    place = tmp_path / "log\udcff.jsonl"
    place.write_text("one")
    os.utime(place, ns=(10**18, 10**18))
    state = FileState.of(place)
    assert not store.imported.is_unchanged(place, state)
    store.imported.remember(place, "x", state, "s", {"records": 1})

    assert store.imported.is_unchanged(place, FileState.of(place))
    assert store.imported.reports() == [{"records": 1}]
    assert [time for _, time in store.imported.sources("s")] == [10**18]
    place.write_text("two")
    os.utime(place, ns=(10**18, 10**18))
    assert not store.imported.is_unchanged(place, FileState.of(place))
    place.write_text("one")
    assert not store.imported.is_unchanged(place, FileState.of(place))


def test_many_places_are_read_in_several_statements() -> None:
    """However many ids and places are asked for, no statement is given more values than any SQLite can bind."""
    store = open_store(":memory:", create=True)
    write(store, "s", ["Bash:ls", "> hello"])
    watched, engine = counted(store)
    names = [f"x{number}" for number in range(2000)]

    assert list(watched.annotations.entry_bodies(_key(store, "s"), [*names, "s-e0000"])) == ["s-e0000"]
    hits = watched.queries.places(_key(store, "s"), Filters(), "all", 0, 10)[0]
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
        found = [watched.queries.entries(_key(store, "t"), filters, 0, 3)[1:] for filters in asked]
        return found, sum(f" 1 OFFSET {most - 1}" in statement for statement in engine.statements)

    stepping, stepped = totals()
    monkeypatch.setattr(queries, "_IN_ORDER", ())
    counting, uncounted = totals()

    assert stepping == counting
    assert (stepped, uncounted) == (4, 0)
    assert (most == 500) == all(exact for _, exact in stepping)


def test_a_package_is_found_by_its_whole_id_first(store: Store) -> None:
    """An id that begins others is an id; what only begins several is refused, however old the one with that id is."""
    for name in ("p", "p1", "p2"):
        store.append([build("event", PROJECT, None, id=name, type=PACKAGE, data={"agent": "a", "items": []})])

    found = [store.shared.package(name) for name in ("p", "p1", "q")]
    assert [None if record is None else record["id"] for record in found] == ["p", "p1", None]
    latest = store.shared.package()
    assert latest is not None
    assert latest["id"] == "p2"
    store.append([build("event", PROJECT, None, id="q1", type=PACKAGE, data={"agent": "a", "items": []})])
    store.append([build("event", PROJECT, None, id="q2", type=PACKAGE, data={"agent": "a", "items": []})])
    with pytest.raises(InvalidInput, match="several package ids start with 'q'"):
        store.shared.package("q")


@pytest.mark.parametrize("column", ["meta = '{'", "source = '{'", "meta = '5'", "last = 1e300, first = -1e300"])
def test_an_altered_row_hides_no_session(tmp_path: Path, column: str) -> None:
    """What can't be read of a session is left out; all are listed."""
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        for name in ("a", "b"):
            store.append([build("session", name, at(0), process="p", source={"importer": "x"}, meta={"title": name})])
        store.engine.execute(f"UPDATE session SET {column} WHERE id = 'a'")

        shown = {view.session: view for _, view in store.sessions.page(0, None)}
        assert (shown["a"].title is None) == ("meta" in column)
        assert (shown["a"].source is None) == ("source" in column)
        assert (shown["a"].last is None) == ("last" in column)
        assert shown["b"].title == "b"
        assert store.sessions.head(_key(store, "a"))[0] in (None, "a")


@pytest.mark.parametrize("told", ["{", "[]", '{"archive": 5}', ""])
def test_an_altered_mark_of_an_archived_session_is_damage(tmp_path: Path, told: str) -> None:
    """Where it was archived can't be told then; it is not taken for a session that never was."""
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        store.engine.execute("INSERT INTO state (name, value) VALUES ('archived:s', :told)", {"told": told})
        with pytest.raises(Damaged, match="'s' was archived"):
            store.sessions.key("s")
        with pytest.raises(Damaged, match="'s' was archived"):
            archived_sessions(store)
