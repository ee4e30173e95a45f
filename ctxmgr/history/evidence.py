"""Read what ``ctxmgr.diagnose`` judges: a session's newest entries, what was said, the finding, and related sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast, overload

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.history.query import requests
from ctxmgr.light_dataclass import dataclass, replace
from ctxmgr.store import Store
from ctxmgr.store.repositories.sessions import Origin
from ctxmgr.types.finding import Finding
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView, EventView

ENTRIES = 400
"""The newest entries that are read. What a file held, or what a person named, is mostly found among them."""

RELATED, RELATED_ENTRIES = 8, 60
"""Related sessions that are read, the latest ones, and the newest entries of each."""

_LOOKED_AT, _COMPARED = 1_000, 40
_LEAST_WORDS = 4
_SAID, _FIRST = 200, 20
_SPOKEN = (
    "user_message", "user_message_chunk", "message", "agent_message_chunk", "thought", "agent_thought_chunk", "compaction",
    "waiting", "interrupt", "nudge", "error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RelatedSession:
    """A session that belongs to the same work as another one.

    Attributes:
        key: of the session; session: its id.
        bond: what both have in common, as a reader is told: "project", "workflow" or "task".
        earlier: whether it began before the other one.
        entries: their number.
    """

    key: int
    session: str
    bond: str
    earlier: bool
    entries: int


def related_sessions(store: Store, session: str, most: int = RELATED) -> list[RelatedSession]:
    """Return up to ``most`` sessions of the same work, latest activity first (ruling 25).

    Where both tell the folder of their project they belong together when it is the same one, and in no other case. Else
    they do when both are runs of one workflow with a name of its own, or when a person began both with the same words.
    """
    key = store.sessions.key(session)
    if key is None:
        return []
    own, others = store.sessions.others(key, _LOOKED_AT)
    task = _task(store, key)
    found: list[RelatedSession] = []
    compared = 0
    for other in others:
        if len(found) >= most:
            break
        bond = _bond(own, other)
        if bond is None and task and None in (own.folder, other.folder) and compared < _COMPARED:
            compared += 1
            bond = "task" if _task(store, other.key) == task else None
        if bond is not None and other.entries:
            earlier = own.first is None or other.first is None or other.first <= own.first
            found.append(RelatedSession(other.key, other.session, bond, earlier, other.entries))
    return found


def _bond(own: Origin, other: Origin) -> str | None:
    if own.folder is not None and other.folder is not None:
        return "project" if own.folder.rstrip("/") == other.folder.rstrip("/") else None
    named = own.workflow if not own.imported and not other.imported else None
    return "workflow" if named and named == other.workflow else None


def _task(store: Store, key: int) -> str:
    """Return a person's first words in a session, to be compared; "" where they are too few to say which task it is."""
    record = store.sessions.first_said(key)
    data: Any = None if record is None else record.get("data")
    text: Any = cast("dict[str, Any]", data).get("text") if isinstance(data, dict) else data
    words = text.casefold().split() if isinstance(text, str) else []
    return " ".join(words) if len(words) >= _LEAST_WORDS else ""


def newest_entries(store: Store, session: str, most: int = RELATED_ENTRIES) -> list[EntryView]:
    """Return the newest entries of a session, oldest first."""
    rows = requests.list_(store, ListRequest(session=session, limit=most, newest_first=True)).rows
    return [row for row in reversed(rows) if isinstance(row, EntryView)]


class RelatedEntries(Sequence[EntryView]):
    """The newest entries of related sessions, oldest session first; they are read when they are first asked for."""

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


def evidence_of(store: Store, session: str, finding: Finding | None) -> Evidence:
    """Return what bears on a finding, or with None on the end of the session; of a long session the newest part.

    Raises:
        CtxmgrError: the session can't be read.
    """
    entries = newest_entries(store, session, ENTRIES)
    first = ListRequest(session=session, kind="event", event_type=list(_SPOKEN[:2]), limit=_FIRST)
    last = ListRequest(session=session, kind="event", event_type=list(_SPOKEN), limit=_SAID, newest_first=True)
    shown = ListRequest(session=session, kind="event", event_type=["tool_call_update"], limit=_FIRST, newest_first=True)
    said = _merged(_events(store, last)[::-1], _events(store, shown)[::-1])
    known = {event.id for event in said}
    opening = [event for event in _events(store, first) if event.id not in known]
    messages = messages_of([*opening, *said])
    return Evidence(entries, finding, messages, related_entries(store, session), folder_of(store, session))


def folder_of(store: Store, session: str) -> str:
    """Return the folder that a session names as its own, or ""."""
    key = store.sessions.key(session)
    return (store.sessions.head(key)[1] or "") if key is not None else ""


def diagnosed(store: Store, session: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those that last with their cause, or where none is known with the look that tells most.

    The session is read once for all of them.

    Raises:
        CtxmgrError: the session can't be read.
    """
    known = evidence_of(store, session, None)
    return [finding if finding.resolved is not None else _with_cause(known, finding) for finding in findings]


def _with_cause(known: Evidence, finding: Finding) -> Finding:
    about = replace(known, finding=finding)
    return finding.model_copy(update={"diagnosis": diagnose(about) or contrast(about)})


def _merged(said: Sequence[EventView], shown: Sequence[EventView]) -> list[EventView]:
    """Return what was said with what the newest calls have shown so far, in the order of the record."""
    return sorted([*said, *shown], key=lambda event: -1 if event.after is None else event.after)


def _events(store: Store, request: ListRequest) -> Sequence[EventView]:
    return [row for row in requests.list_(store, request).rows if isinstance(row, EventView)]
