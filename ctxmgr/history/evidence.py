"""Read from a session what ``ctxmgr.diagnose`` judges: its newest entries, what was said, the finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.history.query import requests
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView, EventView

ENTRIES = 400
"""The newest entries that are read. What a file held, or what a person named, is mostly found among them."""

_SAID, _FIRST = 200, 20
_SPOKEN = (
    "user_message", "user_message_chunk", "message", "agent_message_chunk", "thought", "agent_thought_chunk", "compaction",
    "waiting", "interrupt", "nudge", "error",
)  # fmt: skip


def evidence_of(store: Store, session: str, finding: Finding | None) -> Evidence:
    """Return what bears on a finding, or with None on the end of the session; of a long session the newest part.

    Raises:
        CtxmgrError: the session can't be read.
    """
    newest = ListRequest(session=session, limit=ENTRIES, newest_first=True)
    entries = [row for row in requests.list_(store, newest).rows if isinstance(row, EntryView)]
    first = ListRequest(session=session, kind="event", event_type=list(_SPOKEN[:2]), limit=_FIRST)
    last = ListRequest(session=session, kind="event", event_type=list(_SPOKEN), limit=_SAID, newest_first=True)
    shown = ListRequest(session=session, kind="event", event_type=["tool_call_update"], limit=_FIRST, newest_first=True)
    said = _merged(_events(store, last)[::-1], _events(store, shown)[::-1])
    known = {event.id for event in said}
    opening = [event for event in _events(store, first) if event.id not in known]
    return Evidence(entries[::-1], finding, messages_of([*opening, *said]))


def diagnosed(store: Store, session: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, those that last with their diagnosis; the session is read once for all of them.

    Raises:
        CtxmgrError: the session can't be read.
    """
    known = evidence_of(store, session, None)
    return [
        finding if finding.resolved is not None
        else finding.model_copy(update={"diagnosis": diagnose(replace(known, finding=finding))})
        for finding in findings
    ]  # fmt: skip


def _merged(said: Sequence[EventView], shown: Sequence[EventView]) -> list[EventView]:
    """Return what was said with what the newest calls have shown so far, in the order of the record."""
    return sorted([*said, *shown], key=lambda event: -1 if event.after is None else event.after)


def _events(store: Store, request: ListRequest) -> Sequence[EventView]:
    return [row for row in requests.list_(store, request).rows if isinstance(row, EventView)]
