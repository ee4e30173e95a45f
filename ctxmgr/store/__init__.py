"""Where histories lie: a SQLite database, or a JSONL log behind a disposable index. All SQL of the program is here."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.store import schema
from ctxmgr.store.base import DamagedRange, Store
from ctxmgr.store.interface import Appended
from ctxmgr.store.log_file import LogStore, Progress
from ctxmgr.store.sqlite import SqliteEngine

__all__ = ["Appended", "DamagedRange", "LogStore", "Store", "empty_store", "open_store"]

LOG_SUFFIXES = (".jsonl", ".ndjson")


def open_store(
    location: str,
    *,
    create: bool = False,
    readonly: bool = False,
    masked: bool = True,
    durable: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Open the store at a path: a ``.jsonl`` log is read in place, anything else is a SQLite database.

    Args:
        location: a path; folders are created 0700, files 0600.
        create: make it when it is not there.
        readonly: refuse to append.
        masked: mask secrets in what is appended.
        durable: sync every append to the disk (level ``os``).
        progress: hears of long indexing.

    Raises:
        NotFound: it is not there and ``create`` is false.
        InvalidInput: the location can't name a store.
        Damaged, StorageFailed, Busy: it can't be opened.
    """
    if not location or "\0" in location:
        raise InvalidInput(f"{location!r} can't name a store", "give a path, e.g. --store .ctxmgr/history.db")
    if "://" in location:
        raise InvalidInput(f"no store engine for {location!r}", "give a path to a .db or .jsonl file")
    path = Path(location)
    if path.suffix.lower() in LOG_SUFFIXES:
        if create and not path.exists():
            _touch_log(path)
        return LogStore(path, readonly=readonly, masked=masked, durable=durable, progress=progress)
    if not create and not path.exists():
        raise NotFound(f"no store at {path}", "run 'ctxmgr import', or check --store and CTXMGR_STORE")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InvalidInput(f"{path} is not a regular file", "name a .db or .jsonl file")
    engine = SqliteEngine(str(path), readonly=readonly, durable=durable)
    try:
        engine.migrate(schema.LATEST, schema.apply)
    except CtxmgrError:
        engine.close()
        raise
    return Store(engine, str(path), readonly=readonly, masked=masked)


def empty_store(location: str) -> Store:
    """Return a store in memory that holds nothing: what reading finds where none was made yet."""
    engine = SqliteEngine(":memory:")
    engine.migrate(schema.LATEST, schema.apply)
    return Store(engine, location, readonly=True, masked=True)


def _touch_log(path: Path) -> None:
    from ctxmgr.journal import Journal

    Journal(path).close()
