"""The shared state of a project, as far as one agent may see and change it. Context keys follow spec 003."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ctxmgr.access.guard import AccessGuard, key_resource
from ctxmgr.access.patterns import VERSION_KEY, check_agent
from ctxmgr.errors import Conflict, Denied, InvalidInput, NotFound
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_object, json_texts, text_or_none
from ctxmgr.log.ids import new_id, now, parse_time, time_or_none
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.store import Store
from ctxmgr.store.project_session import EXECUTION, KEY, PROJECT
from ctxmgr.types.access import AccessExplanation, AccessLogRequest, AccessLogResponse, AccessRule, Replay, RuleChangeResult
from ctxmgr.types.plain_records import MAX_STORED_INTEGER, build
from ctxmgr.types.project_state import (
    NEW_KEYS,
    ContextKey,
    ContextLogRequest,
    ContextLogResponse,
    Execution,
    ExecutionStatus,
    GetContextRequest,
    GetContextResponse,
    KeyChange,
    KeyUpdate,
    ListExecutionsRequest,
    ListExecutionsResponse,
    RecordExecutionRequest,
    SetContextRequest,
    SetContextResponse,
    ValueType,
)
from ctxmgr.types.query import Page
from ctxmgr.types.view import EntryView


class Project:
    """Context keys, executions and access rules of a store.

    Args:
        source: the whole store.
        visible: the part of the history that the asker may see; for the operator, the same store.
        guard: access checks for the asker.
    """

    def __init__(self, source: Store, visible: Store, guard: AccessGuard) -> None:
        self._source = source
        self._visible = visible
        self._guard = guard

    def get_context(self, request: GetContextRequest) -> GetContextResponse:
        """Return context keys; see `ctxmgr.access.project_state.get_keys`."""
        return get_keys(self._source, self._guard, request)

    def set_context(self, request: SetContextRequest) -> SetContextResponse:
        """Set context keys; see `ctxmgr.access.project_state.set_keys`."""
        return set_keys(self._source, self._guard, request)

    def context_log(self, request: ContextLogRequest) -> ContextLogResponse:
        """Return the changes of context keys; see `ctxmgr.access.event_log.list_changes`."""
        from ctxmgr.access.event_log import list_changes

        return list_changes(self._source, self._guard, request)

    def access_log(self, request: AccessLogRequest) -> AccessLogResponse:
        """Return the logged accesses of agents; see `ctxmgr.access.event_log.list_accesses`."""
        from ctxmgr.access.event_log import list_accesses

        return list_accesses(self._source, self._guard, request)

    def record_execution(self, request: RecordExecutionRequest) -> Execution:
        """Record a run of an agent; see `ctxmgr.access.project_state.record_execution`."""
        return record_execution(self._source, self._visible, self._guard, request)

    def list_executions(self, request: ListExecutionsRequest) -> ListExecutionsResponse:
        """Return runs of agents; see `ctxmgr.access.project_state.list_executions`."""
        return list_executions(self._source, self._visible, self._guard, request)

    def rules(self) -> list[AccessRule]:
        """Return the current access rules in order of evaluation."""
        return self._source.shared.rules()

    def change_rules(self, add: Iterable[AccessRule] = (), remove: Iterable[AccessRule] = ()) -> RuleChangeResult:
        """Add and remove access rules; see `ctxmgr.access.rule_changes.change_rules`."""
        from ctxmgr.access.rule_changes import change_rules

        return change_rules(self._source, self._guard, add=add, remove=remove)

    def load_default_rules(self) -> RuleChangeResult:
        """Add the template's rules and needs; see `ctxmgr.access.rule_changes.load_default`."""
        from ctxmgr.access.rule_changes import load_default

        return load_default(self._source, self._guard)

    def explain_access(self, agent: str, permission: str, resource_type: str, resource: str) -> AccessExplanation:
        """Return whether an agent has an access, and why.

        Raises:
            InvalidInput: a name, the permission or the resource type is invalid.
        """
        from ctxmgr.access.patterns import check_agent, check_choice, parse_resource

        check_choice("permission", permission, ("read", "write"))
        asked = "write" if permission == "write" else "read"
        return self._guard.rules.explain(check_agent(agent), asked, parse_resource(resource_type, resource))

    def test_rules(self, rules: Iterable[AccessRule], *, replay: bool) -> Replay:
        """Check rules without adding them. ``replay`` applies them to past reads."""
        from ctxmgr.access.patterns import check_rule
        from ctxmgr.access.rule_changes import replay_reads
        from ctxmgr.access.rules import Rules

        new = Rules([check_rule(rule) for rule in rules])
        return replay_reads(self._source, new) if replay else Replay(reads=0, blocked=[], opened=[])


