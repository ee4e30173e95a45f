"""The tables of another program on a PostgreSQL server: the writes that LangGraph's ``PostgresSaver`` keeps of each thread.

Each statement is a transaction of its own that can only read, so a long import holds up neither the graph nor the server.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from ctxmgr.errors import InvalidInput
from ctxmgr.store.engine.postgresql_url import is_server, shown

if TYPE_CHECKING:
    from ctxmgr.store.engine.interface import Engine

_NEEDED = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "blob")
_LATER = ("task_path",)  # a column that an older saver did not make
_COLUMNS = (
    "SELECT attname::text FROM pg_attribute"
    " WHERE attrelid = to_regclass('checkpoint_writes') AND attnum > 0 AND NOT attisdropped"
)


class CheckpointTables:
    """The writes of a saver's threads; made by `open_checkpoints`.

    Args:
        engine: connected to the saver's database.
        columns: those of ``checkpoint_writes`` that are there and wanted.
        channels: names of the channels whose writes are wanted.
    """

    def __init__(self, engine: Engine, columns: Sequence[str], channels: Sequence[str]) -> None:
        self._engine = engine
        self._columns = columns
        self._channels = list(channels)

    def threads(self) -> list[tuple[str, int]]:
        """Return (id, bytes of its values) of each thread, in the order of the ids."""
        rows = self._engine.stream(
            "SELECT thread_id, sum(octet_length(blob))::bigint FROM checkpoint_writes"
            " WHERE channel = ANY(:channels) GROUP BY thread_id ORDER BY thread_id",
            {"channels": self._channels},
        )
        return [(str(thread), int(size or 0)) for thread, size in rows]

    def rows(self, thread: str) -> Iterator[dict[str, Any]]:
        """Yield the writes of a thread by their columns, in no order; values are written as PostgreSQL shows bytes."""
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
        url: of the database.
        channels: names of the channels whose writes are wanted.

    Raises:
        InvalidInput: it is no URL of PostgreSQL, or it names a password; there are no tables of a saver; or the driver is not
            installed.
        NotFound, Denied, Busy, StorageFailed: the database is not there, or can't be read.
    """
    if not is_server(url):
        raise InvalidInput(f"{shown(url)} is no path and no URL of PostgreSQL", "e.g. postgresql://user@host/database")
    try:
        from ctxmgr.store.engine.postgresql import PostgresqlEngine
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise InvalidInput("to read from PostgreSQL needs psycopg", "pip install 'ctxmgr-cli[postgresql]'") from None
    with closing(PostgresqlEngine(url, readonly=True)) as engine:
        present = {str(name) for (name,) in engine.stream(_COLUMNS)}
        if not present.issuperset(_NEEDED):
            raise InvalidInput(
                f"{engine.path} has no table checkpoint_writes as LangGraph's PostgresSaver makes it",
                "name the database that the saver was given, of another schema with ?options=-csearch_path%3DSCHEMA;"
                " to take over a store of ctxmgr, export it first",
            )
        yield CheckpointTables(engine, [*_NEEDED, *(name for name in _LATER if name in present)], channels)
