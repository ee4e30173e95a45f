"""Check a whole history: every record against its sum, and the end against what was anchored outside of it.

What is wrong is named by its kind:

``unreadable``  bytes that hold no record, or that SQLite finds damaged;
``altered``     a record whose sum does not follow: it was changed, or one before it was removed;
``inserted``    a record that the records around it know nothing of;
``unsummed``    a record without a sum among records with sums;
``cut``         an end that is gone.

What could not be checked is told in words. An anchor only counts for the history that it was taken of: when no record of
the anchored session is there any more, another log stands at the path (rotated, moved or replaced), and that is told.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ctxmgr.errors import Damaged
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.log import anchor, codec
from ctxmgr.log.anchor import Anchor
from ctxmgr.log.reader import BROKEN_SUM, read
from ctxmgr.store.engine.postgresql_schema import CHAINED
from ctxmgr.store.integrity.damage import DamagedRange
from ctxmgr.store.integrity.derivation import contradictions
from ctxmgr.store.reserved import ARCHIVED, GAP

TYPE_CHECKING = False  # that of `typing`; the store stands above this
if TYPE_CHECKING:
    from ctxmgr.store.base import Store
    from ctxmgr.store.engine.interface import Engine, Row

# As bytes: a flipped bit may make them no text any more, and the others are to be checked nevertheless.
_ALL_BYTES = "SELECT seq, CAST(body AS BLOB), CAST(sum AS BLOB) FROM record ORDER BY seq"
_COMMON = "SELECT seq, body, sum FROM record WHERE seq <= coalesce(:common, seq) ORDER BY seq"
_SUM_BEFORE = "SELECT sum, seq FROM record WHERE session = :key AND seq <= :common ORDER BY seq DESC LIMIT 1"
_OF_SESSION = "SELECT seq, body, sum FROM record WHERE session = :key AND seq > :common ORDER BY seq"
_IS_OR_WAS_THERE = "SELECT 1 FROM session WHERE id = :id UNION ALL SELECT 1 FROM state WHERE name = :mark"
_STATE = "the state folder"


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found.

    Attributes:
        records: that were read.
        damaged: what is wrong, in the order of the history.
        checked: what could be checked, in words; unchecked: what could not be.
    """

    records: int
    damaged: list[DamagedRange]
    checked: list[str] = field(default_factory=lambda: list[str]())
    unchecked: list[str] = field(default_factory=lambda: list[str]())


