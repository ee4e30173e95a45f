"""Run a user's SELECT on a server, on a connection of its own and in a transaction that can only read.

Three things keep any statement from doing harm. It is declared as a cursor, for which the server accepts only one SELECT. Its
transaction only reads and is never committed, so whatever a function in it sets, sends or writes is undone. It has the rights
of the role that asks, including row-level security. The connection is closed within the transaction, which also releases the
locks of a session. Behind a pooler, the pooler then closes its own connection.
"""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.types.string import TextLoader

from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.store.engine.postgresql_errors import statement_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.store.engine.interface import Row
    from ctxmgr.store.engine.postgresql import PostgresqlEngine

# No schema but the server's own is looked through: no function or operator of somebody else is taken for one of these.
_BEGIN = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = pg_catalog; SET LOCAL lock_timeout = '10s'; "
    "SET LOCAL standard_conforming_strings = on; SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; "
    "SET LOCAL idle_in_transaction_session_timeout = '60s'"
)
_FIRST, _MOST, _LARGE = 8, 512, 1 << 20  # rows that are fetched together, and letters of a batch
_LONGEST = 300  # letters of what the server says
_AS_TEXT = ("json", "jsonb", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "uuid", "inet", "cidr")
_STOPPED, _DENIED, _READ_ONLY, _CONNECTION = "57014", "42501", "25006", ("08", "57P", "53", "55", "40", "58", "XX")


class StoppedError(Exception):
    """A statement took longer than it may."""


def select(
    engine: PostgresqlEngine, statement: str, values: Sequence[Any], *, seconds: float, hint: str
) -> Iterator[tuple[list[str], list[Row]]]:
    """Yield (names of the columns, some rows); the first time also where there are none.

    Args:
        engine: of the store.
        statement: one SELECT; values stand in the place of ``$1`` and so on.
        values: these; a text is taken for what stands beside it.
        seconds: how long it may take.
        hint: of the errors that the statement is answered with.

    Raises:
        StoppedError: it took longer.
        InvalidInput: the server refuses it.
        CtxmgrError: the server can't be asked.
    """
    end, at_once = time.monotonic() + seconds, _FIRST
    try:
        with engine.apart() as connection:
            for name in _AS_TEXT:
                connection.adapters.register_loader(name, TextLoader)
            connection.execute(_BEGIN.encode())
            _limit(connection, end)
            cursor = psycopg.RawServerCursor(connection, "ctxmgr_select")
            try:
                cursor.execute(statement.encode(), values)
                names = [column.name for column in cursor.description or ()]
                while True:
                    # Anew each time: a function of the statement may have changed it.
                    _limit(connection, end)
                    rows = [tuple(map(_number, row)) for row in cursor.fetchmany(at_once)]
                    yield names, rows
                    if len(rows) < at_once:
                        break
                    # Large rows are fetched one by one, so that whoever asked can stop before they fill the memory.
                    size = sum(len(value) for row in rows for value in row if isinstance(value, (str, bytes)))
                    at_once = min(2 * at_once, _MOST) if size < _LARGE else 1
            except psycopg.Error as error:
                raise _error(engine.path, error, hint) from None
            finally:
                with suppress(psycopg.Error):
                    cursor.close()
    except UnicodeEncodeError:
        raise InvalidInput("the query holds an unpaired surrogate", hint) from None


def _limit(connection: psycopg.Connection[Any], end: float) -> None:
    left = int((end - time.monotonic()) * 1000)
    if left <= 0:
        raise StoppedError
    connection.execute(f"SET LOCAL statement_timeout = {left}".encode())


def _number(value: Any) -> Any:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value.is_finite() and value == value.to_integral_value() and abs(value) < 2**63 else float(value)


def _error(place: str, error: psycopg.Error, hint: str) -> CtxmgrError | StoppedError:
    # What it quotes of the statement may be all of it.
    state, said = error.sqlstate or "", (error.diag.message_primary or " ".join(str(error).split()))[:_LONGEST]
    if state == _STOPPED:
        return StoppedError()
    if state.startswith(_CONNECTION) or (not state and isinstance(error, psycopg.OperationalError)):
        return statement_error(place, error)
    refused = state in (_DENIED, _READ_ONLY)
    return InvalidInput(f"refused: {said}" if refused else f"the query can't be run: {said}", hint)
