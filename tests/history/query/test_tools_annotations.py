"""Notes: added to entries, never changing them, and shown with them by every tool."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    AddNoteRequest,
    CreateSnapshotRequest,
    ListNotesRequest,
    ListRequest,
    MessagesRequest,
    SearchRequest,
    ShowRequest,
    ShowSnapshotRequest,
    TraceRequest,
)
from tests.builders import at, entry, result, write
from tests.frontends import Answer, Ask


def _note(ask: Ask, *indexes: int, content: str = "a note", **more: Any) -> Answer:
    return ask(AddNoteRequest(entry_indices=list(indexes), content=content, **more))["note"]


@pytest.mark.requirement("SC-008", "US6-4", "FR-024")
def test_every_tool_shows_an_entry_with_its_notes(store: Store, ask: Ask) -> None:
    """Trace, list, search, show, messages and snapshots give the same notes with an entry, oldest first."""
    write(store, "s", ["Bash:ls", "Read:needle", "Bash:pwd"])
    notes = [_note(ask, 1, 2, content="first", tags=["routing"]), _note(ask, 1, content="second", author="reviewer")]
    bundle = ask(CreateSnapshotRequest(entry_indices=[1], summary="s", reasoning="r"))["snapshot"]

    expected = [note | {"supersededBy": None} for note in notes]
    assert ask(TraceRequest(action=["Read"]))["entries"][0]["notes"] == expected
    assert [row["notes"] for row in ask(ListRequest())["rows"]] == [[], expected, expected[:1]]
    assert ask(ListRequest(kind="all"))["rows"][1]["notes"] == expected
    assert ask(SearchRequest(query="needle"))["hits"][0]["row"]["notes"] == expected
    assert ask(ShowRequest(index=1))["entry"]["notes"] == expected
    assert ask(ShowSnapshotRequest(snapshot_id=bundle["id"]))["entries"][0]["notes"] == expected
    assert ask(ListNotesRequest())["notes"] == expected


@pytest.mark.requirement("FR-012", "FR-022", "C-note", "T-note", "N-several", "N-tags", "N-text", "N-links")
def test_a_note_is_kept_to_the_letter(store: Store, ask: Ask) -> None:
    """A note keeps its text, tags, links and author, names its entries once in the order of the log, and has a time."""
    write(store, "s", ["Bash:a"] * 5)
    content = "  line one\n\tline two \u2028 'quoted' %_ 😀\n"

    note = _note(
        ask,
        4,
        1,
        4,
        -1,
        content=content,
        tags=[" routing ", "Diagnostic", "routing", " "],
        links=["s@0", "s-e0003", "@0"],
        author="me",
    )

    assert (note["entries"], note["indexes"]) == (["s-e0001", "s-e0004"], [1, 4])
    assert (note["content"], note["tags"], note["links"], note["author"]) == (
        content,
        ["routing", "Diagnostic"],
        ["s-e0000", "s-e0003"],
        "me",
    )
    assert (note["supersedes"], note["supersededBy"], note["missing"], note["kind"]) == (None, None, [], "note")
    assert (parse_time(note["ts"]) or 0) > 0
    assert _note(ask, 1, content=content)["id"] != note["id"]


@pytest.mark.requirement("FR-023", "N-additive", "N-agentless")
def test_notes_change_no_entry(store: Store, ask: Ask) -> None:
    """After notes the records that were there are the same, and each entry differs by its notes alone."""
    write(store, "s", ["Bash:ls", "!Read:x -> gone"])
    records = list(store.sessions.records(None))
    before = ask(ListRequest())["rows"]

    _note(ask, 0, 1)
    _note(ask, 1, tags=["exclusion"])

    fresh = open_store(store.location, readonly=True)
    assert list(fresh.sessions.records(None))[: len(records)] == records
    assert [row | {"notes": []} for row in ask(ListRequest())["rows"]] == before
    assert "agent" not in ask(ListNotesRequest())["notes"][0]
    fresh.close()


@pytest.mark.requirement("R-01", "AC-2")
def test_notes_outlive_the_store_that_took_them(store: Store, ask: Ask) -> None:
    """A note is there when the history is opened again."""
    write(store, "s", ["Bash:ls"])
    note = _note(ask, 0)
    store.close()

    again = open_store(store.location, readonly=True)
    assert [view.id for view in again.annotations.notes(None, [], None, 0, 10)[0]] == [note["id"]]
    again.close()


@pytest.mark.requirement("FR-024", "N-tags")
def test_notes_are_found_by_tag_text_and_session(store: Store, ask: Ask) -> None:
    """Notes are listed by all of several tags in any case, by text in content, tags and author, by session or all."""
    write(store, "a", ["Bash:ls"])
    write(store, "b", ["Bash:ls"], ts=at(99))
    _note(ask, 0, session="a", content="Wrong branch", tags=["Routing", "diagnostic"], author="Ada")
    _note(ask, 0, session="a", content="50% done", tags=["routing"])
    _note(ask, 0, session="b", content="straße", tags=["Ärger"])

    def found(**more: Any) -> list[str]:
        return [note["content"] for note in ask(ListNotesRequest(**more))["notes"]]

    assert found(session="a") == ["Wrong branch", "50% done"]
    assert found() == ["straße"]
    assert found(all_sessions=True) == ["Wrong branch", "50% done", "straße"]
    assert found(all_sessions=True, tags=["ROUTING"]) == ["Wrong branch", "50% done"]
    assert found(all_sessions=True, tags=["routing", "Diagnostic"]) == ["Wrong branch"]
    assert found(all_sessions=True, tags=["ärger"]) == ["straße"]
    assert found(all_sessions=True, tags=["rout"]) == []
    assert found(session="a", query="%") == ["50% done"]
    assert found(session="a", query="BRANCH") == ["Wrong branch"]
    assert found(session="a", query="ada") == ["Wrong branch"]
    assert found(session="a", query="diagn") == ["Wrong branch"]
    assert found(session="a", query="_") == []
    assert found(session="b", query="STRASSE") == ["straße"]


@pytest.mark.requirement("N-additive")
def test_a_note_may_supersede_another(store: Store, ask: Ask) -> None:
    """A later note may replace an earlier one; both stay, and the earlier one names the later."""
    write(store, "s", ["Bash:ls"])
    first = _note(ask, 0, content="wrong")
    second = _note(ask, 0, content="right", supersedes=first["id"])

    assert second["supersedes"] == first["id"]
    assert [note["supersededBy"] for note in ask(ListNotesRequest())["notes"]] == [second["id"], None]
    assert ask(AddNoteRequest(entry_indices=[0], content="x", supersedes="none")) == {
        "error": "notFound", "message": "no note 'none' to supersede",
    }  # fmt: skip


@pytest.mark.requirement("US6-2", "R-05")
@pytest.mark.parametrize("content", ["", " ", "\n\t", "\u2003"])
def test_a_note_needs_content(store: Store, ask: Ask, content: str) -> None:
    """An empty or blank note is refused, whatever else is wrong, and nothing is written."""
    expected = {"error": "invalid", "message": "Note content cannot be empty"}
    assert ask(AddNoteRequest(entry_indices=[0], content=content)) == expected
    write(store, "s", ["Bash:ls"])
    assert ask(AddNoteRequest(entry_indices=[50], content=content)) == expected

    assert ask(ListNotesRequest())["notes"] == []


@pytest.mark.requirement("EC-4", "R-12")
def test_notes_on_entries_that_are_gone_say_so(store: Store, ask: Ask) -> None:
    """A note that names entries which do not exist shows them as missing, and holds for the others."""
    store.append([
        entry("s", 0), build("note", "s", at(1), id="n", entries=["gone", "s-e0000", "t-e0000"], content="c"), entry("t", 0),
    ])  # fmt: skip

    (note,) = ask(ListNotesRequest(session="s"))["notes"]
    assert (note["entries"], note["indexes"], note["missing"]) == (["gone", "s-e0000", "t-e0000"], [0], ["gone", "t-e0000"])
    assert [row["notes"] for row in ask(ListRequest(session="t"))["rows"]] == [[]]


@pytest.mark.requirement("EC-4", "R-12")
def test_what_an_entry_refers_to_and_is_gone_is_named(store: Store, ask: Ask) -> None:
    """An entry whose parent is nowhere, or whose importer missed something, names it; nothing is made up for it."""
    store.append([
        entry("s", 0, parent="lost"), entry("s", 1, parent="s-e0000"), entry("s", 2, meta={"missing": ["attachment a.png", 7]}),
        entry("s", 3, parent="t-e0000"), entry("t", 0, ts=at(0)),
    ])  # fmt: skip

    missing = [row["missing"] for row in ask(ListRequest(session="s"))["rows"]]
    assert missing == [["parent lost"], [], ["attachment a.png", "7"], ["parent t-e0000"]]


def test_notes_come_before_their_entry_or_after(store: Store, ask: Ask) -> None:
    """A note that is recorded before the entry it speaks of belongs to it all the same."""
    store.append([build("note", "s", at(0), id="n", entries=["s-e0000"], content="early"), entry("s", 0), result("s", 0)])

    assert [note["content"] for note in ask(ShowRequest(index=0))["entry"]["notes"]] == ["early"]
    assert ask(MessagesRequest(index=0))["messages"] == []
