"""Collect the evidence for ``ctxmgr.diagnose``: a session's newest entries, messages, finding, and related sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import overload

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.diagnose.evidence.messages import STREAMED
from ctxmgr.history.query import tools
from ctxmgr.store import Store
from ctxmgr.store.repositories.sessions import Origin
from ctxmgr.types.finding import Finding
from ctxmgr.types.view import EntryView, EventView

ENTRIES = 400
"""Newest entries that are read. Earlier ones hardly ever matter for the present failure."""

RELATED, RELATED_ENTRIES = 8, 60
"""Maximum related sessions that are read (the latest first), and the newest entries read from each."""

_MAX_SESSIONS = 1_000  # sessions considered
_OWN_WORKFLOWS = ("goal", "guarded", "record")
"""Workflows that ctxmgr names after its own programs, which bind nothing together: a guard may serve any number of people."""
_MAX_MESSAGES, _MAX_FIRST = 200, 20  # newest messages, and messages from the beginning
_MESSAGE_TYPES = (
    "user_message", "user_message_chunk", "message", "agent_message_chunk", "thought", "agent_thought_chunk", "compaction",
    "waiting", "interrupt", "nudge", "error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RelatedSession:
    """A session that belongs to the same work as another one.

    Attributes:
        key: row key of the session.
        session: its id.
        bond: what both have in common: "project", "goal" or "workflow".
        earlier: it began before the other one.
        entries: number of its entries.
    """

    key: int
    session: str
    bond: str
    earlier: bool
    entries: int


def related_sessions(store: Store, session: str, limit: int = RELATED) -> list[RelatedSession]:
    """Return up to ``limit`` sessions of the same work, latest activity first (ruling 25).

    If both sessions name their project's folder, they are related only if it is the same. Otherwise they are related if both
    name the same goal, or are runs of the same named workflow. That people began both with the same words relates nothing:
    customers of one service do so, and what one of them said must not reach another.
    """
    key = store.sessions.key(session)
    if key is None:
        return []
    own, others = store.sessions.others(key, _MAX_SESSIONS)
    found: list[RelatedSession] = []
    for other in others:
        if len(found) >= limit:
            break
        bond = _find_bond(own, other)
        if bond is not None and other.entries:
            earlier = own.first is None or other.first is None or other.first <= own.first
            found.append(RelatedSession(other.key, other.session, bond, earlier, other.entries))
    return found


def _find_bond(own: Origin, other: Origin) -> str | None:
    if own.folder is not None and other.folder is not None:
        # Different folders decide it: the same words ("fix the tests") may begin work in any project.
        return "project" if own.folder.rstrip("/") == other.folder.rstrip("/") else None
    if own.goal and own.goal == other.goal:
        return "goal"
    # Importers name the workflow after the tool.
    named = own.workflow if not own.imported and not other.imported and own.workflow not in _OWN_WORKFLOWS else None
    return "workflow" if named and named == other.workflow else None


def newest_entries(store: Store, session: str, limit: int = RELATED_ENTRIES) -> list[EntryView]:
    """Return the newest entries of a session, oldest first."""
    request = tools.PlainRequest(session=session, kind="entry", limit=limit, newest_first=True)
    return tools.list_(store, store.queries, request).rows[::-1]


class RelatedEntries(Sequence[EntryView]):
    """The newest entries of related sessions, oldest session first. Read on first access, because most diagnoses need none."""

    def __init__(self, read: Callable[[], Sequence[EntryView]]) -> None:
        self._read = read

    @cached_property
    def _entries(self) -> Sequence[EntryView]:
        return self._read()

    @overload
    def __getitem__(self, place: int) -> EntryView: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[EntryView]: ...
    def __getitem__(self, place: int | slice) -> EntryView | Sequence[EntryView]:
        return self._entries[place]

    def __len__(self) -> int:
        return len(self._entries)


def related_entries(store: Store, session: str) -> RelatedEntries:
    """Return the newest entries of the sessions related to one, oldest session first."""
    return RelatedEntries(
        lambda: [entry for each in reversed(related_sessions(store, session)) for entry in newest_entries(store, each.session)]
    )


def build_evidence(store: Store, session: str, finding: Finding | None) -> Evidence:
    """Return the evidence for a finding, or for the end of the session if it is None; only the newest part of a long session.

    Raises:
        CtxmgrError: the session can't be read.
    """
    entries = newest_entries(store, session, ENTRIES)
    last = _events(store, session, _MESSAGE_TYPES, _MAX_MESSAGES, newest_first=True)
    shown = _events(store, session, STREAMED, _MAX_FIRST, newest_first=True)
    said = _merge_events(last[::-1], shown[::-1])
    # In a short session, the newest messages include the first ones.
    known = {event.id for event in said}
    # The first two types are messages of people, which contain the task.
    first = _events(store, session, _MESSAGE_TYPES[:2], _MAX_FIRST, newest_first=False)
    opening = [event for event in first if event.id not in known]
    messages = messages_of([*opening, *said])
    return Evidence(entries, finding, messages, related_entries(store, session), session_folder(store, session))


def session_folder(store: Store, session: str) -> str:
    """Return the folder that a session names as its own, or ""."""
    key = store.sessions.key(session)
    return (store.sessions.head(key)[1] or "") if key is not None else ""


def diagnose_findings(store: Store, session: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings. Unresolved ones get their cause or, if none is known, the most useful thing to look at.

    The session is read once for all of them.

    Raises:
        CtxmgrError: the session can't be read.
    """
    # Read the end of the session for all findings, since reading takes most of the time.
    known = build_evidence(store, session, None)
    return [finding if finding.resolved is not None else _add_cause(known, finding) for finding in findings]


def _add_cause(known: Evidence, finding: Finding) -> Finding:
    about = replace(known, finding=finding)
    return finding.model_copy(update={"diagnosis": diagnose(about) or contrast(about)})


def _merge_events(said: Sequence[EventView], shown: Sequence[EventView]) -> list[EventView]:
    """Merge messages and the output of calls in progress, in the order of the log."""
    # Messages before the first entry have no entry before them.
    return sorted([*said, *shown], key=lambda event: -1 if event.after is None else event.after)


def _events(store: Store, session: str, types: Sequence[str], limit: int, *, newest_first: bool) -> Sequence[EventView]:
    request = tools.PlainRequest(session=session, kind="event", event_type=types, limit=limit, newest_first=newest_first)
    return tools.list_(store, store.queries, request).rows
