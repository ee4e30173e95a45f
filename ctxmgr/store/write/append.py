"""Append records one by one or in small batches: mask and encode each, compare it with the stored ones, and write it.

A record is stored once per id (design section 4). The same id with the same content counts as known, with other content as a
conflict.
"""

from __future__ import annotations

from itertools import islice

from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.log import codec
from ctxmgr.log.ids import parse_time
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.row_mapper import batches, placeholders
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write import batch
from ctxmgr.store.write.batch import derive_rows, insert_lines, insert_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line
    from ctxmgr.store.engine.interface import Engine, OnConflict
    from ctxmgr.store.write.batch import SessionCounters

    Refused = Callable[[Record, InvalidInput], None]
    """Called with a record that can't be written, and why."""
    _Last = tuple[int, str | None]
    """Place and checksum of the last record."""
    Identity = tuple[int, str, str]


class AppendResult:
    """The counts of an append: records added, known already, and known with other content (``changed``; the first stays).

    ``doubles`` counts records that were left out because another session has them.
    """

    __slots__ = ("added", "changed", "doubles", "known")

    def __init__(self, added: int = 0, known: int = 0, changed: int = 0, doubles: int = 0) -> None:
        self.added = added
        self.known = known
        self.changed = changed
        self.doubles = doubles

    def plus(self, other: AppendResult) -> None:
        """Add another append's counts to these."""
        self.added += other.added
        self.known += other.known
        self.changed += other.changed
        self.doubles += other.doubles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppendResult) and self._counts() == other._counts()

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- its counts change

    def __repr__(self) -> str:
        return "Appended(added={}, known={}, changed={}, doubles={})".format(*self._counts())

    def _counts(self) -> tuple[int, int, int, int]:
        return self.added, self.known, self.changed, self.doubles


BATCH = 256
"""Number of records written together. More would not be faster."""

_BACKSLASH = ord("\\")  # one byte is found in a tenth of the time of a text
_MAX_SESSIONS = 64  # sessions whose counters an appender keeps from one append to the next


