"""The interface of a SQL engine.

Repositories are written once, against this protocol. An engine translates the errors of its driver into ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

Row = tuple[Any, ...]
Values = Mapping[str, Any]
OnConflict = Literal["raise", "keep"]


class Engine(Protocol):
    """Runs parametrised statements (``:name`` placeholders) on one database, in the dialect of `ctxmgr.store.engine.dialect`.

    Attributes:
        path: the path of the database, or its URL without secrets.
        readonly: whether the engine refuses to write.
        shared: whether the database is on a server. Then other machines use it too, and it has no file on this machine.
    """

    path: str
    readonly: bool
    shared: bool

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a SELECT."""
        ...

    def stream(self, sql: str, values: Values | None = None, at_once: int = 256) -> Iterator[Row]:
        """Yield the rows of a SELECT; fetch ``at_once`` rows at a time to save memory."""
        ...

    def execute(self, sql: str, values: Values | None = None) -> int:
        """Run a writing statement. Return the number of affected rows."""
        ...

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values. Return the number of affected rows."""
        ...

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Register a deterministic Python function for use in statements. A second one of the same name is ignored.

        A statement raises what the function raises. A shared engine can't do this; its texts are compared in Python.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the write lock: all statements inside take effect, or none. May be nested."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Let all statements inside read one snapshot of the database. Takes no lock and may be nested."""
        ...

    def durably(self) -> AbstractContextManager[None]:
        """Sync commits inside to the disk (level ``os``)."""
        ...

    def faults(self, most: int | None = None) -> list[str]:
        """Return the damage that the database reports about itself: everything, or the first ``most`` of a quick check."""
        ...

    def schema_version(self) -> int:
        """Return the version of the tables, 0 if there are none."""
        ...

    def clock(self) -> float:
        """Return the current time in seconds since 1970, by the clock that all users of the database share."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
