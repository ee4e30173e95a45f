"""Pages: every row exactly once, however it is walked, and an honest word on what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ctxmgr.history.detection import sessions
from ctxmgr.history.query.requests import add_note, list_, list_notes, search, trace
from ctxmgr.store import Store, open_store
from ctxmgr.types.base import Shape
from ctxmgr.types.operations import SessionsRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    AddNoteRequest,
    ListNotesRequest,
    ListRequest,
    ListSnapshotsRequest,
    MessagesRequest,
    Page,
    SearchRequest,
    TraceRequest,
)
from tests.builders import at, entry, event, write
from tests.frontends import Answer, Ask


def _newest_first(limit: int, offset: int = 0) -> Shape:
    return ListRequest(newest_first=True, limit=limit, offset=offset)


def _events(limit: int, offset: int = 0) -> Shape:
    return ListRequest(kind="event", limit=limit, offset=offset)


def _all(limit: int, offset: int = 0) -> Shape:
    return ListRequest(kind="all", limit=limit, offset=offset)


def _found(limit: int, offset: int = 0) -> Shape:
    return SearchRequest(query="word", max_results=limit, offset=offset)


PAGED: dict[str, tuple[Callable[..., Shape], str]] = {
    "list": (ListRequest, "rows"),
    "list newest first": (_newest_first, "rows"),
    "list events": (_events, "rows"),
    "list all": (_all, "rows"),
    "trace": (TraceRequest, "entries"),
    "search": (_found, "hits"),
    "messages": (MessagesRequest, "messages"),
    "notes": (ListNotesRequest, "notes"),
    "snapshots": (ListSnapshotsRequest, "snapshots"),
}


def _id(row: Answer) -> str:
    return str(row.get("row", row)["id"])


def _seven_of_each(store: Store) -> None:
    store.append([
        record
        for number in range(7)
        for record in (
            entry("s", number, given="word"),
            event("s", number, "message", "a word", after=number),
            build("note", "s", at(number), id=f"n{number}", entries=[f"s-e{number:04}"], content="word", tags=["t"]),
            build("snapshot", "s", at(number), id=f"p{number}", entries=[], summary="word", reasoning="", hash=""),
        )
    ])  # fmt: skip


@pytest.mark.long
@pytest.mark.requirement("FR-009", "SC-009")
@pytest.mark.parametrize(("make", "field"), PAGED.values(), ids=PAGED)
def test_walking_the_pages_shows_every_row_once(store: Store, ask: Ask, make: Callable[..., Shape], field: str) -> None:
    """Following ``nextOffset`` from page to page shows the rows of one big page, each once, at any size of page."""
    _seven_of_each(store)
    whole = ask(make(limit=100))
    total = len(whole[field])
    assert total in (7, 14)

    for limit in (3, 7, 14):
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            answer = ask(make(limit=limit, offset=offset))
            page, rows = answer["page"], answer[field]
            seen += [_id(row) for row in rows]
            assert len(rows) == min(limit, total - offset)
            assert (page["offset"], page["limit"], page["total"]) == (offset, limit, total)
            assert page["hasMore"] == (len(seen) < total)
            assert page["nextOffset"] == (len(seen) if page["hasMore"] else None)
            offset = page["nextOffset"]
        assert seen == [_id(row) for row in whole[field]]


@pytest.mark.parametrize(("make", "field"), PAGED.values(), ids=PAGED)
@pytest.mark.parametrize("offset", [14, 2**53])
def test_an_offset_beyond_the_end_is_an_empty_page(
    store: Store, ask: Ask, make: Callable[..., Shape], field: str, offset: int
) -> None:
    """Beyond the end there is an empty page without a next one, and the total is told nevertheless."""
    _seven_of_each(store)

    answer = ask(make(limit=5, offset=offset))

    assert (answer["status"], answer[field]) == ("empty", [])
    assert (answer["page"]["hasMore"], answer["page"]["nextOffset"]) == (False, None)
    assert answer["page"]["total"] in (7, 14)


@pytest.mark.parametrize("make", [made for made, _ in PAGED.values()], ids=PAGED)
@pytest.mark.parametrize("page", [{"offset": -1}, {"limit": 0}, {"limit": -1}, {"offset": 2**63}, {"limit": 10**9}])
def test_pages_that_cant_be_are_refused(make: Callable[..., Shape], page: dict[str, int]) -> None:
    """A negative or absurd offset, and a page without rows, can't be asked for."""
    with pytest.raises(ValidationError):
        make(**{"limit": 5, **page})