class Appender:
    """Writes records through an engine. The caller holds a transaction.

    Args:
        engine: the engine of the store.
        masked: mask secrets before anything is written (off only on request).
        sums: continue the ``sum`` chain of each session. If not, keep the checksums that come with the records, for the index
            of a log or of a part of a store.
    """

    def __init__(self, engine: Engine, *, masked: bool = True, sums: bool = True) -> None:
        self._engine = engine
        self._masked = masked
        self._sums = sums
        self._counters: dict[str, SessionCounters] = {}
        self._kept: dict[str, SessionCounters] = {}
        self._last: _Last = (0, None)
        self._kept_at: _Last | None = None
        self._repeats = False

    def append(
        self,
        records: Iterable[Record],
        *,
        on_conflict: OnConflict = "raise",
        doubles: bool = False,
    ) -> AppendResult:
        """Write records in order, all or none.

        Args:
            records: checked records of log format 1.
            on_conflict: what to do with a known id that has other content: raise, or keep the first.
            doubles: leave out entries and events whose id another session has already, and the results of these entries.

        Raises:
            Conflict: a record has a known id and other content, and ``on_conflict`` is "raise".
            InvalidInput: JSON can't represent a value, or a record exceeds the length limit.
        """
        ready = (prepare(record, masked=self._masked) for record in records)
        return self._append(ready, insert_records, on_conflict, doubles=doubles)

    def append_encoded(self, record: Record, body: bytes) -> AppendResult:
        """Write one checked, masked record with its body from `ctxmgr.log.codec.encode`. Otherwise like `append`."""
        return self._append((EncodedRecord(record, body, None),), insert_records, "raise")

    def append_lines(self, lines: Iterable[Line], *, on_conflict: OnConflict = "raise") -> AppendResult:
        """Write the checked records of a log in order, all or none. Otherwise like `append`."""
        ready = (prepare_line(line, masked=self._masked) for line in lines)
        return self._append(ready, insert_records, on_conflict)

    def index_lines(self, lines: Iterable[Line], refused: Refused) -> AppendResult:
        """Store the offsets of the checked records of a log, and the rows derived from them. The first record of an id counts.

        Args:
            lines: the lines of the log, in order.
            refused: called with records that can't be encoded again.
        """

        def ready() -> Iterator[EncodedRecord]:
            for line in lines:
                try:
                    yield prepare_line(line, masked=False)
                except InvalidInput as error:
                    refused(line.record, error)

        return self._append(ready(), insert_lines, "keep")

    def copy(self, placed: Iterable[tuple[int, Record]]) -> AppendResult:
        """Write records of another store at their places there. Leave out records that can't be encoded.

        They may come a little out of order, but not after a record of their session that changes their meaning.
        """

        def ready() -> Iterator[EncodedRecord]:
            for place, record in placed:
                try:
                    yield prepare(record, masked=self._masked, place=place)
                except InvalidInput:
                    continue

        return self._append(ready(), insert_records, "keep", placed=True)

    def _append(
        self,
        items: Iterable[EncodedRecord],
        insert: Callable[[Engine, Sequence[EncodedRecord]], bool],
        on_conflict: OnConflict,
        *,
        doubles: bool = False,
        placed: bool = False,
    ) -> AppendResult:
        report = AppendResult()
        known = KnownRecords(self._engine, on_conflict, report)
        others = DuplicateTracker(self._engine, report) if doubles else None
        self._look_up_last()
        self._counters.clear()
        for part in _parts(items):
            mine = part if others is None else others.drop_duplicates(part)
            self._find_sessions(mine)
            # Usually all records are new, so write them without a look-up. Look them up only if one is not new.
            if mine and (self._repeats or not self._write(mine, insert, placed=placed)):
                fresh = known.new(mine)
                self._repeats = len(fresh) < len(mine)  # a log that is read again begins with known records
                mine = fresh
                if mine and not self._write(mine, insert, placed=placed):
                    raise Conflict("records were to be written at places that others have", "run the command again")
            report.added += len(mine)
        self._keep()
        return report

    def _find_sessions(self, part: Sequence[EncodedRecord]) -> None:
        for item in part:
            item.key = self._touch(str(item.record["session"])).key

    def _write(
        self, part: Sequence[EncodedRecord], insert: Callable[[Engine, Sequence[EncodedRecord]], bool], *, placed: bool
    ) -> bool:
        """Write records if all are new. Return False and write nothing if one is not."""
        last = self._number(part, placed=placed)
        # The unique index refuses a known record, so nothing has to be read before.
        if not insert(self._engine, part):
            return False
        self._last = last
        pairs = [(item, self._counters[str(item.record["session"])]) for item in part]
        for item, counters in pairs:
            counters.see(item.seq, None if item.kind in batch.SAID_LATER else item.moment)
            if self._sums:
                counters.total = item.total
        derive_rows(self._engine, pairs, in_order=not placed)
        if part[0].record["session"] == PROJECT and part[0].kind == "event":  # `_parts` puts it into a part of its own
            from ctxmgr.store.write.project_state import derive

            derive(self._engine, part[0].seq, part[0].record)
        return True

    def _number(self, part: Sequence[EncodedRecord], *, placed: bool) -> _Last:
        """Set the places and checksums of records. Return those of the last one."""
        number = self._last[0]
        for item in part:
            item.seq = number = number + 1 if not placed or item.place is None else item.place
        if self._sums:
            self._seal(part)
        return number, part[-1].total

    def _seal(self, part: Sequence[EncodedRecord]) -> None:
        """Set the checksums of records, continuing the chain of each session."""
        key, total, totals = 0, "", dict[int, str]()
        for item in part:
            if item.key != key:
                # `SessionCounters.total` is set only after the rows are inserted, so keep the checksums of this part here.
                totals[key], key = total, item.key
                total = totals.get(key) or self._counters[str(item.record["session"])].total or ""
            item.total = total = codec.chain(total, item.body)

    def _look_up_last(self) -> None:
        """Look up the last record, and drop the kept counters of sessions if it is not the one that this appender wrote last.

        Another process may have written since, or the last append was rolled back.
        """
        column = "sum" if self._sums else "NULL"
        rows = self._engine.query(f"SELECT seq, {column} FROM record ORDER BY seq DESC LIMIT 1")
        self._last = (int(rows[0][0]), rows[0][1]) if rows else (0, None)
        if self._last != self._kept_at:
            self._kept.clear()
        self._kept_at = None

    def _keep(self) -> None:
        """Store the counters of the sessions, and keep them for the next append."""
        for counters in self._counters.values():
            counters.store(self._engine)
        if not self._sums:  # without checksums `_look_up_last` could not tell whether they are still right
            return
        # Recorders append to the same session repeatedly, so keep its counters instead of reading them each time.
        self._kept = self._kept | self._counters if len(self._kept) < _MAX_SESSIONS else dict(self._counters)
        self._kept_at = self._last

    def _touch(self, session: str) -> SessionCounters:
        counters = self._counters.get(session)
        if counters is None and session in self._kept:
            counters = self._counters[session] = self._kept[session]
        if counters is None:
            counters, _ = batch.session_counters(self._engine, session)
            self._counters[session] = counters
        return counters


