"""Insert a batch of new records with all rows derived from them: sessions, processes, entries, events, notes, usage.

Both writers use `HANDLERS`. Rows of entries, results and events are derived here for appends (`Derivation`), and in
`ctxmgr.store.write.bulk` for blocks of a log.
"""

from __future__ import annotations

from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast, json_texts
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
    from ctxmgr.store.write.append import EncodedRecord

_MAX_TOKENS = 2**40  # of one response; a larger number is not a plausible count, and sums of such numbers would overflow


SAID_LATER = frozenset({"note", "snapshot", "continuation"})
"""Kinds of records about a session that do not continue it, and so do not make it the latest one."""


class SessionCounters:
    """The counters and the last checksum of a session during an append, stored once at the end."""

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
        """Note the place and the time of a record that was written."""
        self.seq = seq
        if moment is not None:
            if self.first is None or moment < self.first:
                self.first = moment
            if self.last is None or moment > self.last:
                self.last = moment

    def store(self, engine: Engine) -> None:
        """Store the counters in the session's row."""
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
    """Return the counters of a session, and whether it is new. Insert its row if it is."""
    name = {"id": storable(session)}
    rows = engine.query(SESSION, name)
    if rows:
        return SessionCounters(*rows[0]), False
    # An archived session has no row, so only a session that looks new can be an archived one.
    require_not_archived(engine, name["id"])
    return SessionCounters(int(engine.query(_NEW_SESSION, name)[0][0])), True


def optional(value: object) -> str | None:
    """Return the stored form of a name or a number, None for anything else."""
    return storable(str(value)) if isinstance(value, str | int) else None


def fold_optional(value: object) -> str | None:
    """Return a name or a number in the form that filters compare, None for anything else."""
    return fold(str(value)) if isinstance(value, str | int) else None


def entry_names(record: Record) -> tuple[str, str, str | None, str | None]:
    """Return the stored agent, action, type of the input and process of an entry."""
    return (
        fold(str(record.get("agent", ""))), fold(str(record.get("action", ""))),
        fold_optional(record.get("inputType")), optional(record.get("process")),
    )  # fmt: skip


def event_names(record: Record) -> tuple[str, str | None, str | None]:
    """Return the stored type and agent of an event, and the entry that it is about."""
    return storable(str(record.get("type"))), fold_optional(record.get("agent")), optional(record.get("entry"))


def remember_process(engine: Engine, seq: int, key: int, process: str, started: str | None) -> None:
    """Store which process executed the session (FR-026), even if no record says that it began."""
    engine.execute(
        "INSERT INTO process (session, process, seq, started) VALUES (:session, :process, :seq, :ts) "
        "ON CONFLICT (session, process) DO UPDATE SET started = coalesce(process.started, excluded.started)",
        {"session": key, "process": process, "seq": seq, "ts": started},
    )


def record_usage(record: Record) -> tuple[int | None, int | None] | None:
    """Return the input and output tokens that a record reports, or None if it reports none.

    The usage of a model's response is an event. Results and finished entries may report a usage of their own.
    """
    if record["kind"] == "event":
        used: object = record.get("data") if record.get("type") == "usage" else None
    else:
        used = record.get("usage")
    return usage_tokens(used)


def usage_tokens(used: object) -> tuple[int | None, int | None] | None:
    """Return the input and output tokens of a usage, or None if it has neither."""
    if type(used) is not dict:
        return None
    tokens = [cast("dict[str, object]", used).get(name) for name in ("inputTokens", "outputTokens")]
    read, written = (count if type(count) is int and abs(count) < _MAX_TOKENS else None for count in tokens)
    return None if read is None and written is None else (read, written)


def description(record: Record) -> tuple[str | None, str | None, str | None]:
    """Return the workflow, source and meta of a record of kind ``session``, the last two as JSON."""
    source, meta = (None if record.get(name) is None else fast_json.dumps(record[name]) for name in ("source", "meta"))
    return optional(record.get("workflow")), source, meta


