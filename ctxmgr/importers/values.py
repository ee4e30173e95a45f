"""Read typed values from foreign JSON. A value of a wrong type is read as missing.

This module also unwraps OTLP's JSON: attributes, times, and messages flattened into numbered attributes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any, cast

from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER, MAX_STORED_INTEGER

_MAX_DEPTH = 80
"""Maximum number of nested levels to keep. The log accepts 256 (`ctxmgr.log.codec.MAX_DEPTH`)."""
SIMPLE = frozenset((str, int, bool, type(None)))
"""Classes whose values need no cleaning. Callers check them before `clean`, because most values are of these classes."""

_SPACE = " \t\r\n"
# First characters of JSON values. ``N`` and ``I`` begin NaN and Infinity, which Python writes although JSON has neither.
_STARTS = frozenset('{["-0123456789tfnNI')
_MAX_ID = 256
_MAX_TEXT = 500_000
_MAX_TITLE = 80
_MAX_DIGITS = 30  # a longer number is no time, and hostile ones have millions of digits
_YEAR_2300 = 10_413_792_000
"""Seconds since 1970. A larger number is in milliseconds, micro- or nanoseconds."""
_INTEGER = re.compile(r"-?[0-9]+")
# Only days up to the 28th, which exist in every month.
_PLAIN_TIME = re.compile(
    r"[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{3}|\.\d{6})?Z", re.ASCII
)


@cache
def decoder() -> Callable[[bytes | str], Any]:
    """Return msgspec's fast JSON decoder. Text that it refuses may still be JSON for the module `json`.

    It raises `ValueError` or `RecursionError`, also for NaN, infinity, lone surrogates and numbers out of range.
    """
    from msgspec.json import Decoder

    return Decoder().decode


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType], a cast would be a call


def sequence(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def text(value: object) -> str | None:
    """Return the value if it is a non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def ident(value: object) -> str | None:
    """Return the value if it is a text of 1 to 256 characters, else None."""
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID else None


def positive(value: object) -> float | None:
    """Return the value as a number from 0 to 2**53, or None."""
    found = number(value)
    return found if found is not None and 0 <= found <= MAX_EXACT_INTEGER else None


def number(value: object) -> float | None:
    """Return the value as a finite number between -2**63 and 2**63, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if -MAX_STORED_INTEGER < value < MAX_STORED_INTEGER else None


def integer(value: object) -> int | None:
    """Return the value as a whole number between -2**63 and 2**63, or None."""
    if type(value) is int:
        return value if -MAX_STORED_INTEGER < value < MAX_STORED_INTEGER else None
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def milliseconds(value: object) -> float | None:
    """Return a duration in milliseconds from seconds or from Rust's ``{secs, nanos}``."""
    seconds = number(value)
    if seconds is None:
        parts = mapping(value)
        whole_seconds = number(parts.get("secs"))
        if whole_seconds is None:
            return None
        seconds = whole_seconds + (number(parts.get("nanos")) or 0) / 1e9
    return round(seconds * 1000, 3) if seconds >= 0 else None


def clean(value: object, depth: int = 0) -> Any:
    """Return the value as JSON that every store accepts, without NaN, infinity and endless nesting."""
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


def shorten(value: object) -> Any:
    """Return JSON with texts cut to 500,000 characters each, so that a record fits on one line of the log."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else f"{value[:_MAX_TEXT]}… [{len(value) - _MAX_TEXT:,} more]"
    if isinstance(value, list):
        return [shorten(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in cast("dict[str, Any]", value).items()}
    return value


def parse_json(value: object) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON. Other values are returned unchanged."""
    if not isinstance(value, str):
        return clean(value)
    if (
        value[:1] not in _STARTS and value.lstrip(_SPACE)[:1] not in _STARTS
    ):  # most texts are not JSON, and raising an error costs more than this check
        return value
    try:
        found = decoder()(value)
    except (ValueError, RecursionError):
        try:
            return clean(json.loads(value))
        except (ValueError, RecursionError):
            return value
    # The fast decoder refuses NaN and infinity, so only the nesting may need cleaning.
    return found if len(value) <= _MAX_DEPTH or value.count("{") + value.count("[") <= _MAX_DEPTH else clean(found)