def _parts(items: Iterable[EncodedRecord]) -> Iterator[list[EncodedRecord]]:
    """Yield records in parts to write together. Each record of the project is a part of its own."""
    rest = iter(items)
    while taken := list(islice(rest, BATCH)):
        # An event of the project may need the state that the one before it stored, so derive each before the next is written.
        if not any(item.record["session"] == PROJECT for item in taken):
            yield taken
            continue
        part: list[EncodedRecord] = []
        for item in taken:
            if item.record["session"] != PROJECT:
                part.append(item)
                continue
            if part:
                yield part
            part = []
            yield [item]
        if part:
            yield part


class EncodedRecord:
    """A record that is ready to be written.

    Attributes:
        record: the record, masked, without its checksum.
        body: its encoded form, ASCII JSON.
        kind: its kind in stored form.
        id: its identity within its session and kind, see `record_id`.
        moment: its time in seconds since 1970.
        total: the checksum that came with it.
        place: its place in the store from which it is copied, or the offset of its line in a log; else None.
        length: the length of its line in bytes.
        key: the key of its session in the store, once known.
        seq: its place in the store, once it has one.
    """

    __slots__ = ("body", "id", "key", "kind", "length", "moment", "place", "record", "seq", "total")

    def __init__(self, record: Record, body: bytes, total: str | None, place: int | None = None, length: int = 0) -> None:
        kind = record["kind"]
        self.record = record
        self.body = body
        self.kind = storable(kind)
        self.id = record_id(record, body)
        self.moment = parse_time(record.get("ts"))
        self.total = total
        self.place = place
        self.length = length
        self.key = 0
        self.seq = 0


def prepare(record: Record, *, masked: bool, place: int | None = None) -> EncodedRecord:
    """Mask and encode a checked record.

    Raises:
        InvalidInput: JSON can't represent a value, or the record exceeds the length limit.
    """
    total = record.get("sum")
    if total is not None or "sum" in record:
        record = {key: value for key, value in record.items() if key != "sum"}
    return _make(record, codec.encode(record), total, masked=masked, place=place)


def prepare_line(line: Line, *, masked: bool) -> EncodedRecord:
    """Mask a checked record of a log, and encode it if its line is not in the form of our encoder.

    Raises:
        InvalidInput: see `prepare`.
    """
    body = line.body
    # This also counts brackets within texts. At worst a line is encoded again without need.
    if not line.sum_ok or not body.isascii() or body.count(b"{") + body.count(b"[") > codec.MAX_DEPTH:
        body = codec.encode(line.record)
    return _make(line.record, body, line.total or None, masked=masked, place=line.offset, length=line.length)


def _make(record: Record, body: bytes, total: str | None, *, masked: bool, place: int | None, length: int = 0) -> EncodedRecord:
    if masked and (hidden := mask(body)) is not body:
        body, record = hidden, codec.decode(hidden)
    elif _BACKSLASH in body and b"\\ud" in body:  # two surrogates, separate in a Python string, are one letter in JSON
        record = codec.decode(body)
    return EncodedRecord(record, body, total, place, length)


def record_id(record: Record, body: bytes) -> str:
    """Return the identity of a record within its session and kind: its id, its entry's id, or a digest of its content."""
    kind = record["kind"]
    named = record.get("entry") if kind == "result" else record.get("id")
    if isinstance(named, str) and named and kind not in ("session", "sessionEnd"):
        return storable(named)
    return codec.chain("", body)


_DOUBLED = ("entry", "event")


