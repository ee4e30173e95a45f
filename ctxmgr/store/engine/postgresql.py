"""The PostgreSQL engine: runs all statements and translates errors of the server into ours (`postgresql_errors`).

No setting of a connection outlives a transaction, because a connection pooler may pass the connection on to other clients.
There are two exceptions, used only if no pooler is found: prepared statements (also used if the URL says ``prepare=1``), and
``LISTEN`` on a connection of its own.
The limits (`_LOCK_SECONDS`, `_STATEMENT_SECONDS`) apply to writing transactions. Reads have only the server's own limits.

Appends run side by side: each locks the rows of its sessions (`ctxmgr.store.engine.postgresql_functions`). Any other writing
transaction locks the whole store.
"""

from __future__ import annotations

import logging
import math
import re
import time
from contextlib import contextmanager
from itertools import chain, count
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import generators, pq, sql, waiting
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from ctxmgr.errors import CtxmgrError
from ctxmgr.store.engine.dialect import SCHEMA, postgresql
from ctxmgr.store.engine.postgresql_errors import connection_error, statement_error
from ctxmgr.store.engine.postgresql_functions import APPEND, APPEND_ONE, QUICK, REFUSED, WRITERS
from ctxmgr.store.engine.postgresql_schema import TEAMS
from ctxmgr.store.engine.postgresql_url import connection_options, prepares, printable_location
from ctxmgr.store.engine.postgresql_values import BinaryTextDumper, StoredTextLoader, TextDumper, pack_values

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from contextlib import AbstractContextManager
    from socket import socket

    from _typeshed import HasFileno
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

    from ctxmgr.store.engine.interface import Row, Values

# Without a handler Python prints what psycopg logs, such as a connection closed because SIGTERM ended a query halfway. Errors
# that matter are raised.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_LOCK_SECONDS, _STATEMENT_SECONDS = 10, 60
_BEGIN = (
    f"BEGIN; SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'; SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'; "
    # A client that is suspended while it holds a lock must not block the others forever.
    f"SET LOCAL idle_in_transaction_session_timeout = '{_STATEMENT_SECONDS}s'; SET LOCAL synchronous_commit = off; "
)
_GATHER, _LONGEST_GATHER = 0.05, 1.0
_REST = 4  # a watcher rests this many times as long as its last look took, so many watchers leave the server time for writers
_ALONE, _BESIDE = f"SELECT pg_advisory_xact_lock({WRITERS})", f"SELECT pg_advisory_xact_lock_shared({WRITERS})"
# A transaction releases its locks before it waits for the disk. Otherwise all appenders would wait for the disk one after the
# other. The client then writes an empty message behind the commit in the server's log and waits until that is on the disk.
_ON_DISK = b"SELECT pg_logical_emit_message(true, 'ctxmgr', '')"
_COMMIT = b"COMMIT; " + _ON_DISK
_APPEND, _APPEND_ONE = (
    f"SELECT {SCHEMA}.{name}({', '.join(f'${number}' for number in range(1, len(taken) + 1))})".encode()
    for name, taken in (("append", APPEND), ("append_one", APPEND_ONE))
)
_OIDS = {
    "TEXT[]": 1009,
    "BIGINT[]": 1016,
    "DOUBLE PRECISION[]": 1022,
    "BIGINT": 20,
    "TEXT": 25,
    "DOUBLE PRECISION": 701,
    "BOOLEAN": 16,
}
_APPEND_KINDS = list(APPEND.values())
_APPEND_TYPES, _ONE_TYPES = ([_OIDS[kind] for kind in taken.values()] for taken in (APPEND, APPEND_ONE))
_APPEND_FORMATS = [pq.Format.TEXT if kind == "BIGINT" else pq.Format.BINARY for kind in _APPEND_KINDS]
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_VALUES = re.compile(r"^(INSERT INTO .* VALUES )(\([?, ]*\))((?: ON CONFLICT DO NOTHING)?)$")
_OFTEN = 4  # number of appends after which a prepared statement pays off
_TOGETHER = 500  # rows in one statement, because a statement can only have so many values


