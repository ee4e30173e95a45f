"""A record ready to be stored: masked, encoded, with its identity."""

from __future__ import annotations

from ctxmgr.log import codec
from ctxmgr.log.ids import parse_time
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.store.normalise import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line


class EncodedRecord:
    """A record that can be written.

    Attributes:
        record: what is written, masked, without its sum.
        body: its spelling, ASCII JSON.
        kind: as it is stored.
        id: what makes it itself within its session and kind.
        moment: its time, in seconds since 1970.
        total: the sum that it brought along.
        place: its number in the log that it is a copy of, or where its line begins in a file; None elsewhere.
        length: of its line, in bytes.
        key: of its session in the store, once that is known.
        seq: its number in the store, once it has one.
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


def prepared(record: Record, *, masked: bool, place: int | None = None) -> EncodedRecord:
    """Make a checked record ready.

    Raises:
        InvalidInput: a value that JSON can't hold, or a record over the length limit.
    """
    total = record.get("sum")
    if total is not None or "sum" in record:
        record = {key: value for key, value in record.items() if key != "sum"}
    return _made(record, codec.encode(record), total, masked=masked, place=place)


def prepared_line(line: Line, *, masked: bool) -> EncodedRecord:
    """Make a checked record of a log ready: as it is spelled there, where that is how it would be written.

    Raises:
        InvalidInput: as `prepared`.
    """
    body = line.body
    if not line.sum_ok or not body.isascii() or body.count(b"{") + body.count(b"[") > codec.MAX_DEPTH:
        body = codec.encode(line.record)
    return _made(line.record, body, line.total or None, masked=masked, place=line.offset, length=line.length)


def _made(record: Record, body: bytes, total: str | None, *, masked: bool, place: int | None, length: int = 0) -> EncodedRecord:
    if masked and (hidden := mask(body)) is not body:
        body, record = hidden, codec.decode(hidden)
    elif b"\\ud" in body:  # two halves of a letter, apart in Python, are one letter in JSON
        record = codec.decode(body)
    return EncodedRecord(record, body, total, place, length)


def record_id(record: Record, body: bytes) -> str:
    """Return what makes a record itself within its session and kind: its id, its entry's id, or its content."""
    kind = record["kind"]
    named = record.get("entry") if kind == "result" else record.get("id")
    if isinstance(named, str) and named and kind not in ("session", "sessionEnd"):
        return storable(named)
    return codec.chain("", body)
