"""Run a user's SELECT over the documented views of a store on a server, in the server's own SQL.

The views have the names and columns of `ctxmgr.store.read_query`. They precede the query as a WITH, so nothing is created on
the server. The query follows as a subquery, where only a SELECT is allowed. `ctxmgr.store.engine.postgresql_select` keeps it
from doing harm. The refusals in this module only come sooner, and in our own words.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.errors import InvalidInput
from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.engine.postgresql_select import StoppedError, select
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.read_query import FINDING_COLUMNS, FINDINGS, HINT, NAMES, Rows, Watch, distinct, to_json

if TYPE_CHECKING:
    from ctxmgr.store.engine.postgresql import PostgresqlEngine

_S = SCHEMA
_HISTORY = f"session.id <> '{PROJECT}'"
_COUNTS = frozenset({"period", "count", "first", "last", "raised_at", "last_progress"})


# A body may hold what the server takes for no JSON: NUL, and half of a character. All of it would have no value.
_ODD = r"(?<!\\)((?:\\\\)*)(?:\\u0000|\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})"


def _text(body: str, path: str = "") -> str:
    sound = (
        f"CASE WHEN strpos({body}, '\\u0000') > 0 OR strpos({body}, '\\ud') > 0 "
        f"THEN regexp_replace({body}, '{_ODD}', '\\1\\\\ufffd', 'g') ELSE {body} END"
    )
    return f"{_S}.json_extract({sound}, '{f'$.{path}' if path else '$'}')"


def _number(text: str) -> str:
    return f"CASE WHEN {text} ~ '^-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]{{1,2}})?$' THEN ({text})::numeric END"


def _moment(seconds: str, form: str = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') -> str:
    # Of what lies outside of the calendar there is no text; to ask for one would end the whole query.
    return (
        f"CASE WHEN {seconds} BETWEEN -62135596800 AND 253402300799 "
        f"THEN to_char(to_timestamp(round(({seconds})::numeric, 3)::float8) AT TIME ZONE 'UTC', '{form}') END"
    )


def _columns(body: str, **paths: str) -> str:
    return ", ".join(f"{_text(body, path)} AS {name}" for name, path in paths.items())


_DAY = "YYYY-MM-DD"
_OWN, _DONE = "own.body", "done.body"
_FAILED, _OPEN = "IN ('error', 'denied', 'interrupted')", "= 'open'"
_TOOK = _number(_text(_DONE, "durationMs"))
_OF_KIND = (
    f"FROM {_S}.record AS own JOIN {_S}.session ON session.key = own.session"
    " {joined}WHERE own.kind = '{kind}' AND " + _HISTORY
)  # fmt: skip


def _sum(column: str) -> str:
    return f"(SELECT sum(usage.{column})::bigint FROM {_S}.usage WHERE usage.session = session.key) AS {column}_tokens"


def _count(name: str, condition: str) -> str:
    return f"(SELECT count(*) FROM {_S}.entry WHERE entry.session = session.key AND entry.status {condition}) AS {name}"


VIEWS: dict[str, str] = {
    "sessions": (
        f"SELECT session.id AS session, {_columns('session.meta', title='title', project='cwd')}, "
        "session.workflow AS workflow, "
        f"{_columns('session.source', importer='importer')}, session.entries AS entries, "
        f"{_count('failed', _FAILED)}, {_count('open', _OPEN)}, session.events AS events, "
        f"{_moment('session.first')} AS started, {_moment('session.last')} AS last, "
        f"(SELECT process.outcome FROM {_S}.process WHERE process.session = session.key ORDER BY process.seq DESC LIMIT 1) "
        f"AS outcome, {_sum('input')}, {_sum('output')} FROM {_S}.session WHERE {_HISTORY}"
    ),
    "entries": (
        f"SELECT session.id AS session, entry.idx AS idx, own.id AS id, {_columns(_OWN, ts='ts')}, "
        f"{_moment('entry.ts', _DAY)} AS day, {_columns(_OWN, agent='agent', action='action', input_type='inputType')}, "
        f"{_columns(_OWN, input='input')}, entry.status AS status, "
        f"coalesce({_text(_DONE, 'output')}, {_text(_OWN, 'output')}) AS output, "
        f"coalesce({_text(_DONE, 'error.type')}, {_text(_OWN, 'error.type')}) AS error_type, "
        f"coalesce({_text(_DONE, 'error.message')}, {_text(_OWN, 'error.message')}, CASE WHEN entry.status = 'error' "
        f"THEN coalesce({_text(_DONE, 'output')}, {_text(_OWN, 'output')}) END) AS error, "
        f"{_number('coalesce({}, {})'.format(_text(_DONE, 'durationMs'), _text(_OWN, 'durationMs')))} AS duration_ms, "
        f"{_columns(_OWN, model='meta.model', process='process')}, {_number(_text(_OWN, 'turn'))} AS turn, "
        f"{_columns(_OWN, step='step', task='task')} "
        f"FROM {_S}.entry JOIN {_S}.session ON session.key = entry.session "
        f"JOIN {_S}.record AS own ON own.session = entry.session AND own.seq = entry.seq "
        f"LEFT JOIN {_S}.record AS done ON done.session = entry.session AND done.seq = entry.result WHERE {_HISTORY}"
    ),
    "events": (
        f"SELECT session.id AS session, own.id AS id, {_columns(_OWN, ts='ts')}, {_moment('event.ts', _DAY)} AS day, "
        f"event.type AS type, {_columns(_OWN, agent='agent', entry='entry')}, "
        f"coalesce({_text(_OWN, 'data.text')}, {_text(_OWN, 'data.message')}, {_text(_OWN, 'data.content')}) AS text, "
        f"{_columns(_OWN, data='data')} FROM {_S}.event JOIN {_S}.session ON session.key = event.session "
        f"JOIN {_S}.record AS own ON own.session = event.session AND own.seq = event.seq WHERE {_HISTORY}"
    ),
    "notes": (
        f"SELECT session.id AS session, own.id AS id, {_columns(_OWN, ts='ts', author='author', content='content')}, "
        f"{_columns(_OWN, tags='tags', entries='entries', supersedes='supersedes')}, superseded.successor AS superseded_by "
        + _OF_KIND.format(
            kind="note",
            joined=f"LEFT JOIN {_S}.superseded ON superseded.session = own.session AND superseded.note = own.id ",
        )
    ),
    "snapshots": (
        f"SELECT session.id AS session, own.id AS id, "
        f"{_columns(_OWN, ts='ts', summary='summary', reasoning='reasoning', entries='entries')} "
        + _OF_KIND.format(kind="snapshot", joined="")
    ),
    "continuations": (
        f"SELECT session.id AS session, own.id AS id, {_columns(_OWN, ts='ts', request_type='requestType', source='source')}, "
        f"{_columns(_OWN, target='target', reason='reason', goal='goal')}, "
        f"coalesce({_text(_OWN, 'loop.kind')}, {_text(_OWN, 'stall.kind')}) AS kind, {_columns(_OWN, made_by='by')}, "
        f"{_number(_text(_OWN, 'attempts'))} AS attempts, {_columns(_OWN, summary='context.summary', prompt='context.prompt')} "
        + _OF_KIND.format(kind="continuation", joined="")
    ),
    "token_usage": (
        f"SELECT session.id AS session, {_columns(_OWN, ts='ts')}, {_moment('own.ts', _DAY)} AS day, "
        f"{_columns(_OWN, agent='agent')}, coalesce({_text(_OWN, 'data.model')}, {_text(_OWN, 'meta.model')}) AS model, "
        f"CASE own.kind WHEN 'event' THEN {_text(_OWN, 'data.responseId')} END AS step, "
        f"CASE own.kind WHEN 'entry' THEN own.id WHEN 'result' THEN {_text(_OWN, 'entry')} END AS entry, "
        f"usage.input AS input_tokens, usage.output AS output_tokens FROM {_S}.usage JOIN {_S}.session "
        f"ON session.key = usage.session JOIN {_S}.record AS own ON own.session = usage.session AND own.seq = usage.seq "
        f"WHERE {_HISTORY}"
    ),
    "usage_by_day": (
        "SELECT day, agent, model, count(*) AS responses, sum(input_tokens)::bigint AS input_tokens, "
        "sum(output_tokens)::bigint AS output_tokens FROM token_usage GROUP BY day, agent, model"
    ),
    "project_context": (
        f"SELECT key, CASE type WHEN 'string' THEN {_text('value')} ELSE value END AS value, type AS value_type, description, "
        f"coalesce(author, 'system') AS updated_by, ts AS updated_at FROM {_S}.context_key WHERE key <> 'context_version' "
        f"UNION ALL SELECT 'context_version', value, 'integer', 'The current version of the context.', 'system', NULL "
        f"FROM {_S}.state WHERE name = 'project.version'"
    ),
    "artifacts": (
        # No file holds the content.
        "SELECT id, agent AS agent_id, type AS artifact_type, name, description, NULL::text AS file_path, hash AS file_hash, "
        f"version, tokens AS token_count, ts AS created_at FROM {_S}.artifact"
    ),
    "artifact_dependencies": (
        f"SELECT artifact AS artifact_id, target AS depends_on_artifact_id, type AS dependency_type FROM {_S}.dependency"
    ),
    "context_versions": (
        "SELECT number AS version, description, coalesce(author, 'system') AS created_by, ts AS created_at, "
        f"parent AS parent_version FROM {_S}.version"
    ),
    "execution_history": (
        "SELECT execution.id AS id, execution.agent AS agent_id, execution.task AS task_id, execution.sprint AS sprint_id, "
        "CASE entry.status WHEN 'open' THEN 'started' WHEN 'ok' THEN 'completed' ELSE 'failed' END AS status, "
        "execution.version AS context_version, "
        f"{_columns('used.body', input_artifacts='input.artifacts')}, "
        f"{_number(_text('used.body', 'input.tokenCount'))} AS input_token_count, "
        f"{_columns(_DONE, output_artifacts='output.artifacts')}, "
        f"{_number(_text(_DONE, 'output.tokenCount'))} AS output_token_count, {_columns('used.body', started_at='ts')}, "
        f"CASE WHEN entry.status <> 'open' THEN "
        f"{_moment(f'(entry.ts + ({_TOOK})::float8 / 1000.0)')} END AS completed_at, "
        f"({_TOOK}) / 1000.0 AS duration_seconds, {_columns(_DONE, error_message='error.message')} "
        f"FROM {_S}.execution JOIN {_S}.record AS used ON execution.seq = used.seq "
        f"JOIN {_S}.entry ON entry.session = used.session AND entry.seq = used.seq "
        f"LEFT JOIN {_S}.record AS done ON done.session = entry.session AND done.seq = entry.result"
    ),
    "access_control": (
        "SELECT row_number() OVER (ORDER BY priority, agent, resource, pattern, permission) AS id, agent AS agent_id, "
        "resource AS resource_type, pattern AS resource_pattern, permission, priority, ts AS created_at "
        f"FROM {_S}.access_rule"
    ),
    "context_summaries": (
        "SELECT artifact_id, summary, summary_token_count, original_token_count, "
        "1.0 * summary_token_count / greatest(original_token_count, 1) AS compression_ratio, NULL::text AS created_at "
        "FROM (SELECT artifact.id AS artifact_id, summary.text AS summary, summary.tokens AS summary_token_count, "
        "summary.original_tokens AS original_token_count, "
        "row_number() OVER (PARTITION BY artifact.id ORDER BY summary.strategy DESC, summary.counter) AS place "
        f"FROM {_S}.artifact JOIN {_S}.summary ON summary.hash = artifact.hash AND summary.team = artifact.team) AS each "
        "WHERE place = 1"
    ),
    "agent_context_requirements": (
        "SELECT agent AS agent_id, pattern AS required_artifact_pattern, need AS requirement_type, max_tokens, use_summary, "
        f"priority FROM {_S}.need"
    ),
}
"""Name of each view but the findings, and what it selects."""

# What a text of the query may be; what looks like a value in a comment, a text or a quoted name is none.
_WORDS = re.compile(
    r"(?P<comment>--[^\n]*)|(?P<block>/\*)|(?P<dollar>\$(?:[^\W\d]\w*)?\$)|(?P<unicode>[uU]&['\"])"
    r"|(?P<escape>[eE]'(?:[^'\\]|\\.|'')*')|(?P<text>'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")*\")"
    r"|(?P<name>[^\W\d][\w$]*)|(?P<mark>\?)|(?P<end>;)|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
# Functions of the server that do more than compute; those that run a text as a query would hide such a call.
_FORBIDDEN = re.compile(r"(?:pg|lo|dblink)_.*|dblink|set_config|nextval|setval|ts_stat|.*_to_xml(?:schema|_and_xmlschema)?")


class ServerReadQuery:
    """One person's questions to a store on a server; see `ctxmgr.store.read_query.ReadQuery`.

    Args:
        engine: of the store.
    """

    duration = "CASE WHEN duration_ms >= 0 THEN duration_ms END"

    def __init__(self, engine: PostgresqlEngine) -> None:
        self._engine = engine
        self._findings = "[]"

    def find_views(self, query: str, values: Sequence[Any] = ()) -> set[str]:
        """Return the views that a query names.

        Raises:
            InvalidInput: it is no single SELECT.
        """
        return {name for kind, text in _parts(query) if kind in ("name", "quoted") if (name := _plain(text)) in NAMES}

    def fill(self, findings: Iterable[Sequence[Any]]) -> None:
        """Replace the rows of the table of findings."""
        rows = [dict(zip(FINDING_COLUMNS, map(_storable, row), strict=True)) for row in findings]
        self._findings = json.dumps(rows)

    def views(self) -> dict[str, list[str]]:
        """Return the columns of each view that a query may name, in order."""
        return {name: list(self.run(f"SELECT * FROM {name} LIMIT 0", most=1, seconds=10).columns) for name in NAMES}

    def run(self, query: str, values: Sequence[Any] = (), *, most: int, seconds: float) -> Rows:
        """Return up to ``most`` rows of a query; see `ReadQuery.run`."""
        statement, given = self._statement(query, values)
        watch, found = Watch(time.monotonic() + seconds, seconds), Rows()
        try:
            for names, rows in select(self._engine, statement, given, seconds=seconds, hint=HINT):
                found.columns = distinct(names)
                found.more = len(found.rows) + len(rows) > most
                found.rows += [tuple(map(_plain_value, row)) for row in rows[: most - len(found.rows)]]
                if watch() and not found.more:
                    found.stopped = watch.stopped
                if found.more or found.stopped:
                    break
        except StoppedError:
            found.stopped = f"it took longer than {seconds:g} s"
        return found

    def _statement(self, query: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
        parts = list(_parts(query))
        marks = sum(kind == "mark" for kind, _ in parts)
        if marks != len(values):
            raise InvalidInput(f"the query has {marks} places for values (?), and {len(values)} were given", HINT)
        numbers = iter(range(1, marks + 1))
        body = "".join(f"${next(numbers)}" if kind == "mark" else text for kind, text in parts)
        named = self.find_views(query)
        if "usage_by_day" in named:
            named.add("token_usage")
        given = list(values)
        selects = [f"{name} AS ({VIEWS[name]})" for name in VIEWS if name in named]
        if FINDINGS in named:
            given.append(self._findings)
            columns = ", ".join(f'"{name}" {"bigint" if name in _COUNTS else "text"}' for name in FINDING_COLUMNS)
            selects.append(f"{FINDINGS} AS (SELECT * FROM json_to_recordset(${len(given)}::json) AS found({columns}))")
        before = f"WITH {', '.join(selects)} " if selects else ""
        # On a line of its own, behind what may be a comment.
        return f"{before}SELECT * FROM (\n{body}\n) AS asked", given


def _parts(query: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) of the words of one query, up to the semicolon that ends it.

    Raises:
        InvalidInput: it is empty, more than one, no SELECT, or names what it may not.
    """
    if "\0" in query:  # where the server would take it to end
        raise InvalidInput("the query holds NUL", HINT)
    place, first, ended = 0, True, False
    while place < len(query):
        found = _WORDS.match(query, place)
        assert found is not None, "the last choice takes any letter"
        kind, end = str(found.lastgroup), found.end()
        if kind == "block":
            kind, end = "comment", _end_of_comment(query, end)
        elif kind == "dollar":
            closed = query.find(found[0], end)
            kind, end = "text", len(query) if closed < 0 else closed + len(found[0])
        text, place = query[found.start() : end], end
        if kind in ("space", "comment"):
            yield kind, text
            continue
        if ended:
            raise InvalidInput("that is more than one statement", "give one SELECT")
        ended = kind == "end"
        if not ended:
            _require_allowed(kind, text, first=first)
            yield kind, text
            first = False
    if first:
        raise InvalidInput("the query is empty", "e.g. ctxmgr sql 'SELECT action, count(*) FROM entries GROUP BY action'")


def _end_of_comment(query: str, place: int) -> int:
    depth = 1
    for found in re.compile(r"/\*|\*/").finditer(query, place):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end()
    return len(query)


def _require_allowed(kind: str, text: str, *, first: bool) -> None:
    hint = f"'ctxmgr sql' only reads; {HINT}"
    name = _plain(text) if kind in ("name", "quoted") else ""
    if first and name not in ("select", "with", "values", "table") and text != "(":
        raise InvalidInput("refused: only reading is possible, with one SELECT", hint)
    if kind == "unicode":
        raise InvalidInput("refused: texts and names that are spelled with U& can't be used", hint)
    if name == SCHEMA:
        raise InvalidInput(f"refused: {SCHEMA!r} holds tables of the store's own, which may change", hint)
    if _FORBIDDEN.fullmatch(name):
        raise InvalidInput(f"refused: {name} can't be used", hint)


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _storable(value: Any) -> Any:
    """Return a value that the server takes as JSON: without NUL and halves of characters."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps([_plain_value(each) for each in cast("list[Any]", value)])
    if value is None or isinstance(value, (str, int, float, bytes)):
        return to_json(value)
    return str(value)
