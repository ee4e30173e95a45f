"""Bulk-load a log first, then create its secondary indexes.

Inserting a row into several sorted trees takes several times as long as sorting all rows afterwards. Until the indexes exist,
a repeated record is not noticed. If there is one, the index of the log is built again in the usual way.
"""

from __future__ import annotations

from ctxmgr.errors import Conflict
from ctxmgr.store.engine.dialect import KEEP_STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.store.engine.interface import Engine, Row

STAGE = "deferred"
"""Name of the row in ``state`` with the stage: `BUILDING`, `DUE` (rows are written, indexes are missing) or `TWICE`."""

BUILDING, DUE, TWICE = "building", "due", "twice"

_TABLES = "('line', 'entry', 'event')"
_LOOSE = "INSERT INTO loose (session, id, seq, status) VALUES (?, ?, ?, ?)"
_JOIN = (
    "UPDATE entry SET status = loose.status, result = loose.seq FROM loose CROSS JOIN line ON line.id = loose.id "
    "AND line.kind = 'entry' AND line.session = loose.session WHERE entry.seq = line.seq AND entry.status = 'open'"
)


def stage(engine: Engine) -> str | None:
    """Return the stage, or None if nothing is deferred."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": STAGE})
    return str(rows[0][0]) if rows else None


def begin(engine: Engine) -> None:
    """Drop the indexes of the empty tables."""
    engine.execute(
        # Kept in a table, so that after a kill the next process knows which indexes are missing.
        f"CREATE TABLE later AS SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
        f"AND tbl_name IN {_TABLES}"
    )
    engine.execute(
        "CREATE TABLE loose (session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, status TEXT NOT NULL)"
    )
    for (name,) in engine.query("SELECT name FROM later"):
        engine.execute(f"DROP INDEX {name}")
    _set_stage(engine, BUILDING)


def keep_loose(engine: Engine, rows: Sequence[Row]) -> None:
    """Keep (session, id, place, status) of results until their entries can be found."""
    engine.many(_LOOSE, rows)


def end(engine: Engine) -> None:
    """Set the stage `DUE`: all rows are written that can be written without indexes."""
    _set_stage(engine, DUE)


def complete(engine: Engine) -> bool:
    """Create the indexes, and join results with their entries. Return False if a record is repeated."""
    # The unique index comes first, because it finds repeated records and the join looks up entries in it.
    made = dict(engine.query("SELECT name, sql FROM later ORDER BY name != 'line_once'"))
    try:
        for name, sql in made.items():
            engine.execute(sql)
            if name == "line_once":
                engine.execute(_JOIN)
    except Conflict:
        return False
    for table in ("later", "loose"):
        engine.execute(f"DROP TABLE {table}")
    engine.execute("DELETE FROM state WHERE name = :name", {"name": STAGE})
    engine.execute("PRAGMA shrink_memory")  # free the memory that sorting took
    return True


def forget(engine: Engine) -> None:
    """Create the dropped indexes again on tables that were emptied, if any were dropped."""
    if engine.query("SELECT 1 FROM sqlite_master WHERE name = 'later'"):
        there = {str(row[0]) for row in engine.query("SELECT name FROM sqlite_master WHERE type = 'index'")}
        for name, sql in engine.query("SELECT name, sql FROM later"):
            if name not in there and not name.startswith("line_"):  # the caller creates that table again
                engine.execute(sql)
        for table in ("later", "loose"):
            engine.execute(f"DROP TABLE {table}")


def refuse(engine: Engine) -> None:
    """Set the stage `TWICE`: the log has a repeated record, so nothing is deferred again."""
    _set_stage(engine, TWICE)


def _set_stage(engine: Engine, value: str) -> None:
    engine.execute(KEEP_STATE, {"name": STAGE, "value": value})
