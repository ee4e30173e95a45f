"""The end of a store's log, and what was appended since last time."""

from __future__ import annotations

from collections.abc import Iterator

from ctxmgr.log.codec import Record
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.normalise import storable
from ctxmgr.store.reserved import PROJECT
from ctxmgr.store.row_mapper import load


def end_of(engine: Engine) -> int:
    """Return the place of the last record, 0 where there is none."""
    table = "session" if engine.shared else "record"  # of other teams' records there is no end to be asked for
    return int(engine.query(f"SELECT coalesce(max(seq), 0) FROM {table}")[0][0])


def sum_at(engine: Engine, seq: int) -> str:
    """Return the sum of the record at a place, empty where there is none."""
    rows = engine.query("SELECT sum FROM record WHERE seq = :seq", {"seq": seq})
    return str(rows[0][0]) if rows else ""


def holds_record(engine: Engine, session: str, kind: str, identity: str) -> bool:
    """Whether a session holds the record of this kind and id."""
    sql = (
        "SELECT 1 FROM record JOIN session ON session.key = record.session "
        "WHERE session.id = :session AND record.kind = :kind AND record.id = :id"
    )
    return bool(engine.query(sql, {"session": storable(session), "kind": kind, "id": storable(identity)}))


def records_after(engine: Engine, key: int, seq: int) -> Iterator[tuple[int, Record]]:
    """Yield (place in the store, record) of a session's records behind a place, in the order of the log; 0 for all."""
    sql = "SELECT seq, body FROM record WHERE session = :key AND seq > :seq ORDER BY seq"
    for row in engine.stream(sql, {"key": key, "seq": seq}):
        yield int(row[0]), load(row[1])


def all_records_after(engine: Engine, seq: int) -> Iterator[tuple[int, int, Record]]:
    """Yield (place in the store, length, record) of the records of all sessions behind a place, in the order of the log."""
    for place, body in engine.stream("SELECT seq, body FROM record WHERE seq > :seq ORDER BY seq", {"seq": seq}):
        yield int(place), len(body), load(body)


def settled(engine: Engine) -> int:
    """Return the place up to which nothing can appear any more that was not there: where a cursor over all sessions stops.

    Ask before what is read up to there is asked for, and of the primary of a server.
    """
    return int(engine.query("SELECT settled()")[0][0]) if engine.shared else end_of(engine)


def changed_sessions(engine: Engine, place: int) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions, but the reserved one, with a record behind a place."""
    sql = "SELECT session FROM record WHERE seq > :place"
    return _named(engine, f"SELECT key, id FROM session WHERE id <> :project AND key IN ({sql}) ORDER BY seq", {"place": place})


def recent_sessions(engine: Engine, since: float) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions, but the reserved one, with a record from this moment on (seconds since 1970)."""
    return _named(engine, "SELECT key, id FROM session WHERE id <> :project AND last >= :since ORDER BY seq", {"since": since})


def _named(engine: Engine, sql: str, values: dict[str, object]) -> list[tuple[int, str]]:
    return [(int(row[0]), str(row[1])) for row in engine.query(sql, {**values, "project": PROJECT})]


def leased(engine: Engine, start: str) -> set[str]:
    """Return the names that start so and whose leases hold now."""
    sql = "SELECT session FROM lease WHERE session >= :start AND session < :after AND expires > :now"
    values = {"start": start, "after": start + "\U0010ffff", "now": engine.clock()}
    return {str(row[0]) for row in engine.query(sql, values)}