def _session(engine: Engine, seq: int, counters: SessionCounters, record: Record) -> None:
    workflow, source, meta = description(record)
    engine.execute(
        # Each process that continues a session describes it again. The first description stays.
        "UPDATE session SET workflow = coalesce(workflow, :workflow), source = coalesce(source, :source), "
        "meta = coalesce(meta, :meta) WHERE key = :key",
        {"workflow": workflow, "source": source, "meta": meta, "key": counters.key},
    )
    remember_process(engine, seq, counters.key, optional(record.get("process")) or "", optional(record.get("ts")))


def _session_end(engine: Engine, seq: int, counters: SessionCounters, record: Record) -> None:
    process = optional(record.get("process"))
    values = {"session": counters.key, "outcome": optional(record.get("outcome")), "process": process}
    # An end without a process is the end of the whole session.
    named = "AND process = :process" if process is not None else ""
    ended = f"UPDATE process SET outcome = :outcome WHERE session = :session {named}"
    if not engine.execute(ended, values):
        # A log may record the end of a process that no earlier record names.
        remember_process(engine, seq, counters.key, process or "", None)
        engine.execute(ended, values)


def note_links(record: Record) -> tuple[list[str], list[str], tuple[str, str] | None]:
    """Return a note's entries, its tags, and (superseded note, own id) or None."""
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
    return [storable(item) for item in json_texts(value)]


HANDLERS: dict[str, Callable[[Engine, int, SessionCounters, Record], None]] = {
    "session": _session,
    "sessionEnd": _session_end,
    "note": _note,
}
"""The handler for each kind of record that changes other tables, except entries, results and events; see `Derivation`."""


