"""The views of a history: entries, events, notes, snapshots, processes and sessions, in the same form in every answer."""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.types.base import Json, Shape, Text

# Open is no status that anybody records: it is what an entry without a result is shown as.
EntryStatus = Literal["ok", "error", "denied", "interrupted", "open"]


class NoteView(Shape):
    """An annotation on entries (additive: it never changes them).

    ``indexes`` are the entries' places in the session; an id whose entry is gone has none and is named in ``missing``.
    ``superseded_by`` names the note that replaced this one, or is null.
    """

    kind: Literal["note"] = "note"
    id: Text
    session: Text
    ts: Text | None
    entries: list[Text]
    indexes: list[int]
    content: Text
    tags: list[Text]
    links: list[Text]
    author: Text | None
    supersedes: Text | None
    superseded_by: Text | None
    # What is gone is named, never left out or made up (ruling 12).
    missing: list[Text]


# The order of the fields is that of the JSON; the store builds the same rows without this class.
class EntryView(Shape):
    """One action of a session (design section 5).

    ``index`` is the dense 0-based place in the session; ``status`` is ``open`` while no result is recorded; ``events``
    counts the events attached to the entry; ``missing`` names what the entry refers to and is gone.
    """

    kind: Literal["entry"] = "entry"
    index: int
    id: Text
    session: Text
    process: Text | None
    ts: Text | None
    agent: Text
    action: Text
    input_type: Text | None
    input: Json
    status: EntryStatus
    output: Json
    error: Json
    duration_ms: float | None
    notes: list[NoteView]
    events: int
    missing: list[Text]
    # A text or a whole number, as the source has it.
    turn: Json = None
    step: Json = None
    parent: Text | None = None
    task: Text | None = None
    timeout_ms: float | None = None
    usage: Json = None
    meta: Json = None


class EventView(Shape):
    """One captured event: a message, a thought, an interrupt, a tool-call update.

    ``entry`` is the id of the entry it belongs to, if any; ``after`` the index of the last entry recorded before it.
    ``notes`` are those on that entry (SC-008); of a message on the way to the entry that it was asked for, those on that one.
    """

    kind: Literal["event"] = "event"
    id: Text
    session: Text
    ts: Text | None
    type: Text
    agent: Text | None
    entry: Text | None
    after: int | None
    data: Json
    # SC-008: a note must be seen wherever the entry is, so also beside a message about it.
    notes: list[NoteView] = []


class SnapshotView(Shape):
    """A curated bundle of entries; ``hash`` covers their records, so a later change of any would show."""

    kind: Literal["snapshot"] = "snapshot"
    id: Text
    session: Text
    ts: Text | None
    entries: list[Text]
    indexes: list[int]
    summary: Text
    reasoning: Text
    hash: Text
    missing: list[Text]


class ProcessView(Shape):
    """One execution of a session (FR-026); ``outcome`` is null while it has not ended."""

    process: Text | None
    started: Text | None
    outcome: Text | None


class SessionView(Shape):
    """One workflow: who acted in it, how much, and how it stands.

    ``project`` is the folder in which it worked. ``usage`` sums the tokens of its API responses; ``live`` is true while a
    recorder holds the session open. ``summary`` is the verdict in words, with what is wrong though it is no finding.
    """

    session: Text
    workflow: Text | None
    source: Json
    title: Text | None
    project: Text | None = None
    # A session is one workflow, which several executions may have worked on (ruling 10).
    processes: list[ProcessView]
    agents: list[Text]
    entries: int
    open: int
    failed: int
    events: int
    notes: int
    started: Text | None
    last: Text | None
    live: bool
    outcome: Text | None
    usage: dict[str, int]
    # Null in a list that was not judged: a verdict takes a replay of the session, the rest only its row.
    verdict: Text | None = None
    summary: Text | None = None
    findings: int | None = None
    last_progress: Text | None = None
    meta: dict[str, Any] | None = None
