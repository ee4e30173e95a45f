"""Quote recorded text as data: JSON-encoded and cut to a length, so that it can't pass for instructions or markup."""

from __future__ import annotations

import json
from typing import Any, cast

from ctxmgr.types.view import EntryView, EventView

EXCERPT = 400
_TELLING = ("command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt", "input", "name")


def quoted(text: object, limit: int = EXCERPT) -> str:
    """Return text (or any JSON value) as one JSON string, cut in the middle when longer than ``limit`` characters."""
    plain = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)
    return json.dumps(clipped(plain, limit), ensure_ascii=False)


def clipped(text: str, limit: int) -> str:
    """Return text with its middle left out when it is longer than ``limit``: errors tell at both ends."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]} … {text[-(limit - head) :]}"


def brief_input(value: Any, limit: int = 160) -> str:
    """Return the telling part of an action's input: a command, a path, a query, else all of it."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name in _TELLING:
            telling = fields.get(name)
            if isinstance(telling, str | list) and telling:
                return quoted(cast("object", telling), limit)
    return "" if value in (None, {}, "") else quoted(value, limit)


def call(entry: EntryView, limit: int = 160) -> str:
    """Return an action and its input as words: ``Bash "pytest -q"``."""
    return f"{entry.action} {brief_input(entry.input, limit)}".rstrip()


def outcome(entry: EntryView, limit: int = EXCERPT) -> str:
    """Return how an entry ended, with the record's own words."""
    if entry.status == "open":
        return "never returned"
    said = _error_text(entry.error) or (entry.output if entry.output not in (None, "") else None)
    return entry.status if said is None else f"{entry.status}: {quoted(said, limit)}"


def _error_text(error: Any) -> str | None:
    if not isinstance(error, dict):
        return str(error) if error else None
    fields = cast("dict[str, Any]", error)
    message = fields.get("message")
    return str(message) if message else json.dumps(fields, ensure_ascii=False, default=str)


def words(event: EventView) -> str:
    """Return what an event says, verbatim."""
    data = event.data
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        for name in ("text", "content", "message", "summary"):
            if isinstance(fields.get(name), str):
                return str(fields[name])
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
