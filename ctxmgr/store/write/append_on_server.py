"""Append records to a store on a server: in one round trip where a function there can do it, else step by step.

Whoever appends locks the rows of its sessions, so that recorders of different sessions do not wait for each other.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.store.engine.postgresql import spelled
from ctxmgr.store.engine.postgresql_schema import LATEST
from ctxmgr.store.project_session import EXECUTION, PROJECT, require_not_archived
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write.append import BATCH, Appender, AppendResult
from ctxmgr.store.write.batch import SAID, STEP, Derivation, SessionCounters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ctxmgr.store.engine.interface import Engine, OnConflict, Row
    from ctxmgr.store.engine.postgresql import PostgresqlEngine
    from ctxmgr.store.write.encoded_record import EncodedRecord

_PLAIN = frozenset({"entry", "event", "result"})
_MAX_KNOWN = 10_000
_SESSIONS = "SELECT id, key, entries, events, messages, sum FROM session WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE"
_NEW = (
    "INSERT INTO session (id) SELECT one.id FROM unnest(CAST(:ids AS TEXT[])) AS one(id) ORDER BY one.id ON CONFLICT DO NOTHING"
)
_COUNTED = (
    "UPDATE session SET entries = one.entries, events = one.events, messages = one.messages, "
    "seq = coalesce(one.seq, session.seq), first = least(session.first, one.first), "
    "last = greatest(session.last, one.last), sum = one.sum "
    "FROM unnest(CAST(:key AS BIGINT[]), CAST(:entries AS BIGINT[]), CAST(:events AS BIGINT[]), CAST(:messages AS BIGINT[]), "
    "CAST(:seq AS BIGINT[]), CAST(:first AS DOUBLE PRECISION[]), CAST(:last AS DOUBLE PRECISION[]), CAST(:total AS TEXT[])) "
    "AS one(key, entries, events, messages, seq, first, last, sum) WHERE session.key = one.key"
)


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
        """Write new entries, events and results in one round trip; return False if that can't be."""
        if not all(map(_is_plain, items)) or (len(items) > 1 and self._server.version < LATEST):
            return False
        rows = _RelativeRows(self._engine, items, self._begun)
        if not self._server.append(rows.arguments() if len(items) > 1 else rows.arguments_of_one()):
            return False
        if len(self._begun) >= _MAX_KNOWN:
            self._begun.clear()
        for item, process in rows.begun:
            self._begun.setdefault(storable(str(item.record["session"])), set()).add(process)
        return True

    def _look_up_last(self) -> None:
        """Do nothing: a place is drawn on the server, and a session is asked for in each append."""

    def _keep(self) -> None:
        counted = list({each.key: each for each in self._touched.values()}.values())
        columns = ("key", "entries", "events", "messages", "seq", "first", "last", "total")
        self._engine.execute(_COUNTED, {name: [getattr(each, name) for each in counted] for name in columns})

    def _find_sessions(self, part: Sequence[EncodedRecord]) -> None:
        """Lock the sessions, made now where they are new: both in the order of their ids, else two could wait in a circle."""
        sessions = {str(item.record["session"]) for item in part} - self._touched.keys()
        names = {storable(session) for session in sessions}
        rows: list[Row] = []
        while len(rows) < len(names):
            there = {row[0] for row in self._engine.query("SELECT id FROM session WHERE id = ANY(:ids)", {"ids": list(names)})}
            if new := [name for name in names if name not in there]:
                for name in new:
                    require_not_archived(self._engine, name)
                self._engine.execute(_NEW, {"ids": new})
            rows = self._engine.query(_SESSIONS, {"ids": list(names)})
        found = {str(name): SessionCounters(*counted) for name, *counted in rows}
        self._touched |= {session: found[storable(session)] for session in sessions}
        super()._find_sessions(part)

    def _number(self, part: Sequence[EncodedRecord], *, placed: bool) -> tuple[int, str | None]:
        places = cast("list[int]", self._engine.query("SELECT places(:count)", {"count": len(part)})[0][0])
        for item, place in zip(part, places, strict=True):
            item.seq = place
        self._seal(part)
        return 0, None


def _is_plain(item: EncodedRecord) -> bool:
    record = item.record
    return item.kind in _PLAIN and record["session"] != PROJECT and record.get("action") != EXECUTION


class _RelativeRows(Derivation):
    """The rows of new records: their places are counted from 1 on, their sessions too, and indexes from 0 on in each of these.

    Args:
        items: the records.
        known: by session, the processes that are not new.

    Attributes:
        sessions: what is counted of each session, by its name.
        unfinished: entries whose result is not among these records.
        begun: (record, process) of processes that were not known before.
    """

    def __init__(self, engine: Engine, items: Sequence[EncodedRecord], known: Mapping[str, set[str]]) -> None:
        super().__init__(engine, in_order=False)
        self.unfinished: list[EncodedRecord] = []
        self.begun: list[tuple[EncodedRecord, str]] = []
        self._items = items
        names = [storable(str(item.record["session"])) for item in items]
        self.sessions = {name: SessionCounters(number) for number, name in enumerate(sorted(set(names), key=spelled), 1)}
        for name, counted in self.sessions.items():
            counted.processes.update(known.get(name, ()))
        pairs = [(item, self.sessions[name]) for item, name in zip(items, names, strict=True)]
        for number, (item, counted) in enumerate(pairs, 1):
            item.key, item.seq = counted.key, number
            counted.see(number, item.moment)
        self.add(pairs)

    def begin_process(self, item: EncodedRecord, process: str) -> None:
        self.begun.append((item, process))

    def stored_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        self.unfinished.append(item)
        return None, None

    def arguments_of_one(self) -> list[Any]:
        """Return the values of `ctxmgr.store.engine.postgresql_functions.APPEND_ONE` for the only record."""
        (item,), (session,) = self._items, self.sessions
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

    def arguments(self) -> list[Any]:
        """Return the values of `ctxmgr.store.engine.postgresql_functions.APPEND`."""
        items, counted = self._items, self.sessions.values()
        entry_at, _, numbers, agents, actions, input_types, processes, _, statuses, results = _columns(self.entries, 10)
        event_at, _, types, speakers, abouts, afters, _ = _columns(self.events, 7)
        _, used_at, reads, writes = _columns(self.usage, 4)
        done_statuses, done_at, _, done_ids = _columns(self.late_results(), 4)
        return [
            list(self.sessions), [each.first for each in counted], [each.last for each in counted],
            [each.entries for each in counted], [each.events for each in counted], [each.messages for each in counted],
            [each.seq for each in counted], STEP,
            [item.key for item in items], [item.kind for item in items], [item.id for item in items],
            [item.moment for item in items], [item.body for item in items],
            [item.seq for item in self.unfinished], [item.id for item in self.unfinished],
            entry_at, numbers, agents, actions, input_types, processes, statuses, results,
            event_at, types, speakers, abouts, afters, [row[0] for row in self.events if row[2] in SAID],
            used_at, reads, writes, done_at, done_ids, done_statuses,
            [item.seq for item, _ in self.begun], [process for _, process in self.begun],
        ]  # fmt: skip


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width
