"""Names of the source documents that requests accept beside their own (ruling 30)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from ctxmgr.types.fields import camel_case

FIELDS = {
    "action_name_filter": "action",
    "agent_name_filter": "agent",
    "start_time": "since",
    "end_time": "until",
    "created_by": "author",
    "requested_by": "author",
    "target_version": "version",
    "agent_id": "agent",
    "task_id": "task",
    "sprint_id": "sprint",
}
"""Our field for each field of the requests of specs 002 and 003 that has another name."""

_LISTS = frozenset({"action_name_filter", "agent_name_filter"})


def with_own_names(fields: Collection[str], given: Any) -> Any:
    """Return what was given for a request, under the names of its own fields.

    Args:
        fields: the request's fields, in snake_case.
        given: what pydantic was handed; anything but a mapping is returned as it is.

    Raises:
        ValueError: a field is given under two names.
    """
    if not isinstance(given, Mapping):
        return given
    table = cast("Mapping[Any, Any]", given)
    found: dict[Any, Any] = {}
    for name, value in table.items():
        if name in fields:
            found[name] = value
            continue
        snake = _snake_case(name) if isinstance(name, str) else ""
        own = FIELDS.get(snake, "")
        if snake in fields or (own not in fields and (snake != "entries" or "entry_indices" not in fields)):
            found[name] = value
            continue
        replaced = _entries(value) if snake == "entries" else {own: [value] if _is_single(snake, value) else value}
        for field, part in replaced.items():
            if part is not None and (field in found or field in table or camel_case(field) in table):
                raise ValueError(f"{name} and {field} are the same field: give one of them")
            if part is not None:
                found[field] = part
    return found


def _snake_case(name: str) -> str:
    from pydantic.alias_generators import to_snake

    return to_snake(name)


def _is_single(name: str, value: object) -> bool:
    return name in _LISTS and isinstance(value, str)


def _entries(value: object) -> dict[str, Any]:
    """Return indexes and ids apart; what is neither is left to the request to refuse."""
    if not isinstance(value, list | tuple):
        return {"entry_indices": value}
    items = cast("list[Any]", value)
    ids = [item for item in items if isinstance(item, str)]
    return {"entry_indices": [item for item in items if not isinstance(item, str)] or None, "entry_ids": ids or None}
