"""How an importer reads a SQLite database: through a reader that it is given, since only the store loads SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Tables(Protocol):
    """The tables of a database, as they were when it was opened."""

    columns: Mapping[str, Sequence[str]]
    """The names of the columns of each table."""

    def rows(self, table: str, columns: Sequence[str], order: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with those of the columns that it has; none where there is no such table.

        Raises:
            Damaged: the database can't be read on.
        """
        ...


OpenTables = Callable[[Path], AbstractContextManager[Tables]]
"""Opens a database for reading; nothing is written, not even beside it. Raises `Damaged` or `OSError`."""

SQLITE_MAGIC = b"SQLite format 3\0"


def side_file(path: Path) -> list[Path]:
    """Return the log beside a database that holds its latest changes, where there is one."""
    beside = path.with_name(f"{path.name}-wal")
    return [beside] if beside.is_file() else []
