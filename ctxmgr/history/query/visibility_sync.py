"""Copy the visible records of a growing history; judge each record once."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import cast

from ctxmgr.access.resources import USER
from ctxmgr.access.rules import Rules
from ctxmgr.history.query.visibility import CITED, ENTRIES, FRAME, framed, read, stand_of
from ctxmgr.log.codec import Record
from ctxmgr.store.normalise import storable
from ctxmgr.store.partial_copy import Extract, Reached, Stored
from ctxmgr.store.reserved import PROJECT

_STEP = 1_000
_REMEMBERED = 100_000

Progress = Callable[[int, int], None]
"""Called with the place reached and the last place while more of a history is copied."""


class VisibilitySync:
    """Copies into an extract what an agent may see of the records behind those that were looked at already."""

    def __init__(self, extract: Extract, agent: str, rules: Rules, reached: Reached, progress: Progress | None = None) -> None:
        self._extract = extract
        self._agent = agent
        self._rules = rules
        self._place, self._looked_at, self._kept_back = reached.place, reached.looked_at, reached.kept_back
        self._progress = progress
        self._waiting = extract.is_any_waiting()
        self._entries: dict[tuple[int, str], bool] = {}
        self._shown: set[int] = set()
        self._late: list[int] = []
        self.copied = 0

    def run(self) -> Reached:
        """Copy, and return how far the extract is then; call inside its transaction."""
        self.copied = self._extract.copy(self._seen_records())
        self._extract.set_right(self._late)
        return Reached(self._place, self._looked_at, self._kept_back)

    def _seen_records(self) -> Iterator[tuple[int, Record]]:
        last = self._extract.last_place() if self._progress is not None else 0
        for stored in self._extract.stored_after(self._place):
            own_state = stored.session == PROJECT and stored.kind not in ("entry", "result")
            self._place = stored.place
            self._looked_at += 1
            self._kept_back += not own_state
            for place, record in self._sifted(stored):
                self._kept_back -= 1
                yield place, record
            if self._progress is not None and self._looked_at % _STEP == 0:
                self._progress(stored.place, last)

    def _sifted(self, stored: Stored) -> list[tuple[int, Record]]:
        """Return what is to be copied now that this record has come, in the order of the history."""
        if stored.kind in FRAME:
            return self._framing([stored]) if self._shows(stored) else []
        record = read(stored)
        verdict = False if record is None else self._verdict(stored, record, stored.place, set())
        if isinstance(verdict, str):
            self._extract.wait(stored, verdict)
            self._waiting = True
        if stored.kind == "entry":
            if len(self._entries) >= _REMEMBERED:
                self._entries.clear()
            self._entries[stored.key, stored.id] = verdict is True
        found = {stored.place: record} if record is not None and verdict is True else {}
        if self._waiting and stored.kind in CITED:
            found |= self._released(stored, set(found))
        if not found:
            return []
        found = {place: self._with_seen_links(each, found) for place, each in found.items()}
        rows = [] if self._shows(stored) else self._framing(self._extract.frame(stored.key, stored.place))
        self._shown.add(stored.key)
        return sorted([*rows, *found.items()], key=lambda row: row[0])

    def _with_seen_links(self, record: Record, accepted: Container[int]) -> Record:
        """Return a record without those of a note's links that name nothing which the agent sees.

        A link that is not understood is not shown either: an address, or the beginning of an id, may lead to what is hidden.
        """
        if record["kind"] != "note" or not record.get("links"):
            return record
        given: object = record["links"]
        links = cast("list[object]", given) if isinstance(given, list) else []
        seen = [link for link in links if isinstance(link, str) and self._leads(link, accepted)]
        return {**record, "links": seen}

    def _leads(self, link: str, accepted: Container[int]) -> bool:
        return any(place in accepted or self._extract.holds(place) for place in self._extract.places_of(storable(link)))

    def _shows(self, stored: Stored) -> bool:
        if stored.key in self._shown or self._extract.shows(stored.session):
            self._shown.add(stored.key)
            return True
        return False

    def _framing(self, frame: list[Stored]) -> list[tuple[int, Record]]:
        rows: list[tuple[int, Record]] = []
        for stored in frame:
            record = None if stored.session == PROJECT else read(stored)
            if record is not None:
                rows.append((stored.place, framed(record, with_words=self._may(USER, stored.session))))
        return rows

    def _released(self, stored: Stored, accepted: set[int]) -> dict[int, Record]:
        """Return the records that are to be seen because this one has come, and because of those: none waits for it longer."""
        found: dict[int, Record] = {}
        come = [stored.id]
        while come:
            for waiter in self._extract.release(stored.key, come.pop()):
                record = read(waiter)
                verdict = False if record is None else self._verdict(waiter, record, stored.place, accepted)
                if isinstance(verdict, str):
                    self._extract.wait(waiter, verdict)
                    continue
                come.append(waiter.id)
                if record is not None and verdict:
                    accepted.add(waiter.place)
                    found[waiter.place] = record
                    if waiter.kind == "event":
                        self._late.append(waiter.place)
        self._waiting = self._extract.is_any_waiting()
        return found

    def _verdict(self, stored: Stored, record: Record, upto: int, accepted: set[int]) -> bool | str:
        """Return whether a record is seen, or the id of a record on which that depends and which has not come."""
        stand = stand_of(record, self._agent)
        if stand is None or (stand.owner is not None and not self._may(stand.owner, stored.session)):
            return False
        missing: str | None = None
        for kinds, name in stand.names:
            seen = self._sees(stored.key, kinds, name, upto, accepted)
            if seen is False:
                return False
            missing = name if seen is None and missing is None else missing
        return True if missing is None else missing

    def _sees(self, key: int, kinds: tuple[str, ...], name: str, upto: int, accepted: set[int]) -> bool | None:
        if kinds == ENTRIES and (known := self._entries.get((key, name))) is not None:
            return known
        places = self._extract.places(key, kinds, name, upto)
        open_ = False
        for place in places:
            if place not in accepted and not self._extract.holds(place):
                if not self._extract.waits(place):
                    return False
                open_ = True
        return True if places and not open_ else None

    def _may(self, owner: str, session: str) -> bool:
        return self._rules.may(self._agent, "read", "history", owner, session)
