"""Make every append durable before it returns (level ``os``)."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from ctxmgr.store.base import Store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.log.log_store import LogStore


@contextlib.contextmanager
def durably(store: Store) -> Generator[None]:
    """Let appends inside wait for the disk; call it outside of a transaction.

    A log is synced by each append that opens and closes it, as stores do; a database at its commit.
    """
    engine = store.engine
    if isinstance(store, LogStore) or not isinstance(engine, SqliteEngine) or engine.readonly:
        yield
        return
    before = int(engine.query("PRAGMA synchronous")[0][0])
    engine.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        engine.execute(f"PRAGMA synchronous = {before:d}")
