"""The seven tools, bound to one session: the only way in which a recovery reads and annotates history (spec 001, AC-1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxmgr.errors import CtxmgrError
from ctxmgr.history import reading
from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest, ShowRequest, TraceRequest
from ctxmgr.types.view import EntryView, EventView

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Desk:
    """What the context manager sees of one session."""

    store: Store
    session: str

    def entry(self, entry_id: str) -> EntryView | None:
        """Return an entry, or None when it is gone: a fact that rests on it is then labelled unknown."""
        try:
            return reading.show(self.store, ShowRequest(session=self.session, entry_id=entry_id)).entry
        except CtxmgrError:
            return None

    def entries(self, ids: Sequence[str]) -> list[EntryView]:
        """Return those of the entries that exist, in the given order."""
        return [entry for entry in (self.entry(entry_id) for entry_id in ids) if entry is not None]

    def newest(self, limit: int, *, agent: str | None = None, status: Sequence[str] = ()) -> list[EntryView]:
        """Return the newest entries, newest first."""
        request = ListRequest.model_validate(
            {
                "session": self.session, "limit": limit, "newest_first": True, "status": list(status),
                "agent": [agent] if agent else [],
            }
        )  # fmt: skip
        return [row for row in reading.list_(self.store, request).rows if isinstance(row, EntryView)]

    def total(self) -> int:
        """Return the number of entries."""
        return reading.list_(self.store, ListRequest(session=self.session, limit=1)).page.total

    def around(self, index: int, before: int) -> list[EntryView]:
        """Return up to ``before`` entries before an index, oldest first."""
        start = max(0, index - before)
        if index <= start:
            return []
        rows = reading.list_(self.store, ListRequest(session=self.session, offset=start, limit=index - start)).rows
        return [row for row in rows if isinstance(row, EntryView)]

    def trace(self, *, action: str | None = None, agent: str | None = None) -> list[EntryView]:
        """Return the whole history of an action or agent."""
        request = TraceRequest(
            session=self.session, action=[action] if action else [], agent=[agent] if agent else [], limit=_PAGE
        )
        return reading.trace(self.store, request).entries

    def said_by_people(self, limit: int = 3) -> list[EventView]:
        """Return the newest words of people, oldest first."""
        request = ListRequest(
            session=self.session, kind="event", event_type=["user_message", "user_message_chunk"], limit=limit,
            newest_first=True,
        )  # fmt: skip
        rows = reading.list_(self.store, request).rows
        return [row for row in reversed(rows) if isinstance(row, EventView)]

    def first_words(self) -> EventView | None:
        """Return the first thing a person said in the session."""
        request = ListRequest(session=self.session, kind="event", event_type=["user_message"], limit=1)
        return next((row for row in reading.list_(self.store, request).rows if isinstance(row, EventView)), None)

    def messages(self, entry: EntryView, limit: int = 5) -> list[EventView]:
        """Return what was said on the way to an entry."""
        request = MessagesRequest(session=self.session, entry_id=entry.id, limit=limit)
        return reading.messages(self.store, request).messages

    def mentions(self, text: str, limit: int = 20) -> Iterator[EntryView]:
        """Yield entries in which a text occurs."""
        request = SearchRequest(session=self.session, query=text, max_results=limit, kind="entry")
        for hit in reading.search(self.store, request).hits:
            if isinstance(hit.row, EntryView):
                yield hit.row