def texts(content: object) -> list[str]:
    """Return the texts of a message's content: a text, or parts that may have texts."""
    if isinstance(content, str):
        return [content]
    found: list[str] = []
    for part in sequence(content):
        words: object = part.get("text") if isinstance(part, dict) else part  # pyright: ignore[reportUnknownVariableType], a cast would be a call
        if isinstance(words, str):
            found.append(words)
    return found


def join_texts(content: object) -> str:
    """Return the texts of a message's content joined into one."""
    return content if isinstance(content, str) else "\n".join(texts(content))


def title(words: str) -> str:
    """Return the first 80 characters of a person's words on one line."""
    # A prompt may have megabytes. Ten times the length is enough for a title, even with many blanks.
    return " ".join(words[: _MAX_TITLE * 10].split())[:_MAX_TITLE]


def images(content: object) -> int:
    """Return the number of pictures among the parts of a message's content."""
    if not isinstance(content, list):
        return 0
    kinds = [text(mapping(part).get("type")) for part in cast("list[Any]", content)]
    return sum(["image" in kind.lower() for kind in kinds if kind])


def is_time(value: str) -> bool:
    """Whether a text is a time. Most have the plain form, which is recognised without a calendar."""
    return _PLAIN_TIME.fullmatch(value) is not None or parse_time(value) is not None


def moment(value: object) -> str | None:
    """Return a time as RFC 3339, from ISO text or from seconds, milliseconds, micro- or nanoseconds since 1970.

    Numbers may be given as text. Times without a zone are taken as UTC. Returns None if the value is no time.
    """
    if isinstance(value, str) and not value.isdecimal():
        # Unchanged, with as many digits as in the source.
        if value.endswith("Z"):
            return value if is_time(value) else None
        return _format(parse_time(value))
    if isinstance(value, str):
        value = int(value) if len(value) < _MAX_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_STORED_INTEGER:
        return None
    for size in (1e9, 1e6, 1e3):
        if value >= _YEAR_2300 * size / 1e3:
            return _format(value / size)
    return _format(float(value))


def _format(seconds: float | None) -> str | None:
    try:
        return None if seconds is None else format_time(seconds)
    except (ValueError, OverflowError):
        return None


def milliseconds_between(start: str | None, end: str | None) -> float | None:
    """Return the milliseconds between two results of `moment`; None if one is missing or they are in the wrong order."""
    start_time, ended = parse_time(start), parse_time(end)
    return (
        round((ended - start_time) * 1000, 3) if start_time is not None and ended is not None and ended >= start_time else None
    )


_MAX_WRAPPED_DEPTH = 12
_MAX_ITEMS = 2_000


@dataclass(slots=True)
class Span:
    """A span, or a log record as a span without duration.

    Attributes:
        order: place in the file; start, end: nanoseconds since 1970, 0 if unknown.
        own: its id; for log records and spans without an id, a digest of the content.
        failed: whether its status is an error; error: message of the status.
        inputs, answered: messages to and from the model, from events of the span or from log records about it.
        kind: kind of the span; key: id of the call that it reports.
    """

    order: int
    name: str
    trace: str
    own: str
    parent: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    failed: bool = False
    error: str | None = None
    is_log: bool = False
    agent: str = ""
    inputs: list[dict[str, Any]] = field(default_factory=lambda: list[dict[str, Any]]())
    answered: list[dict[str, Any]] = field(default_factory=lambda: list[dict[str, Any]]())
    kind: str = ""
    key: str = ""

    def first(self, *names: str) -> Any:
        """Return the first of these attributes that exists, or None."""
        return next((self.attributes[name] for name in names if self.attributes.get(name) not in (None, "")), None)

    def count(self, *names: str) -> object:
        """Return the first of these attributes as a number, even if it is written as text."""
        value = self.first(*names)
        return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 16 else value