_MAX_KEY_BYTES = 255


def get_keys(store: Store, guard: AccessGuard, request: GetContextRequest) -> GetContextResponse:
    """Return context keys with their values.

    Raises:
        NotFound: a named key does not exist or may not be read. Both cases look the same (ruling 16).
    """
    every = _list_all_keys(store)
    readable = [item for item in every if guard.reads_key(item.key)]
    wanted = list(dict.fromkeys(request.keys))
    names = {item.key for item in readable}
    absent = next((key for key in wanted if key not in names), None)
    if absent is not None:
        from difflib import get_close_matches

        # Only among readable keys, because a suggestion must not reveal a hidden key.
        similar = get_close_matches(absent, sorted(names), n=3)
        guard.log("context get", "read", denied=[key_resource(absent)], resource_type="context", failed="no such key")
        hint = f"did you mean {', '.join(similar)}?" if similar else "'ctxmgr context get' shows all"
        raise NotFound(f"no context key {absent!r}", hint)
    found = [item for item in readable if not wanted or item.key in wanted]
    hidden = len(every) - len(readable)
    guard.log("context get", "read", [key_resource(item.key) for item in found], resource_type="context", hidden=hidden)
    return GetContextResponse(status="ok" if found else "empty", keys=found)


def _list_all_keys(store: Store) -> list[ContextKey]:
    current = store.artifacts.current()
    keys = [item for item in store.shared.context_keys() if item.key != VERSION_KEY]
    if current is not None:
        keys.append(
            ContextKey(key=VERSION_KEY, value=current, type="integer", description="The current version of the context.")
        )
    return sorted(keys, key=lambda item: item.key)


def set_keys(store: Store, guard: AccessGuard, request: SetContextRequest) -> SetContextResponse:
    """Set all given context keys or none, and record the change in history. The answer has the old and the new values.

    Raises:
        Denied: the asker may not set a key, whether it exists or not, or signs as somebody else.
        NotFound: a key does not exist, and creating keys is not requested.
        InvalidInput: a key is invalid, or a value does not have its type.
    """
    # Check the permission for all keys first, so that an agent without it does not learn which keys exist.
    refused = [item.key for item in request.updates if not guard.writes_key(item.key)]
    if refused:
        guard.log("context set", "write", denied=[key_resource(key) for key in refused], resource_type="context")
        raise Denied(f"{guard.agent} may not set the context key {refused[0]!r}", "'ctxmgr access explain' names the rule")
    author = guard.sign(request.author, "context set")
    # Read old values and append new ones in one transaction, so that the second of two writers sees the first one's change.
    with store.engine.transaction():
        known = {item.key: item for item in store.shared.context_keys()}
        changes = [_change(update, known, create=request.create) for update in request.updates]
        rows = [
            {
                "key": made.key,
                "value": made.new_value,
                "type": made.type,
                "old": made.old_value,
                "description": update.description,
            }
            for made, update in zip(changes, request.updates, strict=True)
        ]  # fmt: skip
        data = {"changes": rows, "by": author}
        store.append([build("event", PROJECT, now(), id=new_id(), type=KEY, agent=author, data=data)])
    guard.log("context set", "write", [key_resource(item.key) for item in changes], resource_type="context")
    stored = {item.key: item for item in store.shared.context_keys()}
    return SetContextResponse(
        updated=[made.model_copy(update={"new_value": stored[made.key].value}) for made in changes]  # as stored, i.e. masked
    )


def _change(update: KeyUpdate, known: dict[str, ContextKey], *, create: bool) -> KeyChange:
    _check_key(update.key)
    old = known.get(update.key)
    if old is None and not create and update.key not in NEW_KEYS:
        from difflib import get_close_matches

        similar = get_close_matches(update.key, [*known, *NEW_KEYS], n=1)
        hint = f"did you mean {similar[0]!r}? " if similar else ""
        raise NotFound(f"no context key {update.key!r}", f"{hint}--create makes it")
    kind: ValueType = update.type or (old.type if old else "string")
    value = _convert_value(update.key, update.value, kind)
    return KeyChange(
        key=update.key, old_value=None if old is None else old.value, new_value=value, type=kind, created=old is None
    )


