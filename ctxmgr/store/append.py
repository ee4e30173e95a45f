"""Write records: the one place where a record becomes rows.

Stored exactly once per id: the same id with the same content is known, with other content a conflict (design section 4).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from ctxmgr import wire
from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.ids import parse_time
from ctxmgr.masking import mask
from ctxmgr.store.folding import fold, folded_text, storable
from ctxmgr.store.interface import Appended, Engine, OnConflict
from ctxmgr.store.project import derive, derive_execution
from ctxmgr.store.reserved import PROJECT
from ctxmgr.wire import Record

_INSERT = (
    "INSERT INTO record (seq, session, kind, id, ts, body, sum) VALUES (:seq, :session, :kind, :id, :ts, :body, :sum) "
    "ON CONFLICT DO NOTHING RETURNING seq"
)


@dataclass(slots=True)
class _Touched:
    """A session during one append: its counters are kept here and stored once at the end.

    ``moment`` is the time of the record that is being written.
    """

    key: int
    entries: int
    moment: float | None = None
    seq: int | None = None
    first: float | None = None
    last: float | None = None
    processes: set[str] = field(default_factory=lambda: set[str]())

    def see(self, seq: int, moment: float | None) -> None:
        self.seq = seq
        if moment is not None:
            self.first = moment if self.first is None else min(self.first, moment)
            self.last = moment if self.last is None else max(self.last, moment)

    def store(self, engine: Engine) -> None:
        engine.execute(
            "UPDATE session SET entries = :entries, seq = coalesce(:seq, seq), "
            "first = min(coalesce(first, :first), coalesce(:first, first)), "
            "last = max(coalesce(last, :last), coalesce(:last, last)) WHERE key = :key",
            {"entries": self.entries, "seq": self.seq, "first": self.first, "last": self.last, "key": self.key},
        )


_Last = tuple[int, str | None]
"""Number and sum of the last record."""

_MOST_KEPT = 64  # sessions that an appender remembers from one append to the next

Refused = Callable[[Record, InvalidInput], None]
"""Called with a record that can't be written, and why."""


