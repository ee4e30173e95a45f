"""Verify a whole history: the checksum of every record, and the end of the history against anchors outside of it.

There are five kinds of damage:

``unreadable``  bytes without a record of the format, or that SQLite reports as damaged;
``altered``     a record whose checksum does not continue the chain: it was changed, or one before it was removed;
``inserted``    a record that the checksums of the records around it do not cover;
``unsummed``    a record without a checksum among records with checksums;
``cut``         the end of the history is missing.

The result also says in words what could not be verified. An anchor applies only to the history of which it was taken. If the
history has no record of the anchored session, there is another log at the path (rotated, moved or replaced). The result then
says so.

The tables that filters and pages read have no checksums, so somebody who can write the file could make a failed entry read
"ok". Therefore the tables are built again from the records, beside the database, and compared (`compare_tables`).
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.log import anchor, codec
from ctxmgr.log.anchor import Anchor
from ctxmgr.log.codec import Record
from ctxmgr.log.reader import BROKEN_SUM, read
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.engine.log_bytes import DamagedRange
from ctxmgr.store.engine.schema import LATEST
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine
from ctxmgr.store.engine.wal_sync import digest_sums, read_head
from ctxmgr.store.project_session import ARCHIVED, CHAINED, END, GAP
from ctxmgr.store.write.append import Appender
from ctxmgr.types.record import check

_MAX_IN_MEMORY = 20_000
"""Number of records up to which the tables are built in memory."""
_BATCH = 4_096
_TRIGGERS_AND_VIEWS = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY name"

_TABLES: dict[str, tuple[str, str]] = {
    "session": ("entries, seq, workflow, source, meta", "id"),
    "process": ("process, started, outcome", "session"),
    "record": ("seq, kind, id, ts", "session"),
    "entry": ("seq, idx, agent, action, input_type, process, ts, status, result", "session"),
    "event": ("seq, type, agent, entry, after, ts", "session"),
    "note_entry": ("entry, note", "session"),
    "note_tag": ("tag, note", "session"),
    "superseded": ("note, successor", "session"),
    "access_rule": ("agent, resource, pattern, permission, priority", ""),
    "context_key": ("key, value, type", ""),
    "artifact": ("id, version, agent, name, hash", ""),
    "version": ("number, parent, op", ""),
}
"""The compared columns of each table, and the column that holds its session ("" for none). Session keys are not compared."""


def compare_tables(engine: Engine) -> list[DamagedRange]:
    """Return a range for each table of a database that differs from the table built from the records.

    Raises:
        Damaged, StorageFailed: the database can't be read, or there is no space for the new tables.
    """
    ((count,),) = engine.query("SELECT count(*) FROM record")
    with tempfile.TemporaryDirectory(prefix="ctxmgr-") as folder:
        path = MEMORY if int(count) <= _MAX_IN_MEMORY else os.path.join(folder, "tables.db")
        with closing(SqliteEngine(path, disposable=True)) as rebuilt:
            with rebuilt.transaction():
                schema.make(rebuilt.execute)
            _rebuild_tables(engine, rebuilt)
            faults = [fault for table in _TABLES if (fault := _compare_table(engine, rebuilt, table)) is not None]
            return faults + (_compare_triggers(engine, rebuilt) if isinstance(engine, SqliteEngine) else [])


def _compare_triggers(engine: Engine, rebuilt: Engine) -> list[DamagedRange]:
    """Return the triggers of a database, since a store has none, and changed views of ours. Users may add other views."""
    own = {name: text for _, name, text in rebuilt.query(_TRIGGERS_AND_VIEWS)}
    return [
        DamagedRange(0, 0, f"the {kind} {str(name)!r} is none of a store", "inserted" if kind == "trigger" else "altered")
        for kind, name, text in engine.query(_TRIGGERS_AND_VIEWS)
        if kind == "trigger" or text != own.get(name, text)
    ]


def _rebuild_tables(engine: Engine, rebuilt: Engine) -> None:
    appender = Appender(rebuilt, masked=False, sums=False)
    records = _read_records(engine)
    # `range` must come first in the zip, so that no record is consumed and lost when it ends.
    while batch := [record for _, record in zip(range(_BATCH), records, strict=False)]:
        with rebuilt.transaction():
            appender.copy(batch)


def _read_records(engine: Engine) -> Iterator[tuple[int, Record]]:
    for seq, body in engine.stream("SELECT seq, body FROM record ORDER BY seq"):
        try:
            yield int(seq), codec.decode(str(body).encode("utf-8", "surrogatepass"))
        except ValueError:  # its checksum reveals the damage
            continue


def _compare_table(engine: Engine, rebuilt: Engine, table: str) -> DamagedRange | None:
    """Return the damage if the rows of a table differ from those built from the records, else None."""
    columns, owner = _TABLES[table]
    # Sorted by repr, because None, numbers and texts can't be compared with each other.
    rows = sorted([*_table_rows(engine, columns, table, owner), *_table_rows(rebuilt, columns, table, owner)], key=repr)
    # Rows in both tables come in pairs. An odd number means that one table lacks a row.
    unpaired = sum(1 for _, equal in groupby(rows, key=repr) if len(list(equal)) % 2)
    if not unpaired:
        return None
    return DamagedRange(0, unpaired, f"{unpaired:,} rows of the table {table} do not follow from the records", "altered")


def _table_rows(engine: Engine, columns: str, table: str, owner: str) -> Iterator[Row]:
    qualified = ", ".join(f"{table}.{column}" for column in columns.split(", "))
    if owner == "session":
        # Use the session's id, because the keys in the copy differ if sessions came in another order.
        return engine.stream(f"SELECT session.id, {qualified} FROM {table} LEFT JOIN session ON session.key = {table}.session")
    return engine.stream(f"SELECT {f'{table}.id, ' if owner else ''}{qualified} FROM {table}")


# As bytes, because a flipped bit may make a text invalid, and the other records must be verified nevertheless.
_RECORDS_AS_BYTES = "SELECT seq, session, CAST(body AS BLOB), CAST(sum AS BLOB) FROM record ORDER BY seq"
_RECORDS = "SELECT seq, session, body, sum FROM record ORDER BY seq"
_LAST_COMMON_SUM = "SELECT sum, seq FROM record WHERE session = :key AND seq <= :common ORDER BY seq DESC LIMIT 1"
_SESSION_RECORDS = "SELECT seq, body, sum FROM record WHERE session = :key AND seq > :common ORDER BY seq"
_SESSION_OR_MARK = "SELECT 1 FROM session WHERE id = :id UNION ALL SELECT 1 FROM state WHERE name = :mark"
_STATE_FOLDER = "the state folder"
# Greater than any place.
_BEYOND_ALL_PLACES = 2**62


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """The result of a verification.

    Attributes:
        records: the number of records read.
        damaged: the damaged ranges, in the order of the history.
        checked: what was verified, in words.
        unchecked: what could not be verified, in words.
    """

    records: int
    damaged: list[DamagedRange]
    checked: list[str] = field(default_factory=lambda: list[str]())
    unchecked: list[str] = field(default_factory=lambda: list[str]())


class _ChainEnd:
    """The end of a chain of checksums.

    Attributes:
        checksum: the checksum of its last record.
        place: the place of its last record.
        fault: the damage of the last record, if it does not continue the chain.
        before_fault: the checksum that a faulty last record should have continued.
        unsummed: records without a checksum since the last one with a checksum.
    """

    __slots__ = ("before_fault", "checksum", "fault", "place", "unsummed")

    def __init__(self, checksum: str = "", place: int = 0) -> None:
        self.checksum, self.place = checksum, place
        self.fault: DamagedRange | None = None
        self.before_fault = ""
        self.unsummed: list[DamagedRange] = []


class _Chains:
    """Follows the checksums of a history, record by record.

    Args:
        anchors: the anchors of the history.
        damaged: a list to which damaged ranges are added.
        first: the place of the first record.

    Attributes:
        common: the last place of the common chain of all sessions; behind it each session has its own.
        archived: place and checksum of the last record of each archived session.
        chain_ends: the end of each session's chain, by session key; for a log, the key 0 stands for all sessions.
    """

    def __init__(self, anchors: list[Anchor], damaged: list[DamagedRange], first: int = 1) -> None:
        self.damaged = damaged
        self.common = 0
        self.archived: list[tuple[int, str]] = []
        self.chain_ends = defaultdict[int, _ChainEnd](_ChainEnd)
        self._first = first
        self.records = self.summed = self.unsummed_before = 0
        self._shared = _ChainEnd()
        self._last, self._end = "", 0
        self._places_of_sums = dict.fromkeys((each.total for each in anchors), -1)  # where each anchor's last record is now
        # For each anchor: the last checksum up to it, the end of that record, and the digest of all sessions' last checksums.
        self._sums_at_anchors: dict[int, tuple[str, int, str | None]] = {each.length: ("", 0, None) for each in anchors}
        self._lengths_with_ends = {each.length for each in anchors if each.ends_digest}
        self._lengths = sorted(self._sums_at_anchors)

    def add(self, place: int, length: int, body: bytes, total: str, session: int = 0) -> None:
        """Verify the next record; ``total`` is its checksum, "" if it has none."""
        self.records += 1
        self._note_anchor_values(place - self._first)
        own = self.chain_ends[session]
        own.place = place
        chain_end = self._shared if place <= self.common else own
        if not total:
            if self.summed:
                chain_end.unsummed.append(
                    DamagedRange(place, length, "a record without a sum among records with sums", "unsummed")
                )
            else:
                self.unsummed_before += 1
            return
        self.summed += 1
        follows = codec.chain(chain_end.checksum, body) == total
        self._report_unsummed(chain_end, follows=follows)
        if follows:
            chain_end.fault = None
        # This record continues the chain from before the faulty one, so the faulty one was inserted.
        elif chain_end.fault is not None and codec.chain(chain_end.before_fault, body) == total:
            chain_end.fault.kind = "inserted"
            chain_end.fault = None
        else:
            chain_end.fault, chain_end.before_fault = DamagedRange(place, length, BROKEN_SUM, "altered"), chain_end.checksum
            self.damaged.append(chain_end.fault)
        chain_end.checksum = own.checksum = self._last = total
        self._end = place + length - self._first
        if total in self._places_of_sums:
            self._places_of_sums[total] = place + length

    def skip(self, place: int, total: str) -> None:
        """Skip an archived record of the common chain, whose checksum is known."""
        self._note_anchor_values(place - self._first)
        self._last, self._end = total, place + 1 - self._first
        self._shared.checksum, self._shared.fault = total, None
        self._places_of_sums.update({total: place + 1} if total in self._places_of_sums else {})

    def _note_anchor_values(self, end: int) -> None:
        """Note the values with which the anchors up to this place are compared."""
        while self._lengths and end >= self._lengths[0]:
            length = self._lengths.pop(0)
            ends = None
            if length in self._lengths_with_ends and not self.is_archived_since(length):
                ends = digest_sums(
                    [*(chain_end.checksum for chain_end in self.chain_ends.values()), *(total for _, total in self.archived)]
                )
            self._sums_at_anchors[length] = self._last, self._end, ends

    def is_archived_since(self, length: int) -> bool:
        """Whether a session with records at or behind an anchor was archived. Its checksum at the anchor is no longer known."""
        return any(place >= length for place, _ in self.archived)

    def _report_unsummed(self, chain_end: _ChainEnd, *, follows: bool) -> None:
        for item in chain_end.unsummed:
            if follows:
                item.kind, item.reason = "inserted", "a record without a sum that the next one knows nothing of: inserted"
        self.damaged += chain_end.unsummed
        chain_end.unsummed = []

    def finish(self, size: int) -> None:
        """Finish after the last record of a history of this size."""
        for chain_end in (self._shared, *self.chain_ends.values()):
            self._report_unsummed(chain_end, follows=False)
        self._note_anchor_values(size)
        self._lengths = []

    def matches_anchor(self, known: Anchor, size: int, *, exact: bool) -> bool:
        """Whether the history still matches an anchor; ``exact`` requires that a record ends exactly at the anchor."""
        total, end, ends = self._sums_at_anchors[known.length]
        equal = total == known.total and (ends is None or ends == known.ends_digest)
        # In a log, the anchor is behind a line end and the record ends before it. In a database both are the same place.
        return size >= known.length and equal and (not exact or known.length - end in (0, 1))

    def has_last_record(self, known: Anchor) -> bool:
        """Whether an anchor's last record is anywhere in the history."""
        return self._places_of_sums.get(known.total, -1) >= 0


