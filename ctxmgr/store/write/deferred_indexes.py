"""Bulk-load a log first, then create its secondary indexes.

Each row that is put into several sorted trees at once costs several times what it costs to sort them afterwards. Until that
is done nothing tells whether a record comes twice: where one does, the index is built again in the usual way.
"""

from __future__ import annotations

from ctxmgr.errors import Conflict
from ctxmgr.store.engine.dialect import KEEP_STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.store.engine.interface import Engine, Row

STAGE = "deferred"
"""Name of the row of ``state`` that says how far this is: `BUILDING`, `DUE` when all that can be so is written, or `TWICE`."""

BUILDING, DUE, TWICE = "building", "due", "twice"

_TABLES = "('line', 'entry', 'event')"
_LOOSE = "INSERT INTO loose (session, id, seq, status) VALUES (?, ?, ?, ?)"
_JOIN = (
    "UPDATE entry SET status = loose.status, result = loose.seq FROM loose CROSS JOIN line ON line.id = loose.id "
    "AND line.kind = 'entry' AND line.session = loose.session WHERE entry.seq = line.seq AND entry.status = 'open'"
)


def stage(engine: Engine) -> str | None:
    """Return how far it is, or None where nothing is deferred."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": STAGE})
    return str(rows[0][0]) if rows else None


def begin(engine: Engine) -> None:
    """Take the indexes away from the tables, which are empty."""
    engine.execute(
        # In a table, so that after a kill the next process knows which indexes are still to be made.
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
    """Say that all is written that can be written so."""
    _set_stage(engine, DUE)


def complete(engine: Engine) -> bool:
    """Make the indexes, and join results with their entries; return False if a record comes twice."""
    # The unique index first: it finds records that come twice, and the join looks entries up in it.
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
    engine.execute("PRAGMA shrink_memory")  # what sorting took is not needed again
    return True


def forget(engine: Engine) -> None:
    """Give the tables their indexes back, which were emptied, if they were taken away."""
    if engine.query("SELECT 1 FROM sqlite_master WHERE name = 'later'"):
        there = {str(row[0]) for row in engine.query("SELECT name FROM sqlite_master WHERE type = 'index'")}
        for name, sql in engine.query("SELECT name, sql FROM later"):
            if name not in there and not name.startswith("line_"):  # that table is made anew
                engine.execute(sql)
        for table in ("later", "loose"):
            engine.execute(f"DROP TABLE {table}")


def refuse(engine: Engine) -> None:
    """Say that a record of the log comes twice."""
    _set_stage(engine, TWICE)


def _set_stage(engine: Engine, value: str) -> None:
    engine.execute(KEEP_STATE, {"name": STAGE, "value": value})
