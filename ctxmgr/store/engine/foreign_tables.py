"""Read the tables of other programs without writing: any SQLite database, and LangGraph's tables on a PostgreSQL server.

A SQLite database with changes in its write-ahead log is copied together with the log, and the copy is read. Opening the
original would create files beside it, or take locks for which its program would have to wait.

From a server, `CheckpointTables` reads the writes that LangGraph's ``PostgresSaver`` stores for each thread. Each statement is
a read-only transaction of its own, so a long import blocks neither the graph nor the server.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.store.engine.postgresql_url import driver_missing, is_server, printable_location
from ctxmgr.store.engine.sqlite import sqlite

if TYPE_CHECKING:
    from ctxmgr.store.engine.interface import Engine

_TRIES = 3
_MOST_TABLES = 500


class ForeignTables:
    """The tables of one database.

    Attributes:
        columns: the columns of each table, in their order.
    """

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name
        self.columns: Mapping[str, Sequence[str]] = self._read_columns()

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as dicts; nothing if the table does not exist.

        Args:
            table: the name of the table.
            columns: the wanted columns. Those that the table does not have are left out.
            order: columns by which the rows are sorted.
            where: columns and the values that they must have.

        Raises:
            Damaged: the database is damaged.
        """
        present = [name for name in columns if name in self.columns.get(table, ())]
        if not present:
            return
        asked = ", ".join(map(_quote, present))
        by = ", ".join(_quote(name) for name in order if name in self.columns[table]) or self._natural_order(table)
        given = {name: value for name, value in (where or {}).items() if name in self.columns[table]}
        only = " AND ".join(f"{_quote(name)} = ?" for name in given) or "1"
        query = f"SELECT {asked} FROM {_quote(table)} WHERE {only}{f' ORDER BY {by}' if by else ''}"
        try:
            for row in self._connection.execute(query, tuple(given.values())):
                yield dict(zip(present, row, strict=True))
        except (sqlite.Error, UnicodeError) as error:
            raise self._damage_error(error) from None

    def _read_columns(self) -> dict[str, list[str]]:
        try:
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT ?", (_MOST_TABLES,))
            names = [str(name) for (name,) in found.fetchall()]
            return {name: columns for name in names if (columns := self._find_columns(name)) is not None}
        except (sqlite.Error, UnicodeError) as error:
            raise self._damage_error(error) from None

    def _find_columns(self, table: str) -> list[str] | None:
        """Return the columns of a table; None for a virtual table whose module only its own program has."""
        try:
            return [str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quote(table)})")]
        except sqlite.OperationalError as error:
            if str(error).startswith("no such module"):
                return None
            raise

    def _natural_order(self, table: str) -> str:
        """Return the column that sorts rows as they were added; "" for a table WITHOUT ROWID."""
        try:
            self._connection.execute(f"SELECT rowid FROM {_quote(table)} LIMIT 0")
        except sqlite.Error:
            return ""
        return "rowid"

    def _damage_error(self, error: Exception) -> Damaged:
        return Damaged(f"{self._name}: damaged database: {error}", "ask the program that wrote it to check it")


@contextmanager
def open_tables(path: Path) -> Generator[ForeignTables]:
    """Open a database for reading.

    Raises:
        Damaged: the file is not a database, or is damaged.
        OSError: the file can't be read.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        # SQLite reads a log only if it can create the log's index beside the database, so the copy is opened for writing.
        with TemporaryDirectory(prefix="ctxmgr-") as folder, _connect(_copy(path, log, Path(folder)), "mode=rw") as found:
            yield ForeignTables(found, path.name)
        return
    with path.open("rb"):
        """Raise OSError here if the file can't be read."""
    # With "immutable" SQLite takes no lock on the other program's database, and creates no files beside it.
    with _connect(path, "mode=ro&immutable=1") as found:
        yield ForeignTables(found, path.name)


@contextmanager
def _connect(path: Path, how: str) -> Generator[Any]:
    try:
        connection = sqlite.connect(f"file:{quote(os.path.abspath(path))}?{how}", uri=True)
    except sqlite.Error as error:
        raise Damaged(f"{path.name}: can't be opened: {error}", "check the file") from None
    with closing(connection):
        # Other programs store text that is not UTF-8. The driver would then refuse the whole row.
        connection.text_factory = _text
        # The schema is not ours, so its views may only call functions without side effects.
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection


