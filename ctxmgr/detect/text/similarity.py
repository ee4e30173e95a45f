"""Tell when two inputs are nearly the same."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ctxmgr.detect.text.fingerprints import CURSOR_KEYS, canonical, word_set
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Observation

# Fields that are filled anew for each call, and do not change what it asks.
VOLATILE_KEYS = (
    word_set(
        "attempt attempts attemptNumber attempt_number retry retries retryCount retry_count try tries counter iteration seq "
        "sequence nonce salt requestId request_id traceId trace_id callId call_id correlationId correlation_id "
        "idempotencyKey idempotency_key timestamp ts now cacheBuster cache_buster cb random rand "
        "explanation justification rationale reasoning thought intent"
    )
    | CURSOR_KEYS
)
COMMAND_KEYS = ("command", "cmd", "script")
PATH_KEYS = word_set(
    "path relative_path relative_file_path file file_path filePath filepath filename file_name dir "
    "directory folder cwd absolute_path"
)
_TARGET_KEYS = PATH_KEYS | word_set("url uri target to id name key table repo resource")
# Endings that change nothing of what a command does: ``|| true``, ``2>&1``, a last semicolon.
_NO_EFFECT = lazy_pattern(r"(?:\s*(?:&&|\|\||;)\s*(?:true|:)|\s*2>\s*&1|\s*2>\s*/dev/null|\s*;)+\s*$")
_REMARK = lazy_pattern(r"\s#\s[^\n'\"]*$")
_QUOTED = lazy_pattern(r"^(['\"])([\w./:@%+=,-]+)\1$")
_NUMBER = lazy_pattern(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?![\w.])")
_WHOLE = lazy_pattern(r"(?<![\w.])[0-9]{1,12}(?![\w.])")
# ``sed -n 10,20p file``: a range of lines, read with a shell.
_SED = lazy_pattern(r"\bsed -n ['\"]?([0-9]+),([0-9]+)p['\"]? ([^\s|;&]+)")
_MAX_LINES = 10_000_000


class Span(NamedTuple):
    """Lines ``first`` to ``last`` (both included) of something."""

    target: str
    first: int
    last: int


def plain_command(command: str) -> str:
    """Return a shell command without what changes nothing: blanks, remarks, ``&& true``, ``./``, trailing slashes, quotes."""
    words = _NO_EFFECT.sub("", _REMARK.sub("", command[:4000])).split()
    return " ".join(_plain_path(_QUOTED.sub(r"\2", word)) for word in words)


def _plain_path(word: str) -> str:
    while word.startswith("./") and len(word) > 2:
        word = word[2:]
    return word.rstrip("/") or word


def near_key(start: Observation) -> Hashable:
    """Return what is equal for calls that differ in volatile or cosmetic parts alone; None when it can't be told."""
    text = canonical(_near(start.input, 0))
    return None if text is None else (start.action, text)


def drift_key(start: Observation) -> Hashable:
    """Return what is equal for calls that differ, beyond that, in numbers alone; None when they hold none."""
    near = _near(start.input, 0)
    blurred = _without_numbers(near, 0)
    text = canonical(blurred)
    return None if text is None or text == canonical(near) else (start.action, text)


def counts_up(starts: Sequence[Observation]) -> bool:
    """Whether calls that differ in numbers alone go through them one by one: seed 1, seed 2, seed 3."""
    numbers = [[int(each) for each in _WHOLE.findall(canonical(start.input) or "")] for start in starts]
    if len({len(each) for each in numbers}) != 1:
        return False
    places = [list(place) for place in zip(*numbers, strict=True)]
    moving = [place for place in places if len(set(place)) > 1]
    return bool(moving) and all(later - earlier == 1 for place in moving for earlier, later in pairwise(place))


def _near(value: object, depth: int) -> object:
    if isinstance(value, dict) and depth < 20:
        fields = cast("dict[Any, Any]", value)
        kept = {key: item for key, item in fields.items() if key not in VOLATILE_KEYS} or fields
        return {key: _near_field(key, item, depth) for key, item in kept.items()}
    if isinstance(value, list) and depth < 20:
        return cast("object", [_near(item, depth + 1) for item in cast("list[Any]", value)])
    return " ".join(value.split()) if isinstance(value, str) else cast("object", value)


def _near_field(key: object, value: object, depth: int) -> object:
    if isinstance(value, str):
        if key in COMMAND_KEYS:
            return plain_command(value)
        if key in PATH_KEYS:
            return _plain_path(value.strip())
    return _near(value, depth + 1)


def _without_numbers(value: object, depth: int) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return "#"
    if isinstance(value, dict) and depth < 20:
        fields = cast("dict[Any, Any]", value)
        return {key: _drift_field(key, item, depth) for key, item in fields.items()}
    if isinstance(value, list) and depth < 20:
        return cast("object", [_without_numbers(item, depth + 1) for item in cast("list[Any]", value)])
    return cast("object", value)


def _drift_field(key: object, value: object, depth: int) -> object:
    if isinstance(value, str) and (key in COMMAND_KEYS or value.isdecimal()) and key not in _TARGET_KEYS:
        return _NUMBER.sub("#", value)
    # A number in a path or an id names another thing.
    return value if key in _TARGET_KEYS else _without_numbers(value, depth + 1)


def target_of(start: Observation) -> str:
    """Return what a call is about: the path, address or name in its input ("" when it names none)."""
    if not isinstance(start.input, dict):
        return ""
    fields = cast("dict[Any, Any]", start.input)
    found = [str(value)[:500] for key, value in fields.items() if key in _TARGET_KEYS and isinstance(value, str | int)]
    return "\n".join(found)


def span_of(start: Observation) -> Span | None:
    """Return which lines of what a call reads, None when it names none."""
    if not isinstance(start.input, dict):
        return _sed_span(start.input)
    fields = cast("dict[str, Any]", start.input)
    for key in COMMAND_KEYS:
        if key in fields:
            return _sed_span(fields[key])
    target = next((value for key, value in fields.items() if key in PATH_KEYS and isinstance(value, str)), None)
    if target is None:
        return None
    for key in ("view_range", "line_range", "range", "lines"):
        pair = fields.get(key)
        if isinstance(pair, list) and len(cast("list[Any]", pair)) == 2:
            return _span(target, *cast("list[Any]", pair))
    for one, two in (("start", "end"), ("start_line", "end_line"), ("startLine", "endLine"), ("line_start", "line_end"),
                     ("from", "to")):  # fmt: skip
        if one in fields and two in fields:
            return _span(target, fields[one], fields[two])
    offset, limit = fields.get("offset"), fields.get("limit")
    if _is_line(offset) and _is_line(limit):
        return _span(target, offset, cast("int", offset) + cast("int", limit) - 1)
    return None


def _sed_span(command: object) -> Span | None:
    if not isinstance(command, str):
        return None
    match = _SED.search(command[:4000])
    return _span(match[3], int(match[1][:9]), int(match[2][:9])) if match else None


def _span(target: str, first: object, last: object) -> Span | None:
    if not _is_line(first) or not _is_line(last):
        return None
    one, two = cast("int", first), cast("int", last)
    return Span(_plain_path(target.strip()[:500]), one, two) if one <= two else None


def _is_line(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_LINES
