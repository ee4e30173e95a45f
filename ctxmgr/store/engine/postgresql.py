"""The PostgreSQL engine: runs all statements and hands its errors on as ours (`postgresql_errors`).

Nothing is set for a connection beyond its transactions, since a pooler may stand before it. Two things outlive one: prepared
statements, where no pooler is found (or the URL says ``prepare=1``), and the ``LISTEN`` of a connection that does nothing else,
where no pooler is found: it would hand that connection to its other clients as it is.
The limits (`_LOCK_SECONDS`, `_STATEMENT_SECONDS`) hold for a writing transaction; reads have none but the server's own.

Appends go on side by side: each locks the rows of its sessions (`ctxmgr.store.engine.postgresql_functions`). Any other writing
transaction has the store for itself.
"""

from __future__ import annotations

import math
import re
import time
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, count
from selectors import EVENT_READ, DefaultSelector
from struct import Struct, pack
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import generators, pq, sql, waiting
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper
from psycopg.types.string import StrBinaryDumper, StrDumperUnknown, TextLoader

from ctxmgr.errors import CtxmgrError
from ctxmgr.store.engine.dialect import SCHEMA, postgresql
from ctxmgr.store.engine.postgresql_errors import connection_error, statement_error
from ctxmgr.store.engine.postgresql_functions import APPEND, APPEND_ONE, REFUSED, WRITERS
from ctxmgr.store.engine.postgresql_schema import TEAMS
from ctxmgr.store.engine.postgresql_url import connection_options, prepares, printable_location

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from contextlib import AbstractContextManager
    from socket import socket

    from _typeshed import HasFileno
    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

    from ctxmgr.store.engine.interface import Row, Values

_LOCK_SECONDS, _STATEMENT_SECONDS = 10, 60
_BEGIN = (
    f"BEGIN; SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'; SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'; "
    # Who is stopped in the middle, with a lock, does not hold up the others for good.
    f"SET LOCAL idle_in_transaction_session_timeout = '{_STATEMENT_SECONDS}s'; SET LOCAL synchronous_commit = off; "
)
_GATHER, _LONGEST_GATHER = 0.05, 1.0
_REST = 4  # times as long as it looked does a watcher rest: where many watch, a server has time left for writers
_ALONE, _BESIDE = f"SELECT pg_advisory_xact_lock({WRITERS})", f"SELECT pg_advisory_xact_lock_shared({WRITERS})"
# A lock that others wait for is given back before the disk is waited for, else all would wait for it one after the other. The
# wait is that of a message of no meaning, behind the commit in the server's log: when it is on the disk, so is all before it.
_ON_DISK = b"SELECT pg_logical_emit_message(true, 'ctxmgr', '')"
_COMMIT = b"COMMIT; " + _ON_DISK
_APPEND, _APPEND_ONE = (
    f"SELECT {SCHEMA}.{name}({', '.join(f'${number}' for number in range(1, len(taken) + 1))})".encode()
    for name, taken in (("append", APPEND), ("append_one", APPEND_ONE))
)
_APPEND_TYPES = [{"TEXT[]": 1009, "BIGINT[]": 1016, "DOUBLE PRECISION[]": 1022, "BIGINT": 20}[kind] for kind in APPEND.values()]
_APPEND_FORMATS = [pq.Format.TEXT if kind == "BIGINT" else pq.Format.BINARY for kind in APPEND.values()]
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_VALUES = re.compile(r"^(INSERT INTO .* VALUES )(\([?, ]*\))((?: ON CONFLICT DO NOTHING)?)$")
_OFTEN = 4  # appends before it is worth to prepare one
_TOGETHER = 500  # rows of one statement: the number of its values is limited