def _check_key(key: str) -> None:
    if key == VERSION_KEY:
        raise InvalidInput(f"{VERSION_KEY} follows from the versions", "'ctxmgr version rollback' changes it")
    odd = not key or key != key.strip() or "*" in key or not key.isprintable()
    # Rules use ``project/x`` for the key ``x``, so it must not be another key.
    if odd or key.startswith(("/", "project/")) or key.endswith("/") or len(key.encode("utf-8", "replace")) > _MAX_KEY_BYTES:
        raise InvalidInput(f"{key[:80]!r} can't be a context key", "use 1 to 255 bytes without '*' and control characters")
    # Masking would store the key under another name.
    if mask(line := codec.encode({"key": key})) is not line:
        raise InvalidInput("the context key looks like a secret", "keys are shown everywhere: take another one")


def _convert_value(key: str, value: Any, kind: ValueType) -> Any:
    """Return the value converted to its type. Text is parsed, because a command line has only text."""
    if kind == "string":
        if isinstance(value, str):
            return value
    elif kind == "json":
        return _parse_value(key, value, kind) if isinstance(value, str) else value
    else:
        given = _parse_value(key, value, kind) if isinstance(value, str) else value
        if kind == "boolean" and isinstance(given, bool):
            return given
        if (
            kind == "integer"
            and isinstance(given, int)
            and not isinstance(given, bool)
            and -MAX_STORED_INTEGER <= given < MAX_STORED_INTEGER
        ):
            return given
    raise InvalidInput(f"the value of {key!r} is no {kind}", "--type names another type")


def _parse_value(key: str, text: str, kind: ValueType) -> Any:
    try:
        value: Any = codec.decoder.decode(text.strip())
        codec.encode({"value": value})  # checks depth and size
    except (ValueError, RecursionError, InvalidInput):
        raise InvalidInput(f"the value of {key!r} is no {kind}", f"it reads {json.dumps(text[:60])}") from None
    return value


def record_execution(source: Store, visible: Store, guard: AccessGuard, request: RecordExecutionRequest) -> Execution:
    """Record the start or the end of an agent's run.

    Args:
        source: the store to write to.
        visible: the part of it that the asker may see; for the operator, the same store.
        guard: access checks for the asker.
        request: the run, and what is new about it.

    Raises:
        Denied: the asker may not write the agent's history.
        NotFound: an artifact does not exist, or may not be read; or a run that ends by its id alone never started.
        Conflict: the run has already ended.
        InvalidInput: invalid times, an end before the start, or an invalid agent name.
    """
    check_agent(request.agent)
    # Look only in the visible part, so that a hidden run with this id is treated as missing.
    known = visible.shared.execution(request.execution_id) if request.execution_id else None
    if known is None and request.execution_id and request.status != "started" and request.started_at is None:
        raise NotFound(
            f"no execution {request.execution_id!r} has started",
            "'ctxmgr execution list' shows them; with a start (--started) the whole run is recorded now",
        )
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
    stored = _read_back(source, visible, identity)
    guard.log("execution record", "write", [(request.agent, session)], resource_type="history")
    return _execution_view(*stored, guard, source)


def _read_back(source: Store, visible: Store, identity: str) -> tuple[EntryView, Record]:
    """Return an appended run as the asker sees it, because its index in the session must not count hidden entries."""
    visible.catch_up()
    stored = visible.shared.execution(identity) or source.shared.execution(identity)
    assert stored is not None, "an appended execution can be read back"
    return stored


