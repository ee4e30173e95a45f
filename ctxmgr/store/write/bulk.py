"""Blocks of consecutive log records as rows, and their insertion into a store: all of a block or nothing.

Numbers in a block count from 0: the places of its records, and the entries and events of each session in it. A block is
built, often in a second process, before its places in the store are known.
"""

from __future__ import annotations

from ctxmgr.log.codec import chain
from ctxmgr.store.project_session import EXECUTION, PROJECT
from ctxmgr.store.row_mapper import batches, load, placeholders
from ctxmgr.store.text_normalisation import fold, storable
from ctxmgr.store.write import batch, deferred_indexes
from ctxmgr.store.write.batch import (
    HANDLERS,
    LATE,
    RESULT,
    SAID,
    STEP,
    SessionCounters,
    fold_optional,
    optional,
    record_usage,
    remember_process,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.write.append import EncodedRecord

    Row = tuple[Any, ...]
    Told = tuple[str, str, str | None, str]


class SessionRows:
    """The rows of one session in a block.

    Attributes:
        records: (place, kind, id, moment, and the other columns of its table).
        entries: (place, number, agent, action, input type, process, moment, status, place of the result).
        events: (place, type, agent, entry, number of entries before it, moment).
        usage: (place, input tokens, output tokens).
        shown: the places of entries and events.
        told: the places of events.
        said: the places of messages.
        asides: (place, new process that an entry names, or a record for `HANDLERS`).
        open: the number of each entry without a result, by its id.
        loose: (place, status) of each result without its entry, by the entry's id.
        processes: the processes that entries named.
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

    def pack(self) -> Row:
        """Return the arguments that build this object again."""
        return (
            self.records, self.entries, self.events, self.usage, self.shown, self.told, self.said, self.asides, self.open,
            self.loose, self.processes,
        )  # fmt: skip

    def add(self, place: int, item: EncodedRecord, behind: Row) -> None:
        """Add any record except those of `is_written_alone`; ``behind`` holds the last columns of its row."""
        kind, record = item.kind, item.record
        self.records.append((place, kind, item.id, item.moment, *behind))
        if kind == "entry":
            self._add_entry(place, item)
        elif kind == "event":
            type_ = storable(str(record.get("type")))
            agent = fold_optional(record.get("agent"))
            self.add_event((place, type_, agent, optional(record.get("entry")), len(self.entries), item.moment))
        elif kind == "result":
            self.complete(place, item.id, str(record["status"]))
        else:
            if kind in HANDLERS:
                self.asides.append((place, record))
            return
        if (usage := record_usage(record)) is not None:
            self.usage.append((place, *usage))

    def _add_entry(self, place: int, item: EncodedRecord) -> None:
        record = item.record
        status = record.get("status")
        process = optional(record.get("process"))
        self.add_entry(
            item.id,
            (
                place, len(self.entries), fold(str(record.get("agent", ""))), fold(str(record.get("action", ""))),
                fold_optional(record.get("inputType")), process, item.moment,
                "open" if status is None else str(status or "open"), None if status is None else place,
            ),
        )  # fmt: skip

    def add_entry(self, name: str, row: Row) -> None:
        """Add the row of an entry, and join it with its result if the result came before."""
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
        """Join a result with its entry, or keep it until the entry comes."""
        number = self.open.pop(name, None)
        if number is None:
            self.loose[name] = (place, status)
        else:
            self.entries[number] = (*self.entries[number][:7], status, place)


class RowBatch:
    """A range of whole lines of a log.

    Attributes:
        start: the offset of the range in the file.
        end: the offset behind its last line end.
        before: the checksum before the range.
        after: the checksum at its end.
        count: the number of records.
        damage: (offset, length, reason) of lines without a valid record.
        told: for a store, the `import_facts` of each record, before it was masked.
        follows: for a store, whether the records' checksums continue the chain from ``before`` and match their bodies.
        parts: the rows by session, in the order of appearance; None if the range must be read line by line.
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
        """Return the rows of a session, empty ones if it is new."""
        parts = self.parts
        assert parts is not None
        found = parts.get(session)
        if found is None:
            found = parts[session] = SessionRows()
        return found

    def pack(self) -> Row:
        """Return this as plain values."""
        parts = None if self.parts is None else {name: part.pack() for name, part in self.parts.items()}
        return self.start, self.end, self.before, self.after, self.count, self.damage, self.told, self.follows, parts

    @classmethod
    def unpack(cls, values: Row) -> RowBatch:
        """Return the block of packed values."""
        block = cls(values[0], values[2])
        _, block.end, _, block.after, block.count, block.damage, block.told, block.follows, parts = values
        block.parts = None if parts is None else {name: SessionRows(*part) for name, part in parts.items()}
        return block


def is_written_alone(record: Record) -> bool:
    """Whether a record changes more than its own session, so that it must be written alone, in its order."""
    return record["session"] == PROJECT or (record["kind"] == "entry" and record.get("action") == EXECUTION)


def import_facts(record: Record) -> Told:
    """Return (kind, action or type, status, id of the entry) of any record, for the counts of an import."""
    kind, status = str(record.get("kind")), record.get("status")
    name = record.get("action" if kind == "entry" else "type")
    return kind, str(name), None if status is None else str(status), str(record.get("entry" if kind == "result" else "id"))


# The offsets that are added to numbers are part of the SQL text, because they are the same for all rows of a block.
_LINES = "INSERT OR IGNORE INTO line (seq, session, kind, id, ts, offset, length) VALUES (? + {base}, {key}, ?, ?, ?, ?, ?)"
_RECORDS = "INSERT OR IGNORE INTO record (seq, session, kind, id, ts, body, sum) VALUES (? + {base}, {key}, ?, ?, ?, ?, ?)"
_ENTRIES = (
    "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
    "VALUES (? + {base}, {key}, ? + {entries}, ?, ?, ?, ?, ?, ?, ? + {base})"
)
_EVENTS = (
    "INSERT INTO event (seq, session, type, agent, entry, after, ts) "
    "VALUES (? + {base}, {key}, ?, ?, ?, nullif(? + {entries}, 0) - 1, ?)"
)
_USAGE = "INSERT INTO usage (session, seq, input, output) VALUES ({key}, ? + {base}, ?, ?)"
_MILESTONES = "INSERT INTO milestone (session, series, number, seq) VALUES (?, ?, ?, ?)"


class BulkWriter:
    """Writes blocks of a log. The caller holds a transaction, and calls `flush` before it ends.

    Args:
        engine: the engine of the store.
        masked: None for the index of the log; for a store, whether its secrets are masked.
        deferring: the secondary indexes do not exist yet, see `deferred_indexes`, so known records are found only later.
    """

    def __init__(self, engine: Engine, masked: bool | None = None, *, deferring: bool = False) -> None:
        self.masked = masked
        self._deferring = deferring
        self._engine = engine
        self._counters: dict[str, SessionCounters] = {}
        self._last: int | None = None

    def write(self, block: RowBatch) -> bool:
        """Write a block. Return False and write nothing if a record in it is known or repeated."""
        assert block.parts is not None
        engine, new = self._engine, list[str]()
        base = self.number + 1
        # The unique index does not exist yet. Find repeats within a block here; creating the index finds the others.
        if self._deferring and not _has_no_repeats(block):
            return False
        sql = _LINES if self.masked is None else _RECORDS
        engine.execute("SAVEPOINT block")
        parts = [(part, self._touch(session, new)) for session, part in block.parts.items()]
        # A log has one chain of checksums, a store has one for each session. The log's checksums are valid in the store only if
        # the block has one session and continues from its last record in the store.
        if self.masked is not None and not (block.follows and len(parts) == 1 and (parts[0][1].total or "") == block.before):
            for part, counters in parts:
                _seal(part, counters.total or "")
        complete = all(
            engine.many(sql.format(base=base, key=counters.key), part.records) == len(part.records) for part, counters in parts
        )
        if not complete:
            engine.execute("ROLLBACK TO block")
            # The rollback removed the rows of new sessions, so the next block must insert them again.
            for session in new:
                del self._counters[session]
        engine.execute("RELEASE block")
        if not complete:
            return False
        for part, counters in parts:
            self._derive(part, counters, base)
            if self.masked is not None:
                counters.total = part.records[-1][5]
        self._last = self.number + block.count
        return True

    @property
    def number(self) -> int:
        """The place of the last record."""
        if self._last is None:
            self._last = int(self._engine.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])
        return self._last

    def flush(self) -> None:
        """Store the counters of sessions and drop them, so that another writer can continue."""
        for counters in self._counters.values():
            counters.store(self._engine)
        self._counters.clear()
        self._last = None

    def _touch(self, session: str, new: list[str]) -> SessionCounters:
        counters = self._counters.get(session)
        if counters is None:
            counters, made = batch.session_counters(self._engine, session)
            if made:
                new.append(session)
            self._counters[session] = counters
        return counters

    def _derive(self, part: SessionRows, counters: SessionCounters, base: int) -> None:
        engine, key, before = self._engine, counters.key, counters.entries
        # Without indexes a result can't be found by its entry. `deferred_indexes.complete` joins them later.
        if part.open and not self._deferring:
            self._join_with_earlier_results(part, key, base)
        for sql, rows in ((_ENTRIES, part.entries), (_EVENTS, part.events), (_USAGE, part.usage)):
            if rows:
                engine.many(sql.format(base=base, key=key, entries=before), rows)
        if milestones := [
            (key, series, number, places[number - start] + base)
            for series, start, places in (
                ("all", before + counters.events, part.shown), ("event", counters.events, part.told),
                ("message", counters.messages, part.said),
            )
            # Begin at a multiple of `STEP`, so milestones are at the same rows however the log was cut into blocks.
            for number in range(start + -start % STEP, start + len(places), STEP)
        ]:  # fmt: skip
            engine.many(_MILESTONES, milestones)
        counters.entries += len(part.entries)
        counters.events += len(part.events)
        counters.messages += len(part.said)
        self._see(part, counters, base)
        for place, aside in part.asides:
            if isinstance(aside, str):
                if aside not in counters.processes:
                    counters.processes.add(aside)
                    remember_process(engine, base + place, key, aside, None)
            else:
                HANDLERS[aside["kind"]](engine, base + place, counters, aside)
        if part.loose and self._deferring:
            deferred_indexes.keep_loose(
                engine, [(key, name, base + place, status) for name, (place, status) in part.loose.items()]
            )
        elif part.loose:
            engine.many(RESULT, [(status, base + place, key, key, name) for name, (place, status) in part.loose.items()])

    @staticmethod
    def _see(part: SessionRows, counters: SessionCounters, base: int) -> None:
        moments = [row[3] for row in part.records if row[3] is not None and row[1] not in batch.SAID_LATER]
        last = base + part.records[-1][0]
        # Records may come in another order than their times.
        counters.see(last, min(moments, default=None))
        counters.see(last, max(moments, default=None))

    def _join_with_earlier_results(self, part: SessionRows, key: int, base: int) -> None:
        for names in batches(list(part.open)):
            marks, values = placeholders(names, "i")
            found = self._engine.query(
                f"SELECT id FROM record WHERE id IN ({marks}) AND kind = 'result' AND session = {key:d}", values
            )
            for (name,) in found:
                seq, body = self._engine.query(LATE, {"session": key, "id": name})[0]
                number = part.open.pop(name)
                status = str(load(body).get("status"))
                # The statement adds the base to every place of a result, also to one stored before, so subtract it here.
                part.entries[number] = (*part.entries[number][:7], status, int(seq) - base)


def _has_no_repeats(block: RowBatch) -> bool:
    """Whether no record is repeated within a block."""
    return all(len({row[1:3] for row in part.records}) == len(part.records) for part in (block.parts or {}).values())


def _seal(part: SessionRows, total: str) -> None:
    """Set the checksums of a session's records, continuing the chain from ``total``."""
    for number, row in enumerate(part.records):
        total = chain(total, row[4].encode("ascii"))
        part.records[number] = (*row[:5], total)
