"""The rows of the MCP tools: shorter than the views they are made of, and held to the one schema of records."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from ctxmgr.log.record_schema import RECORDS
from ctxmgr.mcp_server.tools import Entry, Message, Note, entry_row, episode_row, event_row, json_text, note_row
from ctxmgr.types.base import Shape
from ctxmgr.types.memory import Episode
from ctxmgr.types.view import EntryView, EventView, NoteView

ENTRY_NAMES = {"time": "ts"}
EVENT_NAMES = {"time": "ts", "text": "data"}
NOTE_NAMES = {"text": "content", "entries": "indexes"}
"""Field of a row -> field of the view that it shows."""

SHAPES = [
    (Entry, EntryView, "entry", ENTRY_NAMES), (Message, EventView, "event", EVENT_NAMES), (Note, NoteView, "note", NOTE_NAMES),
]  # fmt: skip


@pytest.mark.parametrize(("row", "view", "kind", "names"), SHAPES)
def test_rows_show_what_every_record_has(row: type[BaseModel], view: type[Shape], kind: str, names: dict[str, str]) -> None:
    """Whatever a record must hold is in its row, and a row has no field that its view lacks, but the names of cut texts."""
    shown = {names.get(name, name) for name in row.model_fields} - {"cut"}
    required = {name for name, field in RECORDS[kind].items() if field.required}

    assert shown <= set(get_type_hints(view))
    assert required <= shown | set(row.model_fields)


def _entry(**fields: Any) -> EntryView:
    known: dict[str, Any] = {
        "index": 7, "id": "e7", "session": "s", "process": "p", "ts": "2026-01-22T10:00:00Z", "agent": "coder",
        "action": "Bash", "inputType": "shape", "input": {"command": "ls"}, "status": "error", "output": ["a"],
        "error": {"message": "no"}, "durationMs": 12.0, "notes": [], "events": 3, "missing": [],
    }  # fmt: skip
    return EntryView.model_validate({**known, **fields})


def test_a_row_holds_the_values_of_its_entry() -> None:
    """Each field is that of the view; input, output and error are texts."""
    entry = _entry()
    row = entry_row(entry)

    texts = {name: json_text(getattr(entry, name)) for name in ("input", "output", "error")}
    others = {name: getattr(entry, ENTRY_NAMES.get(name, name)) for name in set(Entry.model_fields) - {*texts, "cut"}}
    assert row.model_dump() == {**others, **texts, "cut": []}
    assert all(texts.values())


def test_a_cut_text_is_named() -> None:
    """A page of a long text says that there is more, until the last one."""
    entry = _entry(output="x" * 25)

    pages = [entry_row(entry, 10, start) for start in (0, 10, 20)]
    assert [(page.output, "output" in page.cut) for page in pages] == [("x" * 10, True), ("x" * 10, True), ("x" * 5, False)]


def test_messages_notes_and_episodes_hold_the_values_of_their_views() -> None:
    """An episode of the memory is shown as a note is."""
    ids = {"id": "i", "session": "s", "ts": "2026-01-22T10:00:00Z"}
    event = EventView.model_validate(
        {**ids, "type": "message", "agent": "a", "entry": None, "data": {"text": "hi"}, "after": 4, "notes": []}
    )
    about = {**ids, "entries": ["e7"], "indexes": [7], "tags": ["t"], "links": [], "author": "me", "supersedes": None}
    note = NoteView.model_validate({**about, "content": "why", "supersededBy": None, "missing": []})
    episode = Episode.model_validate({**about, "text": "why", "score": None, "around": []})

    assert event_row(event).model_dump() == {
        "id": "i", "type": "message", "time": "2026-01-22T10:00:00Z", "agent": "a", "after": 4, "text": "hi",
    }  # fmt: skip
    shown = {"id": "i", "session": "s", "entries": [7], "text": "why", "tags": ["t"], "author": "me"}
    assert note_row(note).model_dump() == episode_row(episode).model_dump() == shown
