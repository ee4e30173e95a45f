"""Decide which records of a history an agent may see, and copy them as the history grows.

`visibility_conditions` looks at a record alone and returns the owner and the records on which its visibility depends. A
record that it does not understand is hidden. `VisibilitySync` judges each record once, those that wait for a later one again.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any, cast

from ctxmgr.access.patterns import USER
from ctxmgr.access.rules import Rules
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record, decode
from ctxmgr.log.fast_json import json_texts
from ctxmgr.store.partial_copy import CopyProgress, PartialCopy, StoredRow
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write.append import record_id
from ctxmgr.types.record import check

FRAME = ("session", "sessionEnd")
"""Kinds that are visible as soon as another record of their session is."""

ENTRIES = ("entry",)
NOTES = ("note",)
CITED = ("entry", "event", "note", "snapshot", "continuation")

_COUNTS = frozenset(("seq", "capture"))
"""Fields of records from an event bus: the number of an event among those of all agents, and the number of all events."""

_WORDS = ("title", "summary")
_MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class VisibilityConditions:
    """The conditions under which a record is visible.

    Attributes:
        owner: the agent whose history must be readable; None if only ``names`` decides.
        names: (kinds, id) of each record of the session that must be visible too.
    """

    owner: str | None
    names: list[tuple[tuple[str, ...], str]]


def read(stored: StoredRow) -> Record | None:
    """Return a stored record; None if somebody changed it outside of ctxmgr, so that its columns and its body disagree."""
    try:
        body = stored.body.encode("ascii")
        record = check(decode(body))
        # Rules read the body and queries read the columns. A record in which they differ could pass as visible.
        same = record["kind"] == stored.kind and storable(record["session"]) == stored.session
        return record if same and record_id(record, body) == stored.id else None
    except (ValueError, InvalidInput):
        return None


def visibility_conditions(record: Record, agent: str) -> VisibilityConditions | None:
    """Return the conditions for the agent to see a record; None if it never sees it."""
    kind = record["kind"]
    if record["session"] == PROJECT and kind not in ("entry", "result"):
        return None  # the project's state has its own commands, which check each part of it
    if kind == "entry":
        return VisibilityConditions(str(record["agent"]), [])
    # A result names no agent. An agent that may see the call may see its result.
    if kind == "result":
        return VisibilityConditions(None, [(ENTRIES, storable(record["entry"]))])
    if kind == "event":
        if record.get("agent") is None and record.get("entry") is not None:
            return VisibilityConditions(None, [(ENTRIES, storable(record["entry"]))])
        return VisibilityConditions(USER if record.get("agent") is None else str(record["agent"]), [])
    if kind in ("note", "snapshot"):
        return _annotation(record)
    return _continuation(record, agent) if kind == "continuation" else None


def _annotation(record: Record) -> VisibilityConditions | None:
    """Return the conditions of a note or snapshot: those of its entries. Without entries, it belongs to its author."""
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
    return VisibilityConditions(owner, names)


def _continuation(record: Record, agent: str) -> VisibilityConditions | None:
    target = record.get("target")
    cited = citations(record)
    if not isinstance(target, str) or cited is None:
        return None
    return VisibilityConditions(None if target == agent else target, [(CITED, storable(name)) for name in cited])


def citations(record: Record) -> list[str] | None:
    """Return the ids of the records that a continuation cites, each once; None if its shape is unknown."""
    try:
        return list(dict.fromkeys(_cited_ids(record)))
    except TypeError:
        return None


def _cited_ids(record: Record) -> Iterator[str]:
    context, diagnosis = _require_table(record.get("context")), _require_table(record.get("diagnosis"))
    for items in (context.get("facts"), context.get("held"), record.get("doNotRepeat"), record.get("alternatives")):
        for item in _require_list(items):
            yield from _require_texts(_require_table(item).get("entries"))
    for items, name in ((context.get("held"), "given"), (diagnosis.get("evidence"), "entry")):
        yield from _require_texts(
            [item[name] for item in map(_require_table, _require_list(items)) if item.get(name) is not None]
        )
    for pattern in map(_require_table, (record.get("loop"), record.get("stall"))):
        yield from _require_texts(pattern.get("members"))
        yield from _require_texts([pattern[name] for name in ("start", "lastProgress") if pattern.get(name) is not None])
    yield from _require_texts(record.get("quarantined"))
    yield from _require_texts([name for name in (record.get("snapshot"), context.get("diffOf")) if name is not None])


def _require_table(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)


def _require_list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError
    return cast("list[Any]", value)


def _require_texts(value: object) -> Iterator[str]:
    for item in _require_list(value):
        if not isinstance(item, str):
            raise TypeError
        yield item


def without_counts(record: Record) -> Record:
    """Return a record without the fields that count what all agents did; see ``_COUNTS``."""
    return record if _COUNTS.isdisjoint(record) else {name: value for name, value in record.items() if name not in _COUNTS}


def redact_session_record(record: Record, *, with_words: bool) -> Record:
    """Return a ``session`` or ``sessionEnd`` record without fields that reveal hidden records.

    A title consists of a person's words, and a summary covers all messages.
    """
    record = without_counts(record)
    meta = record.get("meta")
    if with_words or meta is None:
        return record
    kept = (
        {name: value for name, value in cast("dict[str, Any]", meta).items() if name not in _WORDS}
        if isinstance(meta, dict)
        else {}
    )
    return {name: value for name, value in record.items() if name != "meta"} | ({"meta": kept} if kept else {})


class VisibilitySync:
    """Judges the records that were not judged yet, and copies the visible ones into an extract. Used in `PartialCopy.extend`.

    Attributes:
        looked_at: number of judged records.
        copied: number of visible records among them.
    """

    def __init__(self, extract: PartialCopy, agent: str, rules: Rules) -> None:
        self._extract = extract
        self._agent = agent
        self._rules = rules
        self._waiting = extract.has_waiting()
        self._entries: dict[tuple[int, str], bool] = {}
        self._shown: set[int] = set()
        self._late: list[int] = []
        self.looked_at = self.copied = 0

    def run(self, progress: CopyProgress) -> None:
        """Judge all new records, and move the progress forward."""
        # On a server, records don't appear in the order of their places. All records after the settled place are checked
        # again next time. The places of one session come in order, so a copied record was judged for good.
        settled, copied = self._extract.settled_place(), self._extract.last_copied()
        for stored in self._extract.read_after(progress.place):
            final = stored.place <= settled
            if final:
                progress.place = stored.place
            if stored.place <= copied and self._extract.holds(stored.place):
                continue
            self.looked_at += 1
            progress.hidden += final and (stored.session != PROJECT or stored.kind in ("entry", "result"))
            for place, record in self._visible_now(stored):
                self.copied += 1
                progress.hidden -= place <= settled
                self._extract.add(place, record)
        self._extract.write()
        self._extract.set_right(self._late)

    def _visible_now(self, stored: StoredRow) -> list[tuple[int, Record]]:
        """Return the (place, record) rows to copy now that this record has come, in the order of the history.

        Besides the record itself, these are records that waited for it, directly or through other waiting records.
        """
        if stored.kind in FRAME:
            return self._frame_rows([stored]) if self._is_shown(stored) else []
        found: dict[int, Record] = {}
        due = {stored.place: stored}
        while due:
            place, each = due.popitem()
            record = read(each)
            verdict = record is not None and self._verdict(each, record, stored.place, found, due)
            if isinstance(verdict, str):
                self._extract.wait(each, verdict)
                self._waiting = True
                continue
            if each.kind == "entry":
                self._remember_entry(each, verdict)
            if record is not None and verdict:
                found[place] = record
                if each is not stored and each.kind == "event":
                    # It is copied after later entries. Its position among the entries is corrected at the end.
                    self._late.append(place)
            if self._waiting and each.kind in CITED:
                due |= {waiter.place: waiter for waiter in self._extract.release(each.key, each.id)}
        if not found:
            return []
        rows = [] if self._is_shown(stored) else self._frame_rows(self._extract.frame(stored.key, stored.place))
        self._shown.add(stored.key)
        rows += [(place, self._redact(record, found)) for place, record in found.items()]
        return sorted(rows, key=lambda row: row[0])

    def _remember_entry(self, entry: StoredRow, visible: bool) -> None:
        # This only saves look-ups in the index, so it may be emptied at any time.
        if len(self._entries) >= _MAX_REMEMBERED:
            self._entries.clear()
        self._entries[entry.key, entry.id] = visible

    def _redact(self, record: Record, accepted: Container[int]) -> Record:
        """Return a visible record as the agent sees it: a note without links to records that the agent does not see.

        Links that are no exact ids are removed too, because an address or an id prefix may lead to a hidden record.
        """
        record = without_counts(record)
        if record["kind"] != "note" or not record.get("links"):
            return record
        return {**record, "links": [link for link in json_texts(record["links"]) if self._leads_to_visible(link, accepted)]}

    def _leads_to_visible(self, link: str, accepted: Container[int]) -> bool:
        return any(place in accepted or self._extract.holds(place) for place in self._extract.places(CITED, storable(link)))

    def _is_shown(self, stored: StoredRow) -> bool:
        if stored.key in self._shown or self._extract.shows(stored.session):
            self._shown.add(stored.key)
            return True
        return False

    def _frame_rows(self, frame: list[StoredRow]) -> list[tuple[int, Record]]:
        rows: list[tuple[int, Record]] = []
        for stored in frame:
            record = None if stored.session == PROJECT else read(stored)
            if record is not None:
                rows.append((stored.place, redact_session_record(record, with_words=self._may_read(USER, stored.session))))
        return rows

    def _verdict(
        self, stored: StoredRow, record: Record, upto: int, accepted: Container[int], due: Container[int]
    ) -> bool | str:
        """Return whether a record is visible, or the id of a record on which that depends and which is not judged yet."""
        stand = visibility_conditions(record, self._agent)
        if stand is None or (stand.owner is not None and not self._may_read(stand.owner, stored.session)):
            return False
        missing: str | None = None
        for kinds, name in stand.names:
            visible = self._entries.get((stored.key, name)) if kinds == ENTRIES else None
            if visible is None:
                visible = self._are_visible(self._extract.places(kinds, name, stored.key, upto), accepted, due)
            if visible is False:
                return False
            missing = name if visible is None and missing is None else missing
        return True if missing is None else missing

    def _are_visible(self, places: Collection[int], accepted: Container[int], due: Container[int]) -> bool | None:
        """Return whether the records at these places are visible; None if there are none, or some are not judged yet."""
        open_ = not places
        for place in places:
            if place not in accepted and not self._extract.holds(place):
                if place not in due and not self._extract.waits(place):
                    return False
                open_ = True
        return None if open_ else True

    def _may_read(self, owner: str, session: str) -> bool:
        return self._rules.may(self._agent, "read", "history", owner, session)
