"""Read typed values from foreign JSON; a wrong type reads as nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast

from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER, MAX_STORED_INTEGER

_MAX_DEPTH = 80
"""Levels of nesting that are kept; the log accepts 256 (`ctxmgr.log.codec.MAX_DEPTH`)."""
SIMPLE = frozenset((str, int, bool, type(None)))
"""Classes whose values are clean as they are. Callers test for them before `clean`, since most values are of these."""

_SPACE = " \t\r\n"
_STARTS = frozenset('{["-0123456789tfnNI')
_MAX_ID = 256
_MAX_TEXT = 500_000
_MAX_TITLE = 80
_MAX_DIGITS = 30  # a longer text of digits is no time, and hostile ones have millions
_YEAR_2300 = 10_413_792_000
"""Seconds since 1970. A larger number is not in seconds but in milliseconds, micro- or nanoseconds."""
# Days up to the 28th alone: those exist in every month.
_PLAIN_TIME = re.compile(
    r"[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3}|\.\d{6})?Z", re.ASCII
)


@cache
def decoder() -> Callable[[bytes | str], Any]:
    """Return msgspec's fast JSON decoder. What it refuses may still be JSON for the module `json`.

    It raises `ValueError` or `RecursionError`, also for NaN, infinity, lone surrogates and numbers that are out of range.
    """
    from msgspec.json import Decoder

    return Decoder().decode


def mapping(value: object) -> dict[str, Any]:
    """Return the object itself, or an empty one when the value is anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType], a cast would be a call


def sequence(value: object) -> list[Any]:
    """Return the list itself, or an empty one when the value is anything else."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def text(value: object) -> str | None:
    """Return the text, or None when the value is not text or is empty."""
    return value if isinstance(value, str) and value else None


def ident(value: object) -> str | None:
    """Return an id: a text of 1 to 256 characters; None for anything else."""
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID else None


def positive(value: object) -> float | None:
    """Return a number from 0 to 2**53, or None."""
    found = number(value)
    return found if found is not None and 0 <= found <= MAX_EXACT_INTEGER else None


def number(value: object) -> float | None:
    """Return a finite number of less than 2**63 either way, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if -MAX_STORED_INTEGER < value < MAX_STORED_INTEGER else None


def whole(value: object) -> int | None:
    """Return a whole number of less than 2**63 either way, or None."""
    if type(value) is int:
        return value if -MAX_STORED_INTEGER < value < MAX_STORED_INTEGER else None
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def milliseconds(value: object) -> float | None:
    """Return a length of time in milliseconds from seconds or from Rust's ``{secs, nanos}``."""
    seconds = number(value)
    if seconds is None:
        parts = mapping(value)
        whole_seconds = number(parts.get("secs"))
        if whole_seconds is None:
            return None
        seconds = whole_seconds + (number(parts.get("nanos")) or 0) / 1e9
    return round(seconds * 1000, 3) if seconds >= 0 else None


def clean(value: object, depth: int = 0) -> Any:
    """Return the value as JSON that every store accepts: no NaN, no infinity, no endless nesting."""
    if value.__class__ in SIMPLE:
        return value
    if depth > _MAX_DEPTH:
        return "<nested too deep>"
    below = depth + 1
    if isinstance(value, dict):
        return {  # pyright: ignore[reportUnknownVariableType], a cast would be a call
            key if key.__class__ is str else str(key): item if item.__class__ in SIMPLE else clean(item, below)  # pyright: ignore[reportUnknownArgumentType]
            for key, item in value.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(value, list):
        return [item if item.__class__ in SIMPLE else clean(item, below) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def shortened(value: object) -> Any:
    """Return JSON whose texts are cut to 500,000 characters each, so that a record fits on one line of the log."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}… [{len(value) - _MAX_TEXT:,} more]"
    if isinstance(value, list):
        return [shortened(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def parsed(value: object) -> Any:
    """Return what a JSON text holds, the text itself when it holds no JSON, any other value as it is."""
    if not isinstance(value, str):
        return clean(value)
    if (
        value[:1] not in _STARTS and value.lstrip(_SPACE)[:1] not in _STARTS
    ):  # most texts are no JSON, and raising an error costs more than this
        return value
    try:
        found = decoder()(value)
    except (ValueError, RecursionError):
        try:
            return clean(json.loads(value))
        except (ValueError, RecursionError):
            return value
    # The fast decoder refuses NaN and infinity, so the only thing left to clean is the nesting.
    return found if len(value) <= _MAX_DEPTH or value.count("{") + value.count("[") <= _MAX_DEPTH else clean(found)


def texts(content: object) -> list[str]:
    """Return the texts of a message's content: a text, or parts of which some carry one."""
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for part in sequence(content):
        words: object = part.get("text") if isinstance(part, dict) else part  # pyright: ignore[reportUnknownVariableType], a cast would be a call
        if isinstance(words, str):
            found.append(words)
    return found


def spoken(content: object) -> str:
    """Return the words of a message's content as one text."""
    return content if isinstance(content, str) else "\n".join(texts(content))


def title(words: str) -> str:
    """Return the first 80 characters of a person's words on one line."""
    return " ".join(words[: _MAX_TITLE * 10].split())[:_MAX_TITLE]


def images(content: object) -> int:
    """Return the number of pictures among a message's content parts."""
    if not isinstance(content, list):
        return 0
    kinds = [text(mapping(part).get("type")) for part in cast("list[Any]", content)]
    return sum(["image" in kind.lower() for kind in kinds if kind])


def is_time(value: str) -> bool:
    """Whether a text is a point in time. Most are in the plain form, which is recognised without a calendar."""
    return _PLAIN_TIME.fullmatch(value) is not None or parse_time(value) is not None


def moment(value: object) -> str | None:
    """Return a point in time as RFC 3339: from ISO text, or from seconds, milliseconds, micro- or nanoseconds since 1970.

    Numbers may be given as text. None when it is no time; one without a zone is taken as UTC.
    """
    if isinstance(value, str) and not value.isdecimal():
        if value.endswith("Z"):
            return value if is_time(value) else None
        return _formatted(parse_time(value))
    if isinstance(value, str):
        value = int(value) if len(value) < _MAX_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_STORED_INTEGER:
        return None
    for size in (1e9, 1e6, 1e3):
        if value >= _YEAR_2300 * size / 1e3:
            return _formatted(value / size)
    return _formatted(float(value))


def _formatted(seconds: float | None) -> str | None:
    try:
        return None if seconds is None else format_time(seconds)
    except (ValueError, OverflowError):
        return None


def elapsed(start: str | None, end: str | None) -> float | None:
    """Return the milliseconds from one `moment` to another, or None when one is none or they run backwards."""
    begun, ended = parse_time(start), parse_time(end)
    return round((ended - begun) * 1000, 3) if begun is not None and ended is not None and ended >= begun else None
