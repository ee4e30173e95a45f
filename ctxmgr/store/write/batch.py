"""Insert a batch of new records with all rows that follow from them."""

from __future__ import annotations

from ctxmgr.store.normalise import fold, storable
from ctxmgr.store.reserved import EXECUTION
from ctxmgr.store.row_mapper import load
from ctxmgr.store.write.derived_rows import HANDLERS, optional, optional_folded, remember_process, usage_of
from ctxmgr.types.plain_records import MESSAGE_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.write.derived_rows import SessionCounters
    from ctxmgr.store.write.encoded_record import EncodedRecord

_RECORD = "INSERT INTO record (seq, session, kind, id, ts, body, sum) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_LINE = "INSERT OR IGNORE INTO line (seq, session, kind, id, ts, offset, length) VALUES (?, ?, ?, ?, ?, ?, ?)"
_ENTRY = (
    "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVENT = "INSERT INTO event (seq, session, type, agent, entry, after, ts) VALUES (?, ?, ?, ?, ?, ?, ?)"
_USAGE = "INSERT INTO usage (session, seq, input, output) VALUES (?, ?, ?, ?)"
_MILESTONE = "INSERT INTO milestone (session, series, number, seq) VALUES (?, ?, ?, ?)"
RESULT = (
    "UPDATE entry SET status = ?, result = ? WHERE status = 'open' AND session = ? AND seq = "
    "(SELECT seq FROM record WHERE session = ? AND kind = 'entry' AND id = ?)"
)
STEP = 128
"""Every how many rows of a series a milestone stands: a page reads so many places at most before its own."""

SAID = frozenset(MESSAGE_TYPES)
LATE = "SELECT seq, body FROM record WHERE session = :session AND kind = 'result' AND id = :id"


def insert_records(engine: Engine, items: Sequence[EncodedRecord]) -> bool:
    """Write the rows of records that have their numbers; return whether all are new, and write none if one is not."""
    return _all_or_none(
        engine,
        _RECORD,
        [(item.seq, item.key, item.kind, item.id, item.moment, item.body.decode("ascii"), item.total) for item in items],
    )


def insert_lines(engine: Engine, items: Sequence[EncodedRecord]) -> bool:
    """Write down where the lines of records that have their numbers lie in a log; else as `insert_records`."""
    return _all_or_none(
        engine, _LINE, [(item.seq, item.key, item.kind, item.id, item.moment, item.place, item.length) for item in items]
    )


def _all_or_none(engine: Engine, sql: str, rows: list[tuple[Any, ...]]) -> bool:
    if len(rows) == 1:
        return engine.many(sql, rows) == 1
    engine.execute("SAVEPOINT batch")
    complete = engine.many(sql, rows) == len(rows)
    if not complete:
        engine.execute("ROLLBACK TO batch")
    engine.execute("RELEASE batch")
    return complete


def derive_rows(engine: Engine, items: Sequence[tuple[EncodedRecord, SessionCounters]], *, in_order: bool = True) -> None:
    """Write what follows from new records, in their order; call it when their own rows are there.

    Records of a session that do not come in the order of their places get no milestones: these would be wrong soon.
    """
    derivation = Derivation(engine, in_order=in_order)
    derivation.add(items)
    derivation.write()


class Derivation:
    """The rows that follow from records.

    Attributes:
        entries, events, usage: rows of these tables.
    """

    def __init__(self, engine: Engine, *, in_order: bool) -> None:
        self._engine = engine
        self._in_order = in_order
        self._milestones: list[tuple[int, str, int, int]] = []
        self.entries: list[tuple[Any, ...]] = []
        self.events: list[tuple[Any, ...]] = []
        self.usage: list[tuple[Any, ...]] = []
        self._results: dict[tuple[int, str], tuple[int, str]] = {}
        self._completed: set[tuple[int, str]] = set()

    def add(self, items: Sequence[tuple[EncodedRecord, SessionCounters]]) -> None:
        """Derive rows from records, in their order."""
        for item, _ in items:
            if item.kind == "result":
                self._results[item.key, item.id] = (item.seq, str(item.record["status"]))
        for item, touched in items:
            kind = item.kind
            if kind == "entry":
                self._entry(item, touched)
            elif kind == "event":
                self._event(item, touched)
            elif kind != "result":
                handler = HANDLERS.get(kind)
                if handler is not None:
                    handler(self._engine, item.seq, touched, item.record)
                continue
            if (usage := usage_of(item.record)) is not None:
                self.usage.append((item.key, item.seq, *usage))

    def _entry(self, item: EncodedRecord, touched: SessionCounters) -> None:
        record = item.record
        status: Any = record.get("status")
        result: int | None = item.seq
        if status is None:
            result, status = self.result_of(item)
        process = optional(record.get("process"))
        self.entries.append((
            item.seq, item.key, touched.entries, fold(str(record.get("agent", ""))), fold(str(record.get("action", ""))),
            optional_folded(record.get("inputType")), process, item.moment, str(status or "open"), result,
        ))  # fmt: skip
        self._pass("all", touched.entries + touched.events, item)
        touched.entries += 1
        if process and process not in touched.processes:
            touched.processes.add(process)
            self.begin_process(item, process)
        if record.get("action") == EXECUTION:
            from ctxmgr.store.write.project_state import derive_execution

            derive_execution(self._engine, item.seq, record)

    def begin_process(self, item: EncodedRecord, process: str) -> None:
        """Take note of a process that an entry is the first to name."""
        remember_process(self._engine, item.seq, item.key, process, None)

    def result_of(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        """Return place and status of the result of an entry, if it is there: among these records, or before its entry."""
        identity = (item.key, item.id)
        found = self._results.get(identity)
        if found is not None:
            self._completed.add(identity)
            return found
        return self.stored_result(item)

    def stored_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        """Return place and status of the result of an entry that was there before these records."""
        rows = self._engine.query(LATE, {"session": item.key, "id": item.id})
        return (int(rows[0][0]), load(rows[0][1]).get("status")) if rows else (None, None)

    def _event(self, item: EncodedRecord, touched: SessionCounters) -> None:
        record = item.record
        type_ = storable(str(record.get("type")))
        self.events.append((
            item.seq, item.key, type_, optional_folded(record.get("agent")),
            optional(record.get("entry")), touched.entries - 1 if touched.entries else None, item.moment,
        ))  # fmt: skip
        self._pass("all", touched.entries + touched.events, item)
        self._pass("event", touched.events, item)
        touched.events += 1
        if type_ in SAID:
            self._pass("message", touched.messages, item)
            touched.messages += 1

    def _pass(self, series: str, number: int, item: EncodedRecord) -> None:
        """Set a milestone where one stands, at the row that has this many of its series before it."""
        if number % STEP == 0 and self._in_order:
            self._milestones.append((item.key, series, number, item.seq))

    def late_results(self) -> list[tuple[str, int, int, str]]:
        """Return (status, place, session, id) of the results whose entries are not among these records."""
        return [
            (status, seq, key, name)
            for (key, name), (seq, status) in self._results.items()
            if (key, name) not in self._completed
        ]  # fmt: skip

    def write(self) -> None:
        """Write the rows."""
        if self.entries:
            self._engine.many(_ENTRY, self.entries)
        if self.events:
            self._engine.many(_EVENT, self.events)
        if self.usage:
            self._engine.many(_USAGE, self.usage)
        if self._milestones:
            self._engine.many(_MILESTONE, self._milestones)
        if late := self.late_results():
            self._engine.many(RESULT, [(status, place, key, key, name) for status, place, key, name in late])
