"""The rows that tools answer with: the same fields each time, long texts cut, and where the rest is."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import BaseModel

from ctxmgr.types.memory import Episode
from ctxmgr.types.query import ListResponse, TraceResponse
from ctxmgr.types.route import Continuation
from ctxmgr.types.view import EntryView, EventView, NoteView

MAX_TEXT = 600
"""Characters of an input, output or error in a list; `history_show` gives all of it, a page at a time."""

MAX_PAGE = 8000
"""Characters of one page of a long output."""


class Entry(BaseModel):
    """One recorded action. ``cut`` names the fields that `history_show` gives whole."""

    index: int
    id: str
    session: str
    time: str | None
    agent: str
    action: str
    status: str
    input: str
    output: str
    error: str
    notes: list[str]
    cut: list[str]


class Said(BaseModel):
    """A message or another event; ``after`` is the index of the entry before it."""

    id: str
    type: str
    time: str | None
    agent: str | None
    after: int | None
    text: str


class Note(BaseModel):
    """An annotation on entries, or an episode of the memory."""

    id: str
    session: str
    entries: list[int]
    text: str
    tags: list[str]
    author: str | None


class EntryPage(BaseModel):
    """Entries in order; ``next_offset`` is null on the last page."""

    session: str | None
    entries: list[Entry]
    next_offset: int | None


class Hit(BaseModel):
    """Where a text was found; ``index`` is the entry's place, null in an event."""

    session: str
    index: int | None
    id: str
    field: str
    excerpt: str


class HitPage(BaseModel):
    """Hits in the order of the history; ``next_offset`` is null on the last page."""

    hits: list[Hit]
    total: int
    next_offset: int | None


class SaidPage(BaseModel):
    """What was said, in order; ``next_offset`` is null on the last page."""

    session: str | None
    messages: list[Said]
    next_offset: int | None


class Whole(BaseModel):
    """An entry with a page of each long text; ``next_from`` is where the next page begins, null at the end."""

    entry: Entry
    next_from: int | None


class Trouble(BaseModel):
    """One unresolved finding, with its cause and the next step where the record shows them."""

    id: str
    kind: str
    severity: str
    count: int
    agent: str | None
    reason: str
    cause: str | None
    next_step: str | None


class Stuck(BaseModel):
    """Whether a session is stuck: ``verdict`` is healthy, warn, loop, hung or loop+hung.

    ``notes`` say what was amiss with the history itself, such as damage, or times that are missing.
    """

    session: str
    verdict: str
    summary: str
    findings: list[Trouble]
    notes: list[str]


class Next(BaseModel):
    """Exactly one continuation. ``prompt`` is the text for ``target``; null where nothing is wrong, and ``reason`` says so."""

    stuck: bool
    id: str | None
    target: str | None
    reason: str
    prompt: str | None


class Tried(BaseModel):
    """How often an action was done with this input, and how it went the last times, the latest first."""

    times: int
    ok: int
    failed: int
    latest: list[Entry]


def entry_row(entry: EntryView, most: int = MAX_TEXT, start: int = 0) -> Entry:
    """Return an entry with its texts from ``start`` on, each cut to ``most`` characters."""
    texts = {"input": text_of(entry.input), "output": text_of(entry.output), "error": text_of(entry.error)}
    shown = {name: text[start : start + most] for name, text in texts.items()}
    return Entry(
        index=entry.index, id=entry.id, session=entry.session, time=entry.ts, agent=entry.agent, action=entry.action,
        status=entry.status, notes=[note.content[:MAX_TEXT] for note in entry.notes],
        cut=[name for name, text in texts.items() if len(text) > start + most], **shown,
    )  # fmt: skip


def page_of(found: ListResponse | TraceResponse) -> EntryPage:
    """Return a page of entries."""
    entries = [entry_row(entry) for entry in found.entries]
    return EntryPage(session=found.session, entries=entries, next_offset=found.page.next_offset)


def next_of(found: Continuation) -> Next:
    """Return a continuation."""
    return Next(stuck=True, id=found.id, target=found.target, reason=found.reason, prompt=found.prompt)


def event_row(event: EventView) -> Said:
    """Return an event."""
    text = text_of(event.data)[:MAX_TEXT]
    return Said(id=event.id, type=event.type, time=event.ts, agent=event.agent, after=event.after, text=text)


def note_row(note: NoteView) -> Note:
    """Return a note."""
    return Note(
        id=note.id, session=note.session, entries=note.indexes, text=note.content, tags=list(note.tags), author=note.author
    )


def episode_row(episode: Episode) -> Note:
    """Return an episode of the memory."""
    return Note(
        id=episode.id, session=episode.session, entries=episode.indexes, text=episode.text, tags=list(episode.tags),
        author=episode.author,
    )  # fmt: skip


def text_of(value: Any) -> str:
    """Return a JSON value as text: text as it is, the text of ``{"text": ...}``, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if len(fields) == 1 and isinstance(fields.get("text"), str):
        return fields["text"]
    return json.dumps(value, ensure_ascii=False)
