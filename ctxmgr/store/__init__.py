"""Stores of histories: a SQLite database, a JSONL log with an index, or a server. All SQL of the program is here.

Start with `base.Store`, which `open_store` returns. `engine` runs statements and `engine.schema` defines the tables. `write`
turns records into rows, `repositories` reads them, and `search` finds texts. `log_store` is the store over a log,
`server_store` the store on a server. `verification` verifies any of them, `status` describes it, and `archive` moves old
sessions out.

This package may import `ctxmgr.types`, `ctxmgr.log` and the layers below. Inside it, `engine` lies below `write`, `search` and
`repositories`, which lie below `base`. Reading a database must load few modules, so `base` imports the others at first use.
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
    from ctxmgr.store.log_store import LogStore, Progress
    from ctxmgr.store.server_store import Administration
    from ctxmgr.store.write.append import AppendResult

__all__ = ["AppendResult", "DamagedRange", "LogStore", "Store", "administer", "empty_store", "open_store"]

SERVERS = ((("postgresql", "postgres"), "ctxmgr.store.server_store", "psycopg"),)
"""Kinds of stores on a server: the schemes of their URLs, the module that opens them, and the package that it needs."""

LOG_SUFFIXES = (".jsonl", ".ndjson")

_HOMES = {"AppendResult": "write.append", "DamagedRange": "engine.log_bytes", "LogStore": "log_store"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name at first use if reading a database does not need it."""
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
        location: a path, or a URL, see `SERVERS`. Folders are created with mode 0700, files with 0600.
        create: create the store if it does not exist.
        readonly: refuse to append.
        masked: mask secrets in appended records.
        durable: sync every append to the disk (level ``os``).
        progress: called while a log is indexed.
        is_log: treat the file as a log, whatever its name.

    Raises:
        NotFound: the store does not exist and ``create`` is false.
        InvalidInput: the location can't name a store.
        Damaged, StorageFailed, Busy: the store can't be opened.
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
        from ctxmgr.store.log_store import LogStore

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
        if readonly and engine.is_blank():  # the process that created the file was killed before it created the tables
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
    """Return the `Administration` of the store at the URL of a server: the tasks of its owner.

    Raises:
        InvalidInput: the location is not the URL of a server.
        NotFound, Denied, StorageFailed, Busy: the database can't be opened.
    """
    if "://" not in location and not is_url(location):
        raise InvalidInput(f"{location} is no store on a server", "name its URL: --store postgresql://OWNER@HOST/DATABASE")
    administration: Administration = _server_module(location).Administration(location)
    return administration


def _server_module(location: str) -> Any:
    from importlib import import_module

    scheme, found, _ = location.partition("://")
    if not found:  # the message must not repeat the location, which may hold a password
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
    """Return a path without empty parts and "." parts. Keep "..", because it may follow a symbolic link."""
    root = "/" if location.startswith("/") else ""
    return root + "/".join(part for part in location.split("/") if part not in ("", ".")) or "."


def is_log_name(path: str) -> bool:
    """Whether a path ends like the name of a log. A file called ``.jsonl`` is a hidden file, not a log."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in LOG_SUFFIXES


def exists(path: str) -> bool:
    """Whether a path exists.

    Raises:
        OSError: the system can't tell, e.g. in a folder without permission to search it.
    """
    return _mode(path) is not None


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except ValueError:  # no file can have this name
        return None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP):
            return None
        raise


def empty_store(location: str) -> Store:
    """Return an empty store in memory, for readers of a store that has no tables yet."""
    engine = SqliteEngine(":memory:")
    schema.make(engine.execute)
    return Store(engine, location, readonly=True, masked=True)


def _touch_log(path: str) -> None:
    from ctxmgr.log.journal import Journal

    Journal(path).close()
