"""The importer of any format whose logs are SQLite databases.

It reads through what it is given, since only the store loads SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ctxmgr.errors import Damaged
from ctxmgr.importers.interface import Coverage, Place, found_at
from ctxmgr.importers.json_importer import Log
from ctxmgr.log.codec import Record
from ctxmgr.types.importing import FileCount


class Tables(Protocol):
    """The tables of a database, as they were when it was opened."""

    columns: Mapping[str, Sequence[str]]
    """The names of the columns of each table."""

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with those of the columns that it has; none where there is no such table.

        Raises:
            Damaged: the database can't be read on.
        """
        ...


OpenTables = Callable[[Path], AbstractContextManager[Tables]]
"""Opens a database for reading; nothing is written, not even beside it. Raises `Damaged` or `OSError`."""

SQLITE_MAGIC = b"SQLite format 3\0"
_SIDE_FILE = "-wal"


@dataclass(frozen=True)
class TableImporter:
    """An importer of databases by description; see `Importer` for what it promises.

    Attributes:
        open_tables: opens a database.
        proves: whether tables with these columns can stand only in a database of this format.
        reader: adds what stands in the tables to a log; it yields whenever records may be taken.
    """

    name: str
    title: str
    open_tables: OpenTables
    proves: Callable[[Mapping[str, Sequence[str]]], bool]
    reader: Callable[[Log, Tables], Iterator[None]]
    coverage: Coverage
    places: Sequence[Place] = ()

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a file is a database with this format's tables."""
        if not head.startswith(SQLITE_MAGIC):
            return False
        try:
            with self.open_tables(path) as tables:
                return self.proves(tables.columns)
        except (Damaged, OSError):
            return False

    def discover(self, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield the databases at the places where the agent keeps them."""
        return found_at(self.places, home, environment)

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the log beside a database that holds its latest changes, where there is one."""
        beside = path.with_name(f"{path.name}{_SIDE_FILE}")
        return [beside] if beside.is_file() else []

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Put each database and the log beside it into one group."""
        return [[path, *self.companions(path)] for path in sorted(set(paths)) if not path.name.endswith(_SIDE_FILE)]

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield the records of all sessions in a database.

        Raises:
            OSError: when the file can't be read.
        """
        counts += [FileCount(path, bytes=path.stat().st_size) for path in group]
        if not group:
            return
        log = Log(self.name, group[0], counts[-len(group)])
        try:
            with self.open_tables(group[0]) as tables:
                for _ in self.reader(log, tables):
                    yield from log.take()
        except Damaged as error:
            log.count.damaged.append((0, log.count.bytes, error.message))
        yield from log.take(final=True)