class Appender:
    """Writes records through an engine; call inside a transaction.

    Args:
        engine: of the store.
        masked: mask secrets before anything is written (off only on request).
        sums: continue the store's ``sum`` chain; an index of a log keeps the log's own sums instead.
    """

    def __init__(self, engine: Engine, *, masked: bool = True, sums: bool = True) -> None:
        self._engine = engine
        self._masked = masked
        self._sums = sums
        self._touched: dict[str, _Touched] = {}
        self._kept: dict[str, _Touched] = {}
        self._last: _Last = (0, None)
        self._kept_at: _Last | None = None

    def append(
        self,
        records: Iterable[Record],
        *,
        on_conflict: OnConflict = "raise",
        doubles: bool = False,
        refused: Refused | None = None,
        fresh: list[Record] | None = None,
    ) -> Appended:
        """Write records in order, all or none.

        Args:
            records: checked records of log format 1.
            on_conflict: what to do with a known id that has other content: raise, or keep the first.
            doubles: leave out entries and events whose id another session holds already, with all that belongs to them.
            refused: hears of records that can't be written, and the others are; without it they raise.
            fresh: gets the records that were not known.

        Raises:
            Conflict: a known id with other content, when ``on_conflict`` is "raise".
            InvalidInput: a value that JSON can't hold, or a record over the length limit.
        """
        report = Appended()
        self._look_up_last()
        self._touched.clear()
        left_out: set[tuple[str, str]] = set()
        for record in records:
            if doubles and self._is_double(record, left_out):
                report.doubles += 1
                continue
            before = report.added
            try:
                self._append_one(record, on_conflict, report)
            except InvalidInput as error:  # comes from encoding, before anything of the record was written
                if refused is None:
                    raise
                refused(record, error)
            if fresh is not None and report.added > before:
                fresh.append(record)
        for touched in self._touched.values():
            touched.store(self._engine)
        self._keep()
        return report

    def copy(self, placed: Iterable[tuple[int, Record]]) -> Appended:
        """Write records of another store at the places that they have there; what can't be written is left out.

        They may come a little out of order, but never behind a record of their session that changes what they mean.
        """
        report = Appended()
        self._touched.clear()
        for place, record in placed:
            with contextlib.suppress(InvalidInput):
                self._append_one(record, "keep", report, place)
        for touched in self._touched.values():
            touched.store(self._engine)
        return report

    def _append_one(self, record: Record, on_conflict: OnConflict, report: Appended, place: int | None = None) -> None:
        clean = {key: value for key, value in record.items() if key != "sum"}
        body = wire.encode(clean)
        if self._masked and (hidden := mask(body)) != body:
            body, clean = hidden, wire.decode(hidden)
        elif b"\\ud" in body:  # two halves of a letter, apart in Python, are one letter in JSON
            clean = wire.decode(body)
        kind, session = str(clean["kind"]), str(clean["session"])
        touched = self._touch(session)
        key = touched.key
        moment = touched.moment = parse_time(clean.get("ts"))
        text = body.decode("ascii")
        identity = record_id(clean, body)
        total = self._next_sum(body) if self._sums else record.get("sum")
        rows = self._engine.query(  # without a place it is the next one
            _INSERT,
            {
                "seq": place, "session": key, "kind": storable(kind), "id": identity, "ts": moment, "body": text, "sum": total,
            },
        )  # fmt: skip
        if not rows:
            self._known(key, kind, identity, clean["session"], text, on_conflict, report)
            return
        report.added += 1
        seq = int(rows[0][0])
        self._last = (seq, total)
        touched.see(seq, moment)
        if (folded := folded_text(clean)) is not None:
            self._engine.execute("INSERT INTO folded (seq, text) VALUES (:seq, :text)", {"seq": seq, "text": folded})
        handler = _DERIVED.get(kind)
        if handler is not None:
            handler(self._engine, seq, touched, clean)

    def _known(
        self, key: int, kind: str, identity: str, session: str, text: str, on_conflict: OnConflict, report: Appended
    ) -> None:
        found = self._engine.query(
            "SELECT body FROM record WHERE session = :session AND kind = :kind AND id = :id",
            {"session": key, "kind": storable(kind), "id": identity},
        )
        if found[0][0] == text or _canonical(found[0][0]) == _canonical(text):
            report.known += 1
            return
        if on_conflict == "raise":
            raise Conflict(
                f"{kind} {identity!r} of session {session!r} is known with other content; nothing was written",
                "give a new record a new id; records are never changed",
            )
        report.changed += 1

    def _is_double(self, record: Record, left_out: set[tuple[str, str]]) -> bool:
        kind, session = str(record["kind"]), str(record["session"])
        if kind == "result":
            return (session, str(record.get("entry"))) in left_out
        if kind not in ("entry", "event"):
            return False
        rows = self._engine.query(
            "SELECT 1 FROM record JOIN session ON session.key = record.session "
            "WHERE record.id = :id AND record.kind = :kind AND session.id <> :session LIMIT 1",
            {"id": str(record["id"]), "kind": kind, "session": session},
        )
        if rows:
            left_out.add((session, str(record["id"])))
        return bool(rows)

    def _next_sum(self, body: bytes) -> str:
        return wire.chain(str(self._last[1] or ""), body)

    def _look_up_last(self) -> None:
        """Find the end of the chain; forget what is known of sessions if it is not where this appender left it.

        Another process may have written since, or what was written here was rolled back.
        """
        if not self._sums:
            return
        rows = self._engine.query("SELECT seq, sum FROM record ORDER BY seq DESC LIMIT 1")
        self._last = (int(rows[0][0]), rows[0][1]) if rows else (0, None)
        if self._last != self._kept_at:
            self._kept.clear()
        self._kept_at = None

    def _keep(self) -> None:
        if self._sums:
            self._kept = self._kept | self._touched if len(self._kept) < _MOST_KEPT else dict(self._touched)
            self._kept_at = self._last

    def _touch(self, session: str) -> _Touched:
        touched = self._touched.get(session)
        if touched is None and session in self._kept:
            touched = self._touched[session] = self._kept[session]
        if touched is None:
            stored = storable(session)
            rows = self._engine.query("SELECT key, entries FROM session WHERE id = :id", {"id": stored})
            if rows:
                touched = _Touched(int(rows[0][0]), int(rows[0][1]))
            else:
                touched = _Touched(self._engine.insert("INSERT INTO session (id) VALUES (:id)", {"id": stored}), 0)
            self._touched[session] = touched
        return touched


def _canonical(text: str) -> str:
    """Return a JSON text in which the order of keys does not tell; unlike the values themselves 1, 1.0 and true differ."""
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:  # a stored body that was changed from outside
        return text


def record_id(record: Record, body: bytes) -> str:
    """Return what makes a record itself within its session and kind: its id, its entry's id, or its content."""
    kind = record["kind"]
    named = record.get("entry") if kind == "result" else record.get("id")
    if isinstance(named, str) and named and kind not in ("session", "sessionEnd"):
        return storable(named)
    return wire.chain("", body)


def _optional(value: object) -> str | None:
    return storable(str(value)) if isinstance(value, str | int) else None


def _folded(value: object) -> str | None:
    return fold(str(value)) if isinstance(value, str | int) else None


