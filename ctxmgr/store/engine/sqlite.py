"""The SQLite engine: loads the driver, checks its library, runs all statements and translates SQLite's errors.

The SQLite of most systems (3.7.0 to 3.51.2) can corrupt a database in write-ahead mode if the log is restarted while
another process reads. The bug is fixed in 3.51.3, 3.50.7 and 3.44.6, and the engine refuses to run with an unfixed library.
"""

from __future__ import annotations

import os
import sys
import time

from ctxmgr.base.paths import require_plain_database
from ctxmgr.errors import Busy, Conflict, CtxmgrError, Damaged, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any

    from ctxmgr.store.engine.interface import Row, Values
    from ctxmgr.store.engine.wal_sync import WalSync


def driver() -> Any:
    """Return the SQLite driver: the extension module of pysqlite3 alone, else all of pysqlite3, else the standard library's.

    The Python part of a driver adds adapters for dates and the like. We do not use them, and loading them takes as long as
    three queries.
    """
    try:
        return sys.modules.get("pysqlite3._sqlite3") or extension("pysqlite3", "_sqlite3")
    except (ImportError, AttributeError):
        pass
    try:
        from pysqlite3 import dbapi2
    except ImportError:  # no wheel for this platform
        import sqlite3

        return sqlite3
    return dbapi2


def extension(package: str, name: str) -> Any:
    """Load an extension module from a package without importing the package, and register it for later imports.

    Raises:
        ImportError, AttributeError: the module does not exist, or can't be loaded alone.
    """
    found: Any = _spec(package, None)
    if not found.submodule_search_locations:  # not a package, so the search would look for the extension everywhere
        raise ImportError(package)
    spec: Any = _spec(f"{package}.{name}", found.submodule_search_locations)
    module = spec.loader.create_module(spec)
    sys.modules[spec.name] = module  # a later import of the package finds this module
    try:
        spec.loader.exec_module(module)
        for needed in ("connect", "Error", "OperationalError", "sqlite_version"):
            getattr(module, needed)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _spec(name: str, path: Any) -> Any:
    for finder in sys.meta_path:
        if (spec := finder.find_spec(name, path)) is not None:
            return spec
    raise ImportError(name)


sqlite: Any = driver()
# Older branches with a backport of the fix, and their first fixed release.
_SOUND_BRANCHES = {(3, 50): 7, (3, 44): 6}


def is_sound(version: tuple[int, ...]) -> bool:
    """Whether a SQLite of this version is free of the WAL-reset bug."""
    # Before 3.7.0 SQLite had no write-ahead log.
    if version < (3, 7, 0) or version >= (3, 51, 3):
        return True
    return version[2] >= _SOUND_BRANCHES.get((version[0], version[1]), 1_000)


def library_version() -> tuple[int, ...]:
    """Return the version of the SQLite library in use."""
    return tuple(int(part) for part in str(sqlite.sqlite_version).split("."))


def require_sound_library() -> None:
    """Check that the SQLite library can't corrupt a store.

    Raises:
        Damaged: the library has the bug; the message names its version.
    """
    if not is_sound(library_version()):
        raise Damaged(
            f"the SQLite library {sqlite.sqlite_version} has the WAL-reset bug and may corrupt a store",
            "install pysqlite3 0.6.1 or newer (pip install 'pysqlite3>=0.6.1'), or keep the history in a .jsonl log",
        )


BUSY_MS = 10_000
"""How long the engine waits for a lock of another process, in milliseconds."""

WRITER_BUSY_MS = 12
"""How long SQLite itself waits for a lock on a writing connection, in milliseconds. Then `SqliteEngine` tries again.

SQLite retries less and less often, in the end every 100 ms, and its lock goes to the process that tries at the right moment.
Beside seven busy writers, a process that retries so rarely can fail for longer than `BUSY_MS`.
"""

MEMORY = ":memory:"
"""The path of a database in memory."""

SIDE_FILES = ("", "-wal", "-shm")
"""Suffixes of the files of a database: the database itself, its write-ahead log and its shared memory."""