def examine_log(path: str, indexed: Anchor | None) -> VerificationResult:
    """Read and verify a log; ``indexed`` is the anchor in its index.

    Raises:
        NotFound, StorageFailed: the log can't be read.
    """
    size = os.stat(path).st_size
    anchors = _load_anchors(path, indexed)
    damaged: list[DamagedRange] = []
    chain = _Chains([known for known, _ in anchors], damaged, first=0)

    def report(offset: int, length: int, reason: str) -> None:
        # The chain below reports broken checksums, because it also recognises inserted records.
        if reason != BROKEN_SUM:
            damaged.append(DamagedRange(offset, length, reason))

    anchored, present = {known.session for known, _ in anchors}, set[str]()
    for line in read(path, damage=report):
        # The checksum is not where our writer puts it, so the chain can't continue from this record.
        if line.sum_ok is False and not line.total:
            damaged.append(DamagedRange(line.offset, line.length, BROKEN_SUM, "altered"))
            chain.records += 1
            continue
        chain.add(line.offset, line.length, line.body, line.total)
        try:
            check(line.record)
        except InvalidInput as error:  # its checksum may be right nevertheless: its writer wrote what no reader accepts
            damaged.append(DamagedRange(line.offset, line.length, error.message))
        if anchored and line.record["session"] in anchored:
            present.add(line.record["session"])
    chain.finish(size)
    return _compare_with_anchors(chain, anchors, size, "bytes", lambda known: not known.session or known.session in present)


