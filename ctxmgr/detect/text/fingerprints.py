"""Normalise inputs, results and errors to comparable fingerprints.

Volatile parts are blurred at two levels. *Noise* (durations, process ids, memory addresses, random names of temporary files)
is never news, so it is always blurred. *Ids* (clock times, UUIDs, hashes, request ids) are blurred only in errors and in the
receipts of mutations. In the result of a read they are often the only news.

Each pattern starts with a set of characters, or is tried only if a plain substring is there. The patterns run on every result
that is compared, and alternations over the whole text would cost twenty times as much.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from ctxmgr.log.fast_json import json_object
from ctxmgr.text.patterns import lazy_pattern, word_set

# Members of a result that are never news: its duration, and its process or session.
NOISE_KEYS = word_set(
    "duration durationMs duration_ms durationSeconds elapsed elapsedMs elapsed_ms wallTime wall_time took tookMs pid "
    "processId process_id startedAt started_at finishedAt finished_at sessionId chunkId chunk_id cwd ms tmp "
    "took_ms took_seconds latencyMs latency_ms elapsed_s elapsedSeconds elapsed_seconds responseTime response_time"
)
# Members that distinguish one receipt of a change from another.
RECEIPT_KEYS = word_set(
    "id messageId message_id runId run_id requestId request_id receipt ts timestamp createdAt created_at updatedAt "
    "updated_at uuid etag time sentAt"
)
CLOCK_KEYS = word_set(
    "now serverTime server_time currentTime current_time generatedAt generated_at fetchedAt fetched_at servedAt served_at "
    "asOf as_of checkedAt checked_at requestId request_id traceId trace_id correlationId correlation_id queryId query_id "
    "responseId response_id executionId execution_id nonce servedBy served_by"
)
"""Members that a server adds to every answer, whatever it says."""
CURSOR_KEYS = word_set(
    "cursor nextCursor next_cursor pageToken page_token nextPageToken next_page_token nextToken next_token continuation "
    "continuationToken continuation_token"
)
"""Start of the next page. A request for it is no new question if the returned page is the old one."""
# Fields in which clients let the model describe a call. They differ each time and change nothing.
COSMETIC_KEYS = frozenset({"task_progress", "thought", "toolSummary", "toolAction"})
_COMMAND_KEYS = ("command", "cmd", "script")
_COMMAND_SET = frozenset(_COMMAND_KEYS)
_COMMAND_COSMETICS = COSMETIC_KEYS | {"description", "explanation", "justification"}

_MAX_END = 4_096
_RULED = lazy_pattern(r"([=_*#~-])\1{7,}")
# "ValueError: bad token", "> IO Error: disk full", "fatal: not a git repository". A bare "error:" names no cause.
_ERROR_LINE = lazy_pattern(
    r"^\W*(?:(?:(?:[A-Z]\w{1,30} )?[\w.]*(?:Error|Exception|Fault|Refused)|fatal|panic)\b|error\[\w{1,30}\]) ?:.*\w", re.I
)
_LONG_WORD = lazy_pattern(r"[a-z]{3,}", re.IGNORECASE)
# Words of any error. An error needs two other words to count as the same cause in different calls.
_GENERIC = word_set(
    "error errors failed failure fail exit code command status exited returned non zero with the was has been not and "
    "for found file does exist such match matches result results empty none null unknown invalid traceback most recent "
    "call last line stderr stdout output process exception assertionerror directory tests test tool use string could "
    "cannot can ran run"
)
# Words of an error that says only that there is an error.
_EMPTY_ERROR = word_set("error errors failed failure fail exit code command status exited returned non zero with the")
_INPUT_MARK = "§"
_NAMING = lazy_pattern(r"[\w./:@-]{2,200}")
_ADDRESS_PATH = lazy_pattern(r"://[^/\s'\"]{1,200}(/[^\s'\"?#]{1,400})")
_MIN_PLAIN_PART = 4
_MAX_LEAVES = 40
_MAX_QUOTED = 2000
# `str` refuses an integer of more than 4,300 digits, and JSON may hold one.
_MAX_NUMBER = 10**18
_NO_TOOL = lazy_pattern(
    r"\b(?:unknown|no such|no|undefined) (?:tool|function)\b|\b(?:tool|function)\b.{1,80}\b(?:not found|does not exist"
    r"|is not (?:available|defined|a (?:known|valid)))",
    re.IGNORECASE,
)


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""Created once: `json.dumps` would create an encoder for every call, at a higher cost than most inputs."""


