"""Normalise inputs, results and errors to comparable fingerprints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from ctxmgr.detect.text.volatile_fields import MAX_TEXT, blur
from ctxmgr.text.lazy_pattern import lazy_pattern


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``: vocabularies are written as prose, not as columns of quotes."""
    return frozenset(text.split())


NOISE_KEYS = word_set(
    "duration durationMs duration_ms durationSeconds elapsed elapsedMs elapsed_ms wallTime wall_time took tookMs pid "
    "processId process_id startedAt started_at finishedAt finished_at sessionId chunkId chunk_id cwd"
)
RECEIPT_KEYS = word_set(
    "id messageId message_id runId run_id requestId request_id receipt ts timestamp createdAt created_at updatedAt "
    "updated_at uuid etag time sentAt"
)
CLOCK_KEYS = word_set(
    "now serverTime server_time currentTime current_time generatedAt generated_at fetchedAt fetched_at servedAt served_at "
    "asOf as_of checkedAt checked_at requestId request_id traceId trace_id correlationId correlation_id queryId query_id "
    "responseId response_id executionId execution_id nonce"
)
"""What a server stamps on every answer, whatever it says."""
COSMETIC_KEYS = frozenset({"task_progress", "thought", "toolSummary", "toolAction"})
_COMMAND_KEYS = ("command", "cmd", "script")
_COMMAND_SET = frozenset(_COMMAND_KEYS)
_COMMAND_COSMETICS = COSMETIC_KEYS | {"description", "explanation", "justification"}

_ENDS = 4_096
_RULED = lazy_pattern(r"([=_*#~-])\1{7,}")
_ERROR_LINE = lazy_pattern(r"^\W*(?:[\w.]+(?:Error|Exception|Fault|Refused)|error(?:\[\w+\])?|fatal|panic)\b ?:.*\w", re.I)
_LONG_WORD = lazy_pattern(r"[a-z]{3,}", re.IGNORECASE)
_GENERIC = word_set(
    "error errors failed failure fail exit code command status exited returned non zero with the was has been not and "
    "for found file does exist such match matches result results empty none null unknown invalid traceback most recent "
    "call last line stderr stdout output process exception assertionerror directory tests test tool use string could "
    "cannot can ran run"
)
_EMPTY_ERROR = word_set("error errors failed failure fail exit code command status exited returned non zero with the")
_PUT_IN = "§"
_NAMING = lazy_pattern(r"[\w./:@-]{2,200}")
_ADDRESS_PATH = lazy_pattern(r"://[^/\s'\"]{1,200}(/[^\s'\"?#]{1,400})")
_CLEAR = 4
_MAX_LEAVES = 40
_MAX_QUOTED = 2000
_MAX_NUMBER = 10**18
_NO_TOOL = lazy_pattern(
    r"\b(?:unknown|no such|no|undefined) (?:tool|function)\b|\b(?:tool|function)\b.{1,80}\b(?:not found|does not exist"
    r"|is not (?:available|defined|a (?:known|valid)))",
    re.IGNORECASE,
)


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""Made once: `json.dumps` makes an encoder for every call, which costs more than most inputs do."""


def canonical(value: object) -> str | None:
    """Return an input as text that is equal for equal inputs, whatever the order of keys; None when it is not JSON."""
    if isinstance(value, dict):
        return _dump(_without_cosmetics(cast("dict[Any, Any]", value)))
    return _dump(value)


def _without_cosmetics(fields: dict[Any, Any]) -> dict[Any, Any]:
    cosmetic = COSMETIC_KEYS if _COMMAND_SET.isdisjoint(fields) else _COMMAND_COSMETICS
    if cosmetic.isdisjoint(fields) or cosmetic.issuperset(fields):
        return fields
    return {key: item for key, item in fields.items() if key not in cosmetic}


_MAX_SHAPES = 1000
_MAX_SHAPE = 400
_shapes: dict[tuple[Any, ...], tuple[str, ...]] = {}


def texts_of(fields: dict[Any, Any]) -> tuple[str, ...] | None:
    """Return the keys and values of an object whose values are all texts, as of most inputs; None of any other.

    They are in canonical order, so that they are equal where `canonical` is, at a fraction of its cost. Whatever depends on
    the keys alone is worked out once for all objects with those keys.
    """
    keys = tuple(fields)
    counting = _shapes.get(keys)
    if counting is None:
        counting = _learn_shape(keys)
    values = [fields[key] for key in counting]
    for value in values:
        if type(value) is not str:
            return None
    return (*counting, *values) or None


def _learn_shape(keys: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the keys that count, in canonical order; none of them when one is no text."""
    if not all(type(key) is str for key in keys):
        return ()
    counting = tuple(sorted(_without_cosmetics(dict.fromkeys(keys))))
    if sum(map(len, keys)) <= _MAX_SHAPE:
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        _shapes[keys] = counting
    return counting


