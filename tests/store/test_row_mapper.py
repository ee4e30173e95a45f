"""What is made of stored rows: views that are what their shapes would make of them, and records that nobody shares."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ctxmgr.history.query.requests import search
from ctxmgr.store import Store, open_store
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.store.row_mapper import entry_shape, event_shape
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters, SearchRequest
from ctxmgr.types.view import EntryView, EventView
from tests.builders import at, entry, event, result


def _written() -> Store:
    store = open_store(":memory:", create=True)
    store.append([
        entry("s", 0, given={"text": "needle \ud800", "list": [1, 2.5, None]}, usage={"inputTokens": 3}, meta={"a": 1}),
        result("s", 0, {"deep": ["needle"]}, durationMs=12, meta={"missing": ["b"]}),
        entry("s", 1, "Read", "needle", status="error", error={"message": "boom"}, parent="gone", timeoutMs=5, turn=2),
        event("s", 2, "message", {"text": "needle"}, entry="s-e0000", agent="a"),
        event("s", 3, "message", "needle"),
        build("note", "s", at(9), id="n", entries=["s-e0000"], content="a note", tags=["t"]),
    ])  # fmt: skip
    return store


def test_a_view_is_what_its_shape_makes_of_the_row() -> None:
    """Made field by field, a view equals the validated one: its values, what counts as given, and its JSON."""
    store = _written()
    rows = Rows(store.engine)
    plain = rows.rows(rows.hits(None, Filters(), "all"))
    pairs = [
        (entry_shape(row), EntryView.model_validate(row))
        if row["kind"] == "entry"
        else (event_shape(row), EventView.model_validate(row))
        for row in plain
    ]
    store.close()

    assert [row["kind"] for row in plain] == ["entry", "entry", "event", "event"]
    for made, validated in pairs:
        assert made == validated
        assert (made.to_json(), repr(made)) == (validated.to_json(), repr(validated))
        assert made.model_fields_set == validated.model_fields_set
        assert made.model_copy() == validated
        with pytest.raises(ValidationError, match="frozen"):
            setattr(made, "id", "other")  # noqa: B010 -- the type checker knows that it is frozen


def test_a_record_that_was_compared_is_handed_out_once() -> None:
    """What a reader does to an answer changes no other answer."""
    store = _written()
    first = search(store, SearchRequest(query="needle"))
    expected = first.to_json()
    for hit in first.hits:
        given = hit.row.input if isinstance(hit.row, EntryView) else hit.row.data
        if isinstance(given, dict):
            given.clear()
    again = search(store, SearchRequest(query="needle"))
    store.close()

    assert again.to_json() == expected
