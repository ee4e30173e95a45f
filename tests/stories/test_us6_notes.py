"""User story 6: say why entries matter, on the entries themselves."""

from __future__ import annotations

import pytest

from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.types.query import AddNoteRequest, ListNotesRequest, ListRequest, SearchRequest, ShowRequest, TraceRequest
from tests.builders import entry, entry_id
from tests.frontends import Ask

CONTENT, TAGS = "Excluded due to irrelevance", ["exclusion", "diagnostic"]


def _ten(store: Store) -> None:
    store.append([entry("workflow", number, given=f"input {number}") for number in range(10)])


@pytest.mark.requirement("US6-1", "FR-012", "FR-022", "C-note", "T-note", "N-several", "N-tags", "R-02")
def test_a_note_on_three_entries(store: Store, ask: Ask) -> None:
    """A note on the indices [3, 4, 5] of 10 entries, with content and tags, gets a unique id and a timestamp."""
    _ten(store)

    first = ask(AddNoteRequest(entry_indices=[3, 4, 5], content=CONTENT, tags=TAGS))["note"]
    second = ask(AddNoteRequest(entry_indices=[3, 4, 5], content=CONTENT, tags=TAGS))["note"]

    assert first["entries"] == [entry_id("workflow", number) for number in (3, 4, 5)]
    assert (first["indexes"], first["content"], first["tags"]) == ([3, 4, 5], CONTENT, TAGS)
    assert first["id"]
    assert first["id"] != second["id"]
    assert parse_time(first["ts"]) is not None


@pytest.mark.requirement("US6-2", "R-05")
def test_a_note_without_content(store: Store, ask: Ask) -> None:
    """An empty note is an error with the message "Note content cannot be empty"."""
    _ten(store)

    assert ask(AddNoteRequest(entry_indices=[3], content="", tags=TAGS)) == {
        "error": "invalid", "message": "Note content cannot be empty",
    }  # fmt: skip
    assert ask(ListNotesRequest())["status"] == "empty"


@pytest.mark.requirement("US6-3", "R-05")
def test_a_note_on_an_index_beyond_the_end(store: Store, ask: Ask) -> None:
    """A note on index 50 of 10 entries is an error with the message "Index out of bounds", and nothing is noted."""
    _ten(store)

    for indexes in ([50], [3, 50]):
        assert ask(AddNoteRequest(entry_indices=indexes, content=CONTENT)) == {
            "error": "outOfBounds",
            "message": "Index out of bounds",
        }
    assert ask(ListNotesRequest())["status"] == "empty"


@pytest.mark.requirement("US6-4", "SC-008", "FR-024", "R-01")
def test_notes_come_with_their_entries(store: Store, ask: Ask) -> None:
    """Entries with notes show them in every tool that returns entries."""
    _ten(store)
    note = ask(AddNoteRequest(entry_indices=[3, 4, 5], content=CONTENT, tags=TAGS))["note"]
    expected = {number: [note] if number in (3, 4, 5) else [] for number in range(10)}

    assert {row["index"]: row["notes"] for row in ask(ListRequest())["rows"]} == expected
    assert {row["index"]: row["notes"] for row in ask(TraceRequest(action=["Bash"]))["entries"]} == expected
    assert {hit["row"]["index"]: hit["row"]["notes"] for hit in ask(SearchRequest(query="input"))["hits"]} == expected
    assert ask(ShowRequest(index=4))["entry"]["notes"] == [note]


@pytest.mark.requirement("FR-022", "FR-024", "N-tags")
@pytest.mark.parametrize("tag", ["diagnostic", "routing", "exclusion", "inclusion", "minimization", "my own: tag!"])
def test_notes_are_found_by_their_tags(store: Store, ask: Ask, tag: str) -> None:
    """Any tag classifies, and finds its notes again."""
    _ten(store)
    ask(AddNoteRequest(entry_indices=[1], content="other", tags=["something else"]))
    note = ask(AddNoteRequest(entry_indices=[0], content="why", tags=[tag]))["note"]

    assert ask(ListNotesRequest(tags=[tag]))["notes"] == [note]


@pytest.mark.requirement("FR-023", "N-additive")
def test_notes_leave_the_entries_as_they_were(store: Store, ask: Ask) -> None:
    """Apart from its notes an entry is what it was before."""
    _ten(store)
    before = ask(ListRequest())["rows"]
    ask(AddNoteRequest(entry_indices=list(range(10)), content=CONTENT, tags=TAGS))

    after = ask(ListRequest())["rows"]

    assert [row | {"notes": []} for row in after] == before
    assert all(len(row["notes"]) == 1 for row in after)