_RECORD = "INSERT INTO record (seq, session, kind, id, ts, body, sum) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_LINE = "INSERT OR IGNORE INTO line (seq, session, kind, id, ts, offset, length) VALUES (?, ?, ?, ?, ?, ?, ?)"
_ENTRY = (
    "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVENT = "INSERT INTO event (seq, session, type, agent, entry, after, ts) VALUES (?, ?, ?, ?, ?, ?, ?)"
_USAGE = "INSERT INTO usage (session, seq, input, output) VALUES (?, ?, ?, ?)"
_MILESTONE = "INSERT INTO milestone (session, series, number, seq) VALUES (?, ?, ?, ?)"
# Only an open entry is updated. One that was recorded with its status keeps it.
RESULT = (
    "UPDATE entry SET status = ?, result = ? WHERE status = 'open' AND session = ? AND seq = "
    "(SELECT seq FROM record WHERE session = ? AND kind = 'entry' AND id = ?)"
)
STEP = 128
"""Number of rows from one milestone of a series to the next. A page reads at most this many places before its own."""

SAID = frozenset(MESSAGE_TYPES)
LATE = "SELECT seq, body FROM record WHERE session = :session AND kind = 'result' AND id = :id"


def insert_records(engine: Engine, items: Sequence[EncodedRecord]) -> bool:
    """Insert the rows of numbered records. Return whether all are new; insert none if one is not."""
    return _all_or_none(
        engine,
        _RECORD,
        [(item.seq, item.key, item.kind, item.id, item.moment, item.body.decode("ascii"), item.total) for item in items],
    )


def insert_lines(engine: Engine, items: Sequence[EncodedRecord]) -> bool:
    """Insert the offsets of numbered records in a log. Otherwise like `insert_records`."""
    return _all_or_none(
        engine, _LINE, [(item.seq, item.key, item.kind, item.id, item.moment, item.place, item.length) for item in items]
    )


def _all_or_none(engine: Engine, sql: str, rows: list[tuple[Any, ...]]) -> bool:
    # A single row needs no savepoint, which would only add two statements.
    if len(rows) == 1:
        return engine.many(sql, rows) == 1
    engine.execute("SAVEPOINT batch")
    complete = engine.many(sql, rows) == len(rows)
    if not complete:
        engine.execute("ROLLBACK TO batch")
    engine.execute("RELEASE batch")
    return complete


def derive_rows(engine: Engine, items: Sequence[tuple[EncodedRecord, SessionCounters]], *, in_order: bool = True) -> None:
    """Insert the rows derived from new records, in their order. The records' own rows must be there.

    If the records do not come in the order of their places, they get no milestones, which would soon be wrong.
    """
    derivation = Derivation(engine, in_order=in_order)
    derivation.add(items)
    derivation.write()


class Derivation:
    """The rows derived from records.

    Attributes:
        entries, events, usage: the rows of these tables.
    """

    def __init__(self, engine: Engine, *, in_order: bool) -> None:
        self._engine = engine
        self._in_order = in_order
        self._milestones: list[tuple[int, str, int, int]] = []
        self.entries: list[tuple[Any, ...]] = []
        self.events: list[tuple[Any, ...]] = []
        self.usage: list[tuple[Any, ...]] = []
        self._names: dict[tuple[object, ...], tuple[str, str, str | None, str | None]] = {}
        self._results: dict[tuple[int, str], tuple[int, str]] = {}
        self._completed: set[tuple[int, str]] = set()

    def add(self, items: Sequence[tuple[EncodedRecord, SessionCounters]]) -> None:
        """Derive rows from records, in their order."""
        # First all results, because a result may come before its entry.
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
            if (kind == "event" or "usage" in item.record) and (usage := record_usage(item.record)) is not None:
                self.usage.append((item.key, item.seq, *usage))

    def _entry(self, item: EncodedRecord, counters: SessionCounters) -> None:
        record = item.record
        status: Any = record.get("status")
        result: int | None = item.seq
        if status is None:
            result, status = self.find_result(item)
        given = (record.get("agent"), record.get("action"), record.get("inputType"), record.get("process"))
        if (names := self._names.get(given)) is None:  # many entries have the same
            names = self._names[given] = entry_names(record)
        agent, action, input_type, process = names
        self.entries.append((
            item.seq, item.key, counters.entries, agent, action, input_type, process, item.moment,
            str(status or "open"), result,
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
        """Store a process that this entry is the first to name."""
        remember_process(self._engine, item.seq, item.key, process, None)

    def change(self, item: EncodedRecord, counters: SessionCounters) -> None:
        """Call the handler of a record that is not an entry, result or event."""
        if (handler := HANDLERS.get(item.kind)) is not None:
            handler(self._engine, item.seq, counters, item.record)

    def find_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        """Return place and status of an entry's result, among these records or stored before; (None, None) without one."""
        identity = (item.key, item.id)
        found = self._results.get(identity)
        if found is not None:
            self._completed.add(identity)
            return found
        return self.stored_result(item)

    def stored_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        """Return place and status of an entry's result that was stored before; (None, None) without one."""
        rows = self._engine.query(LATE, {"session": item.key, "id": item.id})
        return (int(rows[0][0]), load(rows[0][1]).get("status")) if rows else (None, None)

    def _event(self, item: EncodedRecord, counters: SessionCounters) -> None:
        record = item.record
        type_, agent, about = event_names(record)
        self.events.append((
            item.seq, item.key, type_, agent, about, counters.entries - 1 if counters.entries else None, item.moment,
        ))  # fmt: skip
        self._pass("all", counters.entries + counters.events, item)
        self._pass("event", counters.events, item)
        counters.events += 1
        if type_ in SAID:
            self._pass("message", counters.messages, item)
            counters.messages += 1

    def _pass(self, series: str, number: int, item: EncodedRecord) -> None:
        """Add a milestone at the row with ``number`` rows of its series before it, if one is due there."""
        if number % STEP == 0 and self._in_order:
            self._milestones.append((item.key, series, number, item.seq))

    def late_results(self) -> list[tuple[str, int, int, str]]:
        """Return (status, place, session key, id) of the results whose entries are not among these records."""
        return [
            (status, seq, key, name)
            for (key, name), (seq, status) in self._results.items()
            if (key, name) not in self._completed
        ]  # fmt: skip

    def write(self) -> None:
        """Insert the rows."""
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
