"""Append records to a store on a server: in one round trip where a function there can do it, else step by step.

Whoever appends locks the rows of its sessions, so that recorders of different sessions do not wait for each other.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.store.normalise import storable
from ctxmgr.store.reserved import EXECUTION, PROJECT, require_not_archived
from ctxmgr.store.write.append import BATCH, Appender, AppendResult
from ctxmgr.store.write.batch import SAID, STEP, Derivation
from ctxmgr.store.write.derived_rows import SESSION, SessionCounters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ctxmgr.store.engine.interface import Engine, OnConflict
    from ctxmgr.store.engine.postgresql import PostgresqlEngine
    from ctxmgr.store.write.encoded_record import EncodedRecord

_PLAIN = frozenset({"entry", "event", "result"})
_MAX_KNOWN = 10_000
_LOCKED = f"{SESSION} FOR NO KEY UPDATE"


class ServerAppender(Appender):
    """Writes records to a server, each append a transaction of its own; see `Appender`."""

    def __init__(self, engine: Engine, *, masked: bool) -> None:
        super().__init__(engine, masked=masked)
        self._server = cast("PostgresqlEngine", engine)
        self._begun: dict[str, set[str]] = {}

    def _append(
        self,
        items: Iterable[EncodedRecord],
        insert: Callable[[Engine, Sequence[EncodedRecord]], bool],
        on_conflict: OnConflict,
        *,
        doubles: bool = False,
        placed: bool = False,
    ) -> AppendResult:
        rest = iter(items)
        first = list(islice(rest, BATCH + 1))
        if not first:
            return AppendResult()
        together = not doubles and not self._repeats and len(first) <= BATCH and not self._server.within
        if together and self._append_plain(first):
            return AppendResult(added=len(first))
        with self._server.transaction() if doubles else self._server.appending():  # doubles are sought in all sessions
            return super()._append(chain(first, rest), insert, on_conflict, doubles=doubles, placed=placed)

    def _append_plain(self, items: Sequence[EncodedRecord]) -> bool:
        """Write new entries, events and results of one session in one round trip; return False if that can't be."""
        session = items[0].record["session"]
        if session == PROJECT or not all(_is_plain(item, session) for item in items):
            return False
        name = storable(str(session))
        begun = self._begun.get(name, set())
        rows = _RelativeRows(self._engine, begun)
        for number, item in enumerate(items, 1):
            item.seq = number
        rows.add_of_one(items)
        if not self._server.append(rows.arguments(name, items) if len(items) > 1 else rows.arguments_of_one(name, items[0])):
            return False
        if rows.begun and len(self._begun) < _MAX_KNOWN:
            self._begun[name] = begun | {process for _, process in rows.begun}
        return True

    def _look_up_last(self) -> None:
        """Do nothing: a place is drawn on the server, and a session is asked for in each append."""

    def _keep(self) -> None:
        for touched in self._touched.values():
            touched.store(self._engine)

    def _find_sessions(self, part: Sequence[EncodedRecord]) -> None:
        for session in sorted({str(item.record["session"]) for item in part}):  # in one order, else two could wait in a circle
            self._touch(session)
        super()._find_sessions(part)

    def _touch(self, session: str) -> SessionCounters:
        touched = self._touched.get(session)
        if touched is None:
            name = {"id": storable(session)}
            while not (rows := self._engine.query(_LOCKED, name)):
                require_not_archived(self._engine, name["id"])
                self._engine.execute("INSERT INTO session (id) VALUES (:id) ON CONFLICT DO NOTHING", name)
            touched = self._touched[session] = SessionCounters(*rows[0])
        return touched

    def _number(self, part: Sequence[EncodedRecord], *, placed: bool) -> tuple[int, str | None]:
        places = cast("list[int]", self._engine.query("SELECT places(:count)", {"count": len(part)})[0][0])
        for item, place in zip(part, places, strict=True):
            item.seq = place
        self._seal(part)
        return 0, None


def _is_plain(item: EncodedRecord, session: object) -> bool:
    record = item.record
    return item.kind in _PLAIN and record["session"] == session and record.get("action") != EXECUTION


class _RelativeRows(Derivation):
    """The rows of new records of one session, whose places are counted from 1 on and whose indexes from 0 on.

    Attributes:
        unfinished: ids of entries whose result is not among these records.
        begun: (place, process) of processes that were not known before.
    """

    def __init__(self, engine: Engine, known: set[str]) -> None:
        super().__init__(engine, in_order=False)
        self._counters = SessionCounters(0)
        self._counters.processes |= known
        self.unfinished: list[str] = []
        self.begun: list[tuple[int, str]] = []

    def add_of_one(self, items: Sequence[EncodedRecord]) -> None:
        """Derive the rows."""
        self.add([(item, self._counters) for item in items])

    def begin_process(self, item: EncodedRecord, process: str) -> None:
        self.begun.append((item.seq, process))

    def stored_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        self.unfinished.append(item.id)
        return None, None

    def arguments_of_one(self, session: str, item: EncodedRecord) -> list[Any]:
        """Return the values of `ctxmgr.store.engine.postgresql_functions.APPEND_ONE` for the only record."""
        agent = kind = input_type = process = status = about = None
        if self.entries:
            ((_, _, _, agent, kind, input_type, process, _, status, _),) = self.entries
            status = None if self.unfinished else status
        elif self.events:
            ((_, _, kind, agent, about, _, _),) = self.events
        else:
            ((status, _, _, _),) = self.late_results()
        read, written = self.usage[0][2:] if self.usage else (None, None)
        return [
            session, item.kind, item.id, item.moment, item.body.decode("ascii"), STEP, agent, kind, input_type, process,
            bool(self.begun), status, about, bool(self.events) and kind in SAID, read, written,
        ]  # fmt: skip

    def arguments(self, session: str, items: Sequence[EncodedRecord]) -> list[Any]:
        """Return the values of `ctxmgr.store.engine.postgresql_functions.APPEND`."""
        moments = [item.moment for item in items if item.moment is not None]
        entry_at, _, _, agents, actions, input_types, processes, _, statuses, results = _columns(self.entries, 10)
        event_at, _, types, speakers, abouts, afters, _ = _columns(self.events, 7)
        _, used_at, reads, writes = _columns(self.usage, 4)
        done_statuses, done_at, _, done_ids = _columns(self.late_results(), 4)
        begun_at, begun = _columns(self.begun, 2)
        return [
            session, [item.kind for item in items], [item.id for item in items], [item.moment for item in items],
            [item.body.decode("ascii") for item in items], min(moments, default=None), max(moments, default=None),
            self.unfinished, STEP,
            entry_at, agents, actions, input_types, processes, statuses, results,
            event_at, types, speakers, abouts, afters, [row[0] for row in self.events if row[2] in SAID],
            used_at, reads, writes, done_at, done_ids, done_statuses, begun_at, begun,
        ]  # fmt: skip


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
