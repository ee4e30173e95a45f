"""Pages of notes and snapshots: what is on them, how many there are in all, and that no other one is read for it."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.requests import list_notes
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.sqlite import MEMORY
from ctxmgr.store.project_session import PACKAGE, PROJECT
from ctxmgr.store.repositories.annotations import Annotations
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListNotesRequest
from tests.builders import at, entry, entry_id, key_of
from tests.store.counting import CountingEngine


def _note(session: str, number: int, content: str = "c", tags: list[str] | None = None) -> Record:
    return build("note", session, at(number), id=f"n{number}", entries=[entry_id(session, 0)], content=content, tags=tags or [])


_notes = st.tuples(
    st.sampled_from(["a", "b"]), st.sampled_from(["needle", "hay"]), st.lists(st.sampled_from(["x", "Y", "z"]), max_size=3)
)


@given(
    told=st.lists(_notes, max_size=12), session=st.sampled_from(["a", "b", None]), query=st.sampled_from([None, "Needle"]),
    tags=st.lists(st.sampled_from(["X", "y", "w"]), max_size=2), offset=st.integers(0, 4), limit=st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=100)
def test_a_page_of_notes_is_what_reading_all_of_them_gives(
    told: list[tuple[str, str, list[str]]],
    session: str | None,
    query: str | None,
    tags: list[str],
    offset: int,
    limit: int,
) -> None:
    """By session or in all, with tags and text, each page holds the notes that a look at every one of them would choose."""
    with closing(open_store(MEMORY, create=True)) as store:
        store.append([entry("a", 0), entry("b", 0)])
        store.append(_note(where, number, content, own) for number, (where, content, own) in enumerate(told))
        key = None if session is None else store.sessions.key(session)

        rows, total, exact = store.annotations.note_page(key, tags, query, offset, limit)

        expected = [
            f"n{number}" for number, (where, content, own) in enumerate(told)
            if session in (None, where) and {tag.lower() for tag in tags} <= {tag.lower() for tag in own}
            and (query is None or content == "needle")
        ]  # fmt: skip
        assert ([row["id"] for row in rows], total, exact) == (expected[offset : offset + limit], len(expected), True)


def test_notes_with_a_text_are_estimated_where_there_are_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many notes no more are read than a page needs; what was read stands for the rest, and the answer says so."""
    monkeypatch.setattr(sys.modules[Annotations.__module__], "_READ", 1_000)
    with closing(open_store(MEMORY, create=True)) as store:
        store.append([entry("s", 0)])
        store.append(_note("s", number, "needle" if number % 4 == 0 else "hay") for number in range(3_000))

        page = list_notes(store, ListNotesRequest(query="needle", limit=10)).page
        assert (page.total, page.total_is_exact, page.next_offset) == (750, False, 10)
        last = list_notes(store, ListNotesRequest(query="needle", limit=10, offset=745))
        assert (last.page.total, last.page.total_is_exact, last.page.next_offset) == (750, True, None)
        assert [note.id for note in last.notes] == [f"n{number}" for number in range(2_980, 3_000, 4)]
        assert list_notes(store, ListNotesRequest(query="absent")).page.total == 0


def test_pages_of_notes_and_snapshots_are_found_in_indexes() -> None:
    """What counts and chooses the rows of a page reads indexes alone: the bodies of other notes are not touched."""
    with closing(open_store(MEMORY, create=True)) as store:
        store.append([entry("s", 0), *(_note("s", number, tags=["x", "y"]) for number in range(50))])
        store.append(
            build("snapshot", "s", at(1), id=f"p{number}", entries=[], summary="s", reasoning="r", hash="h")
            for number in range(50)
        )
        key = store.sessions.key("s") or 0
        engine = CountingEngine(store.engine)
        read = Annotations(engine)
        for offset in (0, 30):
            for session in (key, None):
                for tags in ([], ["x"], ["x", "y"]):
                    assert len(read.note_page(session, tags, None, offset, 7)[0]) == 7
            assert [row["id"] for row in read.snapshot_page(key, offset, 2)[0]] == [f"p{offset}", f"p{offset + 1}"]

        chosen = [
            (text, values) for text, values in zip(engine.statements, engine.values, strict=True)
            if "count(*)" in text or "OFFSET" in text
        ]  # fmt: skip
        assert len(chosen) == 28
        for text, values in chosen:
            for *_, step in store.engine.query(f"EXPLAIN QUERY PLAN {text}", values):
                reads = str(step).startswith(("SEARCH", "SCAN record", "SCAN note_tag"))
                assert not reads or any(name in step for name in ("COVERING INDEX", "PRIMARY KEY")), (text, step)


def test_prefixes_of_snapshots(store: Store) -> None:
    """A snapshot is found by its whole id first, then by a prefix that fits one only."""
    common: dict[str, Any] = {"entries": [], "summary": "s", "reasoning": "r", "hash": "h"}
    store.append([build("snapshot", "s", at(0), id=name, **common) for name in ("p", "pq", "pr")])
    key = key_of(store, "s")

    found = {text: store.annotations.snapshot(key, text) for text in ("p", "pq", "x", "")}
    assert {text: view.id if view else None for text, view in found.items()} == {"p": "p", "pq": "pq", "x": None, "": None}
    store.append([build("snapshot", "t", at(0), id=name, **common) for name in ("zab", "zac")])
    with pytest.raises(InvalidInput, match="snapshot ids start with"):
        store.annotations.snapshot(key_of(store, "t"), "za")


def test_continuations_come_back_in_order(store: Store) -> None:
    """Recorded continuations of a session come back oldest first, whole."""
    records = [build("continuation", "s", at(number), id=f"c{number}", target="a", extra=[number]) for number in range(3)]
    store.append([*records, build("continuation", "t", at(0), id="c0")])

    assert store.annotations.continuations(key_of(store, "s")) == records


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