class SqliteEngine:
    """One connection to a SQLite database. Any thread may use it, but only one at a time.

    Args:
        path: the database file, or `MEMORY`.
        readonly: open for reading only; the file must exist.
        durable: sync every commit (level ``os``) instead of leaving it to the kernel (level ``process``).
        disposable: the database can be rebuilt from other files. It is not synced, and removed if it is damaged.

    Attributes:
        raised: the exception of a Python function called by a statement, until the statement raises it.
    """

    shared = False

    def __init__(self, path: str, *, readonly: bool = False, durable: bool = False, disposable: bool = False) -> None:
        require_sound_library()
        self.path = path
        self.readonly = readonly
        self._disposable = disposable
        self._depth = 0
        self._functions: set[str] = set()
        self._sync: WalSync | None = None
        if not readonly and not disposable and path != MEMORY:
            from ctxmgr.store.engine.wal_sync import WalSync

            # The sync opens files by this path later, when the process may have changed its working directory.
            place = _absolute(path)
            self._sync = WalSync(place, lambda: SqliteEngine(place, readonly=True), durable=durable)
        self.raised: BaseException | None = None
        self._open(durable)

    def _open(self, durable: bool) -> None:
        try:
            self._connection = self._connect(self.path, self.readonly)
            try:
                for pragma in _pragmas(self.readonly, durable, self._disposable):
                    self._connection.execute(pragma)
                if not self.readonly:
                    _write_ahead(self._connection)
                    self._connection.execute(f"PRAGMA busy_timeout = {WRITER_BUSY_MS:d}")
            except sqlite.Error:
                self._connection.close()
                raise
        except _ERRORS as error:
            raise self._translate(error) from None
        self._boundary = self._connection.cursor().execute  # begins and ends transactions

    def move_to_memory(self) -> None:
        """Replace a disposable database that the disk refuses by an empty one in memory. Its content is lost."""
        self.path = MEMORY
        self._functions.clear()
        self._open(durable=False)
        if self._depth:  # the caller will end the transaction that it began
            self._boundary("BEGIN IMMEDIATE")

    @staticmethod
    def _connect(path: str, readonly: bool) -> Any:
        options: dict[str, Any] = {
            # Otherwise the driver begins deferred transactions by itself, which can fail while others read.
            "isolation_level": None,
            "timeout": BUSY_MS / 1000,
            "cached_statements": 256,
            # Recorders write from any thread. Their sink holds a lock, so only one writes at a time.
            "check_same_thread": False,
        }
        if path == MEMORY:
            return sqlite.connect(path, **options)
        try:
            require_plain_database(path)
        except OSError as error:
            raise Damaged(f"{error.filename}: {error.strerror}", "remove it, unless you know what it is") from None
        uri = _uri(path)
        if not readonly:
            _create_private(path)
            return sqlite.connect(uri + "?mode=rw", uri=True, **options)
        connection = sqlite.connect(uri + "?mode=ro", uri=True, **options)
        try:
            # Opening a connection reads nothing, so only a first statement shows whether the database is readable.
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite.Error as error:
            connection.close()
            # SQLite can't create its side files in a read-only folder or on a full disk. If there is no write-ahead log, the
            # database file alone is complete and can be read without them.
            name = str(getattr(error, "sqlite_errorname", ""))
            if not name.startswith(_NO_SIDE_FILES) or _holds_anything(path + "-wal"):
                raise
            connection = sqlite.connect(uri + "?immutable=1", uri=True, **options)
        return connection

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a SELECT."""
        rows: list[Row] = self._run(_fetch, self._connection, sql, values or {})
        return rows

    def stream(self, sql: str, values: Values | None = None, at_once: int = 256) -> Iterator[Row]:
        """Yield rows in batches. Consume or close the stream, because an open one keeps the write-ahead log from a reset."""
        try:
            cursor = self._run(self._connection.execute, sql, values or {})
            try:
                while rows := cursor.fetchmany(at_once):
                    yield from rows
            finally:
                _close(cursor)
        except _ERRORS as error:
            raise self._translate(error) from None

    def execute(self, sql: str, values: Values | None = None) -> int:
        """Run a writing statement. Return the number of affected rows."""
        return int(self._run(self._connection.execute, sql, values or {}).rowcount)

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values. Return the number of affected rows."""
        return int(self._run(self._connection.executemany, sql, rows).rowcount)

    def _run(self, call: Callable[..., Any], *given: Any) -> Any:
        """Call the driver and return its result. Wait up to `BUSY_MS` for locks of other processes."""
        deadline = 0.0
        while True:
            try:
                return call(*given)
            except _ERRORS as error:
                now = time.monotonic()
                deadline = deadline or now + BUSY_MS / 1000
                if now >= deadline or not self._can_wait(error):
                    raise self._translate(error) from None
            time.sleep(0.001)

    def _can_wait(self, error: Exception) -> bool:
        """Whether to retry a statement. Not inside a transaction, and not for a reader, which has waited in SQLite already."""
        return not self.readonly and _is_busy(error) and not self._connection.in_transaction

    @property
    def connection(self) -> Any:
        """The driver's connection, for `ctxmgr.store.read_query`, which runs a user's own statements on it."""
        return self._connection

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Register a Python function for use in statements; see `Engine.function`."""

        def call_and_keep_error(*given: Any) -> Any:
            try:
                return call(*given)
            except BaseException as error:  # SQLite reports that the function failed, but not with which exception
                self.raised = error
                raise

        if name not in self._functions:
            self._connection.create_function(name, arguments, call_and_keep_error, deterministic=True)
            self._functions.add(name)

    def transaction(self) -> _Transaction:
        """Take the write lock at once, because a deferred lock can fail while others read. Commit at the end. May be nested."""
        return _Transaction(self)

    def begin(self) -> None:
        """Enter a transaction. A nested one becomes part of the outer one."""
        if self._depth == 0:
            if self._sync is not None:
                # Report a sync that failed in the thread before anything more is written.
                self._sync.require_synced()
            self._run(self._boundary, "BEGIN IMMEDIATE")
        self._depth += 1

    def end(self, *, commit: bool) -> None:
        """Leave a transaction. Commit or roll back the outermost one."""
        self._depth -= 1
        if self._depth:
            return
        if not commit:
            self._rollback()
            return
        try:
            self._boundary("COMMIT")
        except _ERRORS as error:
            self._rollback()
            raise self._translate(error) from None
        if self._sync is not None:
            # The kernel has the commit now. A thread syncs it to the disk within a second.
            self._sync.note()

    def _rollback(self) -> None:
        # SQLite itself rolls back after a full disk or an I/O error. There is nothing left to undo then.
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite.Error:
            return

    def reading(self) -> _Reading:
        """Let all statements inside read one snapshot of the database; see `Engine.reading`."""
        return _Reading(self)

    def durably(self) -> _Durably:
        """Sync commits inside to the disk. Must be entered outside of a transaction."""
        return _Durably(self)

    def faults(self, most: int | None = None) -> list[str]:
        """Return the damage that SQLite reports; see `Engine.faults`."""
        # `quick_check` does not compare indexes with their tables, which takes most of the time.
        check = "integrity_check" if most is None else f"quick_check({most:d})"
        return [str(row[0]) for row in self.query(f"PRAGMA {check}") if row[0] != "ok"]

    def schema_version(self) -> int:
        """Return the version of the tables, 0 if there are none."""
        return int(self.query("PRAGMA user_version")[0][0])

    def clock(self) -> float:
        """Return this machine's time. All users of the file are on this machine."""
        return time.time()

    def is_blank(self) -> bool:
        """Whether the database is empty, as it is before its tables are created."""
        if self.schema_version():
            return False
        return not self.query("SELECT 1 FROM sqlite_master LIMIT 1")

    def migrate(self, latest: int, readable: int, apply: Callable[[Any], None]) -> None:
        """Migrate the schema to ``latest`` in one transaction; ``apply`` gets a sqlite_utils Database.

        A readonly engine never migrates. It accepts versions from ``readable`` on.

        Raises:
            Damaged: the store was written by a newer ctxmgr, or by one whose schema is too old for a readonly engine.
        """
        if self._check_version(latest):
            return
        if self.readonly:
            if self.schema_version() >= readable:
                return
            raise Damaged(
                f"{self.path} has an older schema, and reading never migrates it",
                "run any writing command once, e.g. 'ctxmgr import'",
            )
        import sqlite_utils  # the import takes longer than a whole query, and is needed once in a store's life

        with self.transaction():
            if self._check_version(latest):  # another process was faster
                return
            try:
                apply(sqlite_utils.Database(self._connection))
            except _ERRORS as error:
                raise self._translate(error) from None
            self.execute(f"PRAGMA user_version = {latest:d}")

    def create(self, latest: int, make: Callable[[Callable[[str], object]], None]) -> None:
        """Create the tables of ``latest`` in a blank database in one transaction, without loading the migrations.

        Args:
            latest: the version that the database gets.
            make: creates the tables; its argument runs a statement.

        Raises:
            Damaged: the database belongs to another program, or was written by a newer ctxmgr.
        """
        if self._check_version(latest):
            return
        with self.transaction():
            if self._check_version(latest):  # another process was faster
                return
            make(self.execute)
            self.execute(f"PRAGMA user_version = {latest:d}")

    def _check_version(self, latest: int) -> bool:
        found = self.schema_version()
        # Every version of our schema has this index.
        if found < latest and self.query(
            "SELECT 1 FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'record_once') LIMIT 1"
        ):
            raise Damaged(f"{self.path} is a database of another program", "name another file: --store PATH")
        if found > latest:
            raise Damaged(
                f"{self.path} was written by a newer ctxmgr (schema {found}, this one knows {latest})",
                "upgrade: pip install -U ctxmgr-cli",
            )
        return found == latest

    def _translate(self, error: Exception) -> BaseException:
        """Return the exception to raise for a driver error: that of a Python function that the statement called, or ours."""
        raised, self.raised = self.raised, None
        if raised is None and self._disposable and self.path != MEMORY and _is_damage(error):
            remove_database(self.path)
            return Damaged(f"the index {self.path} was damaged, and was removed", "run it again: the index is made anew")
        if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes a damaged schema
            return Damaged(f"{self.path} is damaged", "run 'ctxmgr verify', or restore a backup")
        return raised or _ours(self.path, error)

    def close(self) -> None:
        """Sync the commits to the disk and close the database.

        Raises:
            StorageFailed: the sync failed; the database is closed nevertheless.
        """
        try:
            if self._sync is not None:
                self._sync.close(self)
        finally:
            self._connection.close()