def _copy(path: Path, log: Path, folder: Path) -> Path:
    """Copy a database with its log. Try again if it was written meanwhile."""
    target = folder / "copy.db"
    for _ in range(_TRIES):
        before = _states(path, log)
        # Between the two copies the writer may move the log into the database. Then neither copy has those changes.
        shutil.copyfile(path, target)
        shutil.copyfile(log, folder / "copy.db-wal")
        if _states(path, log) == before:
            break
    return target


def _states(*paths: Path) -> list[tuple[int, int]]:
    return [(state.st_size, state.st_mtime_ns) for state in map(os.stat, paths)]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _quote(name: str) -> str:
    """Return a name quoted for SQL, because names can't be bound like values."""
    # Names come from the importers and from the database itself.
    return '"' + name.replace('"', '""') + '"'


_NEEDED = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "blob")
_LATER = ("task_path",)  # a column that tables of older savers do not have
_COLUMNS = (
    "SELECT attname::text FROM pg_attribute"
    " WHERE attrelid = to_regclass('checkpoint_writes') AND attnum > 0 AND NOT attisdropped"
)


class CheckpointTables:
    """The writes of a saver's threads. Created by `open_checkpoints`.

    Args:
        engine: an engine connected to the saver's database.
        columns: the wanted columns of ``checkpoint_writes``, all of which exist.
        channels: the names of the wanted channels.
    """

    def __init__(self, engine: Engine, columns: Sequence[str], channels: Sequence[str]) -> None:
        self._engine = engine
        self._columns = columns
        self._channels = list(channels)

    def threads(self) -> list[tuple[str, int]]:
        """Return (id, number of bytes of its values) for each thread, ordered by id."""
        rows = self._engine.stream(
            "SELECT thread_id, sum(octet_length(blob))::bigint FROM checkpoint_writes"
            " WHERE channel = ANY(:channels) GROUP BY thread_id ORDER BY thread_id",
            {"channels": self._channels},
        )
        return [(str(thread), int(size or 0)) for thread, size in rows]

    def rows(self, thread: str) -> Iterator[dict[str, Any]]:
        """Yield the writes of a thread as dicts, in no order. Blobs are in PostgreSQL's hex format."""
        found = self._engine.stream(
            f"SELECT {', '.join(self._columns)} FROM checkpoint_writes WHERE thread_id = :thread AND channel = ANY(:channels)",
            {"thread": thread, "channels": self._channels},
        )
        for values in found:
            row = dict(zip(self._columns, values, strict=True))
            yield {**row, "blob": f"\\x{bytes(row['blob'] or b'').hex()}"}


@contextmanager
def open_checkpoints(url: str, channels: Sequence[str]) -> Generator[CheckpointTables]:
    """Connect to the database of a saver, by the rules of `ctxmgr.store.engine.postgresql_url`.

    Args:
        url: the URL of the database.
        channels: the names of the wanted channels.

    Raises:
        InvalidInput: the URL is not one of PostgreSQL, or contains a password; the saver's table is missing; or the driver is
            not installed or can't be loaded.
        NotFound, Denied, Busy, StorageFailed: the database does not exist, or can't be read.
    """
    if not is_server(url):
        raise InvalidInput(
            f"{printable_location(url)} is no path and no URL of PostgreSQL", "e.g. postgresql://user@host/database"
        )
    try:
        from ctxmgr.store.engine.postgresql import PostgresqlEngine
    except ImportError as error:
        raise driver_missing(error, "tables in PostgreSQL", "psycopg", "postgresql") from None
    with closing(PostgresqlEngine(url, readonly=True)) as engine:
        present = {str(name) for (name,) in engine.stream(_COLUMNS)}
        if not present.issuperset(_NEEDED):
            raise InvalidInput(
                f"{engine.path} has no table checkpoint_writes as LangGraph's PostgresSaver makes it",
                "name the database that the saver was given, of another schema with ?options=-csearch_path%3DSCHEMA;"
                " to take over a store of ctxmgr, export it first",
            )
        yield CheckpointTables(engine, [*_NEEDED, *(name for name in _LATER if name in present)], channels)