def _records(
    store: Store, guard: AccessGuard, request: RecordExecutionRequest, known: tuple[EntryView, Record] | None, session: str
) -> list[Record]:
    """Return the records to append: an entry, a result, or both; none if the start is already known."""
    _check_times(request, known)
    if known is not None and request.status == "started":
        return []
    if known is not None and known[0].status != "open":
        raise Conflict(f"execution {known[0].id} has ended before", "record a new one")
    records: list[Record] = []
    # If a run is recorded only after its end, the end also serves as its start.
    started = request.started_at or (request.completed_at if request.status != "started" else None) or now()
    identity = known[0].id if known else request.execution_id or new_id()
    if known is None:
        facts = {
            "contextVersion": store.artifacts.current() if request.context_version is None else request.context_version,
            "artifacts": _resolve_ids(store, guard, request.input_artifacts), "tokenCount": request.input_tokens,
            "sprint": request.sprint,
        }  # fmt: skip
        records.append(
            build(
                "entry", session, started, id=identity, agent=request.agent, action=EXECUTION, inputType=EXECUTION,
                input=facts, task=request.task,
            )
        )  # fmt: skip
    if request.status != "started":
        start = str(known[1].get("ts")) if known else started
        # A failed run that is recorded later, with its start and no end, may have ended at any time since (spec 003).
        later = known is None and request.status == "failed" and request.started_at is not None
        ended = request.completed_at or (None if later else now())
        duration = None if ended is None else _milliseconds(start, ended)
        output = {"artifacts": _resolve_ids(store, guard, request.output_artifacts), "tokenCount": request.output_tokens}
        status = "ok" if request.status == "completed" else "error"
        error = None if status == "ok" else {"type": "ExecutionFailed", "message": request.error or "no reason given"}
        records.append(
            build(
                "result",
                session,
                ended or now(),
                entry=identity,
                status=status,
                output=output,
                error=error,
                durationMs=duration,
            )
        )
    return records


def _check_times(request: RecordExecutionRequest, known: tuple[EntryView, Record] | None) -> None:
    for name, text in (("the start", request.started_at), ("the end", request.completed_at)):
        if text is not None and parse_time(text) is None:
            raise InvalidInput(f"{name} {text!r} is not a time", "use RFC 3339, e.g. 2026-01-22T10:00:00Z")
    started = request.started_at or (str(known[1].get("ts")) if known else None)
    if started and request.completed_at and (parse_time(request.completed_at) or 0.0) < (parse_time(started) or 0.0):
        raise InvalidInput("the run ends before it starts", f"it started at {started}")


def _milliseconds(started: str, ended: str) -> float | None:
    start, end = parse_time(started), parse_time(ended)
    # Never negative, even if the clock was set back in between.
    return None if start is None or end is None else max(0.0, round((end - start) * 1000, 3))


def _resolve_ids(store: Store, guard: AccessGuard, named: Sequence[str]) -> list[str]:
    """Return the ids of artifacts given as ids or as AGENT/NAME."""
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


def list_executions(
    source: Store, visible: Store, guard: AccessGuard, request: ListExecutionsRequest
) -> ListExecutionsResponse:
    """Return runs, newest first, without those whose history the asker may not read."""
    found = visible.shared.executions(agent=request.agent, task=request.task, sprint=request.sprint, status=request.status)
    page = found[request.offset : request.offset + request.limit]
    views = [_execution_view(entry, record, guard, source) for entry, record in page]
    return ListExecutionsResponse(
        status="ok" if views else "empty",
        executions=views,
        page=Page.make(request.offset, request.limit, len(views), len(found)),
    )


def _execution_view(entry: EntryView, record: Record, guard: AccessGuard, source: Store) -> Execution:
    given, made = json_object(record.get("input")), json_object(entry.output)
    status: ExecutionStatus = "started" if entry.status == "open" else "completed" if entry.status == "ok" else "failed"
    duration = entry.duration_ms
    started = parse_time(entry.ts) if entry.ts else None
    # The record has a duration instead of an end, so a clock that was set back gives no negative time.
    ended = None if entry.status == "open" or started is None or duration is None else started + duration / 1000
    return Execution.model_validate(
        {
            "id": entry.id, "session": entry.session, "index": entry.index, "agent": entry.agent,
            "task": text_or_none(record.get("task")), "sprint": text_or_none(given.get("sprint")), "status": status,
            "context_version": _number(given.get("contextVersion")),
            "input_artifacts": _readable(given.get("artifacts"), guard, source),
            "input_tokens": _number(given.get("tokenCount")),
            "output_artifacts": _readable(made.get("artifacts"), guard, source),
            "output_tokens": _number(made.get("tokenCount")),
            "started_at": entry.ts, "completed_at": None if ended is None else time_or_none(ended),
            "duration_seconds": None if duration is None else duration / 1000,
            "error": text_or_none(json_object(entry.error).get("message")) if entry.error is not None else None,
        }
    )  # fmt: skip


def _readable(value: object, guard: AccessGuard, source: Store) -> list[str]:
    """Return the ids of artifacts that the asker may read. The operator also sees the ids of pruned artifacts."""
    ids = json_texts(value)
    if guard.agent is None:
        return ids
    rows = [source.artifacts.by_id(item) for item in ids]
    return [row.id for row in rows if row is not None and guard.reads(row.agent, row.name)]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
