"""Turns a store into one of the version before, whose sums are one chain over all sessions."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.log import anchor, codec
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.engine.wal_sync import read_head
from tests.builders import entry

VERSION = 4
"""The last one with a common chain in a database."""


def chain_together(engine: Engine) -> None:
    """Let the sum of each record follow from that of the one before it, whatever its session; call it in a transaction."""
    total = ""
    for seq, body in engine.query("SELECT seq, body FROM record ORDER BY seq"):
        total = codec.chain(total, str(body).encode())
        engine.execute("UPDATE record SET sum = :sum WHERE seq = :seq", {"sum": total, "seq": seq})
    engine.execute(f"ALTER TABLE {'ctxmgr.session' if engine.shared else 'session'} DROP COLUMN sum")


def former_database(place: Path, change: str = "") -> list[tuple[int, str, str]]:
    """Make a database of the version before with three sessions side by side; return its records.

    Args:
        place: of the database.
        change: statements that damage it, once it was anchored.
    """
    store = open_store(str(place), create=True)
    fill(store)
    store.close()
    return make_former(place, change)


def make_former(place: Path, change: str = "") -> list[tuple[int, str, str]]:
    """Turn a database into one of the version before; else as `former_database`."""
    engine = SqliteEngine(str(place), disposable=True)  # which is not anchored by itself
    with engine.transaction():
        chain_together(engine)
        engine.execute("DELETE FROM _sqlite_migrations WHERE name = :name", {"name": schema.SCRIPTS[-1][0]})
        engine.execute("DELETE FROM state WHERE name = 'sums.chained'")
        engine.execute(f"PRAGMA user_version = {VERSION}")
        head = read_head(engine)
        for statement in filter(None, change.split(";")):
            engine.execute(statement)
    assert head is not None
    anchor.store(str(place), head)
    rows = records(engine)
    engine.close()
    return rows


def fill(store: Store, start: int = 0) -> None:
    """Record nine entries, by turns in three sessions."""
    for number in range(start, start + 9):
        store.append([entry("abc"[number % 3], number, "Bash", {"command": f"x{number}"})])


def records(engine: Engine) -> list[tuple[int, str, str]]:
    """Return place, body and sum of each record."""
    return [
        (int(seq), str(body), str(total)) for seq, body, total in engine.query("SELECT seq, body, sum FROM record ORDER BY seq")
    ]
