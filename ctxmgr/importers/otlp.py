"""OpenTelemetry traces and logs as OTLP/JSON: GenAI conventions, OpenInference, OpenLLMetry, the agents' own telemetry.

Spans are written when they end, children before their parents, so the spans of a file are sorted by time after all are read. If
a parent is missing, its agent still runs or was killed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from ctxmgr.importers.base import Coverage, JsonImporter, Log
from ctxmgr.importers.chat import CALL_PARTS, PEOPLE, content_words, judge_result, message_role, read_message, speak
from ctxmgr.importers.log_files import ELEMENTS
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import (
    Span,
    clean,
    mapping,
    moment,
    number,
    parse_json,
    read_messages,
    read_spans,
    sequence,
    take_message,
    text,
)

_T = TypeVar("_T")
_MODEL_CALLS = frozenset(("chat", "text_completion", "generate_content", "completion"))
_SESSIONS = ("gen_ai.conversation.id", "session.id", "conversation.id", "thread_id", "langgraph.thread_id")
_EXPORTS = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")
_CLAUDE = "claude_code."
_MIN_TIME = 10**15
"""Nanoseconds since 1970. Smaller numbers are not times and only give an order."""

_MAX_LATE = 10_000
"""Maximum number of log records that wait for their span."""
_MAX_COMPARED = 500
# The characters in which ``{"a": 1}`` and ``{'a': 1}`` differ, however often their quotes are escaped.
_SPELLING = re.compile(r"""[\s'"\\]""")
_TOOLS = ("tool_name", "gen_ai.tool.name", "function_name", "name")
_GIVEN = ("arguments", "tool_input", "tool_parameters", "function_args")
_REFUSALS = frozenset(("reject", "rejected", "denied", "deny", "abort", "cancelled"))


def is_export(value: dict[str, Any]) -> bool:
    """Whether an object is an export of spans or log records, or a list of exports."""
    if any(isinstance(value.get(name), list) for name in _EXPORTS):
        return True
    return any(name in mapping(item) for item in sequence(value.get(ELEMENTS))[:1] for name in _EXPORTS)


def _kind(span: Span) -> str:
    """Return the kind of a span: ``tool``, ``model``, ``waiting``, ``execution``, ``prompt``, ``log`` or ``other``."""
    if span.is_log:
        return "log"
    if span.name.startswith(_CLAUDE):
        own = {"tool": "tool", "llm_request": "model", "interaction": "prompt", "tool.execution": "execution"}
        found = own.get(span.name.removeprefix(_CLAUDE))
        return found or ("waiting" if span.name.endswith("blocked_on_user") else "other")
    if span.name.endswith("blocked_on_user"):
        return "waiting"
    said = text(span.first("gen_ai.operation.name")) or ""
    drawn = (text(span.first("openinference.span.kind", "traceloop.span.kind", "ai.operationId")) or "").lower()
    if said == "execute_tool" or drawn in ("tool", "ai.toolcall"):
        return "tool"
    if (
        said in _MODEL_CALLS
        or drawn == "llm"
        # In the AI SDK, ``ai.generateText.doGenerate`` is one request; ``ai.generateText`` around it is a run of several.
        or drawn.endswith((".dogenerate", ".dostream"))
        or "llm.request.type" in span.attributes
    ):
        return "model"
    return "other"


class SpanReader:
    """Turns spans into records in the order of time: all spans of a file at its end, live spans batch by batch.

    Earlier records do not change. A span that arrives later, such as a parent, changes neither the session nor the agent of
    earlier spans.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._new: list[Span] = []
        self._by_id: dict[str, Span] = {}
        self._seen: dict[str, None] = {}
        self._traces: dict[str, tuple[str, str]] = {}
        self._known: dict[str, list[int]] = {}
        self._prompts_seen: dict[tuple[str, int], str] = {}
        self._early: dict[tuple[str, str], list[tuple[int, str]]] = {}
        self._late: dict[str, list[Span]] = {}
        self._ended: dict[str, tuple[str, str | None]] = {}
        self._inputs: dict[tuple[str, str], str] = {}
        self._in_batches = False
        self._tools_above: dict[int, Span | None] = {}

    def read(self, value: dict[str, Any]) -> int:
        """Take the spans and log records of an export; return the number of new ones."""
        before = len(self._new)
        for export in [mapping(item) for item in sequence(value.get(ELEMENTS))] or [value]:
            if not any(name in export for name in _EXPORTS):
                self._log.unknown("no export" if "resourceMetrics" not in export else "metrics")
            for span in read_spans(export, len(self._new)):
                self.add(span)
        return len(self._new) - before

    def add(self, span: Span) -> None:
        """Take a span or a log record, once."""
        key = f"{span.trace} {span.own}"
        # An exporter without an answer sends its batch again.
        if key not in self._seen:
            self._seen[key] = None
            span.kind, span.key = _kind(span), call_key(span)
            self._new.append(span)

    def finish(self) -> None:
        """Add records for the new spans, in the order of their beginnings, with each result at the end of its span."""
        new, self._new = self._new, []
        self._tools_above = {}
        self._by_id.update((span.own, span) for span in new if not span.is_log)
        # If spans begin together, the longest is the outer one. A span without an end still runs.
        ordered = sorted(new, key=lambda span: (span.start, span.end and -span.end, span.order))
        ordered = [span for span in ordered if not self._is_message(span)]
        self._place(ordered)
        happenings: list[tuple[int, int, int, Span]] = []
        for place, span in enumerate(ordered):
            if span.kind in ("tool", "waiting", "log", "prompt"):
                happenings.append((span.start, 1, place, span))
            if span.kind in ("tool", "model", "waiting", "execution") and span.end:
                happenings.append((span.end, 0, -place, span))  # inner spans end before the outer one
        for at, starting, _, span in sorted(happenings, key=lambda item: item[:3]):
            t = self._transcript(span)
            t.place = span.own
            self._add_happening(t, span, at if at > _MIN_TIME else None, starting=bool(starting))
        # From now on calls and executions may arrive in any order, so the rules that compare their times are relaxed.
        self._in_batches = True

    def release_contents(self) -> None:
        """Release the attributes and messages of the spans so far, but keep everything that later spans may refer to."""
        # The contents take most of the memory. Children that come later need the ids.
        for span in self._by_id.values():
            span.attributes, span.inputs, span.answered = {}, [], []

    def forget(self, limit: int) -> None:
        """Keep only the newest spans, traces, conversations and sessions, at most ``limit`` of each kind."""
        caches: list[dict[Any, Any]] = [
            self._by_id, self._seen, self._traces, self._known, self._prompts_seen, self._early, self._late, self._ended,
            self._inputs,
        ]  # fmt: skip
        for cache in caches:
            while len(cache) > limit:
                del cache[next(iter(cache))]
        transcripts = self._log.transcripts
        busy = sum(len(t.calls) for t in transcripts.values())
        while len(transcripts) > limit // 100 or busy > limit:
            busy -= len(self._log.drop(next(iter(transcripts))).calls)

    def _is_message(self, span: Span) -> bool:
        """Whether a log record contains a message of a model call, and so belongs to the span of that call."""
        if not span.is_log or not span.name.startswith("gen_ai.") or not span.parent:
            return False
        about = self._by_id.get(span.parent)
        if about is None and sum(map(len, self._late.values())) < _MAX_LATE:
            self._late.setdefault(span.parent, []).append(span)
        return about is None or take_message(about, span.name, span.attributes)

    def _place(self, ordered: list[Span]) -> None:
        """Find the session and the first agent of each new trace, and the agent of each span."""
        agents = dict[int, str | None]()
        for span in ordered:
            for late in self._late.pop(span.own, ()):
                take_message(span, late.name, late.attributes)
            span.agent = self._nearest(span, agents, lambda above: above.agent or _find_agent(above)) or ""
        met: dict[str, tuple[str, str]] = {}
        for span in ordered:
            own = text(span.first(*_SESSIONS)) or text(mapping(parse_json(span.first("metadata"))).get("thread_id")) or ""
            session, agent = met.get(span.trace or own, ("", ""))
            met[span.trace or own] = session or own, agent or span.agent
        for span in ordered:
            own = text(span.first(*_SESSIONS)) or ""
            session, agent = met[span.trace or own] if span.trace or own in met else ("", "")
            self._traces.setdefault(span.trace or own, (session or span.trace, agent))
            span.trace = span.trace or own

    def _transcript(self, span: Span) -> Transcript:
        """Return the part of a span's agent. If a tool call of another agent started it, it is a sub-agent."""
        # The agents above it, up to a known one or one that no call started. Iterative, because a hostile trace may
        # contain thousands of them, or a circle.
        line, visited = [span], {id(span)}
        while (calling := self._calling_span(line[-1])) is not None and id(calling) not in visited:
            line.append(calling)
            visited.add(id(calling))
        parent, found = "", None
        for each in reversed(line):
            name, agent, part = self._find_part(each)
            found = self._log.session(name, agent=agent, part=part, parent=parent if part else None)
            parent = next((found.calls[key].entry for key in (each.key, each.own) if key in found.calls), "")
        assert found is not None
        return found

    def _find_part(self, span: Span) -> tuple[str, str, str]:
        """Return (session, agent, part) of a span. The part is empty for the session's own agent."""
        name, first = self._traces.get(span.trace, (span.trace, ""))
        agent = span.agent or first or "main"
        # The first agent of a trace is the session's own. Every other name in it is a sub-agent.
        return name, agent, "" if agent in (first, "main") else f"{name}/{agent}"

    def _calling_span(self, span: Span) -> Span | None:
        """Return the tool call of another agent that started this span's agent. None if there is none or the agent is known."""
        name, agent, part = self._find_part(span)
        if not part or self._log.has_part(name, part):
            return None
        above, seen = span, {id(span)}
        while (above := self._by_id.get(above.parent)) is not None and id(above) not in seen:
            seen.add(id(above))
            above = self._nearest(above, self._tools_above, lambda each: each if each.kind == "tool" else None)
            if above is None or above.agent != agent:
                return above
        return None

    def _nearest(self, span: Span, known: dict[int, _T | None], read: Callable[[Span], _T | None]) -> _T | None:
        """Return the value that ``read`` finds for a span, or for the nearest span above it with a value.

        Args:
            span: the span to start with.
            known: identity of a span -> value found so far, so that a long chain is climbed only once.
            read: returns the value of a span, or nothing.
        """
        climbed, found, above = list[int](), None, span
        while above is not None and id(above) not in known:
            climbed.append(id(above))
            known[id(above)] = found = read(above) or None
            above = None if found else self._by_id.get(above.parent)
        found = found or (known[id(above)] if above is not None else None)
        known.update(dict.fromkeys(climbed, found))
        return found

    def _add_happening(self, t: Transcript, span: Span, at: object, *, starting: bool) -> None:
        if span.kind == "waiting":
            self._add_waiting(t, span, at, starting=starting)
        elif span.kind == "log":
            _add_log(t, span, span.first("timestamp") or at, heard=lambda words: self._is_new_prompt(t, words, "log"))
        elif span.kind == "prompt":
            words = text(span.first("user_prompt")) or ""
            if words and self._is_new_prompt(t, words, "prompt"):
                t.user(words, at, f"{span.own}:prompt")
        elif span.kind == "execution":
            # Claude Code's execution span is a child of the tool span, and says whether the tool failed.
            if span.failed or span.first("success") in (False, "false"):
                self._ended[span.parent] = "error", span.error or text(span.first("error", "error.type"))
        elif span.kind == "model":
            self._add_answer(t, span, at)
        elif starting:
            self._call(t, span, at)
        else:
            self._add_result(t, span, at)

    def _is_new_prompt(self, t: Transcript, words: str, source: str) -> bool:
        """Whether a person's words are new. Spans and log records of one program report the same prompts."""
        known = self._prompts_seen.setdefault((t.session, hash(words)), source)
        return known == source

    def _add_waiting(self, t: Transcript, span: Span, at: object, *, starting: bool) -> None:
        if starting:
            t.event("waiting", {"reason": "permission", "toolUseId": span.first("gen_ai.tool.call.id", "tool_use_id")}, at)
        elif text(span.first("decision")) in ("reject", "denied", "deny", "abort"):
            self._ended[span.parent] = "denied", text(span.first("source"))

    def _add_answer(self, t: Transcript, span: Span, at: object) -> None:
        """Add the new messages to a model, and its answer. Each request repeats the conversation so far."""
        messages = read_messages(span, "gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt", "ai.prompt.messages")
        messages = messages or span.inputs
        # The conversation so far is known from the last request, so the first different message is the first new one.
        marks = [hash(repr((message_role(message), message.get("content"), message.get("parts")))) for message in messages]
        known = self._known.get(t.part, [])
        same = next((place for place, mark in enumerate(marks) if place >= len(known) or known[place] != mark), len(marks))
        # Otherwise the conversation was shortened or begins again, and known words are not added again.
        goes_on = 0 < len(known) == same or span.first("ctxmgr.input.messages") == "new"
        for message in messages[0 if span.first("ctxmgr.input.messages") else same :]:
            words = content_words(message.get("content", message.get("parts")))
            if message_role(message) not in PEOPLE or not words:
                continue
            if goes_on or (t.session, hash(words)) not in self._prompts_seen:
                self._prompts_seen[t.session, hash(words)] = "model"
                speak(t, words, span.start if span.start > _MIN_TIME else at, None)
        answered = read_messages(span, "gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
        answered = answered or span.answered or [_read_response(span)]
        self._known[t.part] = marks
        # A model may return several answers at once. Programs continue with the first.
        for message in answered[:1]:
            asked = {"role": "assistant", **message, "id": None}
            read_message(t, self._drop_executed(t, asked, span.end), at, None, response=span.own)
        t.usage(
            at, span.first("request_id") or span.own,
            span.first("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model"),
            inputTokens=span.count(
                "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "input_tokens"
            ),
            outputTokens=span.count(
                "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion", "output_tokens"
            ),
            cacheReadTokens=span.count(
                "gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read", "cache_read_tokens"
            ),
        )  # fmt: skip
        if span.failed:
            t.failure(span.error or span.first("error.type"), at, f"{span.own}:error", reason="apiError")

    def _drop_executed(self, t: Transcript, message: dict[str, Any], end: int) -> dict[str, Any]:
        """Return a message without calls whose execution was already added, because batches may arrive in any order."""
        lists = {name: sequence(message.get(name)) for name in ("tool_calls", "parts", "content")}
        kept = {name: [item for item in listed if not self._was_executed(t, item, end)] for name, listed in lists.items()}
        return message | {name: items for name, items in kept.items() if lists[name]}

    def _was_executed(self, t: Transcript, item: object, end: int) -> bool:
        body = mapping(item)
        inner = mapping(body.get("function")) or body
        name, own = text(inner.get("name")), text(body.get("id")) or text(body.get("call_id"))
        if name is None or (text(body.get("type")) not in CALL_PARTS and "function" not in body):
            return False
        given = _drop_spelling(inner.get("arguments", inner.get("input")))
        if own is not None:
            self._inputs[t.session, own] = given
            if self._early.pop((t.session, own), None):
                return True
        waiting = self._early.get((t.session, f"a call of {name}"), [])
        fitting = [early for early, had in waiting if _may_be_same(given, had) and (early >= end or self._in_batches)]
        if fitting:
            began = min((early for early in fitting if early >= end), default=fitting[0])
            waiting.remove(next(each for each in waiting if each[0] == began and _may_be_same(given, each[1])))
        return bool(fitting)

    def _call(self, t: Transcript, span: Span, at: object) -> None:
        if span.key in t.calls:
            return
        # OpenInference executions have no call id. Find the call that the model requested by name and input.
        if span.key == span.own and (asked := self._find_call(t, span)):
            span.key = asked
            t.calls[asked].taken = True
            return
        name = text(_find_tool(span)) or span.name
        t.call(span.key, name, _read_input(span), at)
        early = span.key if span.key != span.own else f"a call of {name}"
        self._early.setdefault((t.session, early), []).append((span.start, _drop_spelling(_read_input(span))))

    def _find_call(self, t: Transcript, span: Span) -> str | None:
        """Return the id of the model's last call before this span that may be the call of this span, which names none."""
        name, given, began = (
            _find_tool(span) or span.name,
            _drop_spelling(_read_input(span)),
            moment(span.start if span.start > _MIN_TIME else None) or "",
        )
        # The Agents SDK reports a handoff with another span name than the model's call: ``transfer_to_fixer``.
        handoff = isinstance(name, str) and name.startswith("handoff to ")
        fitting = [
            key
            for key, call in t.waiting.items()
            if not call.taken
            and (call.action == name or (handoff and call.action.startswith("transfer_to_")))
            and (not began or self._in_batches or (call.at or "") <= began)
        ]
        alike = {key: handoff or _may_be_same(given, self._inputs.get((t.session, key), "")) for key in fitting}
        if self._in_batches:  # the model's call may arrive later
            fitting = [key for key in fitting if alike[key]]
        earlier = {key: (t.waiting[key].at or "") <= began for key in fitting}
        return max(fitting, key=lambda key: (earlier[key], alike[key], t.waiting[key].at or ""), default=None)

    def _add_result(self, t: Transcript, span: Span, at: object) -> None:
        shown = parse_json(
            span.first("gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "ai.toolCall.result")
        )
        if shown is None and (fields := mapping(span.first("tool.output"))):
            shown = fields.get("output", fields.get("content", fields))
        # LangGraph's tools return a serialized message: ``{"lc": 1, "kwargs": {"content": ..., "status": ...}}``.
        body = mapping(mapping(shown).get("kwargs")) or mapping(mapping(shown).get("output")) or mapping(shown)
        if "content" in body:
            shown = body["content"]
        status, output, error = judge_result({"status": span.first("ctxmgr.status") or body.get("status")}, shown)
        failed = span.failed or span.first("success") in (False, "false")
        # Written by our own exporter, because OTLP has no status for denied or interrupted calls.
        stated = span.first("ctxmgr.status")
        if failed and status == "ok" and stated != "ok":
            status, error = "error", span.error or error or text(span.first("error", "error.type"))
        if status == "ok" and span.own in self._ended:
            status, error = self._ended[span.own]
        error = error or (span.error if stated and status != "ok" else None)
        spent = (span.end - span.start) / 1e6 if span.end >= span.start > _MIN_TIME else None
        t.result(span.key, output, at, status=status, error=error, duration_ms=spent)


def _read_response(span: Span) -> dict[str, Any]:
    """Return the answer of a model in the form of the AI SDK, which separates words and calls."""
    calls = parse_json(span.first("ai.response.toolCalls"))
    return {"content": text(span.first("ai.response.text")), "tool_calls": [mapping(call) for call in sequence(calls)]}


def _find_agent(span: Span) -> str:
    """Return the name of the span's agent. Claude Code's main agent has none."""
    if span.name.startswith(_CLAUDE):
        return text(span.first("agent_id")) or "main"
    return text(span.first("gen_ai.agent.name", "agent_name", "agent.name", "graph.node.id")) or ""


def call_key(span: Span) -> str:
    """Return the id of the call that a span or a log record reports, else its own id."""
    return text(span.first("gen_ai.tool.call.id", "tool_call.id", "call_id", "tool_use_id", "ai.toolCall.id")) or span.own


def _drop_spelling(given: object) -> str:
    """Return arguments without the characters in which their forms, as JSON or as shown by Python, differ."""
    return _SPELLING.sub("", given if isinstance(given, str) else json.dumps(given) if given else "")[:_MAX_COMPARED]


def _may_be_same(one: str, other: str) -> bool:
    """Whether two texts may be the same arguments. Some programs write a single argument without its name."""
    return one in other or other in one


def _find_tool(span: Span) -> object:
    # In the order of the conventions: GenAI, OpenInference, OpenLLMetry, Claude Code's own, the AI SDK.
    return span.first("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "tool_name", "ai.toolCall.name")


def _read_input(span: Span) -> Any:
    names = ("gen_ai.tool.call.arguments", "input.value", "tool.parameters", "traceloop.entity.input", "full_command")
    return parse_json(span.first(*names, "ai.toolCall.args", "file_path", "skill_name"))


def _add_log(t: Transcript, span: Span, at: object, *, heard: Callable[[str], bool]) -> None:
    """Add the content of a log record. Records of other programs add nothing.

    Args:
        t: the transcript to add to.
        span: the record.
        at: time of the record.
        heard: returns whether a person's words are new, because spans of the same program may have reported them.
    """
    name = span.name.rpartition(".")[2]
    if name == "user_prompt":
        words = text(span.first("prompt")) or ""
        if heard(words):
            t.user(words, at, span.own)
    elif name in ("tool_result", "tool_call"):
        _log_of_result(t, span, at)
    elif name == "tool_decision" and text(span.first("decision")) in _REFUSALS:
        # A call that never ran may be reported only by the decision about it.
        if span.key not in t.calls:
            t.call(span.key, span.first(*_TOOLS), parse_json(span.first(*_GIVEN)), at)
        t.result(span.key, None, at, status="denied")
    elif name in ("api_request", "sse_event", "api_response"):
        t.usage(
            at, span.first("request_id") or span.own, span.first("model", "model_name"),
            inputTokens=span.count("input_tokens", "input_token_count"),
            outputTokens=span.count("output_tokens", "output_token_count"),
            cacheReadTokens=span.count("cache_read_tokens", "cached_token_count", "cached_content_token_count"),
        )  # fmt: skip
    elif name == "api_error":
        t.failure(span.first("error", "error.message", "error_message"), at, span.own, reason="apiError")


def _log_of_result(t: Transcript, span: Span, at: object) -> None:
    # If a program sends spans and log records, both report the same result.
    if t.has_answer(span.key):
        return
    spent = number(span.count("duration_ms")) or 0
    # The record is written when the tool ends. Only its duration tells when the tool began.
    start = int(span.start - spent * 1e6) if span.start else None
    t.call(span.key, span.first(*_TOOLS), parse_json(span.first(*_GIVEN)), start)
    status = "error" if span.first("success") in (False, "false") else "ok"
    if text(span.first("decision")) in _REFUSALS:
        status = "denied"
    shown, error = clean(span.first("output", "tool_result")), text(span.first("error", "error.message"))
    t.result(span.key, shown, at, status=status, error=error, duration_ms=spent)


OTLP = JsonImporter(
    name="otlp",
    title="OpenTelemetry (OTLP/JSON)",
    proves=is_export,
    reader=SpanReader,
    coverage=Coverage(),
    lists=("resourceSpans", "resourceLogs"),
)
