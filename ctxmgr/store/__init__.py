"""Where histories lie: a SQLite database, a JSONL log behind an index, or a server. All SQL of the program is here.

Begin with `base.Store`, what `open_store` returns. Then: `engine` runs statements, `engine.schema` has the tables; `write`
makes rows of records, `repositories` reads them, `search` finds texts; `log` is the store over a log, `server_store` the one on
a server; `integrity` checks all of them, `archive` takes old sessions out.

It may import `ctxmgr.types`, `ctxmgr.log` and what lies below. Inside, `engine` stands below `write`, `search` and
`repositories`, and these below `base`. Reading a database loads next to nothing: `base` imports the rest where it is asked for.
"""

from __future__ import annotations

import errno
import os
import stat

from ctxmgr.base.paths import is_url, require_no_link
from ctxmgr.errors import CtxmgrError, Damaged, InvalidInput, NotFound
from ctxmgr.store.base import Store
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.sqlite import SqliteEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.store.engine.log_bytes import DamagedRange
    from ctxmgr.store.log.log_store import LogStore, Progress
    from ctxmgr.store.server_store import Administration
    from ctxmgr.store.write.append import AppendResult

__all__ = ["AppendResult", "DamagedRange", "LogStore", "Store", "administer", "empty_store", "open_store"]

SERVERS = ((("postgresql", "postgres"), "ctxmgr.store.server_store", "psycopg"),)
"""Engines of stores on a server: schemes of their URLs, the module that opens them, and what it needs to be installed."""

LOG_SUFFIXES = (".jsonl", ".ndjson")

_HOMES = {"AppendResult": "write.append", "DamagedRange": "engine.log_bytes", "LogStore": "log.log_store"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load what reading a database does not need when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module 'ctxmgr.store' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"ctxmgr.store.{_HOMES[name]}"), name)


def open_store(
    location: str,
    *,
    create: bool = False,
    readonly: bool = False,
    masked: bool = True,
    durable: bool = False,
    progress: Progress | None = None,
    is_log: bool = False,
) -> Store:
    """Open the store at a path or URL: a ``.jsonl`` log is read in place, any other file is a SQLite database.

    Args:
        location: a path, whose folders are created 0700 and files 0600; or a URL, see `SERVERS`.
        create: make it when it is not there.
        readonly: refuse to append.
        masked: mask secrets in what is appended.
        durable: sync every append to the disk (level ``os``).
        progress: hears of long indexing.
        is_log: it is a log, whatever its name.

    Raises:
        NotFound: it is not there and ``create`` is false.
        InvalidInput: the location can't name a store.
        Damaged, StorageFailed, Busy: it can't be opened.
    """
    if not location or "\0" in location:
        raise InvalidInput(f"{location!r} can't name a store", "give a path, e.g. --store .ctxmgr/history.db")
    if "://" in location or is_url(location):
        return _open_server(location, create=create, readonly=readonly, masked=masked)
    path = _tidy(location)
    is_log = is_log or is_log_name(path)
    try:
        # A log may be read through a link; the journal refuses to write through one.
        require_no_link(path, writing=create or (not readonly and not is_log))
    except OSError as error:
        raise Damaged(f"{error.filename}: {error.strerror}", "name the place itself with --store, or remove the link") from None
    if is_log:
        from ctxmgr.store.log.log_store import LogStore

        if create and _mode(path) is None:
            _touch_log(path)
        return LogStore(path, readonly=readonly, masked=masked, durable=durable, progress=progress)
    mode = _mode(path)
    if mode is None and not create:
        raise NotFound(f"no store at {path}", "run 'ctxmgr import', or check --store and CTXMGR_STORE")
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is not a regular file", "name a .db or .jsonl file")
    engine = SqliteEngine(path, readonly=readonly, durable=durable)
    try:
        if readonly and engine.is_blank():  # whoever made it was killed before it made the tables
            engine.close()
            return empty_store(path)
        engine.migrate(schema.LATEST, schema.READABLE, schema.apply)
    except CtxmgrError:
        engine.close()
        raise
    return Store(engine, path, readonly=readonly, masked=masked)


def _open_server(location: str, *, create: bool, readonly: bool, masked: bool) -> Store:
    opened: Store = _server_module(location).open_server(location, create=create, readonly=readonly, masked=masked)
    return opened


def administer(location: str) -> Administration:
    """Return what the owner of a store on a server does with it, by its URL.

    Raises:
        InvalidInput: the location names no store on a server.
        NotFound, Denied, StorageFailed, Busy: its database can't be opened.
    """
    if "://" not in location and not is_url(location):
        raise InvalidInput(f"{location} is no store on a server", "name its URL: --store postgresql://OWNER@HOST/DATABASE")
    administration: Administration = _server_module(location).Administration(location)
    return administration


def _server_module(location: str) -> Any:
    from importlib import import_module

    scheme, found, _ = location.partition("://")
    if not found:  # what it says is not repeated: it may hold a password
        raise InvalidInput(
            "a store on a server is named by its URL",
            "e.g. --store postgresql://USER@HOST/DATABASE; its password belongs into ~/.pgpass (PGPASSFILE)",
        )
    for schemes, module, needed in SERVERS:
        if scheme in schemes:
            try:
                return import_module(module)
            except ImportError as error:
                from ctxmgr.store.engine.postgresql_url import driver_missing

                raise driver_missing(error, f"stores at {scheme}://", needed, schemes[0]) from None
    known = ", ".join(f"{name}://" for schemes, _, _ in SERVERS for name in schemes)
    raise InvalidInput(f"no store engine for {scheme}://", f"give a path to a .db or .jsonl file, or a URL: {known}")


def _tidy(location: str) -> str:
    """Return a path without empty parts and parts that say "here"; ".." is left, for it may follow a link."""
    root = "/" if location.startswith("/") else ""
    return root + "/".join(part for part in location.split("/") if part not in ("", ".")) or "."


def is_log_name(path: str) -> bool:
    """Whether a path has the name of a log, which is read in place; ``.jsonl`` alone is a hidden file, not a log."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in LOG_SUFFIXES


def exists(path: str) -> bool:
    """Whether anything is at a path.

    Raises:
        OSError: that can't be known, e.g. below a locked folder.
    """
    return _mode(path) is not None


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except ValueError:  # no name that a file can have
        return None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP):
            return None
        raise


def empty_store(location: str) -> Store:
    """Return a store in memory that holds nothing: what reading finds where none was made yet."""
    engine = SqliteEngine(":memory:")
    schema.make(engine.execute)
    return Store(engine, location, readonly=True, masked=True)


def _touch_log(path: str) -> None:
    from ctxmgr.log.journal import Journal

    Journal(path).close()