def examine_database(engine: Engine, location: str) -> VerificationResult:
    """Verify a database or a store on a server: SQLite's own check, every record, the end of each session, and the tables.

    Old records form one chain over all sessions, up to the place in `ctxmgr.store.project_session.CHAINED`.
    """
    damaged, is_same = list[DamagedRange](), True
    anchors = [] if engine.shared else _load_anchors(location, None)
    # One snapshot for records, sessions and state, because others may append meanwhile.
    with engine.reading():
        chain = _Chains([each for each, _ in anchors], damaged)
        reader = _RecordReader(engine, chain)
        try:
            damaged += [DamagedRange(0, 0, fault) for fault in engine.faults()]
            reader.read()
            _report_cut_sessions(reader.sessions(), chain)
            for each, _ in anchors:  # one at most: a database has one anchor
                is_same = bool(engine.query(_SESSION_OR_MARK, {"id": each.session, "mark": f"{ARCHIVED}{each.session}"}))
        except Damaged as error:
            damaged.append(DamagedRange(0, 0, f"can't be read to its end: {error.message}"))
        chain.finish(reader.last)
        if count := chain.unsummed_before:  # every record of a database is written with a checksum
            damaged.append(DamagedRange(0, count, f"{count:,} records lost their sums", "unsummed"))
        result = _compare_with_anchors(chain, anchors, reader.last, "records", lambda _: is_same)
        # If records are missing, their sessions end in other records for that reason, which is reported already.
        if chain.common < _BEYOND_ALL_PLACES and not any(item.kind in ("cut", "unreadable") for item in damaged):
            _report_changed_ends(reader.sessions(), chain)
        if not damaged and (missing := reader.count_missing()):
            reason = f"{missing:,} records are gone from here on that no other record follows"
            damaged.append(DamagedRange(reader.first_gap, missing, reason, "cut"))
        damaged.sort(key=lambda item: item.offset)
        return _add_table_check(engine, result)


