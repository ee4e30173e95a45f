"""Insert a batch of new records with all rows that follow from them: sessions, processes, entries, events, notes, usage.

Both writers use the handlers of `HANDLERS`; entries, results and events are derived here for appends (`Derivation`), and in
`ctxmgr.store.write.bulk` for blocks of a log.
"""

from __future__ import annotations

from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast
from ctxmgr.store.project_session import EXECUTION, require_not_archived
from ctxmgr.store.row_mapper import load
from ctxmgr.store.text_normalisation import fold, storable
from ctxmgr.types.plain_records import MESSAGE_TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.write.encoded_record import EncodedRecord

_MAX_TOKENS = 2**40  # of one response; more is no count, and sums of such numbers do not fit


SAID_LATER = frozenset({"note", "snapshot", "continuation"})
"""Kinds of records about a session that do not continue it: it does not become the latest one by them."""


class SessionCounters:
    """A session during an append: its counters and its last sum are kept here, and stored once at the end."""

    __slots__ = ("entries", "events", "first", "key", "last", "messages", "processes", "seq", "total")

    def __init__(self, key: int, entries: int = 0, events: int = 0, messages: int = 0, total: str | None = None) -> None:
        self.key = key
        self.entries = entries
        self.events = events
        self.messages = messages
        self.total = total
        self.seq: int | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.processes: set[str] = set()

    def see(self, seq: int, moment: float | None) -> None:
        """Take note of a record that was written."""
        self.seq = seq
        if moment is not None:
            if self.first is None or moment < self.first:
                self.first = moment
            if self.last is None or moment > self.last:
                self.last = moment

    def store(self, engine: Engine) -> None:
        """Write down what was counted."""
        engine.execute(
            "UPDATE session SET entries = :entries, events = :events, messages = :messages, sum = :total, "
            "seq = coalesce(:seq, seq), "
            "first = CASE WHEN first IS NULL OR :first < first THEN coalesce(:first, first) ELSE first END, "
            "last = CASE WHEN last IS NULL OR :last > last THEN coalesce(:last, last) ELSE last END WHERE key = :key",
            {
                "entries": self.entries, "events": self.events, "messages": self.messages, "total": self.total,
                "seq": self.seq, "first": self.first, "last": self.last, "key": self.key,
            },
        )  # fmt: skip


SESSION = "SELECT key, entries, events, messages, sum FROM session WHERE id = :id"
_NEW_SESSION = "INSERT INTO session (id) VALUES (:id) RETURNING key"


def session_counters(engine: Engine, session: str) -> tuple[SessionCounters, bool]:
    """Return a session as it is counted so far, made now if there is none; and whether it was made."""
    name = {"id": storable(session)}
    rows = engine.query(SESSION, name)
    if rows:
        return SessionCounters(*rows[0]), False
    # An archived session has no row any more: only a new one could bring it back.
    require_not_archived(engine, name["id"])
    return SessionCounters(int(engine.query(_NEW_SESSION, name)[0][0])), True


def optional(value: object) -> str | None:
    """Return the text of a name or a number as it is stored, None for anything else."""
    return storable(str(value)) if isinstance(value, str | int) else None


def fold_optional(value: object) -> str | None:
    """Return the text of a name or a number as filters compare it, None for anything else."""
    return fold(str(value)) if isinstance(value, str | int) else None


def remember_process(engine: Engine, seq: int, key: int, process: str, started: str | None) -> None:
    """Remember which process executed the session (FR-026), also where no record says that it began."""
    engine.execute(
        "INSERT INTO process (session, process, seq, started) VALUES (:session, :process, :seq, :ts) "
        "ON CONFLICT (session, process) DO UPDATE SET started = coalesce(process.started, excluded.started)",
        {"session": key, "process": process, "seq": seq, "ts": started},
    )


def record_usage(record: Record) -> tuple[int | None, int | None] | None:
    """Return the tokens that a record says were read and written, or None when it says nothing of them.

    A response of a model is one event; results and finished entries may carry what they used themselves.
    """
    if record["kind"] == "event":
        used: object = record.get("data") if record.get("type") == "usage" else None
    else:
        used = record.get("usage")
    return usage_tokens(used)


def usage_tokens(used: object) -> tuple[int | None, int | None] | None:
    """Return the tokens that a usage names, or None when it names none."""
    if type(used) is not dict:
        return None
    tokens = [cast("dict[str, object]", used).get(name) for name in ("inputTokens", "outputTokens")]
    read, written = (count if type(count) is int and abs(count) < _MAX_TOKENS else None for count in tokens)
    return None if read is None and written is None else (read, written)


def description(record: Record) -> tuple[str | None, str | None, str | None]:
    """Return what a record of kind ``session`` says about it: workflow, source and meta, the last two as JSON."""
    source, meta = (None if record.get(name) is None else fast_json.dumps(record[name]) for name in ("source", "meta"))
    return optional(record.get("workflow")), source, meta


def _session(engine: Engine, seq: int, counters: SessionCounters, record: Record) -> None:
    workflow, source, meta = description(record)
    engine.execute(
        # Each process says once more what session it goes on with: what was said first stays.
        "UPDATE session SET workflow = coalesce(workflow, :workflow), source = coalesce(source, :source), "
        "meta = coalesce(meta, :meta) WHERE key = :key",
        {"workflow": workflow, "source": source, "meta": meta, "key": counters.key},
    )
    remember_process(engine, seq, counters.key, optional(record.get("process")) or "", optional(record.get("ts")))


