"""Answer ``sql`` and ``stats``: a person's own query over the views, and sums of calls, tokens and time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput
from ctxmgr.log.fast_json import text_or_none
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.read_query import FINDINGS, ReadQuery
from ctxmgr.types.analysis import SqlRequest, SqlResponse, SqlView, StatsKey, StatsRequest, StatsResponse, StatsRow
from ctxmgr.types.finding import SessionVerdict

if TYPE_CHECKING:
    from ctxmgr.store.read_query_on_server import ServerReadQuery

_NO_LIMIT = 1 << 53
_MAX_SECONDS = 3_600.0
_FAILED = ("error", "denied", "interrupted")


def _reader(store: Store) -> ReadQuery | ServerReadQuery:
    engine: Any = store.engine
    if store.engine.shared:
        from ctxmgr.store.read_query_on_server import ServerReadQuery

        return ServerReadQuery(engine)
    if not isinstance(engine, SqliteEngine):
        raise InvalidInput("this store is no SQLite database", "'ctxmgr export' writes it as a log, which can be asked")
    return ReadQuery(engine)


def sql(store: Store, request: SqlRequest, settings: Mapping[str, Any]) -> SqlResponse:
    """Return the rows of a query over the views. If it names ``findings``, all sessions are first judged by these settings.

    Raises:
        InvalidInput: it is not a single SELECT, names a table that is no view, or is invalid.
    """
    reader = _reader(store)
    # Judge sessions only for a query that needs it: this takes far longer than any query.
    if FINDINGS in reader.find_views(request.query, request.values):
        from ctxmgr.history.detection import detect_
        from ctxmgr.types.operations import DetectRequest

        reader.fill(_findings(detect_(store, DetectRequest(all_sessions=True), settings).verdicts))
    found = reader.run(request.query, request.values, most=request.limit, seconds=request.seconds)
    return SqlResponse(
        columns=list(found.columns), rows=[list(row) for row in found.rows], more=found.more, stopped=found.stopped
    )


def views(store: Store) -> list[SqlView]:
    """Return the views that a query may name, with their columns."""
    return [SqlView(view=name, columns=columns) for name, columns in _reader(store).views().items()]


def _findings(verdicts: Iterable[SessionVerdict]) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `ctxmgr.store.read_query.FINDING_COLUMNS`. Positions in a session are indexes, as in ``entries.idx``."""
    for verdict in verdicts:
        for finding in verdict.findings:
            places: dict[str, Any] = finding.evidence.get("indexes") or {}
            diagnosis = finding.diagnosis
            yield (
                verdict.session, verdict.verdict, finding.id, finding.kind, finding.severity, finding.scope.agent,
                finding.period, finding.count, places.get("first"), places.get("last"), places.get("raisedAt"),
                finding.resolved, places.get("lastProgress"), finding.reason, None if diagnosis is None else diagnosis.cause,
                None if diagnosis is None else diagnosis.next_step,
            )  # fmt: skip


def owners(store: Store) -> list[tuple[str, str]]:
    """Return each distinct (agent, session) of all calls."""
    return [(str(agent), str(session)) for agent, session in _run_query(_reader(store), _OWNERS, ())]


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    failed: int = 0
    open: int = 0
    input: float | None = None
    output: float | None = None
    seconds: float | None = None

    def call(self, status: str, milliseconds: float | None) -> None:
        self.calls += 1
        self.failed += status in _FAILED
        self.open += status == "open"
        if milliseconds is not None:
            self.seconds = (self.seconds or 0.0) + milliseconds / 1000

    def add(self, given: float | None, made: float | None) -> None:
        if given is not None:
            self.input = (self.input or 0.0) + given
        if made is not None:
            self.output = (self.output or 0.0) + made

    def row(self, key: str | None) -> StatsRow:
        return StatsRow(
            key=key, calls=self.calls, failed=self.failed, open=self.open,
            input_tokens=None if self.input is None else round(self.input),
            output_tokens=None if self.output is None else round(self.output),
            seconds=None if self.seconds is None else round(self.seconds, 3),
        )  # fmt: skip


