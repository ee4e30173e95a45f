"""What a diagnosis is made from: a session's recent entries, the finding, and what was said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxmgr.types.finding import Finding
from ctxmgr.types.view import EntryView, EventView


@dataclass(frozen=True)
class Evidence:
    """Recent entries, oldest first; the finding, if any; messages, oldest first."""

    entries: Sequence[EntryView]
    finding: Finding | None = None
    messages: Sequence[EventView] = ()


def messages_of(events: Iterable[EventView]) -> list[EventView]:
    """Return the messages among events."""
    return [event for event in events if event.data]
