"""Read what OTLP's JSON wraps: attributes, times, and messages that were flattened into numbered attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ctxmgr.importers.values import clean, mapping, number, parsed, sequence, text, whole

_MAX_DEPTH = 12
_MAX_ITEMS = 2_000


@dataclass(slots=True)
class Span:
    """A span, or a log record as one that takes no time.

    Attributes:
        order: place in the file; start, end: nanoseconds since 1970, 0 where there are none.
        own: its id; a log record's, or that of a span without one, is made of all that it holds.
        failed: whether its status says so; error: what it says.
        inputs, answered: messages to the model and from it, in events of the span or in log records about it.
        kind: what it stands for; key: the id of the call that it tells of.
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
        """Return the first of these attributes that there is."""
        return next((self.attributes[name] for name in names if self.attributes.get(name) not in (None, "")), None)

    def count(self, *names: str) -> object:
        """Return the first of these attributes as a number, where it is one that is written as text, too."""
        value = self.first(*names)
        return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 16 else value


def spans_of(value: Mapping[str, Any], count: int) -> Iterator[Span]:
    """Yield the spans and log records of one export."""
    for resource in map(mapping, sequence(value.get("resourceSpans") or value.get("resource_spans"))):
        shared = attributes_of(mapping(resource.get("resource")))
        for scope in _scopes(resource, "Spans"):
            for raw in map(mapping, sequence(scope.get("spans"))):
                count += 1
                yield _span(raw, shared, count)
    for resource in map(mapping, sequence(value.get("resourceLogs") or value.get("resource_logs"))):
        shared = attributes_of(mapping(resource.get("resource")))
        for scope in _scopes(resource, "Logs"):
            for raw in map(mapping, sequence(scope.get("logRecords") or scope.get("log_records"))):
                count += 1
                yield _log(raw, shared, count)


def _scopes(resource: Mapping[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    names = (f"scope{kind}", f"scope_{kind.lower()}", f"instrumentationLibrary{kind}")
    return map(mapping, sequence(next((resource[name] for name in names if name in resource), None)))


def _span(raw: Mapping[str, Any], shared: Mapping[str, Any], order: int) -> Span:
    status = mapping(raw.get("status"))
    failed = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    words = text(status.get("message"))
    attributes = {**shared, **attributes_of(raw)}
    said: list[tuple[str, dict[str, Any]]] = []
    for event in map(mapping, sequence(raw.get("events"))):
        name = text(event.get("name")) or ""
        if name == "exception":
            exception = attributes_of(event)
            words = words or text(exception.get("exception.message")) or text(exception.get("exception.type"))
        # What a tool returned may be an event of its span, with fields of its own, in place of an attribute.
        elif name == "tool.output":
            attributes.setdefault("tool.output", attributes_of(event))
        elif name.startswith("gen_ai."):
            said.append((name, attributes_of(event)))
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
    attributes = {**shared, **attributes_of(raw)}
    body = _unwrapped(raw.get("body"))
    name = text(attributes.get("event.name")) or text(raw.get("eventName")) or text(body) or ""
    at = _nanoseconds(raw.get("timeUnixNano", raw.get("observedTimeUnixNano")))
    # Some programs leave the record's own time out and state one as an attribute.
    if not at and (stamp := text(attributes.get("event.timestamp"))):
        attributes["timestamp"] = stamp
    about = text(raw.get("spanId", raw.get("span_id"))) or ""
    if isinstance(body, dict):
        attributes.setdefault("body", body)
    return Span(order, name, text(raw.get("traceId")) or "", f"log {_mark(raw)}", about, at, at, attributes, is_log=True)


def _mark(raw: Mapping[str, Any]) -> str:
    """Return what tells a record without an id apart from all others, wherever it stands."""
    return sha256(json.dumps(raw, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def take_message(span: Span, name: str, about: Mapping[str, Any]) -> bool:
    """Add the message of an event of the older conventions to its span; return whether it is one.

    Args:
        span: whose model call it is.
        name: ``gen_ai.user.message`` and the like, ``gen_ai.choice``, ``gen_ai.content.prompt``.
        about: the event's attributes, with the ``body`` of a log record.
    """
    body = mapping(about.get("body")) or mapping(parsed(about.get("gen_ai.event.content"))) or dict(about)
    if name == "gen_ai.choice":
        span.answered.append(mapping(body.get("message")) or body)
    elif name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
        listed = [mapping(item) for item in sequence(parsed(about.get(name.replace(".content.", "."))))]
        (span.inputs if name.endswith("prompt") else span.answered).extend(listed)
    elif name.startswith("gen_ai.") and name.endswith(".message"):
        span.inputs.append({"role": name.split(".")[1], **body})
    else:
        return False
    return True


def attributes_of(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes by name."""
    found: dict[str, Any] = {}
    for item in map(mapping, sequence(holder.get("attributes"))):
        if name := text(item.get("key")):
            found[name] = _unwrapped(item.get("value"))
    return found


def _unwrapped(value: object, depth: int = 0) -> Any:
    """Return what an ``AnyValue`` holds; whole numbers may come as text."""
    body = mapping(value)
    if not body or depth > _MAX_DEPTH:
        return None if isinstance(value, dict) else clean(value)
    # OTLP/JSON writes 64-bit numbers as text, since JavaScript would lose their digits.
    if "intValue" in body:
        given = body["intValue"]
        return int(given) if isinstance(given, str) and given.lstrip("-").isdecimal() and len(given) < 20 else whole(given)
    if "arrayValue" in body:
        return [_unwrapped(item, depth + 1) for item in sequence(mapping(body["arrayValue"]).get("values"))]
    if "kvlistValue" in body:
        items = map(mapping, sequence(mapping(body["kvlistValue"]).get("values")))
        return {text(item.get("key")) or "": _unwrapped(item.get("value"), depth + 1) for item in items}
    return next((clean(body[name]) for name in ("stringValue", "boolValue", "doubleValue", "bytesValue") if name in body), None)


def _nanoseconds(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    return int(number(value) or 0)


def messages_of(span: Span, *names: str) -> list[dict[str, Any]]:
    """Return the messages in the first of these attributes: JSON, a structure, or flattened into ``name.0.role``."""
    for name in names:
        found = parsed(span.attributes.get(name))
        if listed := sequence(found):
            return [mapping(item) for item in listed]
        if listed := _unflattened(span.attributes, f"{name}."):
            return listed
    return []


def _unflattened(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return messages of attributes as ``llm.output_messages.0.message.tool_calls.0.tool_call.function.name``."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix):
            continue
        at = root
        *above, last = name[len(prefix) :].split(".")[:_MAX_DEPTH]
        for part in above:
            at = mapping(at.setdefault(part, {}))
        at.setdefault(last, value)
    found: list[dict[str, Any]] = []
    for item in _listed(root):
        message = mapping(item.get("message")) or item
        calls = [mapping(call.get("tool_call")) or call for call in _listed(mapping(message.get("tool_calls")))]
        parts = [mapping(part.get("message_content")) or part for part in _listed(mapping(message.get("contents")))]
        found.append({**message, "tool_calls": calls, **({"content": parts} if parts and "content" not in message else {})})
    return found


def _listed(members: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the members that are numbered, in their order."""
    # By number: as texts ``10`` would come before ``2``.
    places = sorted(int(name) for name in members if name.isdecimal() and len(name) < 6)[:_MAX_ITEMS]
    return [mapping(members.get(str(place))) for place in places]