def _process(engine: Engine, seq: int, touched: _Touched, record: Record, started: str | None) -> None:
    """Remember which process executed the session (FR-026), also where no record says that it began."""
    engine.execute(
        "INSERT INTO process (session, process, seq, started) VALUES (:session, :process, :seq, :ts) "
        "ON CONFLICT DO UPDATE SET started = coalesce(started, excluded.started)",
        {"session": touched.key, "process": _optional(record.get("process")) or "", "seq": seq, "ts": started},
    )


def _session(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    engine.execute(
        "UPDATE session SET workflow = coalesce(workflow, :workflow), source = coalesce(source, :source), "
        "meta = coalesce(meta, :meta) WHERE key = :key",
        {
            "workflow": _optional(record.get("workflow")),
            "source": json.dumps(record["source"]) if record.get("source") is not None else None,
            "meta": json.dumps(record["meta"]) if record.get("meta") is not None else None,
            "key": touched.key,
        },
    )
    _process(engine, seq, touched, record, _optional(record.get("ts")))


def _session_end(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    process = _optional(record.get("process"))
    values = {"session": touched.key, "outcome": _optional(record.get("outcome")), "process": process}
    named = "AND process = :process" if process is not None else ""
    ended = f"UPDATE process SET outcome = :outcome WHERE session = :session {named}"
    if not engine.execute(ended, values):
        _process(engine, seq, touched, record, None)
        engine.execute(ended, values)


def _entry(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    status = record.get("status")
    result: int | None = seq if status is not None else None
    if status is None:
        late = engine.query(
            "SELECT seq, body FROM record WHERE session = :session AND kind = 'result' AND id = :id",
            {"session": touched.key, "id": storable(str(record["id"]))},
        )
        if late:
            result, status = int(late[0][0]), json.loads(late[0][1]).get("status")
    engine.execute(
        "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
        "VALUES (:seq, :session, :idx, :agent, :action, :input_type, :process, :ts, :status, :result)",
        {
            "idx": touched.entries,
            "seq": seq, "session": touched.key, "agent": fold(str(record.get("agent", ""))),
            "action": fold(str(record.get("action", ""))), "input_type": _folded(record.get("inputType")),
            "process": _optional(record.get("process")), "ts": touched.moment,
            "status": str(status or "open"), "result": result,
        },
    )  # fmt: skip
    touched.entries += 1
    derive_execution(engine, seq, record)
    process = _optional(record.get("process"))
    if process and process not in touched.processes:
        touched.processes.add(process)
        _process(engine, seq, touched, record, None)


def _result(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    engine.execute(
        "UPDATE entry SET status = :status, result = :seq WHERE status = 'open' AND seq = "
        "(SELECT seq FROM record WHERE session = :session AND kind = 'entry' AND id = :id)",
        {
            "status": str(record.get("status")),
            "seq": seq,
            "session": touched.key,
            "id": storable(str(record.get("entry"))),
        },
    )


def _event(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    engine.execute(
        "INSERT INTO event (seq, session, type, agent, entry, after, ts) "
        "VALUES (:seq, :session, :type, :agent, :entry, :after, :ts)",
        {
            "after": touched.entries - 1 if touched.entries else None,
            "seq": seq, "session": touched.key, "type": storable(str(record.get("type"))),
            "agent": _folded(record.get("agent")), "entry": _optional(record.get("entry")),
            "ts": touched.moment,
        },
    )  # fmt: skip
    if record["session"] == PROJECT:
        derive(engine, seq, record)


def _note(engine: Engine, seq: int, touched: _Touched, record: Record) -> None:
    for entry in _texts(record.get("entries")):
        engine.execute(
            "INSERT INTO note_entry (session, entry, note) VALUES (:session, :entry, :note) ON CONFLICT DO NOTHING",
            {"session": touched.key, "entry": entry, "note": seq},
        )
    for tag in map(fold, _texts(record.get("tags"))):
        engine.execute(
            "INSERT INTO note_tag (session, tag, note) VALUES (:session, :tag, :note) ON CONFLICT DO NOTHING",
            {"session": touched.key, "tag": tag, "note": seq},
        )
    if (former := _optional(record.get("supersedes"))) is not None:
        engine.execute(
            "INSERT INTO superseded (session, note, successor) VALUES (:session, :note, :successor) ON CONFLICT DO NOTHING",
            {"session": touched.key, "note": former, "successor": storable(str(record["id"]))},
        )


def _texts(value: object) -> list[str]:
    return [storable(item) for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []


_DERIVED: dict[str, Callable[[Engine, int, _Touched, Record], None]] = {
    "session": _session,
    "sessionEnd": _session_end,
    "entry": _entry,
    "result": _result,
    "event": _event,
    "note": _note,
}
