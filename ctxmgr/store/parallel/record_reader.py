"""Read the records of a store in another process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ctxmgr.errors import StorageFailed
from ctxmgr.store.engine.disposable import BORN
from ctxmgr.store.engine.log_bytes import LogBytes
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.store.engine.interface import Engine

_LINES = "(SELECT seq, session, kind, id, log_body(offset, length) AS body FROM main.line)"


class Place(NamedTuple):
    """Where another process finds the records of a store, as plain data.

    Attributes:
        database: path of the database.
        log: path of the log whose index that is; "" for none.
        born: tells this building of an index from the next, whose places are others.
    """

    database: str
    log: str
    born: str


def place_of(engine: Engine, location: str) -> Place | None:
    """Return where another process finds a store's records, None where it can't; ``location`` is the store's."""
    if not isinstance(engine, SqliteEngine) or engine.path == MEMORY:
        return None
    in_place = engine.query("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'record'")[0][0]
    log = os.path.abspath(location) if in_place else ""
    return Place(os.path.abspath(engine.path), log, born_of(engine))


def born_of(engine: Engine) -> str:
    """Return what tells the places of an index from those of one that was made anew; "" where that never happens."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": BORN})
    return str(rows[0][0]) if rows else ""


def opened(place: Place) -> tuple[SqliteEngine, str]:
    """Open the records in another process; return the engine, and what statements call them there.

    Raises:
        CtxmgrError: they can't be read, or the log is not the one that was indexed.
    """
    engine = SqliteEngine(place.database, readonly=True)
    if place.born != born_of(engine):
        raise StorageFailed(f"{place.database} was made anew", "run the command again")
    if not place.log:
        return engine, "record"
    _serve_lines(engine, place.log)
    return engine, _LINES


def _serve_lines(engine: SqliteEngine, path: str) -> None:
    log = LogBytes(path)
    size = log.follow()
    state = dict(engine.query("SELECT name, value FROM state"))
    end = int(state["offset"])
    if size < end or not log.head().startswith(state["head"]) or log.before(end) != state["before"]:
        raise StorageFailed(f"{path} was replaced", "run the command again")
    log.serve(engine)


_ROWS = 256


def stretches(
    engine: Engine, key: int, kinds: Sequence[str], after: int = 0, records: str = "record"
) -> Iterator[tuple[int, list[str]]]:
    """Yield the stored records of a session behind a place, some at a time with the place of the last of them."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    sql = f"SELECT seq, body FROM {records} WHERE session = :key AND seq > :after AND kind IN ({names}) ORDER BY seq"
    bodies: list[str] = []
    for seq, body in engine.stream(sql, {"key": key, "after": after}):
        bodies.append(str(body))
        if len(bodies) == _ROWS:
            yield int(seq), bodies
            bodies = []
        after = int(seq)
    if bodies:
        yield after, bodies


def stretches_there(place: Place, key: int, kinds: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the same in another process than that which has the store open; nothing is written.

    Raises:
        CtxmgrError: it can't be read, or the log is not the one that was indexed.
    """
    engine, records = opened(place)
    yield from stretches(engine, key, kinds, records=records)