class PostgresqlEngine:
    """One connection for statements, and another for each open stream. Any thread may use it, but only one at a time.

    Args:
        url: the URL of the database, see `ctxmgr.store.engine.postgresql_url`.
        readonly: whether the caller will only read.

    Attributes:
        path: the URL without secrets.
        shared: True, since other machines use the database too, and it has no file on this machine.
        version: the version of the tables when the store was opened.
    """

    shared = True

    def __init__(self, url: str, *, readonly: bool = False) -> None:
        self.path = printable_location(url)
        self.readonly = readonly
        self.version = 0
        self._options = connection_options(url)
        self._prepares = prepares(url)
        self._prepared: set[bytes] = set()
        self._appends = 0
        self._depth = self._reading = 0
        self._names = count()
        self._woken = math.inf  # time at which `wait` last returned
        self._made: list[psycopg.Connection[Any]] = []
        self._idle: list[psycopg.Connection[Any]] = []
        self._listener: psycopg.Connection[Any] | None = None
        self._pooled = False  # `_listening` finds out
        self._connection = self._connect()

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            threshold = 5 if self._prepares else None
            made = psycopg.connect(**self._options, autocommit=True, prepare_threshold=threshold)  # pyright: ignore[reportArgumentType]
        except psycopg.Error as error:
            raise connection_error(self.path, error) from None
        self._made = [*(each for each in self._made if not each.closed), made]
        made.adapters.register_dumper(int, Int8BinaryDumper)
        made.adapters.register_dumper(int, Int8Dumper)  # psycopg would choose the smallest type, which can overflow in a sum
        made.adapters.register_dumper(str, BinaryTextDumper)
        made.adapters.register_dumper(str, TextDumper)
        made.adapters.register_loader("text", StoredTextLoader)
        return made

    def _live(self) -> psycopg.Connection[Any]:
        """Return the connection. Reconnect if the server closed it, except inside a transaction."""
        if self._connection.closed and not self._depth and not self._reading:
            self._connection = self._connect()
            self._prepared.clear()
        return self._connection

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a SELECT. If the connection was lost, reconnect and try again once."""
        spelled = postgresql(sql)
        try:
            return self._live().execute(spelled, values or {}).fetchall()
        except psycopg.Error as error:
            if self._depth or self._reading or not self._connection.closed or not spelled.startswith((b"SELECT", b"WITH")):
                raise statement_error(self.path, error) from None
        try:
            return self._live().execute(spelled, values or {}).fetchall()
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def stream(self, sql: str, values: Values | None = None, at_once: int = 256) -> Iterator[Row]:
        """Yield rows in batches from one snapshot of the store. Consume or close the stream."""
        within = self._depth or self._reading
        connection = self._live() if within else self._aside()
        try:
            if not within:
                connection.execute(_READING)
            cursor = connection.cursor(f"ctxmgr_{next(self._names)}")
            try:
                cursor.execute(postgresql(sql), values or {})
                while rows := cursor.fetchmany(at_once):
                    yield from rows
            finally:
                _close(cursor)
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None
        finally:
            if not within:
                self._put_aside(connection)

    def _aside(self) -> psycopg.Connection[Any]:
        while self._idle:
            if not (found := self._idle.pop()).closed:
                return found
        return self._connect()

    def _put_aside(self, connection: psycopg.Connection[Any]) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != pq.TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            connection.close()
        if not connection.closed:
            self._idle.append(connection)

    @contextmanager
    def apart(self) -> Generator[psycopg.Connection[Any]]:
        """Open a connection for this alone. It is closed as it is: within a transaction, a pooler then closes its own too."""
        connection = self._connect()
        try:
            yield connection
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None
        finally:
            connection.close()

    def execute(self, sql: str, values: Values | None = None) -> int:
        """Run a writing statement. Return the number of affected rows."""
        try:
            return self._live().execute(postgresql(sql), values or {}).rowcount
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values. Return the number of affected rows."""
        if not rows:
            return 0
        try:
            with self._live().cursor() as cursor:
                found = _VALUES.match(sql)
                if found is None:
                    cursor.executemany(postgresql(sql), rows)
                    return cursor.rowcount
                head, group, tail = found.groups()
                touched = 0
                for start in range(0, len(rows), _TOGETHER):
                    part = rows[start : start + _TOGETHER]
                    cursor.execute(
                        postgresql(f"{head}{', '.join([group] * len(part))}{tail}"), [value for row in part for value in row]
                    )
                    touched += cursor.rowcount
                return touched
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def function(self, name: str, arguments: int, call: Callable[..., Any]) -> None:
        """Raise NotImplementedError, because a server can't call Python. Callers test ``shared`` first."""
        raise NotImplementedError(f"a server can't call {name}")

    def append(self, values: Sequence[Any], further: Iterator[Sequence[Any]] | None = None) -> list[list[str]] | None:
        """Append records in one round trip and one transaction. Return None and append nothing if the server refuses it.

        Args:
            values: the parameters `APPEND` of `ctxmgr.store.engine.postgresql_functions`.
            further: more values for `APPEND` in the same transaction. Each is built while the server handles the one before.
                If it raises, nothing is appended.

        Returns:
            For each batch, the last checksums of its sessions in their order; an empty list if those of the client are right.

        Raises:
            Busy, StorageFailed, Denied: nothing was appended; after a lost connection the records may have been.
        """

        def run(connection: psycopg.Connection[Any]) -> list[bytes]:
            if further is not None:
                return self._call_in_pipeline(connection, chain((values,), further))
            packed = pack_values(_APPEND_KINDS, values)
            return [self._call(connection, b"ctxmgr_append", _APPEND, packed, _APPEND_TYPES, _APPEND_FORMATS)]

        told = self._append(run, repeats=further is None)
        return None if told is None else [each[1:].decode().split(",") if len(each) > 1 else [] for each in told]

    def append_one(self, values: Sequence[bytes | None], quick: str | None) -> str | None:
        """Append one record. Return None and append nothing if the server refuses it. Otherwise like `append`.

        Args:
            values: the parameters `APPEND_ONE` of `ctxmgr.store.engine.postgresql_functions`, in text form.
            quick: which statement of `QUICK` probably suffices, None for none.

        Returns:
            The session's last checksum, or "" if that of the client is right.
        """

        def run(connection: psycopg.Connection[Any]) -> list[bytes]:
            # A statement of our own takes the server three quarters of the time of a function, but has to be prepared.
            if quick is not None and self._prepares:
                with connection.lock:
                    self._send(connection, *QUICK[quick], values, _ONE_TYPES)
                    if _wait_for_result(connection).command_tuples:
                        return [b"+"]
            return [self._call(connection, b"ctxmgr_append_one", _APPEND_ONE, values, _ONE_TYPES)]

        told = self._append(run)
        return None if told is None else told[0][1:].decode()

    def _append(self, run: Callable[[psycopg.Connection[Any]], list[bytes]], *, repeats: bool = True) -> list[bytes] | None:
        """Return what the function answered to each call, None if the server refused it."""
        connection = self._live()
        self._appends += 1
        try:
            if self._prepares is None and self._appends > _OFTEN:  # a pooler reports a process number of its own
                backend = int(self._call(connection, b"", b"SELECT pg_backend_pid()", (), ()))
                self._prepares = backend == connection.info.backend_pid
            told = run(connection)
            if any(each.startswith(b"-") for each in told):  # a crowded session: the disk is still to be waited for
                self._wait_for_disk(connection)
        except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
            self._prepares = False  # there is a pooler after all
            return self._append(run) if repeats else None
        except psycopg.errors.UniqueViolation:
            return None
        except psycopg.Error as error:
            if error.sqlstate == REFUSED:
                return None
            raise statement_error(self.path, error) from None
        return told

    def _wait_for_disk(self, connection: psycopg.Connection[Any]) -> None:
        try:
            self._call(connection, b"ctxmgr_on_disk", _ON_DISK, (), ())
        except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
            self._prepares = False  # a pooler; the records are committed, so only this is asked again
            self._call(connection, b"", _ON_DISK, (), ())

    def _call(self, connection: psycopg.Connection[Any], name: bytes, statement: bytes, values: Sequence[bytes | None],
              types: Sequence[int], formats: Sequence[pq.Format] | None = None) -> bytes:  # fmt: skip
        """Return the function's answer."""
        with connection.lock:
            self._send(connection, name, statement, values, types, formats)
            return _result_value(_wait_for_result(connection))

    def _send(self, connection: psycopg.Connection[Any], name: bytes, statement: bytes, values: Sequence[bytes | None],
              types: Sequence[int], formats: Sequence[pq.Format] | None = None) -> None:  # fmt: skip
        """Send a statement, prepared under this name if statements are prepared."""
        if self._prepares:
            self._prepare(connection, name, statement, types)
            connection.pgconn.send_query_prepared(name, values, formats)
        else:
            connection.pgconn.send_query_params(statement, values, types, formats)

    def _call_in_pipeline(self, connection: psycopg.Connection[Any], parts: Iterator[Sequence[Any]]) -> list[bytes]:
        """Return the function's answer to each part. All statements before the end of the pipeline form one transaction."""
        pgconn, asked, failure = connection.pgconn, 0, None
        with connection.lock:
            if self._prepares:  # not within the pipeline, where its answer would be one more
                self._prepare(connection, b"ctxmgr_append", _APPEND, _APPEND_TYPES)
            pgconn.enter_pipeline_mode()
            try:
                try:
                    for values in parts:
                        packed, asked = pack_values(_APPEND_KINDS, values), asked + 1
                        self._send(connection, b"ctxmgr_append", _APPEND, packed, _APPEND_TYPES, _APPEND_FORMATS)
                        connection.wait(_sending(pgconn))
                except BaseException as error:
                    failure, asked = error, asked + 1
                    pgconn.send_query_params(b"ROLLBACK", ())
                pgconn.pipeline_sync()
                connection.wait(_sending(pgconn))
                results = [result for _ in range(asked + 1) for result in connection.wait(generators.fetch_many(pgconn))]
                pgconn.exit_pipeline_mode()
            except BaseException:
                connection.close()
                raise
        if failure is not None:
            raise failure
        return [_result_value(_checked(result)) for result in results[:-1]]  # the last one is the end of the pipeline

    def _prepare(self, connection: psycopg.Connection[Any], name: bytes, statement: bytes, types: Sequence[int]) -> None:
        if name not in self._prepared:
            connection.pgconn.send_prepare(name, statement, types)
            _wait_for_result(connection)
            self._prepared.add(name)

    @property
    def within(self) -> bool:
        """Whether a transaction is open."""
        return self._depth > 0

    def transaction(self) -> AbstractContextManager[None]:
        """Lock the whole store. Commit at the end, or roll back after an exception. May be nested.

        Raises:
            Busy: others held the lock for too long.
        """
        return self._transaction(_ALONE)

    def appending(self) -> AbstractContextManager[None]:
        """Begin a transaction that appends beside others. The caller must lock its sessions. Otherwise like `transaction`."""
        return self._transaction(_BESIDE)

    @contextmanager
    def _transaction(self, lock: str) -> Generator[None]:
        if self._depth == 0:
            try:
                self._live().execute(f"{_BEGIN}{lock}".encode())
            except psycopg.Error as error:
                self._rollback()
                raise statement_error(self.path, error) from None
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            if not self._depth:
                self._rollback()
            raise
        self._depth -= 1
        if self._depth:
            return
        try:
            self._connection.execute(_COMMIT)
        except psycopg.Error as error:
            self._rollback()
            raise statement_error(self.path, error) from None

    @contextmanager
    def reading(self) -> Generator[None]:
        """Let all statements inside read one snapshot of the store. Takes no lock and may be nested."""
        outermost = not self._depth and not self._reading
        if outermost:
            self.execute(_READING)
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1
            if outermost:
                self._rollback()

    def _rollback(self) -> None:
        try:
            if not self._connection.closed and self._connection.info.transaction_status != pq.TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    @contextmanager
    def durably(self) -> Generator[None]:
        """Do nothing, because every commit waits for the server's disk."""
        yield

    def faults(self, most: int | None = None) -> list[str]:
        """Return nothing, because the server checks its own pages. Records are verified by their checksums."""
        return []

    def schema_version(self) -> int:
        """Return the version of the tables, 0 if there are none."""
        # Ask the catalogue for rows: a name look-up may still miss a schema that was created a moment ago.
        sql = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = :schema AND tablename = 'schema_version'"
        if not self.query(sql, {"schema": SCHEMA}):
            return 0
        return int(self.query("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])

    def run(self, statement: str) -> None:
        """Run one statement in the server's own dialect."""
        try:
            self._live().execute(statement.encode())
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for a notification on the team's channel, at most this many seconds, or until ``end`` becomes readable.

        A notification is only a hint, and none arrives behind a pooler. After one, this waits a little longer, so the caller
        handles those that follow in one look. The longer the caller's last look took, the longer this waits.
        """
        gather = min(_LONGEST_GATHER, max(_GATHER, _REST * (time.monotonic() - self._woken)))
        try:
            if (listener := self._listening()) is None:
                _readable(seconds, end)
            else:
                # Notifications that came between two waits are in the connection's buffer, so its socket is not readable.
                heard = any(listener.notifies(timeout=0, stop_after=1))
                if not heard and listener.fileno() in _readable(seconds, end, listener):
                    heard = any(listener.notifies(timeout=0, stop_after=1))
                if heard:
                    _readable(gather, end)
        except (psycopg.Error, CtxmgrError):  # the server is away: the next statement will report it
            _readable(seconds, end)
        self._woken = time.monotonic()

    def _listening(self) -> psycopg.Connection[Any] | None:
        """Return the connection that listens; None behind a pooler, which would pass a listening connection on to others."""
        if not self._pooled and (self._listener is None or self._listener.closed):
            made = self._connect()
            channel, process = made.execute(self._channel() + b", pg_backend_pid()").fetchall()[0]
            self._pooled = process != made.info.backend_pid  # a pooler reports a process number of its own
            if self._pooled:
                made.close()
            else:
                made.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                self._listener = made
        return None if self._pooled else self._listener

    def tell(self) -> None:
        """Notify all clients that wait on the team's channel."""
        self.execute(f"SELECT pg_notify(channel.name, '') FROM ({self._channel().decode()}) AS channel(name)")

    def _channel(self) -> bytes:
        return f"SELECT {SCHEMA}.channel()".encode() if self.version >= TEAMS else b"SELECT 'ctxmgr'"

    def clock(self) -> float:
        """Return the server's time in seconds since 1970, which all machines share."""
        return float(self.query("SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)")[0][0])

    def close(self) -> None:
        """Close all connections."""
        for connection in self._made:  # including those of streams that were not read to their end
            connection.close()
        self._made.clear()
        self._idle.clear()

    def __del__(self) -> None:
        if getattr(self, "_made", None):  # without this, psycopg would warn about connections that were not closed
            self.close()


def _readable(seconds: float, *ends: HasFileno | None) -> set[int]:
    """Wait until one of the files is readable, at most this many seconds. Return the descriptors of the readable ones."""
    with DefaultSelector() as selector:
        for each in filter(None, ends):
            selector.register(each.fileno(), EVENT_READ)
        return {key.fd for key, _ in selector.select(seconds)}


def _close(cursor: psycopg.ServerCursor[Any]) -> None:
    """Close a cursor. If closing it reveals a lost connection, a second call closes it on our side."""
    try:
        cursor.close()
    except psycopg.Error:
        cursor.close()


def _wait_for_result(connection: psycopg.Connection[Any]) -> PGresult:
    return _checked(connection.wait(generators.execute(connection.pgconn))[-1])


def _checked(result: PGresult) -> PGresult:
    if result.status not in _DONE:
        raise psycopg.errors.error_from_result(result)
    return result


def _result_value(result: PGresult) -> bytes:
    return (result.get_value(0, 0) if result.ntuples else None) or b""


def _sending(pgconn: PGconn) -> PQGen[None]:
    while pgconn.flush():
        if (yield waiting.Wait.RW) & waiting.Ready.R:
            pgconn.consume_input()