class _Chain:
    """Follows the sums of a history, record by record."""

    def __init__(self, anchors: list[Anchor], damaged: list[DamagedRange], first: int) -> None:
        self.damaged = damaged
        self._first = first  # the place of the first record
        self.records = self.summed = self.bare_before = 0
        self.last, self._end = "", 0
        self._before_fault: str | None = None  # the sum that the last record, which does not follow, should follow
        self._bare: list[DamagedRange] = []  # records without a sum since the last one with one
        self._totals = dict.fromkeys((each.total for each in anchors), -1)  # where the last record of an anchor is now
        self._sums_at = {each.length: ("", 0) for each in anchors}  # the last sum up to there, and where its record ends
        self._lengths = sorted(self._sums_at)

    def add(self, place: int, length: int, body: bytes, total: str) -> None:
        """Take the next record; ``total`` is "" when it carries no sum."""
        self.records += 1
        while self._lengths and place - self._first >= self._lengths[0]:
            self._sums_at[self._lengths.pop(0)] = self.last, self._end
        if not total:
            if self.summed:
                self._bare.append(DamagedRange(place, length, "a record without a sum among records with sums", "unsummed"))
            else:
                self.bare_before += 1
            return
        self.summed += 1
        follows = codec.chain(self.last, body) == total
        self._tell_bare(follows=follows)
        if follows:
            self._before_fault = None
        elif self._before_fault is not None and codec.chain(self._before_fault, body) == total:
            self.damaged[-1].kind = "inserted"
            self._before_fault = None
        else:
            self.damaged.append(DamagedRange(place, length, BROKEN_SUM, "altered"))
            self._before_fault = self.last
        self.last, self._end = total, place + length - self._first
        if total in self._totals:
            self._totals[total] = place + length

    def skip(self, place: int, total: str) -> None:
        """Pass a record that was archived; its sum is known."""
        while self._lengths and place - self._first >= self._lengths[0]:
            self._sums_at[self._lengths.pop(0)] = self.last, self._end
        self.last, self._end, self._before_fault = total, place + 1 - self._first, None
        self._totals.update({total: place + 1} if total in self._totals else {})

    def go_on(self, last: str) -> None:
        """Go on with another chain, behind this sum."""
        self._tell_bare(follows=False)
        self.last, self._before_fault = last, None

    def _tell_bare(self, *, follows: bool) -> None:
        for item in self._bare:
            if follows:
                item.kind, item.reason = "inserted", "a record without a sum that the next one knows nothing of: inserted"
        self.damaged += self._bare
        self._bare = []

    def end(self, size: int) -> None:
        """Say that this is all, and where it ends."""
        self._tell_bare(follows=False)
        for length in self._lengths:
            if length <= size:
                self._sums_at[length] = self.last, self._end
        self._lengths = []

    def holds(self, found: Anchor, size: int, *, exact: bool) -> bool:
        """Whether the history still is, up to there, what an anchor says; ``exact``: its last record ends just there."""
        total, end = self._sums_at[found.length]
        return size >= found.length and total == found.total and (not exact or found.length - end in (0, 1))

    def has_end_of(self, found: Anchor) -> bool:
        """Whether the last record that an anchor knows is there, wherever."""
        return self._totals.get(found.total, -1) >= 0


def examine_log(path: str, indexed: Anchor | None) -> Examined:
    """Read a log and check it; ``indexed`` is how far its index saw it.

    Raises:
        NotFound, StorageFailed: it can't be read.
    """
    size = os.stat(path).st_size
    anchors = _anchors(path, indexed)
    damaged: list[DamagedRange] = []
    chain = _Chain([found for found, _ in anchors], damaged, 0)

    def hear(offset: int, length: int, reason: str) -> None:
        if reason != BROKEN_SUM:
            damaged.append(DamagedRange(offset, length, reason))

    wanted, there = {found.session for found, _ in anchors}, set[str]()
    for line in read(path, damage=hear):
        if line.sum_ok is False and not line.total:
            damaged.append(DamagedRange(line.offset, line.length, BROKEN_SUM, "altered"))
            chain.records += 1
            continue
        chain.add(line.offset, line.length, line.body, line.total)
        if wanted and line.record["session"] in wanted:
            there.add(line.record["session"])
    chain.end(size)
    return _compared(chain, anchors, size, "bytes", lambda found: not found.session or found.session in there)


def examine_database(store: Store) -> Examined:
    """Check a database: SQLite's own check, every record, and its end."""
    anchors = _anchors(store.location, None)
    damaged: list[DamagedRange] = []
    chain = _Chain([found for found, _ in anchors], damaged, 1)
    engine, last, there = store.engine, 0, True
    try:
        damaged += [DamagedRange(0, 0, fault) for fault in engine.faults()]
        gaps = _gaps(engine)
        for seq, body, total in engine.stream(_ALL_BYTES):
            last = int(seq)
            _skip(chain, gaps, last)
            chain.add(last, 1, _bytes(body), "" if total is None else _bytes(total).decode("ascii", "backslashreplace"))
        ((known,),) = engine.query("SELECT coalesce(max(seq), 0) FROM session")
        if int(known) > last:
            reason = f"its sessions go on up to record {int(known):,}: what was behind record {last:,} is gone"
            damaged.append(DamagedRange(last + 1, int(known) - last, reason, "cut"))
        for found, _ in anchors:
            there = bool(engine.query(_IS_OR_WAS_THERE, {"id": found.session, "mark": f"{ARCHIVED}{found.session}"}))
    except Damaged as error:
        damaged.append(DamagedRange(0, 0, f"can't be read to its end: {error.message}"))
    chain.end(last)
    if chain.bare_before:  # every record of a database is written with a sum
        damaged.append(DamagedRange(0, chain.bare_before, f"{chain.bare_before:,} records lost their sums", "unsummed"))
    return _with_tables(engine, _compared(chain, anchors, last, "records", lambda _: there))