def _session_end(engine: Engine, seq: int, counters: SessionCounters, record: Record) -> None:
    process = optional(record.get("process"))
    values = {"session": counters.key, "outcome": optional(record.get("outcome")), "process": process}
    # An end that names no process is that of the whole session.
    named = "AND process = :process" if process is not None else ""
    ended = f"UPDATE process SET outcome = :outcome WHERE session = :session {named}"
    if not engine.execute(ended, values):
        # A log may tell of the end of a process that no record names before.
        remember_process(engine, seq, counters.key, process or "", None)
        engine.execute(ended, values)


def note_links(record: Record) -> tuple[list[str], list[str], tuple[str, str] | None]:
    """Return what a note names: entries, tags, and the note that it supersedes together with its own id."""
    former = optional(record.get("supersedes"))
    return (
        _texts(record.get("entries")),
        [fold(tag) for tag in _texts(record.get("tags"))],
        None if former is None else (former, storable(str(record["id"]))),
    )


def _note(engine: Engine, seq: int, counters: SessionCounters, record: Record) -> None:
    entries, tags, succession = note_links(record)
    for entry in entries:
        engine.execute(
            "INSERT INTO note_entry (session, entry, note) VALUES (:session, :entry, :note) ON CONFLICT DO NOTHING",
            {"session": counters.key, "entry": entry, "note": seq},
        )
    for tag in tags:
        engine.execute(
            "INSERT INTO note_tag (session, tag, note) VALUES (:session, :tag, :note) ON CONFLICT DO NOTHING",
            {"session": counters.key, "tag": tag, "note": seq},
        )
    if succession is not None:
        engine.execute(
            "INSERT INTO superseded (session, note, successor) VALUES (:session, :note, :successor) ON CONFLICT DO NOTHING",
            {"session": counters.key, "note": succession[0], "successor": succession[1]},
        )


def _texts(value: object) -> list[str]:
    return [storable(item) for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


HANDLERS: dict[str, Callable[[Engine, int, SessionCounters, Record], None]] = {
    "session": _session,
    "sessionEnd": _session_end,
    "note": _note,
}
"""By kind, what else a record changes; entries, results and events are written together, see `Derivation`."""


_RECORD = "INSERT INTO record (seq, session, kind, id, ts, body, sum) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_LINE = "INSERT OR IGNORE INTO line (seq, session, kind, id, ts, offset, length) VALUES (?, ?, ?, ?, ?, ?, ?)"
_ENTRY = (
    "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVENT = "INSERT INTO event (seq, session, type, agent, entry, after, ts) VALUES (?, ?, ?, ?, ?, ?, ?)"
_USAGE = "INSERT INTO usage (session, seq, input, output) VALUES (?, ?, ?, ?)"
_MILESTONE = "INSERT INTO milestone (session, series, number, seq) VALUES (?, ?, ?, ?)"
# Only an open entry: one that was recorded with its status keeps that.
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
    # One row is there or not: a savepoint would only add two statements.
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
        # First all results, for one may stand before its entry.
        for item, _ in items:
            if item.kind == "result":
                self._results[item.key, item.id] = (item.seq, str(item.record["status"]))
        for item, counters in items:
            kind = item.kind
            if kind == "entry":
                self._entry(item, counters)
            elif kind == "event":
                self._event(item, counters)
            elif kind != "result":
                self.change(item, counters)
                continue
            if (usage := record_usage(item.record)) is not None:
                self.usage.append((item.key, item.seq, *usage))

    def _entry(self, item: EncodedRecord, counters: SessionCounters) -> None:
        record = item.record
        status: Any = record.get("status")
        result: int | None = item.seq
        if status is None:
            result, status = self.find_result(item)
        process = optional(record.get("process"))
        self.entries.append((
            item.seq, item.key, counters.entries, fold(str(record.get("agent", ""))), fold(str(record.get("action", ""))),
            fold_optional(record.get("inputType")), process, item.moment, str(status or "open"), result,
        ))  # fmt: skip
        self._pass("all", counters.entries + counters.events, item)
        counters.entries += 1
        if process and process not in counters.processes:
            counters.processes.add(process)
            self.begin_process(item, process)
        if record.get("action") == EXECUTION:
            from ctxmgr.store.write.project_state import derive_execution

            derive_execution(self._engine, item.seq, record)

    def begin_process(self, item: EncodedRecord, process: str) -> None:
        """Take note of a process that an entry is the first to name."""
        remember_process(self._engine, item.seq, item.key, process, None)

    def change(self, item: EncodedRecord, counters: SessionCounters) -> None:
        """Change what a record of another kind changes."""
        if (handler := HANDLERS.get(item.kind)) is not None:
            handler(self._engine, item.seq, counters, item.record)

    def find_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
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

    def _event(self, item: EncodedRecord, counters: SessionCounters) -> None:
        record = item.record
        type_ = storable(str(record.get("type")))
        self.events.append((
            item.seq, item.key, type_, fold_optional(record.get("agent")),
            optional(record.get("entry")), counters.entries - 1 if counters.entries else None, item.moment,
        ))  # fmt: skip
        self._pass("all", counters.entries + counters.events, item)
        self._pass("event", counters.events, item)
        counters.events += 1
        if type_ in SAID:
            self._pass("message", counters.messages, item)
            counters.messages += 1

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
