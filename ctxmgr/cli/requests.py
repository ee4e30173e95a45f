"""Build requests, settings, version numbers, times and texts from option values."""

from __future__ import annotations

import os
import sys
import time

from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.log.fast_json import cast
from ctxmgr.log.ids import format_time, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    from ctxmgr.types.base import Shape
    from ctxmgr.types.goal import GoalSource
    from ctxmgr.types.route import Continuation

    _Request = TypeVar("_Request", bound=Shape)


_OPTIONS = {
    "completed_at": "--completed",
    "execution_id": "--id",
    "input_artifacts": "--input-artifact",
    "links": "--link",
    "max_results": "--limit",
    "output_artifacts": "--output-artifact",
    "started_at": "--started",
    "tags": "--tag",
    "additional_context": "--context",
    "drafts": "--draft",
    "from_version": "--from",
    "resource_type": "TYPE",
    "subtasks": "--subtask",
    "to_version": "--to",
    **dict.fromkeys(("content", "text"), "the text"),
    **{name: name.upper() for name in ("item", "key", "pattern", "permission", "query", "target", "value")},
    "keys": "KEY",
    **dict.fromkeys(("into", "tasks", "TaskDraft.description"), "TEXT"),
    **dict.fromkeys(("CreateVersionRequest.author", "RollbackRequest.author", "SetContextRequest.author"), "--by"),
    **dict.fromkeys(("AssembleRequest.goal", "RecoverRequest.goal"), "--goal-dir"),
    **{f"ModelRequest.{field}": f"--{option}" for field, option in (
        ("name", "model"), ("mode", "llm-mode"), ("off", "no-llm"), ("seconds", "timeout"), ("max_tokens", "model-tokens"),
    )},
    **{f"{request}.agent": "AGENT" for request in (
        "AccessRule", "AgentNeed", "AssembleRequest", "ListNeedsRequest", "RecordExecutionRequest",
        "RequestItemsRequest",
    )},
    **{f"{request}.id": "ID" for request in ("BlockRequest", "DropRequest", "EndRequest", "SplitRequest")},
    **{f"{request}.action": "NAME" for request in ("ActionRequest", "RecordRequest")},
    "AgentRequest.requester": "--from",
    "AssembleRequest.items": "--with",
    "CreateVersionRequest.description": "DESCRIPTION",
    "NewArtifact.path": "FILE",
    "NextRequest.to": "ID",
    "Probe.argv": "PROGRAM",
    "Probe.name": "NAME",
    "Probe.path": "--exists or --file",
    "Probe.text": "--contains",
    "PromptRequest.agent": "--for",
    "PutRequest.description": "--message",
    "RequestItemsRequest.items": "ITEM",
    "RollbackRequest.version": "N",
    "UnblockRequest.target": "WHAT",
}  # fmt: skip
"""Field of a request, or REQUEST.FIELD, -> what messages call it: its option if that has another name, or its argument."""


def option_name(request: str, field: str) -> str:
    """Return what a command line calls a field of a request: ``--option``, or the name of the argument."""
    return _OPTIONS.get(f"{request}.{field}") or _OPTIONS.get(field) or f"--{field.replace('_', '-')}"


def build(request: type[_Request], **values: Any) -> _Request:
    """Return a request with these option values. Values that are None are left out.

    Raises:
        InvalidInput: a value is unusable; the message names the first one.
    """
    # Left out instead of null, so that the defaults of the request apply.
    given = {name: value for name, value in values.items() if value is not None}
    if times := given.keys() & {"since", "until"}:
        given |= {name: moment(given[name], time.time()) for name in times}
    try:
        return request.model_validate(given)
    except ValueError as error:
        from ctxmgr.types.base import fault_words, first_fault

        first = first_fault(error)
        field = str(first["loc"][0]) if first["loc"] else ""
        name = option_name(request.__name__, field) if field else "the request"
        given_text = repr(first["input"])
        shown = given_text if len(given_text) <= _MAX_GIVEN else f"{given_text[:_MAX_GIVEN]}…"
        raise InvalidInput(f"{name}{fault_words(first)}", f"given: {shown}") from None


_MAX_GIVEN = 100  # characters of a value that a hint repeats
CURRENT = "current"
_MAX_DIGITS = 20


