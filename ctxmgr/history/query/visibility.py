"""Decide which records of a history an agent may see, and copy them as the history grows.

`stand_of` derives from a record alone on which owners and records its visibility depends; a record that it does not understand
is hidden. `VisibilitySync` judges each record once, and keeps those that depend on a record that has not come yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any, cast

from ctxmgr.access.patterns import USER
from ctxmgr.access.rules import Rules
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record, decode
from ctxmgr.store.partial_copy import CopyProgress, Extract, Stored
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write.encoded_record import record_id
from ctxmgr.types.record import check

FRAME = ("session", "sessionEnd")
"""Kinds that are visible as soon as another record of their session is."""

ENTRIES = ("entry",)
NOTES = ("note",)
CITED = ("entry", "event", "note", "snapshot", "continuation")

_STEP = 1_000
_MAX_REMEMBERED = 100_000
Progress = Callable[[int, int], None]
"""Called with (place reached, last place) while a history is copied."""


@dataclass(frozen=True, slots=True)
class Stand:
    """The conditions for a record to be visible.

    Attributes:
        owner: the agent whose history must be readable; None if ``names`` decides alone.
        names: (kinds, id) of each record of the session that must be visible too.
    """

    owner: str | None
    names: list[tuple[tuple[str, ...], str]]


def read(stored: Stored) -> Record | None:
    """Return a stored record; None if it was changed from outside, so that its columns and body disagree."""
    try:
        body = stored.body.encode("ascii")
        record = check(decode(body))
        # Rules look at the body and queries at the columns: a record that tells each another thing could pass as visible.
        same = record["kind"] == stored.kind and storable(record["session"]) == stored.session
        return record if same and record_id(record, body) == stored.id else None
    except (ValueError, InvalidInput):
        return None


def stand_of(record: Record, agent: str) -> Stand | None:
    """Return the conditions for the agent to see a record; None if it never sees it."""
    kind = record["kind"]
    if record["session"] == PROJECT and kind not in ("entry", "result"):
        return None  # the project's state has its own commands, which check each part of it
    if kind == "entry":
        return Stand(str(record["agent"]), [])
    # A result names no agent: who may see the call may see what it returned.
    if kind == "result":
        return Stand(None, [(ENTRIES, storable(record["entry"]))])
    if kind == "event":
        if record.get("agent") is None and record.get("entry") is not None:
            return Stand(None, [(ENTRIES, storable(record["entry"]))])
        return Stand(USER if record.get("agent") is None else str(record["agent"]), [])
    if kind in ("note", "snapshot"):
        return _annotation(record)
    return _continuation(record, agent) if kind == "continuation" else None


def _annotation(record: Record) -> Stand | None:
    """Return the conditions of a note or snapshot: those of its entries; without entries it belongs to its author."""
    names: list[tuple[tuple[str, ...], str]] = [(ENTRIES, storable(name)) for name in dict.fromkeys(record["entries"])]
    author = record.get("author")
    sources = record.get("sources")
    if sources is not None:  # the records that an episode quotes
        if not isinstance(sources, list) or any(not isinstance(name, str) for name in cast("list[object]", sources)):
            return None
        names += [(CITED, storable(name)) for name in dict.fromkeys(cast("list[str]", sources))]
    owner = None if names else USER if author is None else str(author)
    former = record.get("supersedes")
    if record["kind"] == "note" and former is not None and former != record["id"]:
        names.append((NOTES, storable(former)))
    return Stand(owner, names)


def _continuation(record: Record, agent: str) -> Stand | None:
    target = record.get("target")
    cited = citations(record)
    if not isinstance(target, str) or cited is None:
        return None
    return Stand(None if target == agent else target, [(CITED, storable(name)) for name in cited])


def citations(record: Record) -> list[str] | None:
    """Return the ids of the records that a continuation cites, each once; None if it has an unknown shape."""
    try:
        return list(dict.fromkeys(_cited(record)))
    except TypeError:
        return None


def _cited(record: Record) -> Iterator[str]:
    context = _table(record.get("context"))
    for items in (context.get("facts"), context.get("held"), record.get("doNotRepeat"), record.get("alternatives")):
        for item in _list(items):
            yield from _texts(_table(item).get("entries"))
    yield from _texts([item["given"] for item in map(_table, _list(context.get("held"))) if item.get("given") is not None])
    for pattern in map(_table, (record.get("loop"), record.get("stall"))):
        yield from _texts(pattern.get("members"))
        yield from _texts([pattern[name] for name in ("start", "lastProgress") if pattern.get(name) is not None])
    yield from _texts(record.get("quarantined"))
    yield from _texts([name for name in (record.get("snapshot"), context.get("diffOf")) if name is not None])


def _table(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError
    return cast("list[Any]", value)


def _texts(value: object) -> Iterator[str]:
    for item in _list(value):
        if not isinstance(item, str):
            raise TypeError
        yield item


def framed(record: Record, *, with_words: bool) -> Record:
    """Return a ``session`` or ``sessionEnd`` record without fields that reveal hidden records.

    A title is made of a person's words, and ``capture`` counts the events of all agents.
    """
    if record["kind"] == "sessionEnd":
        return {name: value for name, value in record.items() if name != "capture"}
    meta = record.get("meta")
    if with_words or meta is None:
        return record
    kept = (
        {name: value for name, value in cast("dict[str, Any]", meta).items() if name != "title"}
        if isinstance(meta, dict)
        else {}
    )
    return {name: value for name, value in record.items() if name != "meta"} | ({"meta": kept} if kept else {})


class VisibilitySync:
    """Copies the visible ones of the records that were not judged yet into an extract."""

    def __init__(
        self, extract: Extract, agent: str, rules: Rules, reached: CopyProgress, progress: Progress | None = None
    ) -> None:
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

    def run(self) -> CopyProgress:
        """Copy, and return the progress of the extract; call inside its transaction."""
        self.copied = self._extract.copy(self._visible_records())
        self._extract.set_right(self._late)
        return CopyProgress(self._place, self._looked_at, self._kept_back)

    def _visible_records(self) -> Iterator[tuple[int, Record]]:
        last = self._extract.last_place() if self._progress is not None else 0
        for stored in self._extract.stored_after(self._place):
            own_state = stored.session == PROJECT and stored.kind not in ("entry", "result")
            self._place = stored.place
            self._looked_at += 1
            self._kept_back += not own_state
            for place, record in self._visible_now(stored):
                self._kept_back -= 1
                yield place, record
            if self._progress is not None and self._looked_at % _STEP == 0:
                self._progress(stored.place, last)

    def _visible_now(self, stored: Stored) -> list[tuple[int, Record]]:
        """Return the (place, record) rows to copy now that this record has come, in the order of the history."""
        if stored.kind in FRAME:
            return self._frame_rows([stored]) if self._shows(stored) else []
        record = read(stored)
        verdict = False if record is None else self._verdict(stored, record, stored.place, set())
        if isinstance(verdict, str):
            self._extract.wait(stored, verdict)
            self._waiting = True
        if stored.kind == "entry":
            # Only saves look-ups in the index, so it may be emptied at any time.
            if len(self._entries) >= _MAX_REMEMBERED:
                self._entries.clear()
            self._entries[stored.key, stored.id] = verdict is True
        found = {stored.place: record} if record is not None and verdict is True else {}
        if self._waiting and stored.kind in CITED:
            found |= self._release_waiting(stored, set(found))
        if not found:
            return []
        found = {place: self._with_visible_links(each, found) for place, each in found.items()}
        rows = [] if self._shows(stored) else self._frame_rows(self._extract.frame(stored.key, stored.place))
        self._shown.add(stored.key)
        return sorted([*rows, *found.items()], key=lambda row: row[0])

    def _with_visible_links(self, record: Record, accepted: Container[int]) -> Record:
        """Return a record, for a note without links to records that the agent does not see.

        Other links are removed too: an address, or a prefix of an id, may lead to a hidden record.
        """
        if record["kind"] != "note" or not record.get("links"):
            return record
        given: object = record["links"]
        links = cast("list[object]", given) if isinstance(given, list) else []
        visible = [link for link in links if isinstance(link, str) and self._leads_to_visible(link, accepted)]
        return {**record, "links": visible}

    def _leads_to_visible(self, link: str, accepted: Container[int]) -> bool:
        return any(place in accepted or self._extract.holds(place) for place in self._extract.places_of(storable(link)))

    def _shows(self, stored: Stored) -> bool:
        if stored.key in self._shown or self._extract.shows(stored.session):
            self._shown.add(stored.key)
            return True
        return False

    def _frame_rows(self, frame: list[Stored]) -> list[tuple[int, Record]]:
        rows: list[tuple[int, Record]] = []
        for stored in frame:
            record = None if stored.session == PROJECT else read(stored)
            if record is not None:
                rows.append((stored.place, framed(record, with_words=self._may(USER, stored.session))))
        return rows

    def _release_waiting(self, stored: Stored, accepted: set[int]) -> dict[int, Record]:
        """Return the records that become visible because this one has come, directly or through others that do."""
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
                    # It is copied behind entries that came later: which one it stands behind is set right at the end.
                    if waiter.kind == "event":
                        self._late.append(waiter.place)
        self._waiting = self._extract.is_any_waiting()
        return found

    def _verdict(self, stored: Stored, record: Record, upto: int, accepted: set[int]) -> bool | str:
        """Return whether a record is visible, or the id of a record on which that depends and that has not come yet."""
        stand = stand_of(record, self._agent)
        if stand is None or (stand.owner is not None and not self._may(stand.owner, stored.session)):
            return False
        missing: str | None = None
        for kinds, name in stand.names:
            visible = self._sees(stored.key, kinds, name, upto, accepted)
            if visible is False:
                return False
            missing = name if visible is None and missing is None else missing
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
