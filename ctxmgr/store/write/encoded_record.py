"""Prepare records for storing: mask and encode them, and compare them with the stored ones."""

from __future__ import annotations

from ctxmgr.errors import Conflict
from ctxmgr.log import codec
from ctxmgr.log.ids import parse_time
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.store.row_mapper import batches, placeholders
from ctxmgr.store.text_normalisation import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line
    from ctxmgr.store.engine.interface import Engine, OnConflict
    from ctxmgr.store.write.append import AppendResult

    Identity = tuple[int, str, str]


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
    elif b"\\ud" in body:  # two surrogates, separate in a Python string, are one letter in JSON
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