_OWNERS = "SELECT DISTINCT agent, session FROM entries WHERE agent IS NOT NULL"
_CALLS = "SELECT session, id, ts, day, agent, action, status, model, step, {} FROM entries"
_TOKENS = "SELECT session, ts, day, agent, model, step, entry, input_tokens, output_tokens FROM token_usage"


def stats(store: Store, request: StatsRequest, session: str | None) -> StatsResponse:
    """Return sums over the calls that pass the filters; ``session`` is the full id of one session, or None for all."""
    reader = _reader(store)
    where, values = ("", ()) if session is None else (" WHERE session = ?", (session,))
    passes = _filter(request)
    sums: dict[str | None, _Sum] = defaultdict(_Sum)
    total = _Sum()
    # Model responses report tokens, not calls. The calls that a response made (those of the same step) share its tokens
    # evenly; calls that the filter leaves out take their share with them.
    answers: dict[tuple[str, str], list[str | _OmittedKey | None]] = defaultdict(list)
    for call in _Call.all(_run_query(reader, _CALLS.format(reader.duration) + where, values)):
        counts = passes(call)
        key = call.key(request.by) if counts else _LEFT
        for name in {call.step, call.id} - {None}:
            answers[call.session, cast("str", name)].append(key)
        if counts:
            for each in (sums[cast("str | None", key)], total):
                each.call(call.status, call.milliseconds)
    # A response without a call has no action and no status, so a filter on these excludes it.
    only_calls = bool(request.action or request.status)
    for name, ts, day, agent, model, step, entry, given, made in _run_query(reader, _TOKENS + where, values):
        # A response names the call that it made, or the step that it shares with its calls.
        keys = answers.get((name, entry or step), [])
        if not keys and not only_calls:
            response = _Call(name, None, ts, day, agent, None, "", model, None, None)
            keys = [response.key(request.by)] if passes(response) else []
        share = [None if tokens is None or not keys else tokens / len(keys) for tokens in (given, made)]
        for key in keys:
            if not isinstance(key, _OmittedKey):
                sums[key].add(*share)
                total.add(*share)
    ordered = sorted(sums.items(), key=_sort_key(request.by))
    return StatsResponse(by=request.by, rows=[each.row(key) for key, each in ordered], total=total.row(None))


def _run_query(reader: ReadQuery | ServerReadQuery, query: str, values: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = reader.run(query, values, most=_NO_LIMIT, seconds=_MAX_SECONDS)
    if found.stopped:
        raise InvalidInput(f"the calls can't be added up: {found.stopped}", "name a session, or ask with 'ctxmgr sql'")
    return found.rows


class _OmittedKey:
    """Key of the calls that the filter leaves out. It takes their share of a response's tokens."""


_LEFT = _OmittedKey()


@dataclass(slots=True)
class _Call:
    """The counted fields of one call, or of a response without a call."""

    session: str
    id: str | None
    ts: str | None
    day: str | None
    agent: str | None
    action: str | None
    status: str
    model: str | None
    step: str | None
    milliseconds: float | None

    @classmethod
    def all(cls, rows: Iterable[tuple[Any, ...]]) -> Iterator[_Call]:
        for row in rows:
            yield cls(*row)

    def key(self, by: StatsKey) -> str | None:
        return text_or_none(getattr(self, by)) or None


def _sort_key(by: StatsKey) -> Callable[[tuple[str | None, _Sum]], Any]:
    if by == "day":
        return lambda item: item[0] or ""
    return lambda item: (-item[1].calls, -(item[1].input or 0), item[0] or "")


def _filter(request: StatsRequest) -> Callable[[_Call], bool]:
    """Return the filter. Names are compared regardless of case; a call without a time passes no time limit."""
    sets = {name: {each.casefold() for each in getattr(request, name)} for name in ("action", "agent", "model")}
    sets = {name: wanted for name, wanted in sets.items() if wanted}
    since, until, status = parse_time(request.since), parse_time(request.until), set(request.status)

    def passes(call: _Call) -> bool:
        for name, wanted in sets.items():
            value = getattr(call, name)
            if not isinstance(value, str) or value.casefold() not in wanted:
                return False
        if status and call.status not in status:
            return False
        if since is None and until is None:
            return True
        at = parse_time(call.ts)
        return at is not None and (since is None or at >= since) and (until is None or at < until)

    return passes