class _RecordReader:
    """Reads the records of a database in the order of their places, and passes them to `_Chains`.

    Attributes:
        last: the place of the last record.
        first_gap: the first place without a record behind the common chain, 0 if there is none.
    """

    def __init__(self, engine: Engine, chain: _Chains) -> None:
        self._engine = engine
        self._chain = chain
        self._own = self._archived = 0
        self.last = self.first_gap = 0

    def read(self) -> None:
        """Read all records."""
        engine, chain = self._engine, self._chain
        try:
            common = common_chain(engine)
        except Damaged as error:
            common = 0
            self._report_bad_state(error)
        chain.common = common = _BEYOND_ALL_PLACES if common is None else common
        gaps: list[tuple[int, str]] = []
        try:
            for place, value in _read_state(engine, END):
                total, _, own = str(value).partition(" ")
                chain.archived.append((_parse_place(place, END), total))
                self._archived += _parse_place(own, END)
            gaps = sorted(((_parse_place(name, GAP), str(total)) for name, total in _read_state(engine, GAP)), reverse=True)
        except Damaged as error:
            self._report_bad_state(error)
        for seq, session, body, total in engine.stream(_RECORDS if engine.shared else _RECORDS_AS_BYTES):
            while gaps and gaps[-1][0] < seq:
                chain.skip(*gaps.pop())
            if seq > common:
                self._own += 1
                if not self.first_gap and seq > (before := max(self.last, common)) + 1:
                    self.first_gap = before + 1
            self.last = int(seq)
            text = "" if total is None else _bytes(total).decode("ascii", "backslashreplace")
            chain.add(self.last, 1, _bytes(body), text, int(session))

    def _report_bad_state(self, error: Damaged) -> None:
        # Go on, because the records themselves can still be verified.
        self._chain.damaged.append(DamagedRange(0, 0, error.message, "altered"))

    def sessions(self) -> list[Row]:
        """Return (key, id, place of the last record, last checksum) of each session."""
        total = "NULL" if self._chain.common == _BEYOND_ALL_PLACES else "sum"
        return self._engine.query(f"SELECT key, id, seq, {total} FROM session ORDER BY key")

    def count_missing(self) -> int:
        """Return the number of places behind the common chain whose record is missing and was not archived.

        On a server return 0, because its places have gaps.
        """
        if self._engine.shared:
            return 0
        return max(0, self.last - min(self.last, self._chain.common) - self._own - self._archived)