def version_number(text: str | None) -> int | None:
    """Return the number of a version ("3" or "v3"), or None for "current" and if none is named.

    Raises:
        InvalidInput: the text is neither.
    """
    if text is None or text == CURRENT:
        return None
    digits = text.removeprefix("v")
    # `int` would also accept digits of other scripts, and has its own error for thousands of digits.
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS and int(digits)):
        from ctxmgr.access.patterns import quote_name

        raise InvalidInput(f"{quote_name(text)} is no version", "give its number, e.g. 3, or 'current'")
    return int(digits)


def read_argument(given: str, limit: int | None = None) -> str:
    """Return an argument, or the content of stdin if it is ``-``. The last line end is none of the text, as in ``$(...)``.

    Raises:
        InvalidInput: stdin has more than ``limit`` characters.
    """
    if given != "-":
        return given
    read = sys.stdin.read(-1 if limit is None else limit + 1)
    if limit is not None and len(read) > limit:
        raise InvalidInput(f"stdin has more than {limit:,} characters", "give a shorter text")
    return read.removesuffix("\n")


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return the table of ``--set NAME=VALUE`` options. ``actions.Bash.repeat_rounds=5`` sets the threshold of one action.

    Names and values have the syntax of TOML, so the name of an action with special characters is quoted.

    Raises:
        InvalidInput: an option can't be read; the message names it.
    """
    import tomllib

    table: dict[str, Any] = {}
    for text in texts:
        try:
            # Parsed as TOML, so that a value has the same type as in a file of settings.
            _merge(table, tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            raise InvalidInput(f"--set {text!r} is no setting", "e.g. --set repeat_rounds=4") from None
    return table


def _merge(table: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        known = table.get(name)
        # Merge nested tables, so that two options for one action keep each other's values.
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        else:
            table[name] = value


def merge_settings(table: dict[str, Any], texts: Sequence[str] | None) -> dict[str, Any]:
    """Return a table of the configuration with the ``--set`` options over it."""
    # Into a new table, because the configuration must not change.
    found: dict[str, Any] = {}
    _merge(found, table)
    _merge(found, parse_settings(texts) if texts else {})
    return found


def project_folder(named: str | None, option: str = "--dir") -> str:
    """Return the folder of a project that an option names, by default the current one.

    Raises:
        InvalidInput: the folder does not exist.
    """
    folder = os.getcwd() if named is None else named
    if not os.path.isdir(folder):
        raise InvalidInput(f"{option} {folder!r} is no folder", "name a folder that is there")
    return folder


def goal_source(folder: str | None) -> GoalSource | None:
    """Return the goal of the project that ``--goal-dir`` names as a source of context, or None if no project is named.

    Raises:
        InvalidInput: the folder does not exist.
        NotFound: the project has no goal.
    """
    if folder is None:
        return None
    from ctxmgr.goals.service import Goals

    with Goals.open(project_folder(folder, "--goal-dir")) as goals:
        return goals.source()


def apply_to_goal(folder: str, continuation: Continuation) -> list[str]:
    """Apply a continuation to the goal; return warnings for a person.

    The continuation is already recorded, so a goal that can't be written does not fail the recovery.
    """
    from ctxmgr.goals.service import Goals

    try:
        with Goals.open(project_folder(folder, "--goal-dir")) as goals:
            return [str(line) for line in goals.apply(continuation.to_json()).state.warnings]
    except CtxmgrError as error:
        return [f"the goal has not taken the continuation up: {error.message}"]


_AGO = r"(\d{1,7})\s?(s|m|h|d|w)"
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment(text: str | None, now: float) -> str | None:
    """Return a time in RFC 3339 for a text such as "now", "yesterday" or "2h" (two hours before ``now``).

    Raises:
        InvalidInput: the text is not a time.
    """
    if text is None:
        return None
    wanted = text.strip().lower()
    if wanted == "now":
        return format_time(now)
    import re

    if match := re.fullmatch(_AGO, wanted, re.ASCII):
        # Seven digits of weeks reach back beyond the calendar, so the result is at least the epoch.
        return format_time(max(0.0, now - int(match[1]) * _SECONDS[match[2]]))
    if wanted in ("today", "yesterday"):
        from datetime import datetime, timedelta

        midnight = datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        return format_time((midnight - timedelta(days=1 if wanted == "yesterday" else 0)).timestamp())
    if (seconds := parse_time(text.strip())) is not None:
        return format_time(seconds)
    raise InvalidInput(f"{text!r} is not a time", "e.g. 2h, 7d, yesterday, 2026-01-22T10:00:00Z")
