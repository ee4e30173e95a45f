"""Append records to a store on a server: in one round trip if a function there can do it, else step by step.

An append locks only the rows of its sessions, so recorders of different sessions do not wait for each other.
"""

from __future__ import annotations

from collections import ChainMap
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.log import codec
from ctxmgr.store.engine.postgresql_schema import TOLD_SUMS
from ctxmgr.store.engine.postgresql_values import server_text
from ctxmgr.store.project_session import EXECUTION, PROJECT, require_not_archived
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write.append import BATCH, Appender, AppendResult
from ctxmgr.store.write.batch import (
    SAID,
    SAID_LATER,
    STEP,
    Derivation,
    SessionCounters,
    description,
    entry_names,
    event_names,
    note_links,
    optional,
    record_usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ctxmgr.store.engine.interface import Engine, OnConflict, Row
    from ctxmgr.store.engine.postgresql import PostgresqlEngine
    from ctxmgr.store.write.append import EncodedRecord

_STEP, _SAID = str(STEP).encode(), {name.encode() for name in SAID}
_ALONE = frozenset({"entry", "event", "result"})
"""Kinds of records for which the server has a function that takes one record (``append_one``)."""
_PART = BATCH  # records of one call; smaller parts are no faster alone, and slower beside other threads
_MOST = 4 * BATCH  # records kept in memory in case that they must be written step by step
# Sessions whose last checksums are cached. For others the server calculates the checksums itself.
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
    """Writes records to a server. Each append is a transaction of its own; see `Appender`."""

    def __init__(self, engine: Engine, *, masked: bool) -> None:
        super().__init__(engine, masked=masked)
        self._server = cast("PostgresqlEngine", engine)
        self._known: dict[str, _Known] = {}

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
        # Take one record more than a part holds, to know whether others follow.
        taken = list(islice(rest, _PART + 1))
        if not taken:
            return AppendResult()
        if not (doubles or self._repeats or self._server.within) and self._append_plain(taken, rest):
            return AppendResult(added=len(taken))
        with self._server.transaction() if doubles else self._server.appending():  # doubles may be in any session
            return super()._append(chain(taken, rest), insert, on_conflict, doubles=doubles, placed=placed)

    def _append_plain(self, taken: list[EncodedRecord], rest: Iterator[EncodedRecord]) -> bool:
        """Write new records in one round trip, taking the rest too. Return False and write nothing if that is not possible."""
        if self._server.version < TOLD_SUMS:
            return False
        if len(taken) == 1 and taken[0].kind in _ALONE and _is_plain(taken[0]):
            return self._append_one(taken[0])
        done: list[_RelativeRows] = []
        parts = self._parts(taken, rest, done)
        try:
            first = next(parts)
            ends = self._server.append(first, None if len(done[0].items) == len(taken) else parts)
        except _NotTogetherError:
            return False
        if ends is None:
            return False
        for rows, told in zip(done, ends, strict=True):
            self._remember(rows.known_sessions(told))
        return True

    def _append_one(self, item: EncodedRecord) -> bool:
        """Write one new record. Return False and write nothing if that is not possible."""
        name = storable(str(item.record["session"]))
        known = self._known.get(name) or _Known("", set(), alone=False)
        total = codec.chain(known.total, item.body)
        values, process, quick = _arguments_of_one(item, name, known)
        values += known.total.encode(), total.encode()
        told = self._server.append_one(values, quick if known.alone else None)
        if told is None:
            return False
        known.total, known.alone = told or total, not told
        if process is not None:
            known.processes.add(process)
        self._remember({name: known})
        return True

    def _remember(self, sessions: dict[str, _Known]) -> None:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.update(sessions)

    def _parts(
        self, taken: list[EncodedRecord], rest: Iterator[EncodedRecord], done: list[_RelativeRows]
    ) -> Iterator[list[Any]]:
        """Yield the arguments for each part of an append, and add the part's rows to ``done``.

        Raises:
            _NotTogetherError: the records can't be written in one round trip.
        """
        known: Mapping[str, _Known] = self._known
        start = 0
        while start < len(taken):
            part = taken[start : start + _PART]
            if len(taken) > _MOST or not all(map(_is_plain, part)):
                raise _NotTogetherError
            # An end of a session ends only processes that began before it, so it must be the last record of its part.
            part = part[: next((number for number, item in enumerate(part, 1) if item.kind == "sessionEnd"), _PART)]
            rows = _RelativeRows(self._engine, part, known)
            done.append(rows)
            start += len(part)
            yield rows.arguments()
            known = ChainMap(
                dict[str, _Known](rows.known_sessions()), *(known.maps if isinstance(known, ChainMap) else [self._known])
            )
            if start + _PART >= len(taken):
                taken.extend(islice(rest, _PART))

    def _look_up_last(self) -> None:
        """Do nothing, because the server draws the places, and each append looks up its sessions."""

    def _keep(self) -> None:
        # Two names may have the same stored form (a lone surrogate and its escape). Each row is updated once.
        counted = list({each.key: each for each in self._counters.values()}.values())
        columns = ("key", "entries", "events", "messages", "seq", "first", "last", "total")
        self._engine.execute(_COUNTED, {name: [getattr(each, name) for each in counted] for name in columns})

    def _find_sessions(self, part: Sequence[EncodedRecord]) -> None:
        """Create and lock the sessions, both in the order of their ids, so that two appends can't deadlock."""
        sessions = {str(item.record["session"]) for item in part} - self._counters.keys()
        names = {storable(session) for session in sessions}
        rows: list[Row] = []
        # A session may be archived between both statements. Then its row is missing, and the next round refuses it.
        while len(rows) < len(names):
            there = {row[0] for row in self._engine.query("SELECT id FROM session WHERE id = ANY(:ids)", {"ids": list(names)})}
            if new := [name for name in names if name not in there]:
                for name in new:
                    require_not_archived(self._engine, name)
                self._engine.execute(_NEW, {"ids": new})
            rows = self._engine.query(_SESSIONS, {"ids": list(names)})
        found = {str(name): SessionCounters(*counted) for name, *counted in rows}
        self._counters |= {session: found[storable(session)] for session in sessions}
        super()._find_sessions(part)

    def _number(self, part: Sequence[EncodedRecord], *, placed: bool) -> tuple[int, str | None]:
        places = cast("list[int]", self._engine.query("SELECT places(:count)", {"count": len(part)})[0][0])
        for item, place in zip(part, places, strict=True):
            item.seq = place
        self._seal(part)
        return 0, None


class _Known:
    """What an appender knows about a session.

    Attributes:
        total: the last checksum that it wrote.
        processes: the processes that its entries named.
        alone: nobody else had written to it before the last append.
    """

    __slots__ = ("alone", "processes", "total")

    def __init__(self, total: str, processes: set[str], *, alone: bool) -> None:
        self.total = total
        self.processes = processes
        self.alone = alone


class _NotTogetherError(Exception):
    """Records change more than their own sessions, or are too many to keep in memory."""


def _arguments_of_one(item: EncodedRecord, session: str, known: _Known) -> tuple[list[bytes | None], str | None, str | None]:
    """Return the arguments `APPEND_ONE` of `ctxmgr.store.engine.postgresql_functions` but for the checksums.

    Returns:
        Further the process that the record is the first to name, and which statement of `QUICK` may suffice.
    """
    record, quick = item.record, item.kind
    agent = kind = input_type = process = about = new = None
    status: object = None
    is_said = b"f"
    if quick == "entry":
        status, name, given = record.get("status"), optional(record.get("process")), record.get("inputType")
        agent, kind, input_type, process = _entry_names(
            str(record.get("agent", "")), str(record.get("action", "")), given if isinstance(given, str | int) else None, name
        )
        quick = "open" if status is None else "entry"
        new = name if name and name not in known.processes else None
    elif quick == "event":
        kind, agent, about = map(_text, event_names(record))
        is_said = b"t" if kind in _SAID else b"f"
    else:
        status = record["status"]
    read, written = record_usage(record) or (None, None)
    values = [
        server_text(session), item.kind.encode(), server_text(item.id), _number(item.moment), item.body, _STEP,
        agent, kind, input_type, process, b"f" if new is None else b"t", None if status is None else str(status).encode(),
        about, is_said, _number(read), _number(written),
    ]  # fmt: skip
    return values, new, quick if new is None and read is None and written is None else None


@lru_cache(maxsize=64, typed=True)  # most entries of an agent have the same
def _entry_names(agent: object, action: object, input_type: object, process: object) -> tuple[bytes | None, ...]:
    names = entry_names({"agent": agent, "action": action, "inputType": input_type, "process": process})
    return tuple(map(_text, names))


def _text(text: str | None) -> bytes | None:
    return None if text is None else server_text(text)


def _number(value: float | None) -> bytes | None:
    return None if value is None else str(value).encode()


def _is_plain(item: EncodedRecord) -> bool:
    record = item.record
    return record["session"] != PROJECT and record.get("action") != EXECUTION


class _RelativeRows(Derivation):
    """The rows of new records with relative numbers: places and sessions count from 1, entries of a session from 0.

    Args:
        items: the records.
        known: what is cached about each session, by its name.

    Attributes:
        sessions: the counters of each session, by its name.
        unfinished: entries whose result is not among these records.
        begun: (place, process, when it began) of new processes, by session and process.
        ended, described, noted, tagged, succeeded: rows for the parameters of these names of `APPEND`.
    """

    def __init__(self, engine: Engine, items: Sequence[EncodedRecord], known: Mapping[str, _Known]) -> None:
        super().__init__(engine, in_order=False)
        self.unfinished: list[EncodedRecord] = []
        self.begun: dict[tuple[int, str], tuple[int, str, str | None]] = {}
        self.ended: list[tuple[Any, ...]] = []
        self.described: dict[int, tuple[Any, ...]] = {}
        self.noted: list[tuple[Any, ...]] = []
        self.tagged: list[tuple[Any, ...]] = []
        self.succeeded: list[tuple[Any, ...]] = []
        self.items = items
        names = [storable(str(item.record["session"])) for item in items]
        self.sessions = {name: SessionCounters(number) for number, name in enumerate(sorted(set(names), key=server_text), 1)}
        self._before: list[str] = []
        for name, counted in self.sessions.items():
            if (found := known.get(name)) is not None:
                counted.total = found.total
                counted.processes.update(found.processes)
            self._before.append(counted.total or "")
        pairs = [(item, self.sessions[name]) for item, name in zip(items, names, strict=True)]
        for number, (item, counted) in enumerate(pairs, 1):
            item.key, item.seq = counted.key, number
            counted.see(number, None if item.kind in SAID_LATER else item.moment)
            item.total = counted.total = codec.chain(counted.total or "", item.body)
        self.add(pairs)

    def known_sessions(self, ends: Sequence[str] = ()) -> dict[str, _Known]:
        """Return what to cache about the sessions after the append; ``ends`` are the last checksums if the server sent them."""
        sums = ends or [str(counted.total) for counted in self.sessions.values()]
        return {
            name: _Known(end, counted.processes, alone=not ends)
            for (name, counted), end in zip(self.sessions.items(), sums, strict=True)
        }

    def begin_process(self, item: EncodedRecord, process: str) -> None:
        self._begin(item, process, None)

    def _begin(self, item: EncodedRecord, process: str, started: str | None) -> None:
        place, _, known = self.begun.get((item.key, process)) or (item.seq, process, None)
        self.begun[item.key, process] = place, process, started if known is None else known

    def change(self, item: EncodedRecord, counters: SessionCounters) -> None:
        record = item.record
        if item.kind == "session":
            told = description(record)
            former = self.described.get(item.key, told)
            self.described[item.key] = tuple(new if old is None else old for old, new in zip(former, told, strict=True))
            self._begin(item, optional(record.get("process")) or "", optional(record.get("ts")))
        elif item.kind == "sessionEnd":
            self.ended.append((item.seq, optional(record.get("process")), optional(record.get("outcome"))))
        elif item.kind == "note":
            entries, tags, succession = note_links(record)
            self.noted += [(item.seq, entry) for entry in entries]
            self.tagged += [(item.seq, tag) for tag in tags]
            self.succeeded += [(item.seq, *succession)] if succession else []

    def stored_result(self, item: EncodedRecord) -> tuple[int | None, str | None]:
        self.unfinished.append(item)
        return None, None

    def arguments(self) -> list[Any]:
        """Return the arguments `ctxmgr.store.engine.postgresql_functions.APPEND`."""
        items, counted = self.items, self.sessions.values()
        entry_at, _, numbers, agents, actions, input_types, processes, _, statuses, results = _columns(self.entries, 10)
        event_at, _, types, speakers, abouts, afters, _ = _columns(self.events, 7)
        _, used_at, reads, writes = _columns(self.usage, 4)
        done_statuses, done_at, _, done_ids = _columns(self.late_results(), 4)
        return [
            list(self.sessions), [each.first for each in counted], [each.last for each in counted],
            [each.entries for each in counted], [each.events for each in counted], [each.messages for each in counted],
            [each.seq for each in counted], STEP,
            [item.key for item in items], [item.kind for item in items], [server_text(item.id) for item in items],
            [item.moment for item in items], [item.body for item in items],
            [item.seq for item in self.unfinished], [item.id for item in self.unfinished],
            entry_at, numbers, agents, actions, input_types, processes, statuses, results,
            event_at, types, speakers, abouts, afters, [row[0] for row in self.events if row[2] in SAID],
            used_at, reads, writes, done_at, done_ids, done_statuses,
            *_columns(list(self.begun.values()), 3), *_columns(self.ended, 3),
            list(self.described), *_columns(list(self.described.values()), 3),
            *_columns(self.noted, 2), *_columns(self.tagged, 2), *_columns(self.succeeded, 3),
            self._before, [str(item.total).encode() for item in items],
        ]  # fmt: skip


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width