def _pragmas(readonly: bool, durable: bool, disposable: bool) -> list[str]:
    common = [
        f"PRAGMA busy_timeout = {BUSY_MS:d}",
        # A database may come with a hostile checkout, so its schema may only call functions without side effects, and
        # SQLite checks cells for damage when it reads them.
        "PRAGMA trusted_schema = OFF",
        "PRAGMA cell_size_check = ON",
        "PRAGMA temp_store = MEMORY",
    ]
    if readonly:
        return [*common, "PRAGMA query_only = ON"]
    return [
        *common,
        # In the index of a log `record` is a view, and a foreign key can't refer to a view.
        f"PRAGMA foreign_keys = {'OFF' if disposable else 'ON'}",
        f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}",
        "PRAGMA cache_size = -8000",
    ]


def _write_ahead(connection: Any) -> None:
    """Switch the database to write-ahead mode. Retry here, because SQLite does not wait if several processes do it at once."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _create_private(path: str) -> None:
    """Create the folder with mode 0700 and the file with 0600 before SQLite does. SQLite's side files inherit the mode.

    This opens only a file that does not exist yet. If it opened and closed an existing database, the process would lose its
    locks on it.
    """
    try:
        folder = os.path.dirname(_absolute(path))
        if not os.path.exists(folder):
            from ctxmgr.base.paths import make_private_folder

            make_private_folder(folder)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        from ctxmgr.log.anchor import store_empty

        # An anchor that still exists for this path belongs to a former, deleted database.
        store_empty(path)
    except FileExistsError:
        if os.path.isdir(path):
            raise StorageFailed(f"{path} is a folder, not a store", "name a file: --store FOLDER/history.db") from None
    except OSError as error:
        raise StorageFailed(
            f"can't create the store {path}: {error.strerror}", "choose another place with --store PATH"
        ) from None


def _holds_anything(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _uri(path: str) -> str:
    """Return a path as a URI for SQLite. Every byte that could have a meaning there is percent-encoded."""
    return "file://" + "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(_absolute(path)))


_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~/")
_NO_SIDE_FILES = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR")
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_NO_TEXT = "Could not decode to UTF-8"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")
_ERRORS = (sqlite.Error, UnicodeDecodeError)


def _fetch(connection: Any, sql: str, values: Values) -> list[Row]:
    rows: list[Row] = connection.execute(sql, values).fetchall()
    return rows


def _close(cursor: Any) -> None:
    """Close a cursor. Ignore errors, because an abandoned stream may be closed after its connection."""
    try:
        cursor.close()
    except sqlite.Error:
        return


class _Transaction:
    __slots__ = ("_engine",)

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine.begin()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._engine.end(commit=kind is None)


class _Durably:
    __slots__ = ("_before", "_engine")

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._before = int(engine.query("PRAGMA synchronous")[0][0])

    def __enter__(self) -> None:
        self._engine.execute("PRAGMA synchronous = FULL")

    def __exit__(self, *_: object) -> None:
        self._engine.execute(f"PRAGMA synchronous = {self._before:d}")


class _Reading:
    __slots__ = ("_engine",)

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        # Outside of a transaction, a savepoint begins a deferred one. The first read in it fixes the snapshot.
        self._engine.execute("SAVEPOINT reading")

    def __exit__(self, *_: object) -> None:
        self._engine.execute("RELEASE reading")


def _is_busy(error: BaseException) -> bool:
    return str(getattr(error, "sqlite_errorname", "") or "").startswith(_BUSY)


def _is_damage(error: BaseException) -> bool:
    """Whether a driver error means a damaged database: by its code, or because a text is not valid UTF-8."""
    name = str(getattr(error, "sqlite_errorname", "") or "")
    return name.startswith(_DAMAGED) or isinstance(error, UnicodeDecodeError) or _NO_TEXT in str(error)


def remove_database(path: str) -> None:
    """Remove a database with its side files, as far as the system allows. Processes that have it open can go on reading."""
    for suffix in SIDE_FILES:
        try:
            os.unlink(path + suffix)
        except OSError:
            continue


def _ours(path: str, error: BaseException) -> CtxmgrError:
    name = str(getattr(error, "sqlite_errorname", "") or "")
    if _is_busy(error):
        return Busy(f"{path} is being written by another process", f"it stayed locked for {BUSY_MS // 1000} s; try again")
    if name.startswith(_DAMAGED):
        return Damaged(f"{path} is damaged or not a ctxmgr store: {error}", "run 'ctxmgr verify', or restore a backup")
    if name.startswith("SQLITE_CONSTRAINT"):
        return Conflict(f"{path}: {error}")
    if name.startswith("SQLITE_FULL"):
        return StorageFailed(f"no space left for {path}", "free some space and try again; nothing was half written")
    if name.startswith("SQLITE_CANTOPEN"):
        return StorageFailed(f"can't open {path}", "check that it exists and that you may read it")
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return StorageFailed(f"{path} can't be written", "check the permissions of the file and its folder")
    if name.startswith("SQLITE_IOERR"):
        return StorageFailed(f"input/output error on {path}: {name}", "check the disk")
    return Damaged(f"{path}: {error}", "this may be a bug in ctxmgr; 'ctxmgr verify' checks the store")