def read_spans(value: Mapping[str, Any], count: int) -> Iterator[Span]:
    """Yield the spans and log records of one export."""
    for resource in map(mapping, sequence(value.get("resourceSpans") or value.get("resource_spans"))):
        shared = read_attributes(mapping(resource.get("resource")))
        for scope in _scopes(resource, "Spans"):
            for raw in map(mapping, sequence(scope.get("spans"))):
                count += 1
                yield _span(raw, shared, count)
    for resource in map(mapping, sequence(value.get("resourceLogs") or value.get("resource_logs"))):
        shared = read_attributes(mapping(resource.get("resource")))
        for scope in _scopes(resource, "Logs"):
            for raw in map(mapping, sequence(scope.get("logRecords") or scope.get("log_records"))):
                count += 1
                yield _log(raw, shared, count)


def _scopes(resource: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    # Some exporters use protobuf's spelling, and old ones call a scope an instrumentation library.
    names = (f"scope{kind}", f"scope_{kind.lower()}", f"instrumentationLibrary{kind}")
    return map(mapping, sequence(next((resource[name] for name in names if name in resource), None)))


def _span(raw: Mapping[str, Any], shared: Mapping[str, Any], order: int) -> Span:
    status = mapping(raw.get("status"))
    # OTLP/JSON allows an enum as its number or as its name.
    failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    words = text(status.get("message"))
    attributes = {**shared, **read_attributes(raw)}
    said: list[tuple[str, dict[str, Any]]] = []
    for event in map(mapping, sequence(raw.get("events"))):
        name = text(event.get("name")) or ""
        if name == "exception":
            exception = read_attributes(event)
            words = words or text(exception.get("exception.message")) or text(exception.get("exception.type"))
        # The output of a tool may be an event of its span with its own fields, instead of an attribute.
        elif name == "tool.output":
            attributes.setdefault("tool.output", read_attributes(event))
        elif name.startswith("gen_ai."):
            said.append((name, read_attributes(event)))
    span = Span(
        order, text(raw.get("name")) or "", text(raw.get("traceId", raw.get("trace_id"))) or "",
        text(raw.get("spanId", raw.get("span_id"))) or f"span {_mark(raw)}",
        text(raw.get("parentSpanId", raw.get("parent_span_id"))) or "",
        _nanoseconds(raw.get("startTimeUnixNano", raw.get("start_time_unix_nano"))),
        _nanoseconds(raw.get("endTimeUnixNano", raw.get("end_time_unix_nano"))), attributes, failed, words,
    )  # fmt: skip
    for name, about in said:
        take_message(span, name, about)
    return span


def _log(raw: Mapping[str, Any], shared: Mapping[str, Any], order: int) -> Span:
    attributes = {**shared, **read_attributes(raw)}
    body = _unwrap(raw.get("body"))
    name = text(attributes.get("event.name")) or text(raw.get("eventName")) or text(body) or ""
    at = _nanoseconds(raw.get("timeUnixNano", raw.get("observedTimeUnixNano")))
    # Some programs leave out the record's own time and have it as an attribute.
    if not at and (stamp := text(attributes.get("event.timestamp"))):
        attributes["timestamp"] = stamp
    about = text(raw.get("spanId", raw.get("span_id"))) or ""
    if isinstance(body, dict):
        attributes.setdefault("body", body)
    return Span(order, name, text(raw.get("traceId")) or "", f"log {_mark(raw)}", about, at, at, attributes, is_log=True)


def _mark(raw: Mapping[str, Any]) -> str:
    """Return a digest that identifies a record without an id, wherever it stands."""
    return sha256(json.dumps(raw, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def take_message(span: Span, name: str, about: Mapping[str, Any]) -> bool:
    """Add the message in an event of the older conventions to its span; return whether the event is one.

    Args:
        span: the span of the model call.
        name: ``gen_ai.user.message`` and the like, ``gen_ai.choice``, ``gen_ai.content.prompt``.
        about: the event's attributes, with the ``body`` of a log record.
    """
    body = mapping(about.get("body")) or mapping(parse_json(about.get("gen_ai.event.content"))) or dict(about)
    if name == "gen_ai.choice":
        span.answered.append(mapping(body.get("message")) or body)
    elif name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
        listed = [mapping(item) for item in sequence(parse_json(about.get(name.replace(".content.", "."))))]
        (span.inputs if name.endswith("prompt") else span.answered).extend(listed)
    elif name.startswith("gen_ai.") and name.endswith(".message"):
        span.inputs.append({"role": name.split(".")[1], **body})
    else:
        return False
    return True


def read_attributes(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes by name."""
    found: dict[str, Any] = {}
    for item in map(mapping, sequence(holder.get("attributes"))):
        if name := text(item.get("key")):
            found[name] = _unwrap(item.get("value"))
    return found


def _unwrap(value: object, depth: int = 0) -> Any:
    """Return the value of an ``AnyValue``. Whole numbers may be written as text."""
    body = mapping(value)
    if not body or depth > _MAX_WRAPPED_DEPTH:
        return None if isinstance(value, dict) else clean(value)
    # OTLP/JSON writes 64-bit numbers as text, because JavaScript would lose their digits.
    if "intValue" in body:
        given = body["intValue"]
        return int(given) if isinstance(given, str) and len(given) < 20 and _INTEGER.fullmatch(given) else integer(given)
    if "arrayValue" in body:
        return [_unwrap(item, depth + 1) for item in sequence(mapping(body["arrayValue"]).get("values"))]
    if "kvlistValue" in body:
        items = map(mapping, sequence(mapping(body["kvlistValue"]).get("values")))
        return {text(item.get("key")) or "": _unwrap(item.get("value"), depth + 1) for item in items}
    return next((clean(body[name]) for name in ("stringValue", "boolValue", "doubleValue", "bytesValue") if name in body), None)


def _nanoseconds(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    return int(number(value) or 0)


def read_messages(span: Span, *names: str) -> list[dict[str, Any]]:
    """Return the messages in the first of these attributes: as JSON, a structure, or flattened into ``name.0.role``."""
    for name in names:
        found = parse_json(span.attributes.get(name))
        if listed := sequence(found):
            return [mapping(item) for item in listed]
        if listed := _unflatten(span.attributes, f"{name}."):
            return listed
    return []


def _unflatten(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return messages from attributes such as ``llm.output_messages.0.message.tool_calls.0.tool_call.function.name``."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        at = root
        # Names are recorded text. A name with thousands of dots would nest as deep.
        *above, last = name[len(prefix) :].split(".")[:_MAX_WRAPPED_DEPTH]
        for part in above:
            at = mapping(at.setdefault(part, {}))
        at.setdefault(last, value)
    found: list[dict[str, Any]] = []
    for item in _list_members(root):
        message = mapping(item.get("message")) or item
        calls = [mapping(call.get("tool_call")) or call for call in _list_members(mapping(message.get("tool_calls")))]
        parts = [mapping(part.get("message_content")) or part for part in _list_members(mapping(message.get("contents")))]
        found.append({**message, "tool_calls": calls, **({"content": parts} if parts and "content" not in message else {})})
    return found


def _list_members(members: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values under numeric names, in numeric order."""
    # By number, because as text ``10`` would come before ``2``.
    places = sorted(int(name) for name in members if name.isdecimal() and len(name) < 6)[:_MAX_ITEMS]
    return [mapping(members.get(str(place))) for place in places]