def session_faults(engine: Engine, key: int) -> list[DamagedRange]:
    """Return the damage in the records of one session behind the common chain."""
    chain = _Chains([], [])
    common = common_chain(engine)
    if common is None:
        return []
    for total, place in engine.query(_LAST_COMMON_SUM, {"key": key, "common": common}):
        # The session's own chain continues from its last record in the common one.
        chain.chain_ends[key] = _ChainEnd(total or "", int(place))
    for seq, body, total in engine.stream(_SESSION_RECORDS, {"key": key, "common": common}):
        chain.add(int(seq), 1, body.encode(), total or "", key)
    chain.finish(0)
    session = engine.query("SELECT key, id, seq, sum FROM session WHERE key = :key", {"key": key})
    _report_cut_sessions(session, chain)
    if not chain.damaged:
        _report_changed_ends(session, chain)
    return chain.damaged


def _report_cut_sessions(sessions: list[Row], chain: _Chains) -> None:
    for key, name, expected, _ in sessions:
        last = chain.chain_ends[key].place
        if int(expected) > last:
            reason = f"session {name!r} goes on up to record {int(expected):,}: what was behind record {last:,} of it is gone"
            chain.damaged.append(DamagedRange(last + 1, int(expected) - last, reason, "cut"))


def _report_changed_ends(sessions: list[Row], chain: _Chains) -> None:
    for key, name, _, total in sessions:
        if (total or "") != chain.chain_ends[key].checksum:
            last = chain.chain_ends[key].place
            chain.damaged.append(DamagedRange(last, 1, f"session {name!r} ends in another record than it did", "altered"))


def _read_state(engine: Engine, prefix: str) -> list[Row]:
    """Return (rest of the name, value) of the rows in ``state`` whose names have a prefix."""
    rows = engine.query(
        "SELECT name, value FROM state WHERE name >= :name AND name < :after", {"name": prefix, "after": prefix + "~"}
    )
    return [(name[len(prefix) :], value) for name, value in rows]


def _add_table_check(engine: Engine, result: VerificationResult) -> VerificationResult:
    if result.damaged:
        result.unchecked.append("its tables: what follows from damaged records is not known")
    elif faults := compare_tables(engine):
        result.damaged.extend(faults)
    else:
        result.checked.append("its tables, each row of which follows from the records")
    return result


def common_chain(engine: Engine) -> int | None:
    """Return the last place of the common chain of all sessions, 0 if there is none, None if it has no end.

    Raises:
        Damaged: the stored value is not a place.
    """
    if engine.schema_version() < (2 if engine.shared else LATEST):
        return None
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": CHAINED})
    return _parse_place(rows[0][0], CHAINED) if rows else 0


