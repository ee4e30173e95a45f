"""The seven tools, bound to one session: the only way in which a recovery reads and annotates history (spec 001, AC-1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxmgr.errors import CtxmgrError
from ctxmgr.history import reading
from ctxmgr.recover.spoken import AGENTS, PEOPLE, Saying, sayings
from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest, ShowRequest
from ctxmgr.types.view import EntryView, EventView

_SAID = 60
"""How many message events are read at most to put the latest messages together."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the context manager sees of one session. Every answer is bounded, whatever the length of the history."""

    store: Store
    session: str

    def entry(self, entry_id: str) -> EntryView | None:
        """Return an entry, or None when it is gone: a fact that rests on it is then labelled unknown."""
        try:
            found = reading.show(self.store, ShowRequest(session=self.session, entry_id=entry_id)).entry
        except CtxmgrError:
            return None
        # The tool completes prefixes; here another entry whose id merely starts so would be an invented one.
        return found if found.id == entry_id else None

    def entries(self, ids: Sequence[str]) -> list[EntryView]:
        """Return those of the entries that exist, in the given order."""
        return [entry for entry in (self.entry(entry_id) for entry_id in ids) if entry is not None]

    def newest(
        self, limit: int, *, agent: str | None = None, action: str | None = None, status: Sequence[str] = ()
    ) -> list[EntryView]:
        """Return the newest matching entries, newest first."""
        request = ListRequest.model_validate(
            {
                "session": self.session, "limit": limit, "newest_first": True, "status": list(status),
                "agent": [] if agent is None else [agent], "action": [] if action is None else [action],
            }
        )  # fmt: skip
        return [row for row in reading.list_(self.store, request).rows if isinstance(row, EntryView)]

    def total(self) -> int:
        """Return the number of entries."""
        return reading.list_(self.store, ListRequest(session=self.session, limit=1)).page.total

    def before(self, index: int, most: int) -> list[EntryView]:
        """Return up to ``most`` entries before an index, oldest first."""
        start = max(0, index - most)
        if index <= start:
            return []
        rows = reading.list_(self.store, ListRequest(session=self.session, offset=start, limit=index - start)).rows
        return [row for row in rows if isinstance(row, EntryView)]

    def first_words(self) -> Saying | None:
        """Return the first thing a person said in the session."""
        return next(iter(sayings(self._people(newest_first=False), PEOPLE)), None)

    def latest_words(self, most: int = 3) -> list[Saying]:
        """Return the newest words of people, oldest first."""
        return sayings(reversed(self._people(newest_first=True)), PEOPLE)[-most:]

    def _people(self, *, newest_first: bool) -> list[EventView]:
        request = ListRequest(
            session=self.session, kind="event", event_type=list(PEOPLE), limit=_SAID, newest_first=newest_first
        )
        return [row for row in reading.list_(self.store, request).rows if isinstance(row, EventView)]

    def said(self, entry: EntryView, most: int = 2) -> list[Saying]:
        """Return what agents said or thought last on the way to an entry."""
        request = MessagesRequest(session=self.session, entry_id=entry.id, limit=_SAID)
        answer = reading.messages(self.store, request)
        if answer.page.has_more:
            last = request.model_copy(update={"offset": answer.page.total - _SAID})
            answer = reading.messages(self.store, last)
        return sayings(answer.messages, AGENTS)[-most:]

    def search(self, text: str, most: int) -> tuple[list[EntryView], int]:
        """Return the newest entries in which a text occurs, oldest first, and in how many it occurs."""
        request = SearchRequest(session=self.session, query=text, max_results=most, kind="entry")
        answer = reading.search(self.store, request)
        if answer.page.has_more:
            answer = reading.search(self.store, request.model_copy(update={"offset": answer.page.total - most}))
        return [hit.row for hit in answer.hits if isinstance(hit.row, EntryView)], answer.page.total
