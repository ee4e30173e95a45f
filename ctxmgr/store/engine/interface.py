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
    """Runs parametrised statements (``:name`` placeholders) on one database."""

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a reading statement."""
        ...

    def stream(self, sql: str, values: Values | None = None, at_once: int = 256) -> Iterator[Row]:
        """Yield the rows of a reading statement without holding more of them than are fetched at once."""
        ...

    def execute(self, sql: str, values: Values | None = None) -> int:
        """Run a writing statement; return the number of rows it touched."""
        ...

    def insert(self, sql: str, values: Values) -> int:
        """Run one INSERT; return the new row's integer key."""
        ...

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values; return the number of rows it touched."""
        ...

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Let statements call a Python function that answers the same to the same; the first one of a name stays.

        What it raises is raised by the statement.
        """
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Hold the write lock: all statements inside take effect together or not at all; nests."""
        ...

    def close(self) -> None:
        """Release the database."""
        ...
