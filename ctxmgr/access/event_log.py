"""What a project recorded of itself: the accesses of agents, and the changes of the values that they share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ctxmgr.access.guard import AccessGuard, key_resource
from ctxmgr.access.rule_changes import require_operator, resources
from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_object, json_objects, text_or_empty, text_or_none
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, KEY
from ctxmgr.types.access import AccessLogRequest, AccessLogResponse, LoggedAccess
from ctxmgr.types.project_state import ContextLogRequest, ContextLogResponse, LoggedKeyChange
from ctxmgr.types.query import Page


def list_accesses(store: Store, guard: AccessGuard, request: AccessLogRequest) -> AccessLogResponse:
    """Return the logged accesses of agents, newest first.

    Raises:
        Denied: an agent asks. The log names what is hidden from it.
    """
    require_operator(guard, "read the log of accesses")
    found = [record for record in reversed(store.shared.events(ACCESS)) if _is_wanted(record, request)]
    # Only the page becomes models, because each access names up to 200 resources.
    page = [_access(record) for record in found[request.offset : request.offset + request.limit]]
    return AccessLogResponse(
        status="ok" if page else "empty", accesses=page, page=Page.make(request.offset, request.limit, len(page), len(found))
    )


def _is_wanted(record: Record, request: AccessLogRequest) -> bool:
    data = json_object(record.get("data"))
    if request.agent not in (None, text_or_empty(data.get("agent"))):
        return False
    failed = text_or_none(data.get("failed")) is not None
    return not request.denied or failed or _count(data.get("deniedCount"), resources(data.get("denied"))) != 0


def _access(record: Record) -> LoggedAccess:
    data = json_object(record.get("data"))
    granted, denied = list(resources(data.get("granted"))), list(resources(data.get("denied")))
    return LoggedAccess(
        id=text_or_empty(record.get("id")), at=text_or_none(record.get("ts")), agent=text_or_empty(data.get("agent")),
        command=text_or_empty(data.get("command")), permission=text_or_empty(data.get("permission")),
        granted=granted, granted_count=_count(data.get("grantedCount"), granted),
        denied=denied, denied_count=_count(data.get("deniedCount"), denied),
        hidden=_count(data.get("hidden"), ()), failed=text_or_none(data.get("failed")),
    )  # fmt: skip


def _count(value: object, named: Iterable[object]) -> int:
    # A log from elsewhere may hold anything.
    return value if isinstance(value, int) and not isinstance(value, bool) else sum(1 for _ in named)


def list_changes(store: Store, guard: AccessGuard, request: ContextLogRequest) -> ContextLogResponse:
    """Return the changes of those context keys that the asker may read, newest first."""
    found = [
        change
        for record in reversed(store.shared.events(KEY))
        for change in _changes(record)
        if guard.reads_key(change.key) and (not request.keys or change.key in request.keys)
    ]
    page = found[request.offset : request.offset + request.limit]
    guard.log("context log", "read", [key_resource(change.key) for change in page], resource_type="context")
    return ContextLogResponse(
        status="ok" if page else "empty", changes=page, page=Page.make(request.offset, request.limit, len(page), len(found))
    )


def _changes(record: Record) -> list[LoggedKeyChange]:
    data = json_object(record.get("data"))
    rows: list[dict[str, Any]] = [item for item in json_objects(data.get("changes")) if isinstance(item.get("key"), str)]
    return [
        LoggedKeyChange.model_validate(
            {
                "key": item["key"], "old_value": item.get("old"), "new_value": item.get("value"),
                "type": item["type"] if item.get("type") in ("string", "integer", "boolean", "json") else "json",
                "created": item.get("old") is None, "at": text_or_none(record.get("ts")), "by": text_or_none(data.get("by")),
            }
        )
        for item in rows
    ]  # fmt: skip