class PostgresqlEngine:
    """One connection for statements, and one for each stream that is open; any thread may use it, one at a time.

    Args:
        url: of the database, see `ctxmgr.store.engine.postgresql_url`.
        readonly: nothing will be written.

    Attributes:
        path: the URL as it may be shown.
        shared: others on other machines use it too, and nothing of it is a file here.
        version: of the tables, as it was when the store was opened.
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
        self._woken = math.inf  # when it was last told of something new
        self._made: list[psycopg.Connection[Any]] = []
        self._idle: list[psycopg.Connection[Any]] = []
        self._listener: psycopg.Connection[Any] | None = None
        self._pooled = False  # known once it waits
        self._connection = self._connect()

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            threshold = 5 if self._prepares else None
            made = psycopg.connect(**self._options, autocommit=True, prepare_threshold=threshold)  # pyright: ignore[reportArgumentType]
        except psycopg.Error as error:
            raise connection_error(self.path, error) from None
        self._made = [*(each for each in self._made if not each.closed), made]
        made.adapters.register_dumper(int, Int8BinaryDumper)
        made.adapters.register_dumper(int, Int8Dumper)  # the smallest type that fits would overflow in a sum
        made.adapters.register_dumper(str, _BinaryTextDumper)
        made.adapters.register_dumper(str, _TextDumper)
        made.adapters.register_loader("text", _TextLoader)
        return made

    def _live(self) -> psycopg.Connection[Any]:
        """Return the connection; a new one where the server ended it, unless that happened inside a transaction."""
        if self._connection.closed and not self._depth and not self._reading:
            self._connection = self._connect()
            self._prepared.clear()
        return self._connection

    def query(self, sql: str, values: Values | None = None) -> list[Row]:
        """Return all rows of a reading statement; asked again, once, where the connection is found to be lost."""
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
        """Yield rows in batches, all of one state of the store; consume or close it."""
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
        """Run a writing statement; return the number of rows it touched."""
        try:
            return self._live().execute(postgresql(sql), values or {}).rowcount
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def many(self, sql: str, rows: Sequence[Values] | Sequence[Row]) -> int:
        """Run a writing statement once for each set of values; return the number of rows it touched."""
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
        """Refuse: a server can't call back. Whoever needs it asks whether the engine is ``shared`` first."""
        raise NotImplementedError(f"a server can't call {name}")

    def append(self, values: Sequence[Any], further: Iterator[Sequence[Any]] | None = None) -> list[list[str]] | None:
        """Append in one round trip, a transaction of its own; return None, with nothing done, where it is refused.

        Args:
            values: what `APPEND`, or for one record `APPEND_ONE`, of `ctxmgr.store.engine.postgresql_functions` names.
            further: more of what `APPEND` names, for the same transaction; each is made while the server does the one before.
                If it raises, nothing is done.

        Returns:
            For each of these the last sums of the sessions, in their order; none if they follow from the sums that were given.

        Raises:
            Busy, StorageFailed, Denied: it was not done, or, where the connection was lost, it may have been.
        """
        connection = self._live()
        self._appends += 1
        try:
            if self._prepares is None and self._appends > _OFTEN:  # a pooler tells a number of its own
                self._prepares = int(_asked(connection, b"SELECT pg_backend_pid()", ())) == connection.info.backend_pid
            if further is not None:
                told = self._piped(connection, chain((values,), further))
            elif len(values) == len(APPEND_ONE):
                told = [self._called(connection, _APPEND_ONE, [None if each is None else _literal(each) for each in values])]
            else:
                told = [self._called(connection, _APPEND, _packed(values), _APPEND_TYPES, _APPEND_FORMATS)]
            if any(each.startswith(b"-") for each in told):  # others wait for the session: it was given back at once
                _asked(connection, _ON_DISK, ())
        except (psycopg.errors.InvalidSqlStatementName, psycopg.errors.DuplicatePreparedStatement):
            self._prepares = False  # a pooler stands between after all
            return self.append(values) if further is None else None
        except psycopg.errors.UniqueViolation:
            return None
        except psycopg.Error as error:
            if error.sqlstate == REFUSED:
                return None
            raise statement_error(self.path, error) from None
        return [each[1:].decode().split(",") if len(each) > 1 else [] for each in told]

    def _called(self, connection: psycopg.Connection[Any], statement: bytes, values: Sequence[bytes | None],
                types: Sequence[int] | None = None, formats: Sequence[pq.Format] | None = None) -> bytes:  # fmt: skip
        with connection.lock:
            if (name := self._name(connection, statement, types)) is None:
                connection.pgconn.send_query_params(statement, values, types, formats)
            else:
                connection.pgconn.send_query_prepared(name, values, formats)
            return _answered(connection)

    def _piped(self, connection: psycopg.Connection[Any], parts: Iterator[Sequence[Any]]) -> list[bytes]:
        """Return what the function answers to each part; all that is sent before the pipeline's end is one transaction."""
        pgconn, asked, failure = connection.pgconn, 0, None
        with connection.lock:
            name = self._name(connection, _APPEND, _APPEND_TYPES)
            pgconn.enter_pipeline_mode()
            try:
                try:
                    for values in parts:
                        packed, asked = _packed(values), asked + 1
                        if name is None:
                            pgconn.send_query_params(_APPEND, packed, _APPEND_TYPES, _APPEND_FORMATS)
                        else:
                            pgconn.send_query_prepared(name, packed, _APPEND_FORMATS)
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
        return [_told(result) for result in results[:-1]]  # the last one is the end of the pipeline

    def _name(self, connection: psycopg.Connection[Any], statement: bytes, types: Sequence[int] | None) -> bytes | None:
        """Return the name under which a statement is prepared, now if it was not before; None where none is prepared."""
        if not self._prepares:
            return None
        name = b"ctxmgr_" + statement.split(b"(", 1)[0].split(b".")[1]
        if name not in self._prepared:
            connection.pgconn.send_prepare(name, statement, types)
            _answered(connection)
            self._prepared.add(name)
        return name

    @property
    def within(self) -> bool:
        """Whether a transaction is open."""
        return self._depth > 0

    def transaction(self) -> AbstractContextManager[None]:
        """Have the store for itself; commit at the end, or take all back; nests.

        Raises:
            Busy: others held it for too long.
        """
        return self._transaction(_ALONE)

    def appending(self) -> AbstractContextManager[None]:
        """Begin a transaction that appends, beside others that do; it has to lock its sessions. Else as `transaction`."""
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
        """Let all reading inside see one state of the store; nests, and needs no lock."""
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
        """Let commits inside wait for the server's disk, as all do."""
        yield

    def faults(self, most: int | None = None) -> list[str]:
        """Return nothing: the server checks its own pages, and records are checked against their sums."""
        return []

    def schema_version(self) -> int:
        """Return the version of the tables, 0 where there are none."""
        # As rows: of a schema that was not there a moment ago names would tell that it still is not.
        sql = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = :schema AND tablename = 'schema_version'"
        if not self.query(sql, {"schema": SCHEMA}):
            return 0
        return int(self.query("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])

    def run(self, statement: str) -> None:
        """Run one statement that is spelled as the server takes it."""
        try:
            self._live().execute(statement.encode())
        except psycopg.Error as error:
            raise statement_error(self.path, error) from None

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for a notification on the team's channel, so long at most; it is only a hint, and never comes behind a pooler.

        What is said shortly after it is looked at together: the longer looking took last time, the more of it.
        Whatever can be read from ``end`` ends the wait.
        """
        gather = min(_LONGEST_GATHER, max(_GATHER, _REST * (time.monotonic() - self._woken)))
        try:
            if (listener := self._listening()) is None:
                _readable(seconds, end)
            else:
                # What came while nobody listened is held by the connection itself, and could not be read from it.
                heard = any(listener.notifies(timeout=0, stop_after=1))
                if not heard and listener.fileno() in _readable(seconds, end, listener):
                    heard = any(listener.notifies(timeout=0, stop_after=1))
                if heard:
                    _readable(gather, end)
        except (psycopg.Error, CtxmgrError):  # the server is away: whoever asks it next hears of it
            _readable(seconds, end)
        self._woken = time.monotonic()

    def _listening(self) -> psycopg.Connection[Any] | None:
        """Return the connection that listens; None behind a pooler, which would give it to others as it is."""
        if not self._pooled and (self._listener is None or self._listener.closed):
            made = self._connect()
            channel, process = made.execute(self._channel() + b", pg_backend_pid()").fetchall()[0]
            self._pooled = process != made.info.backend_pid  # a pooler tells a number of its own
            if self._pooled:
                made.close()
            else:
                made.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                self._listener = made
        return None if self._pooled else self._listener

    def tell(self) -> None:
        """Notify whoever waits on the team's channel."""
        self.execute(f"SELECT pg_notify(channel.name, '') FROM ({self._channel().decode()}) AS channel(name)")

    def _channel(self) -> bytes:
        return f"SELECT {SCHEMA}.channel()".encode() if self.version >= TEAMS else b"SELECT 'ctxmgr'"

    def clock(self) -> float:
        """Return the server's time, in seconds since 1970: the one that all machines share."""
        return float(self.query("SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)")[0][0])

    def close(self) -> None:
        """Release the connections."""
        for connection in self._made:  # those of streams that were not read to their end too
            connection.close()
        self._made.clear()
        self._idle.clear()

    def __del__(self) -> None:
        if getattr(self, "_made", None):  # whoever forgets a store is told of it no more than with a file
            self.close()


def _readable(seconds: float, *ends: HasFileno | None) -> set[int]:
    """Wait until one of these can be read, so long at most; return the numbers of those that can."""
    with DefaultSelector() as selector:
        for each in filter(None, ends):
            selector.register(each.fileno(), EVENT_READ)
        return {key.fd for key, _ in selector.select(seconds)}


def _close(cursor: psycopg.ServerCursor[Any]) -> None:
    """Close a cursor, on a lost connection too: where that is found out only by closing, the cursor would stay open."""
    try:
        cursor.close()
    except psycopg.Error:
        cursor.close()


def _asked(connection: psycopg.Connection[Any], statement: bytes, values: Sequence[bytes | None], *types: Any) -> bytes:
    """Return what a function answers; asked without a cursor, which would take the client as long as all else it does."""
    with connection.lock:
        connection.pgconn.send_query_params(statement, values, *types)
        return _answered(connection)


def _answered(connection: psycopg.Connection[Any]) -> bytes:
    return _told(connection.wait(generators.execute(connection.pgconn))[-1])


def _told(result: PGresult) -> bytes:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result)
    return (result.get_value(0, 0) if result.ntuples else None) or b""


def _sending(pgconn: PGconn) -> PQGen[None]:
    while pgconn.flush():
        if (yield waiting.Wait.RW) & waiting.Ready.R:
            pgconn.consume_input()


def _literal(value: str | float) -> bytes:
    return server_text(value) if type(value) is str else str(value).encode()


def server_text(text: str) -> bytes:
    """Return a text as the server holds it, and compares it."""
    return _escaped(text).encode()


_NULL = b"\xff\xff\xff\xff"
_length = Struct("!i").pack


def _head(kind: int, size: int) -> bytes:
    return pack("!iiiii", 1, 1, kind, size, 1) if size else pack("!iii", 0, 0, kind)


def _texts(values: Sequence[str | bytes | None]) -> bytes:
    """Return the binary form of an array of texts; bytes are texts that are spelled already."""
    parts = [_head(25, len(values))]
    for each in values:
        if each is None:
            parts.append(_NULL)
        elif type(each) is bytes:
            parts += (_length(len(each)), each)
        else:
            parts.append(_measured(each))
    return b"".join(parts)


@lru_cache(maxsize=1024)  # agents, actions, kinds and the like come again and again
def _measured(text: str) -> bytes:
    said = server_text(text)
    return _length(len(said)) + said


def _numbers(kind: int, code: str) -> Callable[[Sequence[float | None]], bytes]:
    one = Struct(f"!i{code}").pack

    def packed(values: Sequence[float | None]) -> bytes:
        return _head(kind, len(values)) + b"".join([_NULL if each is None else one(8, each) for each in values])

    return packed


_PACKED: dict[int, Callable[[Any], bytes]] = {1009: _texts, 1016: _numbers(20, "q"), 1022: _numbers(701, "d"), 20: _literal}


def _packed(values: Sequence[Any]) -> list[bytes]:
    """Return the values of `APPEND` as they are sent."""
    return [_PACKED[kind](each) for kind, each in zip(_APPEND_TYPES, values, strict=True)]


# PostgreSQL's text has no NUL: it is spelled with a noncharacter, and that one with itself and another, so that each text
# comes back as it was and begins as it did.
_ESCAPE = "\ufdd0"
_SPELLINGS = {"\0": "\ufdd0\ufdd1", _ESCAPE: "\ufdd0\ufdd2"}
_MEANINGS = {spelling: letter for letter, spelling in _SPELLINGS.items()}


def _escaped(text: str) -> str:
    if "\0" in text or _ESCAPE in text:
        return re.sub("[\0\ufdd0]", lambda found: _SPELLINGS[found.group()], text)
    return text


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Any:
        return super().dump(_escaped(obj))


class _BinaryTextDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(_escaped(obj))


class _TextLoader(TextLoader):
    def load(self, data: Any) -> Any:
        text = str(super().load(data))
        if _ESCAPE in text:
            return re.sub("\ufdd0[\ufdd1\ufdd2]", lambda found: _MEANINGS[found.group()], text)
        return text
