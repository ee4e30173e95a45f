"""Read typed values from Claude Code's JSON; a wrong type reads as nothing."""

from __future__ import annotations

import math
import re
from typing import Any, cast

from ctxmgr.log.ids import format_time, parse_time

_MAX_ID = 256
_MAX_TOKENS = 2**53
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_LONG_TEXT = 500_000


def mapping(value: object) -> dict[str, Any]:
    """Return the object itself, or an empty one when the value is anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return the list itself, or an empty one when the value is anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """Return the text, or an empty one when the value is anything else."""
    return value if isinstance(value, str) else ""


def ident(value: object) -> str | None:
    """Return an id: a text of 1 to 256 characters; None for anything else."""
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID else None


def tokens(value: object) -> int:
    """Return a count of tokens; 0 for anything that is not a whole number from 0 to 2**53."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS else 0


def positive(value: object) -> float | None:
    """Return a finite number of at least 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_TOKENS:
        return None
    return value if math.isfinite(value) else None


def moment(value: object) -> tuple[str | None, float | None]:
    """Return a timestamp as RFC 3339 in UTC and as seconds since 1970; both None when it is not one."""
    seconds = parse_time(value)
    if seconds is None or not isinstance(value, str):
        return None, None
    if _UTC.fullmatch(value):
        return value, seconds
    try:
        return format_time(seconds), seconds
    except (ValueError, OverflowError):
        return None, None


def texts(content: object) -> list[str]:
    """Return the texts of a message's content: a text, or blocks of which some carry one."""
    if isinstance(content, str):
        return [content]
    return [words for block in sequence(content) if isinstance(words := mapping(block).get("text"), str)]


def shortened(value: object) -> Any:
    """Return JSON whose texts are cut to 500,000 characters each, so that a record fits on one line of the log."""
    if isinstance(value, str):
        return value if len(value) <= _LONG_TEXT else f"{value[:_LONG_TEXT]}… [{len(value) - _LONG_TEXT:,} more]"
    if isinstance(value, list):
        return [shortened(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in cast("dict[str, Any]", value).items()}
    return value
