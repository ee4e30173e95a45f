"""A block of consecutive log records as rows, before their numbers are known.

Places in a block are counted from 0: of its records, and of the entries and events of each session in it.
"""

from __future__ import annotations

from ctxmgr.store.normalise import fold, storable
from ctxmgr.store.reserved import EXECUTION, PROJECT
from ctxmgr.store.write.batch import SAID
from ctxmgr.store.write.derived_rows import HANDLERS, optional, optional_folded, usage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.write.encoded_record import EncodedRecord

    Row = tuple[Any, ...]
    Told = tuple[str, str, str | None, str]


class SessionRows:
    """What a block holds of one session.

    Attributes:
        records: (place, kind, id, moment, and of what is behind it in its table the rest).
        entries: (place, number, agent, action, input type, process, moment, status, place of the result).
        events: (place, type, agent, entry, entries before it, moment).
        usage: (place, tokens read, tokens written).
        shown: places of entries and events; told: of events; said: of messages.
        asides: (place, process that an entry names or record that changes something else).
        open: by id, number of each entry without a result.
        loose: by id of the entry, (place, status) of each result without its entry.
        processes: that entries named.
    """

    __slots__ = ("asides", "entries", "events", "loose", "open", "processes", "records", "said", "shown", "told", "usage")

    def __init__(self, *packed: Any) -> None:
        (
            self.records, self.entries, self.events, self.usage, self.shown, self.told, self.said, self.asides, self.open,
            self.loose, self.processes,
        ) = packed or ([], [], [], [], [], [], [], [], {}, {}, set())  # fmt: skip

    records: list[Row]
    entries: list[Row]
    events: list[Row]
    usage: list[Row]
    shown: list[int]
    told: list[int]
    said: list[int]
    asides: list[tuple[int, str | Record]]
    open: dict[str, int]
    loose: dict[str, tuple[int, str]]
    processes: set[str]

    def packed(self) -> Row:
        """Return what makes this again."""
        return (
            self.records, self.entries, self.events, self.usage, self.shown, self.told, self.said, self.asides, self.open,
            self.loose, self.processes,
        )  # fmt: skip

    def add(self, place: int, item: EncodedRecord, behind: Row) -> None:
        """Add any record but those that `is_written_alone`; ``behind`` is what its own row ends in."""
        kind, record = item.kind, item.record
        self.records.append((place, kind, item.id, item.moment, *behind))
        if kind == "entry":
            self._add_entry(place, item)
        elif kind == "event":
            type_ = storable(str(record.get("type")))
            agent = optional_folded(record.get("agent"))
            self.add_event((place, type_, agent, optional(record.get("entry")), len(self.entries), item.moment))
        elif kind == "result":
            self.complete(place, item.id, str(record["status"]))
        else:
            if kind in HANDLERS:
                self.asides.append((place, record))
            return
        if (usage := usage_of(record)) is not None:
            self.usage.append((place, *usage))

    def _add_entry(self, place: int, item: EncodedRecord) -> None:
        record = item.record
        status = record.get("status")
        process = optional(record.get("process"))
        self.add_entry(
            item.id,
            (
                place, len(self.entries), fold(str(record.get("agent", ""))), fold(str(record.get("action", ""))),
                optional_folded(record.get("inputType")), process, item.moment,
                "open" if status is None else str(status or "open"), None if status is None else place,
            ),
        )  # fmt: skip

    def add_entry(self, name: str, row: Row) -> None:
        """Add the row of an entry, and join it with its result if that came before."""
        place, number, *_, process, _, _, result = row
        if result is None:
            if (found := self.loose.pop(name, None)) is not None:
                row = (*row[:7], found[1], found[0])
            else:
                self.open[name] = number
        self.entries.append(row)
        self.shown.append(place)
        if process and process not in self.processes:
            self.processes.add(process)
            self.asides.append((place, process))

    def add_event(self, row: Row) -> None:
        """Add the row of an event."""
        self.events.append(row)
        self.shown.append(row[0])
        self.told.append(row[0])
        if row[1] in SAID:
            self.said.append(row[0])

    def complete(self, place: int, name: str, status: str) -> None:
        """Join a result with its entry, or keep it for the entry."""
        number = self.open.pop(name, None)
        if number is None:
            self.loose[name] = (place, status)
        else:
            self.entries[number] = (*self.entries[number][:7], status, place)


class RowBatch:
    """A range of a log, from a line's begin to another's.

    Attributes:
        start: of the range in the file; end: behind its last line end.
        before: the sum before the range; after: the one behind it.
        count: of records.
        damage: (offset, length, reason) of what holds none, or no sound one.
        told: for a store, (kind, action or type, status, id of the entry) of each record, as it was before it was masked.
        follows: for a store, whether the sums of the records are those that follow from ``before`` and their bodies.
        parts: by session, in the order in which they come first; None when the range is to be read line by line.
    """

    __slots__ = ("after", "before", "count", "damage", "end", "follows", "parts", "start", "told")

    def __init__(self, start: int, before: str) -> None:
        self.start = self.end = start
        self.before = self.after = before
        self.count = 0
        self.damage: list[tuple[int, int, str]] = []
        self.told: list[Told] = []
        self.follows = True
        self.parts: dict[str, SessionRows] | None = {}

    def part(self, session: str) -> SessionRows:
        """Return the part of a session, made when there is none yet."""
        parts = self.parts
        assert parts is not None
        found = parts.get(session)
        if found is None:
            found = parts[session] = SessionRows()
        return found

    def packed(self) -> Row:
        """Return this as plain values."""
        parts = None if self.parts is None else {name: part.packed() for name, part in self.parts.items()}
        return self.start, self.end, self.before, self.after, self.count, self.damage, self.told, self.follows, parts

    @classmethod
    def unpacked(cls, values: Row) -> RowBatch:
        """Return what was packed."""
        block = cls(values[0], values[2])
        _, block.end, _, block.after, block.count, block.damage, block.told, block.follows, parts = values
        block.parts = None if parts is None else {name: SessionRows(*part) for name, part in parts.items()}
        return block


def is_written_alone(record: Record) -> bool:
    """Whether a record changes more than its own session: it is written alone, where it stands."""
    return record["session"] == PROJECT or (record["kind"] == "entry" and record.get("action") == EXECUTION)


def import_facts(record: Record) -> Told:
    """Return kind, action or type, status and id of the entry of any record, as an import counts it."""
    kind, status = str(record.get("kind")), record.get("status")
    name = record.get("action" if kind == "entry" else "type")
    return kind, str(name), None if status is None else str(status), str(record.get("entry" if kind == "result" else "id"))