def examine_server(engine: Engine) -> Examined:
    """Check a store on a server: every record, and the end of each session, whose sums are a chain of their own.

    Records of the first version of the tables are one chain over all sessions, up to the place that `CHAINED` names.
    """
    damaged: list[DamagedRange] = []
    chain = _Chain([], damaged, 1)
    try:
        with engine.reading():
            common = common_chain(engine)
            gaps = _gaps(engine)
            for seq, body, total in engine.stream(_COMMON, {"common": common}):
                _skip(chain, gaps, int(seq))
                chain.add(int(seq), 1, body.encode(), total or "")
            if common is not None:
                for session in engine.query("SELECT key, id, seq, sum FROM session ORDER BY key"):
                    _examine_session(engine, chain, session, common)
            chain.end(0)
            damaged.sort(key=lambda item: item.offset)
            return _with_tables(engine, _compared(chain, [], 0, "records", lambda _: True))
    except Damaged as error:
        return Examined(chain.records, [*damaged, DamagedRange(0, 0, f"can't be read to its end: {error.message}")])


def session_faults(engine: Engine, key: int) -> list[DamagedRange]:
    """Return what is wrong with the records of one session of a store on a server, whose sums are a chain of its own."""
    chain = _Chain([], [], 1)
    session = engine.query("SELECT key, id, seq, sum FROM session WHERE key = :key", {"key": key})[0]
    if (common := common_chain(engine)) is not None:
        _examine_session(engine, chain, session, common)
    return chain.damaged


def _gaps(engine: Engine) -> list[tuple[int, str]]:
    """Return (place, sum) of the archived records that a record of another session followed, the last one first."""
    rows = engine.query(
        "SELECT name, value FROM state WHERE name >= :name AND name < :after", {"name": GAP, "after": GAP + "~"}
    )
    return sorted(((int(name[len(GAP) :]), str(total)) for name, total in rows), reverse=True)


def _skip(chain: _Chain, gaps: list[tuple[int, str]], place: int) -> None:
    while gaps and gaps[-1][0] < place:
        chain.skip(*gaps.pop())


def _with_tables(engine: Engine, found: Examined) -> Examined:
    if found.damaged:
        found.unchecked.append("its tables: what follows from damaged records is not known")
    elif odd := contradictions(engine):
        found.damaged.extend(odd)
    else:
        found.checked.append("its tables, each row of which follows from the records")
    return found


def common_chain(engine: Engine) -> int | None:
    """Return the place up to which all sessions of a server have one chain, 0 for nowhere, None for everywhere."""
    if engine.schema_version() < 2:
        return None
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": CHAINED})
    return int(rows[0][0]) if rows else 0


def _examine_session(engine: Engine, chain: _Chain, session: Row, common: int) -> None:
    key, name, known, head = session
    before = engine.query(_SUM_BEFORE, {"key": key, "common": common})
    chain.go_on(str(before[0][0]) if before else "")
    last = int(before[0][1]) if before else 0
    for seq, body, total in engine.stream(_OF_SESSION, {"key": key, "common": common}):
        last = int(seq)
        chain.add(last, 1, body.encode(), total or "")
    if int(known) > last:
        reason = f"session {name!r} goes on up to record {int(known):,}: what was behind record {last:,} of it is gone"
        chain.damaged.append(DamagedRange(last + 1, int(known) - last, reason, "cut"))
    elif (head or "") != chain.last:
        chain.damaged.append(DamagedRange(last, 1, f"session {name!r} ends in another record than it did", "altered"))


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _anchors(path: str, indexed: Anchor | None) -> list[tuple[Anchor, str]]:
    """Return the anchors of a history with where each is kept; the index may know one of a file that is gone."""
    kept = anchor.load(path)
    begun = kept.begun if kept is not None else ""
    found = [(kept, _STATE)] if kept is not None and kept.length else []
    if indexed is not None and indexed.length and indexed.time >= begun:
        found.append((indexed, "its index"))
    return found


