"""Read the tables of another program's SQLite database without writing anything, neither to it nor beside it.

A database whose latest changes are still in its write-ahead log is copied together with that log, and the copy is read: to open
the original would create files beside it, or take locks that the program which writes it would wait for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from ctxmgr.errors import Damaged
from ctxmgr.store.engine.driver import sqlite

_TRIES = 3
_MOST_TABLES = 500


class ForeignTables:
    """The tables of one database.

    Attributes:
        columns: of each table, in their order.
    """

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name
        self.columns: Mapping[str, Sequence[str]] = self._read_columns()

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with those of the columns that it has; none where there is no such table.

        Args:
            table: its name.
            columns: those that are wanted.
            order: columns by which the rows are sorted.
            where: columns and the values that they must have.

        Raises:
            Damaged: the database can't be read on.
        """
        present = [name for name in columns if name in self.columns.get(table, ())]
        if not present:
            return
        asked = ", ".join(map(_quoted, present))
        by = ", ".join(_quoted(name) for name in order if name in self.columns[table]) or "rowid"
        given = {name: value for name, value in (where or {}).items() if name in self.columns[table]}
        only = " AND ".join(f"{_quoted(name)} = ?" for name in given) or "1"
        query = f"SELECT {asked} FROM {_quoted(table)} WHERE {only} ORDER BY {by}"
        try:
            for row in self._connection.execute(query, tuple(given.values())):
                yield dict(zip(present, row, strict=True))
        except (sqlite.Error, UnicodeError) as error:
            raise self._damaged(error) from None

    def _read_columns(self) -> dict[str, list[str]]:
        try:
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT ?", (_MOST_TABLES,))
            names = [str(name) for (name,) in found.fetchall()]
            return {
                name: [str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names
            }
        except (sqlite.Error, UnicodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> Damaged:
        return Damaged(f"{self._name}: damaged database: {error}", "ask the program that wrote it to check it")


@contextmanager
def open_tables(path: Path) -> Generator[ForeignTables]:
    """Open a database for reading.

    Raises:
        Damaged: it is no database, or can't be read.
        OSError: the file can't be read.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        with TemporaryDirectory(prefix="ctxmgr-") as folder, _connected(_copy(path, log, Path(folder)), "mode=rw") as found:
            yield ForeignTables(found, path.name)
        return
    with path.open("rb"):
        """Let a file that can't be read say so itself."""
    with _connected(path, "mode=ro&immutable=1") as found:
        yield ForeignTables(found, path.name)


@contextmanager
def _connected(path: Path, how: str) -> Generator[Any]:
    try:
        connection = sqlite.connect(f"file:{quote(os.path.abspath(path))}?{how}", uri=True)
    except sqlite.Error as error:
        raise Damaged(f"{path.name}: can't be opened: {error}", "check the file") from None
    with closing(connection):
        connection.text_factory = _text
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection


def _copy(path: Path, log: Path, folder: Path) -> Path:
    """Copy a database with its log; again when it was written to meanwhile."""
    target = folder / "copy.db"
    for _ in range(_TRIES):
        before = _states(path, log)
        shutil.copyfile(path, target)
        shutil.copyfile(log, folder / "copy.db-wal")
        if _states(path, log) == before:
            break
    return target


def _states(*paths: Path) -> list[tuple[int, int]]:
    return [(state.st_size, state.st_mtime_ns) for state in map(os.stat, paths)]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _quoted(name: str) -> str:
    """Return a name as SQL has it; names come from the importers and from the database itself."""
    return '"' + name.replace('"', '""') + '"'
