"""Compare the tables of a database with its records: what a query reads must follow from what was recorded.

The records carry sums; the tables that filters and pages read do not. Whoever can write the file can have an entry read
"ok" that failed, and no sum tells. So the tables are made anew from the records, beside the database, and compared.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby

from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine
from ctxmgr.store.integrity.damage import DamagedRange
from ctxmgr.store.write.append import Appender

_MAX_IN_MEMORY = 20_000
"""Records up to which the tables are made in memory."""
_AT_ONCE = 4_096
_PROGRAMS = "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY name"

_TABLES: dict[str, tuple[str, str]] = {
    "session": ("entries, seq, workflow, source, meta", "id"),
    "process": ("process, started, outcome", "session"),
    "record": ("seq, kind, id, ts", "session"),
    "entry": ("seq, idx, agent, action, input_type, process, ts, status, result", "session"),
    "event": ("seq, type, agent, entry, after, ts", "session"),
    "note_entry": ("entry, note", "session"),
    "note_tag": ("tag, note", "session"),
    "superseded": ("note, successor", "session"),
    "access_rule": ("agent, resource, pattern, permission, priority", ""),
    "context_key": ("key, value, type", ""),
    "artifact": ("id, version, agent, name, hash", ""),
    "version": ("number, parent, op", ""),
}
"""What is compared of each table, and by which column a row belongs to a session, whose key may be another one."""


def contradictions(engine: Engine) -> list[DamagedRange]:
    """Return what the tables of a database say that does not follow from its records, one range a table.

    Raises:
        Damaged, StorageFailed: it can't be read, or there is no room for the tables to compare with.
    """
    ((count,),) = engine.query("SELECT count(*) FROM record")
    with tempfile.TemporaryDirectory(prefix="ctxmgr-") as folder:
        place = MEMORY if int(count) <= _MAX_IN_MEMORY else os.path.join(folder, "tables.db")
        with closing(SqliteEngine(place, disposable=True)) as made:
            with made.transaction():
                schema.make(made.execute)
            _fill(engine, made)
            found = [found for table in _TABLES if (found := _difference(engine, made, table)) is not None]
            return found + (_programs(engine, made) if isinstance(engine, SqliteEngine) else [])


def _programs(engine: Engine, made: Engine) -> list[DamagedRange]:
    """Return the triggers of a database, which no store has, and views of ours that say otherwise; views may be added."""
    own = {name: text for _, name, text in made.query(_PROGRAMS)}
    return [
        DamagedRange(0, 0, f"the {kind} {str(name)!r} is none of a store", "inserted" if kind == "trigger" else "altered")
        for kind, name, text in engine.query(_PROGRAMS)
        if kind == "trigger" or text != own.get(name, text)
    ]


def _fill(engine: Engine, made: Engine) -> None:
    appender = Appender(made, masked=False, sums=False)
    placed = _records(engine)
    while part := [found for _, found in zip(range(_AT_ONCE), placed, strict=False)]:
        with made.transaction():
            appender.copy(part)


def _records(engine: Engine) -> Iterator[tuple[int, Record]]:
    for seq, body in engine.stream("SELECT seq, body FROM record ORDER BY seq"):
        try:
            yield int(seq), codec.decode(str(body).encode("utf-8", "surrogatepass"))
        except ValueError:  # told by its sum
            continue


def _difference(engine: Engine, made: Engine, table: str) -> DamagedRange | None:
    """Return the damage where the rows of a table differ from those made from the records, else None."""
    columns, owner = _TABLES[table]
    both = sorted([*_rows(engine, columns, table, owner), *_rows(made, columns, table, owner)], key=repr)
    odd = sum(1 for _, same in groupby(both, key=repr) if len(list(same)) % 2)
    if not odd:
        return None
    return DamagedRange(0, odd, f"{odd:,} rows of the table {table} do not follow from the records", "altered")


def _rows(engine: Engine, columns: str, table: str, owner: str) -> Iterator[Row]:
    named = ", ".join(f"{table}.{column}" for column in columns.split(", "))
    if owner == "session":
        return engine.stream(f"SELECT session.id, {named} FROM {table} LEFT JOIN session ON session.key = {table}.session")
    return engine.stream(f"SELECT {f'{table}.id, ' if owner else ''}{named} FROM {table}")