def _parse_place(text: object, name: str) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise Damaged(f"the stored checksum data under {name!r} was changed", "restore a backup") from None


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _load_anchors(path: str, indexed: Anchor | None) -> list[tuple[Anchor, str]]:
    """Return (anchor, where it is kept) for each anchor of a history. Leave out the index's anchor of a former log."""
    stored = anchor.load(path)
    created = stored.created if stored is not None else ""
    anchors = [(stored, _STATE_FOLDER)] if stored is not None and stored.length else []
    # An anchor in the index from before this log began belongs to another log at the same path.
    if indexed is not None and indexed.length and indexed.time >= created:
        anchors.append((indexed, "its index"))
    return anchors


def _compare_with_anchors(
    chain: _Chains, anchors: list[tuple[Anchor, str]], size: int, unit: str, is_same_history: Callable[[Anchor], bool]
) -> VerificationResult:
    checked: list[str] = []
    unchecked: list[str] = []
    damaged = chain.damaged
    if chain.summed:
        checked.append(f"the sums of {chain.summed:,} records, each of which follows from the one before")
    if count := chain.unsummed_before:
        what = "no record carries a sum" if not chain.summed else f"{count:,} records before the first sum carry none"
        unchecked.append(f"{what}: whether one was changed, removed or inserted can't be told")
    same_count = 0
    for known, place in anchors:
        if not is_same_history(known) and chain.records:
            unchecked.append(f"another history was anchored here in {place} at {known.time}: rotated, moved or replaced since")
            continue
        same_count += 1
        if chain.matches_anchor(known, size, exact=place == _STATE_FOLDER):
            checked.append(f"its end, against the anchor of {known.time} in {place}: {known.length:,} {unit} are as they were")
        elif chain.is_archived_since(known.length):
            unchecked.append(f"the anchor of {known.time} in {place}: sessions were archived that went on behind it")
        elif (fault := _anchor_fault(chain, known, place, size, unit)) is not None and not _is_listed(damaged, fault):
            damaged.append(fault)
    if not same_count and chain.records:
        unchecked.append("no anchor of it is kept on this machine: whether its end was cut can't be told")
    damaged.sort(key=lambda item: item.offset)
    return VerificationResult(chain.records, damaged, checked, unchecked)


def _is_listed(damaged: list[DamagedRange], fault: DamagedRange) -> bool:
    return any(item.kind == fault.kind and item.offset == fault.offset for item in damaged)


def _anchor_fault(chain: _Chains, known: Anchor, place: str, size: int, unit: str) -> DamagedRange | None:
    """Return how a history contradicts its anchor, or None if its own checksums have revealed the damage already."""
    claim = f"the anchor of {known.time} in {place} knows {known.length:,} {unit}"
    if chain.has_last_record(known):
        if chain.damaged:
            return None
        return DamagedRange(0, size, f"{claim}, and something before its last record was changed or removed", "altered")
    if not chain.summed and chain.records:
        return DamagedRange(0, size, f"{claim} with sums, and no record carries one any more", "unsummed")
    if size < known.length:
        hint = "cut, or an older copy was put back ('ctxmgr verify --accept' takes it as it is)"
        return DamagedRange(size, known.length - size, f"{claim}, and there are {size:,}: {hint}", "cut")
    return DamagedRange(0, size, f"{claim}, and they are others now: its end was cut or rewritten, and it went on", "altered")


def accept_log(path: str) -> Anchor | None:
    """Anchor a log as it is now. Return the anchor, None if no record has a checksum."""
    total, end, session = "", 0, ""
    for line in read(path):
        session = session or str(line.record["session"])
        if line.total:
            total, end = line.total, line.offset + line.length + 1
    # An anchor is behind a line end, but the last line may not have one yet.
    head = Anchor(min(end, os.stat(path).st_size), total, session, os.stat(path).st_ino)
    return _store_anchor(path, head)


def accept_database(engine: Engine, location: str) -> None:
    """Anchor a database as it is now."""
    _store_anchor(location, read_head(engine))


def _store_anchor(path: str, head: Anchor | None) -> Anchor | None:
    if head is None or not head.total:
        # Replace the former anchor by an empty one, or it would be reported again each time.
        anchor.store_empty(path)
        return None
    anchor.store(path, head)
    return head