class KnownRecords:
    """Tells new records from known ones.

    Args:
        engine: the engine of the store.
        on_conflict: what to do with a known id that has other content: raise, or keep the first.
        report: gets the counts of known records.
    """

    def __init__(self, engine: Engine, on_conflict: OnConflict, report: AppendResult) -> None:
        self._engine = engine
        self._on_conflict = on_conflict
        self._report = report

    def new(self, items: Sequence[EncodedRecord]) -> list[EncodedRecord]:
        """Return the records that the store does not have, in their order. Of records with the same identity, the first counts.

        Raises:
            Conflict: a record has a known id and other content, and ``on_conflict`` is "raise".
        """
        stored: set[Identity] = set()
        for part in batches(items):
            stored |= self._find_stored({item.id for item in part})
        first: dict[Identity, EncodedRecord] = {}
        for item in items:
            identity = (item.key, item.kind, item.id)
            if identity in stored:
                self._compare(item, self._stored_body(identity))
            elif (earlier := first.setdefault(identity, item)) is not item:
                self._compare(item, earlier.body.decode("ascii"))
        return list(first.values())

    def _find_stored(self, ids: set[str]) -> set[Identity]:
        # Search by id only, the first column of the unique index. The caller compares session and kind.
        names, values = placeholders(sorted(ids), "i")
        rows = self._engine.query(f"SELECT session, kind, id FROM record WHERE id IN ({names})", values)
        return {(int(row[0]), str(row[1]), str(row[2])) for row in rows}

    def _stored_body(self, identity: Identity) -> str:
        key, kind, name = identity
        rows = self._engine.query(
            "SELECT body FROM record WHERE session = :session AND kind = :kind AND id = :id",
            {"session": key, "kind": kind, "id": name},
        )
        return str(rows[0][0])

    def _compare(self, item: EncodedRecord, stored: str) -> None:
        text = item.body.decode("ascii")
        # Usually the bytes are equal. A record that another writer formatted differently is the same record too.
        if stored == text or _canonical(stored) == _canonical(text):
            self._report.known += 1
            return
        if self._on_conflict == "raise":
            raise Conflict(
                f"{item.kind} {item.id!r} of session {item.record['session']!r} is known with other content; "
                "nothing was written",
                "give a new record a new id; records are never changed",
            )
        self._report.changed += 1


class DuplicateTracker:
    """Leaves out entries and events of an append that another session has already, and the results of these entries."""

    def __init__(self, engine: Engine, report: AppendResult) -> None:
        self._engine = engine
        self._report = report
        self._left_out: set[tuple[str, str]] = set()

    def drop_duplicates(self, items: Sequence[EncodedRecord]) -> list[EncodedRecord]:
        """Return the records that are no duplicates, in their order. Those of the former call must have been written."""
        kept: list[EncodedRecord] = []
        for part in batches(items):
            self._sift(part, kept)
        self._report.doubles += len(items) - len(kept)
        return kept

    def _sift(self, part: Sequence[EncodedRecord], kept: list[EncodedRecord]) -> None:
        held: dict[tuple[str, str], set[str]] = {}
        names, values = placeholders(sorted({item.id for item in part if item.kind in _DOUBLED}), "i")
        known = (
            "SELECT record.kind, record.id, session.id FROM record CROSS JOIN session ON session.key = record.session "
            f"WHERE record.id IN ({names}) AND (record.kind = 'entry' OR record.kind = 'event')"
        )
        # PostgreSQL rejects an empty list.
        for kind, name, session in self._engine.query(known, values) if names else ():
            held.setdefault((kind, name), set()).add(session)
        for item in part:
            session = storable(item.record["session"])
            if item.kind == "result":
                # A result is left out with its entry.
                if (session, item.id) not in self._left_out:
                    kept.append(item)
                continue
            if item.kind in _DOUBLED:
                holders = held.setdefault((item.kind, item.id), set())
                if holders - {session}:
                    self._left_out.add((session, item.id))
                    continue
                # From now on the record counts as known, so the same record of another session in this append is a double.
                holders.add(session)
            kept.append(item)


def _canonical(text: str) -> str:
    """Return a JSON text with sorted keys, for comparison. Unlike decoded values, 1, 1.0 and true differ in it."""
    import json

    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:  # a stored body that was changed from outside
        return text