def canonical(value: object) -> str | None:
    """Return an input as a text that is equal for equal inputs with keys in any order; None if it is not JSON."""
    if isinstance(value, dict):
        return _encode_or_none(_drop_cosmetics(cast("dict[Any, Any]", value)))
    return _encode_or_none(value)


def _drop_cosmetics(fields: dict[Any, Any]) -> dict[Any, Any]:
    cosmetic = COSMETIC_KEYS if _COMMAND_SET.isdisjoint(fields) else _COMMAND_COSMETICS
    if cosmetic.isdisjoint(fields) or cosmetic.issuperset(fields):
        return fields
    return {key: item for key, item in fields.items() if key not in cosmetic}


_MAX_SHAPES = 1000  # key names are recorded text, so number and size of the entries are bounded
_MAX_SHAPE = 400
_shapes: dict[tuple[Any, ...], tuple[str, ...]] = {}


def list_texts(fields: dict[Any, Any]) -> tuple[str, ...] | None:
    """Return the keys and values of an object that has only texts as values, as most inputs do; None for any other.

    They are in canonical order. So they are equal if the results of `canonical` are, at a fraction of the cost. The order of
    the keys is computed once for all objects with the same keys.
    """
    keys = tuple(fields)
    significant = _shapes.get(keys)
    if significant is None:
        significant = _learn_shape(keys)
    values = [fields[key] for key in significant]
    for value in values:
        if type(value) is not str:
            return None
    return (*significant, *values) or None