def _dump(value: object) -> str | None:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return None


def plain_text(value: object, *, drop: frozenset[str] = NOISE_KEYS) -> str | None:
    """Return a result as text, without the members named in ``drop`` at any depth; None when it is not JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return _dump(_without(value, drop))
    except RecursionError:
        return None


def _without(value: object, drop: frozenset[str]) -> object:
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {key: _without(item, drop) for key, item in members.items() if key not in drop}
    if isinstance(value, list):
        return [_without(item, drop) for item in cast("list[Any]", value)]
    return value


def error_text(error: object, output: object) -> str:
    """Return what a failed call said: its error message, else its output, else the error's type."""
    said: Mapping[str, object] = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    for value in (said.get("message"), output, said.get("type")):
        text = plain_text(value)
        if text and text.strip():
            return text
    return ""


def error_core(text: str) -> str:
    """Return the blurred part of an error that names its cause: the last line like ``SomeError: cause``, else all."""
    lines = [line for line in text[-MAX_TEXT:].splitlines() if line.strip()]
    for line in reversed(lines[-60:]):
        if len(line) < 2000 and _ERROR_LINE.match(line):
            return blur(line, ids=True)
    return blur(text[:4000], ids=True)


def without_input(text: str, given: object) -> str:
    """Return an error without the parts that its call's own input put into it, each replaced by one mark.

    What counts as put in: texts and numbers of the input, the words of its commands that name something, and the last
    parts of its paths.
    """
    for part in sorted(_parts_of(given), key=len, reverse=True):
        if part in text:
            if len(part) >= _CLEAR:
                text = text.replace(part, _PUT_IN)
            else:
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", _PUT_IN, text)
    return text


def _parts_of(given: object) -> set[str]:
    parts: set[str] = set()
    waiting: list[object] = [given]
    looked = 0
    while waiting and looked < _MAX_LEAVES:
        looked += 1
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += list(cast("dict[Any, Any]", value).values())[:_MAX_LEAVES]
        elif isinstance(value, list):
            waiting += cast("list[Any]", value)[:_MAX_LEAVES]
        elif isinstance(value, str):
            text = value[:_MAX_QUOTED].strip()
            parts.add(text)
            parts |= {word for word in _NAMING.findall(text)[:_MAX_LEAVES] if not word.isalpha() or len(text.split()) < 3}
            parts |= set(_ADDRESS_PATH.findall(text)[:_MAX_LEAVES])
            parts |= {part for word in text.split()[:_MAX_LEAVES] for part in word.strip("'\"").split("/")[-1:]}
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
            parts.add(str(value))
    return {part for part in parts if part}


def says_anything(core: str) -> bool:
    """Whether an error says more than that there is one."""
    return not {word.lower() for word in _LONG_WORD.findall(core[:2000])} <= _EMPTY_ERROR


def is_specific(core: str) -> bool:
    """Whether an error says enough that two different calls with it share one cause ("exit code 1" does not)."""
    if _NO_TOOL.search(core[:400]):
        return True
    return len({word.lower() for word in _LONG_WORD.findall(core[:2000])} - _GENERIC) >= 2


def both_ends(text: str, width: int) -> str:
    """Return recorded text as one printable line, its middle left out when it is longer than ``width`` characters.

    What a command prints tells at its start what it was, and at its end how it ended.
    """
    whole = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]} {text[-_ENDS:]}"
    line = _RULED.sub(r"\1\1\1", one_line(whole, 2 * _ENDS + 1))
    if len(line) <= width:
        return line
    head = width // 3
    return f"{line[:head]} … {line[head + 3 - width :]}"


def one_line(text: str, width: int = 80) -> str:
    """Return recorded text as one printable line of at most ``width`` characters."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text[: width * 8]).split())
    return text if len(text) <= width else text[: width - 1] + "…"
