"""Narrow questions about artifacts: which ids start so, whose artifacts a version shows."""

from __future__ import annotations

from ctxmgr.store.folding import storable
from ctxmgr.store.interface import Engine


def ids_starting(engine: Engine, start: str) -> list[str]:
    """Return the ids of artifacts that start so, in order."""
    rows = engine.query(
        "SELECT id FROM artifact WHERE id >= :id AND id < :after ORDER BY id",
        {"id": storable(start), "after": storable(start) + "\U0010ffff"},
    )
    return [str(row[0]) for row in rows]


def owners_in(engine: Engine, version: int) -> list[str]:
    """Return the owners of what a version shows, in order."""
    rows = engine.query(
        "WITH RECURSIVE line(number) AS (SELECT :version UNION ALL SELECT version.parent FROM version "
        "JOIN line ON version.number = line.number WHERE version.parent IS NOT NULL) "
        "SELECT DISTINCT agent FROM artifact WHERE version IN (SELECT number FROM line) ORDER BY agent",
        {"version": version},
    )
    return [str(row[0]) for row in rows]
