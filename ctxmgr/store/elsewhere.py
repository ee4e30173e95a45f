"""The records of a store as another process finds them: where they are, and opened there for reading alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ctxmgr.errors import StorageFailed
from ctxmgr.store.cache import BORN
from ctxmgr.store.log_bytes import LogBytes
from ctxmgr.store.sqlite import MEMORY, SqliteEngine

if TYPE_CHECKING:
    from ctxmgr.store.interface import Engine

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
