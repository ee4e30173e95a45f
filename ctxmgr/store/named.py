"""Find a record by its id in whichever session it lies."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.store.folding import storable
from ctxmgr.store.hydrate import ID_CONDITIONS, load
from ctxmgr.store.interface import Engine
from ctxmgr.wire import Record


def find_record(engine: Engine, kind: str, identity: str) -> Record | None:
    """Return the record of a kind with this id, or with one that starts so if there is exactly one.

    Raises:
        InvalidInput: several have it, or start so.
    """
    wanted = storable(identity)
    for condition in ID_CONDITIONS if wanted else ():
        rows = engine.query(
            f"SELECT body FROM record WHERE {condition} AND kind = :kind LIMIT 2",
            {"id": wanted, "after": wanted + "\U0010ffff", "kind": kind},
        )
        if len(rows) > 1:
            raise InvalidInput(f"several {kind} ids are {identity!r}, or start so", "give more of the id, or the session")
        if rows:
            return load(rows[0][0])
    return None
