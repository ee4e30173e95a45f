"""Read and annotate one session through the history tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query import requests
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.recover.evidence.quotes import flat
from ctxmgr.recover.evidence.records import AGENTS, PEOPLE, SpokenMessage, sayings, words
from ctxmgr.recover.injection.filter import suspicion
from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest, ShowRequest
from ctxmgr.types.view import EntryView, EventView

_SAID = 60
"""How many message events are read at most to put the latest messages together."""

_JUDGED = 200_000
"""Characters of each part of a row that are judged; what is quoted of a longer one comes from within them or its end."""


@dataclass(frozen=True, slots=True)
class HistoryReader:
    """What the context manager sees of one session. Every answer is bounded, whatever the length of the history."""

    store: Store
    session: str
    withheld: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    """Ids of rows that read like instructions, and why: their texts are kept from the next agent (P-MODEL)."""
    cleared: set[str] = field(default_factory=set[str])
    """Ids of entries that were judged and are not withheld."""
    searched: dict[tuple[str, int], tuple[list[EntryView], int]] = field(
        default_factory=lambda: dict[tuple[str, int], tuple[list[EntryView], int]]()
    )
    """What `search` found: the same history is not searched twice for the same."""

    def entry(self, entry_id: str) -> EntryView | None:
        """Return an entry, or None when it is gone: a fact that rests on it is then labelled unknown."""
        try:
            found = requests.show(self.store, ShowRequest(session=self.session, entry_id=entry_id)).entry
        except CtxmgrError:
            return None
        # The tool completes prefixes; here another entry whose id merely starts so would be an invented one.
        return self.clean(found) if found.id == entry_id else None

    def entries(self, ids: Sequence[str]) -> list[EntryView]:
        """Return those of the entries that exist, in the given order."""
        return [entry for entry in (self.entry(entry_id) for entry_id in ids) if entry is not None]

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that the session has a record of: an entry, or a message."""
        key = self.store.sessions.key(self.session)
        return set() if key is None else self.store.annotations.known(key, ids)

    def newest(
        self,
        limit: int,
        *,
        agent: str | None = None,
        action: str | None = None,
        input_type: str | None = None,
        status: Sequence[str] = (),
    ) -> list[EntryView]:
        """Return the newest matching entries, newest first."""
        request = ListRequest.model_validate(
            {
                "session": self.session, "limit": limit, "newest_first": True, "status": list(status),
                "agent": [] if agent is None else [agent], "action": [] if action is None else [action],
                "input_type": [] if input_type is None else [input_type],
            }
        )  # fmt: skip
        return [self.clean(row) for row in requests.list_(self.store, request).rows if isinstance(row, EntryView)]

    def total(self) -> int:
        """Return the number of entries."""
        return requests.list_(self.store, ListRequest(session=self.session, limit=1)).page.total

    def before(self, index: int, most: int) -> list[EntryView]:
        """Return up to ``most`` entries before an index, oldest first."""
        start = max(0, index - most)
        if index <= start:
            return []
        rows = requests.list_(self.store, ListRequest(session=self.session, offset=start, limit=index - start)).rows
        return [self.clean(row) for row in rows if isinstance(row, EntryView)]

    def first_words(self) -> SpokenMessage | None:
        """Return the first thing a person said in the session."""
        return next(iter(sayings(self._people(newest_first=False), PEOPLE)), None)

    def latest_words(self, most: int = 3) -> list[SpokenMessage]:
        """Return the newest words of people, oldest first."""
        return sayings(reversed(self._people(newest_first=True)), PEOPLE)[-most:]

    def _people(self, *, newest_first: bool) -> list[EventView]:
        request = ListRequest(
            session=self.session, kind="event", event_type=list(PEOPLE), limit=_SAID, newest_first=newest_first
        )
        return [row for row in requests.list_(self.store, request).rows if isinstance(row, EventView)]

    def heard(self, most: int = 200) -> list[EventView]:
        """Return the newest messages of people and agents, oldest first, and the first that a person said."""
        request = ListRequest(
            session=self.session, kind="event", event_type=[*PEOPLE, *AGENTS, "compaction", "waiting", "interrupt"],
            limit=most, newest_first=True,
        )  # fmt: skip
        rows = [row for row in requests.list_(self.store, request).rows if isinstance(row, EventView)]
        newest = [self.heard_one(row) for row in reversed(rows)]
        first = [row for row in self._people(newest_first=False)[:1] if row.id not in {each.id for each in newest}]
        return [*first, *newest]

    def said(self, entry: EntryView, most: int = 2) -> list[SpokenMessage]:
        """Return what agents said or thought last on the way to an entry."""
        request = MessagesRequest(session=self.session, entry_id=entry.id, limit=_SAID)
        answer = requests.messages(self.store, request)
        if answer.page.has_more:
            last = request.model_copy(update={"offset": answer.page.total - _SAID})
            answer = requests.messages(self.store, last)
        return sayings([self.heard_one(event) for event in answer.messages], AGENTS)[-most:]

    def search(self, text: str, most: int) -> tuple[list[EntryView], int]:
        """Return the newest entries in which a text occurs, oldest first, and in how many it occurs."""
        if (text, most) not in self.searched:
            self.searched[text, most] = self._search(text, most)
        return self.searched[text, most]

    def _search(self, text: str, most: int) -> tuple[list[EntryView], int]:
        rows, total = self._hits(text, most, "entry")
        return [self.clean(row) for row in rows if isinstance(row, EntryView)], total

    def find(self, text: str, most: int) -> tuple[list[EntryView | EventView], int]:
        """Return the newest rows, entries and messages, in which a text occurs, oldest first, and in how many it occurs."""
        rows, total = self._hits(text, most, "all")
        return [self.clean(row) if isinstance(row, EntryView) else self.heard_one(row) for row in rows], total

    def _hits(self, text: str, most: int, kind: Literal["entry", "all"]) -> tuple[list[EntryView | EventView], int]:
        request = SearchRequest(session=self.session, query=text, max_results=most, kind=kind, exact_total=True)
        answer = requests.search(self.store, request)
        if answer.page.has_more:
            answer = requests.search(self.store, request.model_copy(update={"offset": answer.page.total - most}))
        return [hit.row for hit in answer.hits], answer.page.total

    def clean(self, entry: EntryView) -> EntryView:
        """Return an entry without what reads like instructions: whatever quotes it later can't pass that on."""
        if entry.id in self.cleared:
            return entry
        reasons: dict[str, str] = {}
        for part in ("input", "output", "error"):
            value = getattr(entry, part)
            if value not in (None, "", {}, []) and (why := suspicion(flat(value, _JUDGED))) is not None:
                reasons[part] = why
        if not reasons:
            self.cleared.add(entry.id)
            return entry
        self.withheld[entry.id] = next(iter(reasons.values()))
        return entry.model_copy(update={part: f"[withheld: it {why}]" for part, why in reasons.items()})

    def heard_one(self, event: EventView) -> EventView:
        """Return a message without what reads like instructions, unless a person said it: theirs are meant to be followed."""
        why = None if event.type in PEOPLE else suspicion(words(event.data)[:_JUDGED])
        if why is None:
            return event
        self.withheld[event.id] = why
        return event.model_copy(update={"data": {"text": f"[withheld: it {why}]"}})
