"""Run a user's SELECT over the documented views. It can't write anything, and its time and rows are limited.

SQLite refuses everything else by an authorizer, which sees every table, function and pragma while a statement is prepared.

The views (`VIEWS`, documented in docs/sql.md) are created for one connection. So they are the same for a store, the index of
a log, and an agent's view of a history. Times are RFC 3339 as recorded, days are UTC, and JSON is text. The views of spec 003
are in the store itself (`ctxmgr.store.engine.schema`).
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import CtxmgrError, Damaged, InvalidInput
from ctxmgr.store.engine.sqlite import SqliteEngine, sqlite
from ctxmgr.store.project_session import PROJECT

FINDINGS = "findings"
"""A table that is filled if a query names it. Findings are not stored, but computed from the history."""

FINDING_COLUMNS = (
    "session", "verdict", "id", "kind", "severity", "agent", "period", "count", "first", "last", "raised_at", "resolved",
    "last_progress", "reason", "cause", "next_step",
)  # fmt: skip

PROJECT_VIEWS = (
    "project_context", "artifacts", "artifact_dependencies", "context_versions", "execution_history", "access_control",
    "context_summaries", "agent_context_requirements",
)  # fmt: skip
"""The tables of spec 003 as views."""

_HISTORY = f"session.id <> '{PROJECT}'"
# ``->>`` fails the whole query at a text that is not JSON. One altered record must not hide all others.
_RECORDED = "CASE WHEN json_valid(own.body) THEN own.body END"
_DONE = "CASE WHEN json_valid(done.body) THEN done.body END"
_USED = (
    "SELECT usage.session AS key, usage.seq AS seq, usage.input AS input, usage.output AS output, record.kind AS kind, "
    "record.id AS id, record.ts AS ts, CASE WHEN json_valid(record.body) THEN record.body END AS body "
    "FROM main.usage JOIN record ON record.seq = usage.seq"
)

VIEWS: dict[str, str] = {
    "sessions": (
        "SELECT session.id AS session, CASE WHEN json_valid(session.meta) THEN session.meta ->> '$.title' END AS title, "
        "CASE WHEN json_valid(session.meta) THEN session.meta ->> '$.cwd' END AS project, session.workflow AS workflow, "
        "CASE WHEN json_valid(session.source) THEN session.source ->> '$.importer' END AS importer, "
        "session.entries AS entries, "
        "(SELECT count(*) FROM main.entry WHERE entry.session = session.key AND entry.status IN "
        "('error', 'denied', 'interrupted')) AS failed, "
        "(SELECT count(*) FROM main.entry WHERE entry.session = session.key AND entry.status = 'open') AS open, "
        "session.events AS events, "
        "strftime('%Y-%m-%dT%H:%M:%fZ', session.first, 'unixepoch') AS started, "
        "strftime('%Y-%m-%dT%H:%M:%fZ', session.last, 'unixepoch') AS last, "
        "(SELECT process.outcome FROM main.process WHERE process.session = session.key ORDER BY process.seq DESC LIMIT 1) "
        "AS outcome, "
        "(SELECT sum(usage.input) FROM main.usage WHERE usage.session = session.key) AS input_tokens, "
        "(SELECT sum(usage.output) FROM main.usage WHERE usage.session = session.key) AS output_tokens "
        f"FROM main.session WHERE {_HISTORY}"
    ),
    "entries": (
        "SELECT session, idx, id, own ->> '$.ts' AS ts, date(at, 'unixepoch') AS day, own ->> '$.agent' AS agent, "
        "own ->> '$.action' AS action, own ->> '$.inputType' AS input_type, own ->> '$.input' AS input, status, "
        "coalesce(done ->> '$.output', own ->> '$.output') AS output, "
        "coalesce(done ->> '$.error.type', own ->> '$.error.type') AS error_type, "
        "coalesce(done ->> '$.error.message', own ->> '$.error.message', "
        "CASE WHEN status = 'error' THEN coalesce(done ->> '$.output', own ->> '$.output') END) AS error, "
        "coalesce(done ->> '$.durationMs', own ->> '$.durationMs') AS duration_ms, own ->> '$.meta.model' AS model, "
        "own ->> '$.process' AS process, own ->> '$.turn' AS turn, own ->> '$.step' AS step, own ->> '$.task' AS task "
        "FROM (SELECT session.id AS session, entry.idx AS idx, own.id AS id, entry.ts AS at, entry.status AS status, "
        f"{_RECORDED} AS own, {_DONE} AS done "
        "FROM main.entry JOIN main.session ON session.key = entry.session JOIN record AS own ON own.seq = entry.seq "
        f"LEFT JOIN record AS done ON done.seq = entry.result WHERE {_HISTORY})"
    ),
    "events": (
        "SELECT session, id, own ->> '$.ts' AS ts, date(at, 'unixepoch') AS day, type, own ->> '$.agent' AS agent, "
        "own ->> '$.entry' AS entry, coalesce(own ->> '$.data.text', own ->> '$.data.message', own ->> '$.data.content') "
        "AS text, own ->> '$.data' AS data "
        "FROM (SELECT session.id AS session, own.id AS id, event.ts AS at, event.type AS type, "
        f"{_RECORDED} AS own FROM main.event JOIN main.session ON session.key = event.session "
        f"JOIN record AS own ON own.seq = event.seq WHERE {_HISTORY})"
    ),
    "notes": (
        "SELECT session, id, own ->> '$.ts' AS ts, own ->> '$.author' AS author, own ->> '$.content' AS content, "
        "own ->> '$.tags' AS tags, own ->> '$.entries' AS entries, own ->> '$.supersedes' AS supersedes, superseded_by "
        f"FROM (SELECT session.id AS session, own.id AS id, superseded.successor AS superseded_by, {_RECORDED} AS own "
        "FROM record AS own JOIN main.session ON session.key = own.session LEFT JOIN main.superseded "
        "ON superseded.session = own.session AND superseded.note = own.id "
        f"WHERE own.kind = 'note' AND {_HISTORY})"
    ),
    "snapshots": (
        "SELECT session, id, own ->> '$.ts' AS ts, own ->> '$.summary' AS summary, own ->> '$.reasoning' AS reasoning, "
        "own ->> '$.entries' AS entries "
        f"FROM (SELECT session.id AS session, own.id AS id, {_RECORDED} AS own FROM record AS own "
        f"JOIN main.session ON session.key = own.session WHERE own.kind = 'snapshot' AND {_HISTORY})"
    ),
    "continuations": (
        "SELECT session, id, own ->> '$.ts' AS ts, own ->> '$.requestType' AS request_type, own ->> '$.source' AS source, "
        "own ->> '$.target' AS target, own ->> '$.reason' AS reason, own ->> '$.goal' AS goal, "
        "coalesce(own ->> '$.loop.kind', own ->> '$.stall.kind') AS kind, own ->> '$.by' AS made_by, "
        "own ->> '$.attempts' AS attempts, own ->> '$.context.summary' AS summary, own ->> '$.context.prompt' AS prompt "
        f"FROM (SELECT session.id AS session, own.id AS id, {_RECORDED} AS own FROM record AS own "
        f"JOIN main.session ON session.key = own.session WHERE own.kind = 'continuation' AND {_HISTORY})"
    ),
    "token_usage": (
        "SELECT session.id AS session, used.body ->> '$.ts' AS ts, "
        "date(used.ts, 'unixepoch') AS day, used.body ->> '$.agent' AS agent, "
        "coalesce(used.body ->> '$.data.model', used.body ->> '$.meta.model') AS model, "
        "CASE used.kind WHEN 'event' THEN used.body ->> '$.data.responseId' END AS step, "
        "CASE used.kind WHEN 'entry' THEN used.id WHEN 'result' THEN used.body ->> '$.entry' END AS entry, "
        "used.input AS input_tokens, used.output AS output_tokens "
        f"FROM ({_USED}) AS used JOIN main.session ON session.key = used.key WHERE {_HISTORY}"
    ),
    "usage_by_day": (
        "SELECT day, agent, model, count(*) AS responses, sum(input_tokens) AS input_tokens, "
        "sum(output_tokens) AS output_tokens FROM token_usage GROUP BY day, agent, model"
    ),
}
"""Name and SELECT of each view of the history."""


NAMES = (*VIEWS, FINDINGS, *PROJECT_VIEWS)
"""The views and tables that a query may name."""

_MAX_MEMORY = 1 << 30
_STEPS = 10_000
_SECONDS_TO_READ = 10.0
_PRAGMAS = frozenset({"table_info", "table_xinfo"})
_TABLE_FUNCTIONS = frozenset({"json_each", "json_tree"})
# The first loads code from a file, the second takes the address of code as its argument.
_FORBIDDEN = frozenset({"load_extension", "fts3_tokenizer"})
_OWN = frozenset({"log_body", "log_sum"})
HINT = f"views: {', '.join(NAMES)}; 'ctxmgr sql --views' lists their columns"


@dataclass(slots=True)
class Rows:
    """The result of a query.

    Attributes:
        columns: the names of the columns, made unique.
        rows: rows of values that JSON can represent.
        more: whether there are more rows than the limit.
        stopped: why the query was stopped before its end; empty if it was not.
    """

    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    more: bool = False
    stopped: str = ""


class ReadQuery:
    """One person's questions to one store, over its connection.

    Args:
        engine: of the store; nothing else may use it meanwhile.

    Attributes:
        duration: the milliseconds of an entry in SQL, where they are a number.

    Raises:
        CtxmgrError: the views can't be made.
    """

    duration = "CASE WHEN typeof(duration_ms) IN ('integer', 'real') AND duration_ms >= 0 THEN duration_ms END"

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine
        self._connection: Any = engine.connection
        self._refused = ""
        self._named: set[str] = set()
        self._inside: set[tuple[str, str, str]] = set()
        with self._writable():
            for name, selects in VIEWS.items():
                # TEMP, so that nothing is written into the store, and the views vanish with the connection.
                engine.execute(f"CREATE TEMP VIEW IF NOT EXISTS {name} AS {selects}")
            # A table and not a view, because detectors compute findings from whole sessions, which SQL can't do.
            columns = ", ".join(f'"{name}"' for name in FINDING_COLUMNS)
            engine.execute(f"CREATE TEMP TABLE IF NOT EXISTS {FINDINGS} ({columns})")
        self._look_inside()

    def _look_inside(self) -> None:
        """Note which tables and functions the views read.

        SQLite passes the name of the view to the authorizer, but a WITH clause may have the same name.
        """

        def record_access(action: int, first: str | None, second: str | None, base: str | None, inner: str | None) -> int:
            if action == sqlite.SQLITE_READ:
                self._inside.add(((first or "").lower(), second or "", inner or ""))
            elif action == sqlite.SQLITE_FUNCTION:
                self._inside.add(("", (second or "").lower(), inner or ""))
            reads = action in (sqlite.SQLITE_READ, sqlite.SQLITE_FUNCTION, sqlite.SQLITE_SELECT, sqlite.SQLITE_RECURSIVE)
            return sqlite.SQLITE_OK if reads else sqlite.SQLITE_DENY

        self._connection.set_authorizer(record_access)
        try:
            for name in NAMES:
                with suppress(sqlite.Error, UnicodeError):  # a foreign store may have a broken view; a query that uses it fails
                    self._connection.execute(f"SELECT * FROM {name} LIMIT 0").close()
        finally:
            self._connection.set_authorizer(None)

    @contextmanager
    def _writable(self) -> Generator[None]:
        # A read-only connection would refuse temporary tables too.
        self._connection.execute("PRAGMA query_only = OFF")
        try:
            yield
        finally:
            if self._engine.readonly:
                self._connection.execute("PRAGMA query_only = ON")

    def find_views(self, query: str, values: Sequence[Any] = ()) -> set[str]:
        """Return the views that a query names.

        Raises:
            InvalidInput: the query is not a single SELECT, or names something that it may not read.
        """
        # EXPLAIN compiles the query, so that the authorizer sees its names, but does not run it.
        asked = query if not query.strip() or _explains(query) else f"EXPLAIN {query}"
        self.run(asked, values, most=1, seconds=_SECONDS_TO_READ)
        return set(self._named)

    def fill(self, findings: Iterable[Sequence[Any]]) -> None:
        """Replace the rows of the table of findings."""
        marks = ", ".join("?" * len(FINDING_COLUMNS))
        with self._writable():
            self._connection.execute(f"DELETE FROM temp.{FINDINGS}")
            self._connection.executemany(f"INSERT INTO temp.{FINDINGS} VALUES ({marks})", findings)

    def views(self) -> dict[str, list[str]]:
        """Return the columns of each view that a query may name, in order."""
        columns = {name: self._engine.query(f"PRAGMA table_info({name})") for name in NAMES}
        return {name: [str(row[1]) for row in rows] for name, rows in columns.items()}

    def run(self, query: str, values: Sequence[Any] = (), *, most: int, seconds: float) -> Rows:
        """Return up to ``most`` rows of a query. Stop a query that takes too long.

        Raises:
            InvalidInput: the query is not a single SELECT, names something that it may not read, or has an error.
            Damaged: the store can't be read.
        """
        if not query.strip():
            raise InvalidInput("the query is empty", "e.g. ctxmgr sql 'SELECT action, count(*) FROM entries GROUP BY action'")
        watch = Watch(time.monotonic() + seconds, seconds)
        found = Rows()
        with self._guard(watch):
            try:
                cursor = self._connection.execute(query, values)
                if cursor.description is None:
                    raise InvalidInput("this statement returns no rows", "'ctxmgr sql' only reads: begin with SELECT")
                found.columns = distinct(str(column[0]) for column in cursor.description)
                for row in cursor:
                    if len(found.rows) == most:
                        found.more = True
                        break
                    found.rows.append(tuple(map(to_json, row)))
                    # SQLite calls the watch only while it computes, so call it here too, for large rows that are quick to find.
                    if watch():
                        if watch.raised is not None:
                            raise watch.raised
                        found.stopped = watch.stopped
                        break
                cursor.close()
            except InvalidInput:
                raise
            except (sqlite.Error, sqlite.Warning, UnicodeError, OverflowError, ValueError) as error:
                if watch.raised is not None:
                    raise watch.raised from None
                if not watch.stopped and str(getattr(error, "sqlite_errorname", "")) == "SQLITE_INTERRUPT":
                    raise KeyboardInterrupt from None  # the interrupt came outside of the watch's try block
                if not watch.stopped:
                    raise self._as_error(error) from None
                found.stopped = watch.stopped
        return found

    @contextmanager
    def _guard(self, watch: Watch) -> Generator[None]:
        connection = self._connection
        self._refused, self._named = "", set()
        # A second barrier, in case our authorizer has a hole.
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(self._authorise)
        connection.set_progress_handler(watch, _STEPS)
        # A name may hold half a surrogate pair, which is no UTF-8. One such record must not fail the whole query.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        try:
            yield
        finally:
            connection.text_factory = str
            connection.set_progress_handler(None, 0)
            connection.set_authorizer(None)
            if not self._engine.readonly:
                connection.execute("PRAGMA query_only = OFF")

    def _authorise(self, action: int, first: str | None, second: str | None, base: str | None, inner: str | None) -> int:
        """Tell SQLite whether a statement may do this. Refuse every action that is not known to be reading."""
        if action in (sqlite.SQLITE_SELECT, sqlite.SQLITE_RECURSIVE):
            return sqlite.SQLITE_OK
        if action == sqlite.SQLITE_READ:
            return self._readable(first or "", second or "", inner)
        if action == sqlite.SQLITE_FUNCTION:
            name = (second or "").lower()
            if name not in _FORBIDDEN and (name not in _OWN or ("", name, inner or "") in self._inside):
                return sqlite.SQLITE_OK
            self._refused = f"the function {second}() can't be called"
        elif action == sqlite.SQLITE_PRAGMA:
            if (first or "").lower() in _PRAGMAS:
                return sqlite.SQLITE_OK
            self._refused = f"PRAGMA {first} can't be used"
        else:
            self._refused = "only reading is possible"
        return sqlite.SQLITE_DENY

    def _readable(self, table: str, column: str, inner: str | None) -> int:
        """Allow the views, the tables that they read, table-valued functions, and counting, which reads no column."""
        name = table.lower()
        if name in NAMES:
            self._named.add(name)
            return sqlite.SQLITE_OK
        if not column or (name, column, inner or "") in self._inside or name in _TABLE_FUNCTIONS:
            return sqlite.SQLITE_OK
        self._refused = f"{table!r} is a table of the store's own, which may change"
        return sqlite.SQLITE_DENY

    def _as_error(self, error: Exception) -> CtxmgrError:
        words = str(error)
        if self._refused:
            return InvalidInput(f"refused: {self._refused}", f"'ctxmgr sql' only reads; {HINT}")
        name = str(getattr(error, "sqlite_errorname", "") or "")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")):
            return Damaged(f"{self._engine.path}: {words}", "'ctxmgr verify' checks the store")
        if "one statement at a time" in words:
            return InvalidInput("that is more than one statement", "give one SELECT")
        return InvalidInput(f"the query can't be run: {words}", HINT)


class Watch:
    """A callback that SQLite calls every few thousand steps. It returns 0 to go on, else SQLite stops the query.

    Attributes:
        stopped: the reason in words; empty while the query goes on.
        raised: an exception raised meanwhile, e.g. an interrupt, which SQLite would swallow.
    """

    def __init__(self, end: float, seconds: float) -> None:
        self._end, self._seconds = end, seconds
        self._most = self._memory_used() + _MAX_MEMORY
        self.stopped = ""
        self.raised: BaseException | None = None

    def __call__(self) -> int:
        """Return 1 where the query is to be stopped."""
        try:
            if time.monotonic() > self._end:
                self.stopped = f"it took longer than {self._seconds:g} s"
            elif self._memory_used() > self._most:
                self.stopped = "it took more than 1 GB of memory"
        except BaseException as error:
            self.raised = error
            return 1
        return 1 if self.stopped else 0

    @staticmethod
    def _memory_used() -> int:
        """Return the peak memory of this process in bytes."""
        # macOS reports bytes, Linux kilobytes.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _explains(query: str) -> bool:
    """Whether a query begins with EXPLAIN, after comments."""
    text = query.lstrip()
    while text.startswith(("--", "/*")):
        text = text.partition("\n" if text[0] == "-" else "*/")[2].lstrip()
    return text[:7].upper() == "EXPLAIN"


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names, each made unique: a second ``count`` is ``count_2``."""
    found: list[str] = []
    for name in names:
        unique, number = name, 2
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return tuple(found)


def to_json(value: Any) -> Any:
    """Return a value that JSON can represent: bytes as hexadecimal digits, infinities as text."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