def _learn_shape(keys: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the significant keys in canonical order; none if any key is not a text."""
    if not all(type(key) is str for key in keys):
        return ()
    significant = tuple(sorted(_drop_cosmetics(dict.fromkeys(keys))))
    if sum(map(len, keys)) <= _MAX_SHAPE:
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        _shapes[keys] = significant
    return significant


def _encode_or_none(value: object) -> str | None:
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        return None


def plain_text(value: object, *, drop: frozenset[str] = NOISE_KEYS) -> str | None:
    """Return a result as text without the members named in ``drop``, at any depth; None if it is not JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return _encode_or_none(_drop_keys(value, drop))
    except RecursionError:
        return None


def _drop_keys(value: object, drop: frozenset[str]) -> object:
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {key: _drop_keys(item, drop) for key, item in members.items() if key not in drop}
    if isinstance(value, list):
        return [_drop_keys(item, drop) for item in cast("list[Any]", value)]
    return value


def error_text(error: object, output: object) -> str:
    """Return the text of a failed call: its error message, else its output, else the type of the error."""
    fields = json_object(error)
    for value in (fields.get("message"), output, fields.get("type")):
        text = plain_text(value)
        if text and text.strip():
            return text
    return ""


def error_core(text: str) -> str:
    """Return the blurred part of an error that names its cause: the last line like ``SomeError: cause``, else all."""
    lines = [line for line in text[-MAX_TEXT:].splitlines() if line.strip()]
    for line in reversed(lines[-60:]):
        if len(line) < 2000 and _ERROR_LINE.match(line):
            return mask_volatile(line, ids=True)
    return mask_volatile(text[:4000], ids=True)


def without_input(text: str, call_input: object) -> str:
    """Return an error in which a mark replaces each part that comes from the call's own input.

    Such parts are texts and numbers of the input, words of its commands that name something, and the last parts of its paths.
    """
    # The longest first, so that a path is replaced before its last part.
    for part in sorted(_split_parts(call_input), key=len, reverse=True):
        if part in text:
            if len(part) >= _MIN_PLAIN_PART:
                text = text.replace(part, _INPUT_MARK)
            else:  # the "7" in "17" must stay
                text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", _INPUT_MARK, text)
    return text


def _split_parts(call_input: object) -> set[str]:
    parts: set[str] = set()
    waiting: list[object] = [call_input]
    visited = 0
    while waiting and visited < _MAX_LEAVES:
        visited += 1
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += list(cast("dict[Any, Any]", value).values())[:_MAX_LEAVES]
        elif isinstance(value, list):
            waiting += cast("list[Any]", value)[:_MAX_LEAVES]
        elif isinstance(value, str):
            text = value[:_MAX_QUOTED].strip()
            parts.add(text)
            words = text.split()
            # A plain word of a sentence or a command names nothing, and may be part of any error.
            names = [word for word in words[:_MAX_LEAVES] if len(words) < 3 or not word.isalpha()]
            parts |= {word for word in _NAMING.findall(text)[:_MAX_LEAVES] if not word.isalpha() or len(words) < 3}
            parts |= set(_ADDRESS_PATH.findall(text)[:_MAX_LEAVES])
            parts |= {part for word in names for part in word.strip("'\"").split("/")[-1:]}
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
            parts.add(str(value))
    return {part for part in parts if part}


def says_anything(core: str) -> bool:
    """Whether an error says more than that there is an error."""
    return not {word.lower() for word in _LONG_WORD.findall(core[:2000])} <= _EMPTY_ERROR


def is_specific(core: str) -> bool:
    """Whether an error says enough to have one cause in two different calls ("exit code 1" does not)."""
    if _NO_TOOL.search(core[:400]):
        return True
    return len({word.lower() for word in _LONG_WORD.findall(core[:2000])} - _GENERIC) >= 2


def both_ends(text: str, width: int) -> str:
    """Return recorded text as one printable line. If it is longer than ``width`` characters, its middle is left out.

    The start of a command's output says what ran, and its end says how that ended.
    """
    clipped = text if len(text) <= 2 * _MAX_END else f"{text[:_MAX_END]} {text[-_MAX_END:]}"
    line = _RULED.sub(r"\1\1\1", one_line(clipped, 2 * _MAX_END + 1))
    if len(line) <= width:
        return line
    head = width // 3
    return f"{line[:head]} … {line[head + 3 - width :]}"


def one_line(text: str, width: int = 80) -> str:
    """Return recorded text as one printable line of at most ``width`` characters."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text[: width * 8]).split())
    return text if len(text) <= width else text[: width - 1] + "…"


MAX_TEXT = 64 * 1024
"""Characters of a text that are normalised. Its length and a hash of the whole text replace the rest."""

_UNIT = r"(?:ns|µs|us|ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)"
_DURATION = lazy_pattern(rf"[0-9]+(\.[0-9]+)? ?({_UNIT})\b(?: ?[0-9]+(?:\.[0-9]+)? ?{_UNIT}\b)?")
_DURATION_HINT = lazy_pattern(r"[0-9] ?[nµums]")
"""Part of every duration. The search for it costs a third of the search for durations."""
_FINE_UNITS = ("ns", "µs", "us", "ms", "milli")
_SPAN_WORDS = ("in", "took", "elapsed", "duration", "time", "after")
_MEASURED = lazy_pattern(
    r"((?:duration|elapsed)(?:_?[num]s[\"']?[ :=]{1,4}(?=[0-9])|[_a-z]{0,8}[\"']?[ :=]{1,4}(?=[0-9]+\.)))[0-9]+(?:\.[0-9]+)?",
    re.IGNORECASE,
)
"""A named duration without a unit, such as TAP's ``duration_ms 1.52``. Whole seconds may be news."""
_ANSI = lazy_pattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ADDRESS = lazy_pattern(r"0x[0-9a-fA-F]{5,16}\b")
# The random ending has a digit or a capital. /tmp/notes.backup is a name that somebody chose.
_TEMPORARY = lazy_pattern(
    r"/(?:tmp|T)/(?:tmp[\w-]{4,}|[\w-]+\.(?=[A-Za-z]*[0-9A-Z])[A-Za-z0-9]{6,12}\b|pytest-of-[\w-]+/pytest-[0-9]+)"
)
_NAMED = lazy_pattern(r"\b(chunk id|wall time|pid|process id)[ :=]+[0-9a-f.]+", re.IGNORECASE)

_DATE = lazy_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T _][0-9]{2}[:_-][0-9]{2}(?:[:_-][0-9]{2}(?:[.,_][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""A date, with a time if one follows. In names of files, other marks replace its colons (``2026-11-22T22_07_23_218Z``)."""
_CLOCK = lazy_pattern(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# From the 7 digits of a short commit hash to the 64 of SHA-256.
_HEX = lazy_pattern(r"[0-9a-fA-F]{7,64}\b")
# Seconds or milliseconds since 1970, from July 2017 to 2033.
_EPOCH = lazy_pattern(r"1[5-9][0-9]{8}(?:[0-9]{3})?")
_EPOCH_WORD = lazy_pattern(r"(?<![\w.])1[5-9][0-9]{8}(?:[0-9]{3})?(?:\.[0-9]+)?(?![\w])")
_NUMBERS = lazy_pattern(r"[0-9]+")
_DAY = lazy_pattern(r"\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE)
_CODE = lazy_pattern(r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[\w-]{4,80}(?![\w-])")
# Members of JSON: "fileId":"f81a", "nextToken":"...", "revision":12.
_FIELD = lazy_pattern(
    r'("[A-Za-z_]{0,40}(?:[iI]d|ID|uuid|UUID|[tT]oken|[eE]tag|[rR]evision|[vV]ersion|[rR]eceipt)":)(?:"[^"]*"|[0-9]+)'
)
# In prose: "order 4711", "id: 4711", "ticket #4711", "order id 4711".
_LABELLED = lazy_pattern(
    r"((?<![a-z])(?:id|uuid|receipt|ref(?:erence)?|rev(?:ision)?|version|ticket|request|trace|transaction|order|upload|job|"
    r"message|commit|build|token|session|handle|number|no\.?)[\"']?\s*(?:[:=#]\s*|\bid\b\s*)?[\"'#]?)[0-9]+\b",
    re.IGNORECASE,
)
# "uptime 88114", "request #40412", "x-request-id: 550e8400-...", "battery: 81", "checked 10:04".
_TICK = lazy_pattern(
    r"(\b(?:up ?time|age|requests?(?:[ _-]?(?:served|count|number))?|(?:x-)?(?:request|trace|correlation|amzn)"
    r"[ _-]?(?:trace-)?id|checked|pid|batt(?:ery)?|clock)[\"']?\s{0,3}[:=#]?\s{0,3}#?[\"']?)"
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+(?::[0-9]{2})?)",
    re.IGNORECASE,
)
_PREFIXED = lazy_pattern(r"\b(?:req|request|trace|run|msg)_[A-Za-z0-9]+\b")
_PREFIXES = ("req_", "request_", "trace_", "run_", "msg_")


def mask_volatile(text: str, *, ids: bool = False) -> str:
    """Return the text without noise and with single spaces; with ``ids`` also without clock times and ids.

    A number of whole seconds on its own stays: "[3s] compiling" after "[2s] compiling" is a job that goes on.
    """
    rest = ""
    if len(text) > MAX_TEXT:
        # The end is not normalised but still counts: two long results that differ only there are not equal.
        rest = f"…{len(text)}:{hash(text)}"
        text = text[:MAX_TEXT]
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _DURATION_HINT.search(text):
        text = _DURATION.sub(_mask_duration, text)
    if "0x" in text:
        text = _ADDRESS.sub("~", text)
    if "/tmp/" in text or "/T/" in text:
        text = _TEMPORARY.sub("~", text)
    lower = text.lower()
    if "duration" in lower or "elapsed" in lower:
        text = _MEASURED.sub(r"\1~", text)
    if ("id" in lower or "wall time" in lower) and _may_name(lower):
        text = _NAMED.sub(r"\1 ~", text)
    if ids:
        text = _mask_ids(text)
    return " ".join(text.split()) + rest


def _may_name(lower: str) -> bool:
    # Not a loop over the four names, which would cost more than everything else on a short text.
    return "pid" in lower or "chunk id" in lower or "wall time" in lower or "process id" in lower


def mask_times(text: str) -> str:
    """Return the text without dates, clock times and seconds since 1970."""
    return _EPOCH_WORD.sub("#", _CLOCK.sub("#", _DATE.sub("#", text)))


def mask_ticks(text: str) -> str:
    """Return the text without counters that run by themselves: uptimes, ages, numbers and ids of the request."""
    return _TICK.sub(r"\1#", text)


def mask_numbers(text: str) -> str:
    """Return the text without numbers, and without the names of days and months."""
    return _DAY.sub("#", _NUMBERS.sub("#", text))


def mask_receipts(text: str) -> str:
    """Return the text without the parts that distinguish receipts: words of letters and digits, and numbers called ids."""
    return _LABELLED.sub(r"\1#", _CODE.sub("#", _FIELD.sub(r"\1#", text)))


def _mask_duration(match: re.Match[str]) -> str:
    text, start = match.string, match.start()
    if start and (text[start - 1].isalnum() or text[start - 1] == "."):
        return match.group()  # the end of a word or of a version: "v1.2s"
    if match.group(1) is not None or match.group(2).startswith(_FINE_UNITS):
        return "~"
    before = text[max(0, start - 14) : start].lower().rstrip(" :=")
    return "~" if before.endswith(_SPAN_WORDS) else match.group()


def _mask_ids(text: str) -> str:
    text = _DATE.sub("#", text)
    if ":" in text:
        text = _CLOCK.sub("#", text)
    if "-" in text:
        text = _UUID.sub("#", text)
    if any(prefix in text for prefix in _PREFIXES):
        text = _PREFIXED.sub("#", text)
    return _HEX.sub(_mask_hex, text)


def _mask_hex(match: re.Match[str]) -> str:
    word, text, start = match.group(), match.string, match.start()
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return word
    if word.isdecimal():  # a plain number may be the news, unless it is a time
        return "#" if _EPOCH.fullmatch(word) else word
    return "#" if any(char.isdecimal() for char in word) else word