@pytest.mark.parametrize("number", [True, "5", 1.5, float("nan"), None])
def test_an_offset_is_a_whole_number(number: Any) -> None:
    """What is not a whole number is refused as an offset, or means the number that it says."""
    if number == "5" or number is True:
        assert ListRequest.model_validate({"offset": number}).offset == int(number)
        return
    with pytest.raises(ValidationError):
        ListRequest.model_validate({"offset": number})


@pytest.mark.parametrize(("total", "offset", "limit"), [(0, 0, 1), (1, 0, 1), (2, 0, 1), (5, 4, 1), (5, 5, 1), (5, 0, 5)])
def test_a_page_says_where_it_stands(total: int, offset: int, limit: int) -> None:
    """``hasMore`` is true exactly when rows follow the shown ones."""
    shown = min(limit, max(0, total - offset))
    page = Page.make(offset, limit, shown, total)

    assert page.has_more == (offset + shown < total)
    assert page.next_offset == (offset + shown if page.has_more else None)


@given(st.integers(0, 30), st.integers(0, 40), st.integers(1, 40), st.booleans())
def test_any_page_is_a_slice(count: int, offset: int, limit: int, newest_first: bool) -> None:
    """Any page of any history is that slice of the history, in either direction."""
    store = open_store(":memory:", create=True)
    store.append([entry("s", number) for number in range(count)])
    order = list(range(count))[:: -1 if newest_first else 1]

    answer = list_(store, ListRequest(session="s" if count else None, offset=offset, limit=limit, newest_first=newest_first))

    assert [row.to_json()["index"] for row in answer.rows] == order[offset : offset + limit]
    assert answer.page.total == count
    store.close()


@pytest.mark.requirement("SC-009")
def test_pages_stay_while_the_history_grows(store: Store) -> None:
    """A reader that pages by index while entries are appended sees each entry once and in order."""
    seen: list[str] = []
    offset = 0
    for number in range(30):
        store.append([entry("s", number)])
        if number % 3 == 2:
            answer = list_(store, ListRequest(offset=offset, limit=2))
            seen += [row.id for row in answer.rows]
            offset += len(answer.rows)
    while rows := list_(store, ListRequest(offset=offset, limit=2)).rows:
        seen += [row.id for row in rows]
        offset += len(rows)

    assert seen == [f"s-e{number:04}" for number in range(30)]


def test_a_trace_shows_everything_unless_limited(store: Store, ask: Ask) -> None:
    """A trace has no page size of its own."""
    store.append([entry("s", number) for number in range(150)])

    answer = ask(TraceRequest())

    assert len(answer["entries"]) == 150
    assert answer["page"]["hasMore"] is False
    assert len(ask(TraceRequest(limit=10))["entries"]) == 10


def test_sessions_are_paged_like_everything_else(store: Store) -> None:
    """Pages of sessions, of one agent or of all, tell the whole and what follows."""
    for number in range(5):
        write(store, f"s{number}", ["Bash:ls"], agent="a" if number % 2 == 0 else "b")

    for agent, expected in ((None, ["s4", "s3", "s2", "s1", "s0"]), ("A", ["s4", "s2", "s0"]), ("c", [])):
        seen: list[str] = []
        offset: int | None = 0
        while offset is not None:
            answer = sessions(store, SessionsRequest(agent=agent, offset=offset, limit=2, judge=False), {})
            assert answer.page.total == len(expected)
            seen += [view.session for view in answer.sessions]
            offset = answer.page.next_offset
        assert seen == expected


def test_the_last_page_is_like_the_first(store: Store) -> None:
    """The last page of a long history is as full as the first, and notes on its entries come with it."""
    store.append([entry("s", number) for number in range(1200)])
    add_note(store, AddNoteRequest(entry_indices=[-1], content="the last one"))

    answer = list_(store, ListRequest(offset=1199, limit=50))

    assert [note["content"] for row in answer.rows for note in row.to_json()["notes"]] == ["the last one"]
    assert len(trace(store, TraceRequest(offset=600)).entries) == 600
    assert len(list_notes(store, ListNotesRequest()).notes) == 1
    assert search(store, SearchRequest(query="Bash", max_results=1200)).page.total == 1200
