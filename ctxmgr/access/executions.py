"""Record the runs of agents, and find them again (spec 003, Record Execution).

An execution is an entry of the history: open while it runs, completed by a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent
from ctxmgr.errors import Conflict, Denied, InvalidInput, NotFound
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time, new_id, now, parse_time
from ctxmgr.store import Store
from ctxmgr.store.reserved import EXECUTION, PROJECT
from ctxmgr.types.context_package import (
    Execution,
    ExecutionStatus,
    ListExecutionsRequest,
    ListExecutionsResponse,
    RecordExecutionRequest,
)
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Page
from ctxmgr.types.view import EntryView


def record_execution(source: Store, seen: Store, guard: AccessGuard, request: RecordExecutionRequest) -> Execution:
    """Record that a run started or ended.

    Args:
        source: the store that is written to.
        seen: what the asker may see of it; the same store for the operator.
        guard: who asks.
        request: what is to be recorded.

    Raises:
        Denied: the asker may not write the agent's history.
        NotFound: an artifact that is not there, or may not be read.
        Conflict: the run has ended before.
        InvalidInput: times that are none, a run that ends before it starts, or a name that no agent can have.
    """
    check_agent(request.agent)
    known = seen.shared.execution(request.execution_id) if request.execution_id else None
    session = known[0].session if known else request.session or PROJECT
    owner = known[0].agent if known else request.agent
    if not guard.may("write", "history", owner, session) or not guard.may("write", "history", request.agent, session):
        guard.log("execution record", "write", denied=[(request.agent, session)], resource_type="history")
        raise Denied(f"{guard.agent} may not record executions of {request.agent!r}", "'ctxmgr access explain' names the rule")
    if known is not None and owner != request.agent:
        raise InvalidInput(f"execution {known[0].id} is one of {owner!r}, not of {request.agent!r}", "give its own agent")
    records = _records(source, guard, request, known, session)
    if records:
        source.append(records)
    identity = known[0].id if known else str(records[0]["id"])
    stored = _read_back(source, seen, identity)
    guard.log("execution record", "write", [(request.agent, session)], resource_type="history")
    return _view(*stored, guard, source)


def _read_back(source: Store, seen: Store, identity: str) -> tuple[EntryView, Record]:
    """Return what was just appended as the asker sees it: its place in the session must not count what is hidden."""
    seen.catch_up()
    stored = seen.shared.execution(identity) or source.shared.execution(identity)
    assert stored is not None, "an appended execution can be read back"
    return stored


def _records(
    store: Store, guard: AccessGuard, request: RecordExecutionRequest, known: tuple[EntryView, Record] | None, session: str
) -> list[Record]:
    """Return the records to append: an entry, its result, both; none when the run is known to have started."""
    _check_times(request, known)
    if known is not None and request.status == "started":
        return []
    if known is not None and known[0].status != "open":
        raise Conflict(f"execution {known[0].id} has ended before", "record a new one")
    records: list[Record] = []
    started = request.started_at or (request.completed_at if request.status != "started" else None) or now()
    identity = known[0].id if known else request.execution_id or new_id()
    if known is None:
        facts = {
            "contextVersion": store.artifacts.current() if request.context_version is None else request.context_version,
            "artifacts": _ids(store, guard, request.input_artifacts), "tokenCount": request.input_tokens,
            "sprint": request.sprint,
        }  # fmt: skip
        records.append(
            build(
                "entry", session, started, id=identity, agent=request.agent, action=EXECUTION, inputType=EXECUTION,
                input=facts, task=request.task,
            )
        )  # fmt: skip
    if request.status != "started":
        begun = str(known[1].get("ts")) if known else started
        # Of a failed run nobody may know when it ended: it is found failed later, and says nothing itself (spec 003).
        ended = request.completed_at or (now() if request.status == "completed" else None)
        taken = None if ended is None else _milliseconds(begun, ended)
        output = {"artifacts": _ids(store, guard, request.output_artifacts), "tokenCount": request.output_tokens}
        status = "ok" if request.status == "completed" else "error"
        error = None if status == "ok" else {"type": "ExecutionFailed", "message": request.error or "no reason given"}
        records.append(
            build(
                "result", session, ended or now(), entry=identity, status=status, output=output, error=error, durationMs=taken
            )
        )
    return records


def _check_times(request: RecordExecutionRequest, known: tuple[EntryView, Record] | None) -> None:
    for name, text in (("the start", request.started_at), ("the end", request.completed_at)):
        if text is not None and parse_time(text) is None:
            raise InvalidInput(f"{name} {text!r} is not a time", "use RFC 3339, e.g. 2026-01-22T10:00:00Z")
    begun = request.started_at or (str(known[1].get("ts")) if known else None)
    if begun and request.completed_at and (parse_time(request.completed_at) or 0.0) < (parse_time(begun) or 0.0):
        raise InvalidInput("the run ends before it starts", f"it started at {begun}")


def _milliseconds(begun: str, ended: str) -> float | None:
    start, end = parse_time(begun), parse_time(ended)
    return None if start is None or end is None else max(0.0, round((end - start) * 1000, 3))


def _ids(store: Store, guard: AccessGuard, named: Sequence[str]) -> list[str]:
    """Return the ids of artifacts named by id or as AGENT/NAME."""
    found: list[str] = []
    for text in dict.fromkeys(named):
        agent, slash, name = text.partition("/")
        current = store.artifacts.current()
        row = store.artifacts.by_id(text)
        if row is None and slash and current is not None:
            row = store.artifacts.find(agent, name, current)
        if row is None or not guard.reads(row.agent, row.name):
            guard.log("execution record", "read", denied=[(agent, name)], failed="no such artifact")
            raise NotFound(f"no artifact {text!r}", "'ctxmgr artifact list' shows them")
        found.append(row.id)
    return found


def list_executions(source: Store, seen: Store, guard: AccessGuard, request: ListExecutionsRequest) -> ListExecutionsResponse:
    """Return runs, newest first; those whose history the asker may not read are not there."""
    found = seen.shared.executions(agent=request.agent, task=request.task, sprint=request.sprint, status=request.status)
    page = found[request.offset : request.offset + request.limit]
    views = [_view(entry, record, guard, source) for entry, record in page]
    return ListExecutionsResponse(
        status="ok" if views else "empty",
        executions=views,
        page=Page.of(request.offset, request.limit, len(views), len(found)),
    )


def _view(entry: EntryView, record: Record, guard: AccessGuard, source: Store) -> Execution:
    given, made = _dict(record.get("input")), _dict(entry.output)
    status: ExecutionStatus = "started" if entry.status == "open" else "completed" if entry.status == "ok" else "failed"
    taken = entry.duration_ms
    started = parse_time(entry.ts) if entry.ts else None
    ended = None if entry.status == "open" or started is None or taken is None else started + taken / 1000
    return Execution.model_validate(
        {
            "id": entry.id, "session": entry.session, "index": entry.index, "agent": entry.agent,
            "task": _text(record.get("task")), "sprint": _text(given.get("sprint")), "status": status,
            "context_version": _number(given.get("contextVersion")),
            "input_artifacts": _readable(given.get("artifacts"), guard, source),
            "input_tokens": _number(given.get("tokenCount")),
            "output_artifacts": _readable(made.get("artifacts"), guard, source),
            "output_tokens": _number(made.get("tokenCount")),
            "started_at": entry.ts, "completed_at": None if ended is None else _moment(ended),
            "duration_seconds": None if taken is None else taken / 1000,
            "error": _text(_dict(entry.error).get("message")) if entry.error is not None else None,
        }
    )  # fmt: skip


def _readable(value: object, guard: AccessGuard, source: Store) -> list[str]:
    """Return the ids that name something the asker may read; the operator sees ids of pruned artifacts too."""
    ids = [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []
    if guard.agent is None:
        return ids
    rows = [source.artifacts.by_id(item) for item in ids]
    return [row.id for row in rows if row is not None and guard.reads(row.agent, row.name)]


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _moment(seconds: float) -> str | None:
    try:
        return format_time(seconds)
    except (ValueError, OverflowError):
        return None
