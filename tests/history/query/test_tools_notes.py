"""Notes are found with their entries, and shown with what was said at these."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import AddNoteRequest, ListRequest, MessagesRequest, SearchRequest
from tests.builders import entry, event, write
from tests.frontends import Ask


@pytest.mark.requirement("SC-008", "FR-024", "AC-2")
def test_search_finds_an_entry_by_its_note(store: Store, ask: Ask) -> None:
    """A text that stands in a note alone finds the note's entries; the hit says that it was the note."""
    write(store, "s", ["Bash:a", "Bash:needle", "Bash:c", "> hello"])
    ask(AddNoteRequest(entry_indices=[0, 2], content="first"))
    ask(AddNoteRequest(entry_indices=[1, 2], content="a Needle in here", tags=["hay"]))

    found = ask(SearchRequest(query="needle"))

    assert [(hit["row"]["index"], hit["field"], hit["excerpt"]) for hit in found["hits"]] == [
        (1, "input", "needle"),
        (2, "notes[1].content", "a Needle in here"),
    ]
    assert found["page"]["total"] == 2
    assert [hit["field"] for hit in ask(SearchRequest(query="hay"))["hits"]] == ["notes[0].tags[0]", "notes[1].tags[0]"]
    assert ask(SearchRequest(query="needle", kind="event"))["hits"] == []


@pytest.mark.slow
@pytest.mark.requirement("SC-008", "R-03")
def test_filters_and_pages_hold_for_notes_too(store: Store, ask: Ask) -> None:
    """An entry that its note brings passes the filters, and stands at its place in the pages."""
    words = [f"{action}:{'needle' if number % 3 == 0 else 'x'}" for number, action in enumerate(["Bash", "Read"] * 150)]
    write(store, "s", words)
    write(store, "other", ["Bash:x"])
    ask(AddNoteRequest(session="other", entry_indices=[0], content="needle"))
    ask(AddNoteRequest(session="s", entry_indices=list(range(1, 300, 3)), content="needle"))
    wanted = [number for number in range(300) if number % 3 != 2]

    def found(**more: object) -> list[int]:
        request = SearchRequest.model_validate({"query": "needle", "session": "s", "max_results": 1000, **more})
        return [hit["row"]["index"] for hit in ask(request)["hits"]]

    assert found() == wanted
    assert found(action=["Read"]) == [number for number in wanted if number % 2]
    assert found(offset=50, max_results=20) == wanted[50:70]
    hits = ask(SearchRequest(query="needle", all_sessions=True, max_results=1000))["hits"]
    assert [hit["row"]["index"] for hit in hits] == [*wanted, 0]
    store.index()
    assert found() == wanted
    assert found(offset=150, max_results=20) == wanted[150:170]


@pytest.mark.requirement("SC-008", "US6-4")
def test_messages_carry_the_notes_of_their_entry(store: Store, ask: Ask) -> None:
    """A message shows the notes on the entry that it belongs to, or on which way it was said."""
    store.append([
        event("s", 0, "user_message", {"text": "please"}, after=-1),
        entry("s", 0),
        event("s", 1, "message", {"text": "at it"}, entry="s-e0000"),
        entry("s", 1),
        event("s", 2, "message", {"text": "next"}, entry="s-e0001"),
    ])  # fmt: skip
    note = ask(AddNoteRequest(entry_indices=[0], content="look"))["note"]

    assert [row["notes"] for row in ask(MessagesRequest())["messages"]] == [[], [note], []]
    assert [row["notes"] for row in ask(MessagesRequest(index=0))["messages"]] == [[note], [note]]
    assert [row["notes"] for row in ask(MessagesRequest(index=1))["messages"]] == [[]]
    assert [row["notes"] for row in ask(ListRequest(kind="event"))["rows"]] == [[], [note], []]
    assert ask(SearchRequest(query="at it"))["hits"][0]["row"]["notes"] == [note]
