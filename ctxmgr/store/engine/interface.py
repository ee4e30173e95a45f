"""The interface of a SQL engine.

Repositories are written once, over this protocol. An engine translates its driver's errors into ours where they come in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

Row = tuple[Any, ...]
Values = Mapping[str, Any]
OnConflict = Literal["raise", "keep"]


class Engine(Protocol):
    """Runs parametrised statements (``:name`` placeholders) on one database, spelled as `ctxmgr.store.engine.dialect` says.

    Attributes:
        path: of the database, or its URL without secrets.
        readonly: nothing will be written.
        shared: it is on a server: others on other machines use it too, and nothing of it is a file here.
    """

    path: str
    readonly: bool
    shared: bool

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a reading statement."""
        ...

    def stream(self, sql: str, values: Values | None = None, at_once: int = 256) -> Iterator[Row]:
        """Yield the rows of a reading statement without holding more of them than are fetched at once."""
        ...

    def execute(self, sql: str, values: Values | None = None) -> int:
        """Run a writing statement; return the number of rows it touched."""
        ...

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values; return the number of rows it touched."""
        ...

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Let statements call a Python function that answers the same to the same; the first one of a name stays.

        What it raises is raised by the statement. A shared engine can't: there texts are compared here.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the write lock: all statements inside take effect together or not at all; nests."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Let all reading inside see one state of the database; nests, and needs no lock."""
        ...

    def durably(self) -> AbstractContextManager[None]:
        """Let commits inside wait for the disk (level ``os``)."""
        ...

    def faults(self, most: int | None = None) -> list[str]:
        """Return what the database itself finds damaged in it: all, or quickly so many at most."""
        ...

    def schema_version(self) -> int:
        """Return the version of its tables, 0 where there are none."""
        ...

    def clock(self) -> float:
        """Return the present in seconds since 1970, by the clock that all who use the database share."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...