def _compared(
    chain: _Chain, anchors: list[tuple[Anchor, str]], size: int, unit: str, same: Callable[[Anchor], bool]
) -> Examined:
    checked: list[str] = []
    unchecked: list[str] = []
    damaged = chain.damaged
    if chain.summed:
        checked.append(f"the sums of {chain.summed:,} records, each of which follows from the one before")
    if chain.bare_before:
        what = (
            "no record carries a sum" if not chain.summed else f"{chain.bare_before:,} records before the first sum carry none"
        )
        unchecked.append(f"{what}: whether one was changed, removed or inserted can't be told")
    own = 0
    for found, place in anchors:
        if not same(found) and chain.records:
            unchecked.append(f"another history was anchored here in {place} at {found.time}: rotated, moved or replaced since")
            continue
        own += 1
        if chain.holds(found, size, exact=place == _STATE):
            checked.append(f"its end, against the anchor of {found.time} in {place}: {found.length:,} {unit} are as they were")
        elif (fault := _contradiction(chain, found, place, size, unit)) is not None and not _is_listed(damaged, fault):
            damaged.append(fault)
    if not own and chain.records:
        unchecked.append("no anchor of it is kept on this machine: whether its end was cut can't be told")
    damaged.sort(key=lambda item: item.offset)
    return Examined(chain.records, damaged, checked, unchecked)


def _is_listed(damaged: list[DamagedRange], fault: DamagedRange) -> bool:
    return any(item.kind == fault.kind and item.offset == fault.offset for item in damaged)


def _contradiction(chain: _Chain, found: Anchor, place: str, size: int, unit: str) -> DamagedRange | None:
    """Return how a history contradicts its anchor, or None where its own sums tell it already."""
    was = f"the anchor of {found.time} in {place} knows {found.length:,} {unit}"
    if chain.has_end_of(found):
        if chain.damaged:
            return None
        return DamagedRange(0, size, f"{was}, and its last record stands elsewhere now: something before it changed", "altered")
    if not chain.summed and chain.records:
        return DamagedRange(0, size, f"{was} with sums, and no record carries one any more", "unsummed")
    if size < found.length:
        hint = "cut, or an older copy was put back ('ctxmgr verify --accept' takes it as it is)"
        return DamagedRange(size, found.length - size, f"{was}, and there are {size:,}: {hint}", "cut")
    return DamagedRange(0, size, f"{was}, and they are others now: its end was cut or rewritten, and it went on", "altered")


def accept_log(path: str) -> Anchor | None:
    """Anchor a log as it stands; return the anchor, None when it holds no sums."""
    total, end, session = "", 0, ""
    for line in read(path):
        session = session or str(line.record["session"])
        if line.total:
            total, end = line.total, line.offset + line.length + 1
    head = Anchor(min(end, os.stat(path).st_size), total, session, os.stat(path).st_ino)
    return _accepted(path, head)


def accept_database(store: Store) -> None:
    """Anchor a database as it stands."""
    from ctxmgr.store.engine.wal_sync import head_of

    _accepted(store.location, head_of(store.engine))


def _accepted(path: str, head: Anchor | None) -> Anchor | None:
    if head is None or not head.total:
        anchor.begin(path)
        return None
    anchor.store(path, head)
    return head
