"""OpenTelemetry traces and logs as OTLP/JSON: GenAI conventions, OpenInference, OpenLLMetry, the agents' own telemetry.

Spans are written when they end, children before their parents, so a file is put into the order of time once it is read. A
parent that never came is an agent that still runs, or was killed.
"""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.chat import PEOPLE, judged, read_message, role_of, speak, words_of
from ctxmgr.importers.interface import Coverage
from ctxmgr.importers.json_importer import JsonImporter, Log
from ctxmgr.importers.log_files import ELEMENTS
from ctxmgr.importers.otlp_values import Span, messages_of, spans_of
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import clean, mapping, number, parsed, sequence, text

_MODEL_CALLS = frozenset(("chat", "text_completion", "generate_content", "completion"))
_SESSIONS = ("gen_ai.conversation.id", "session.id", "conversation.id", "thread_id", "langgraph.thread_id")
_EXPORTS = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")


def _proves(value: dict[str, Any]) -> bool:
    if any(isinstance(value.get(name), list) for name in _EXPORTS):
        return True
    return any(name in mapping(item) for item in sequence(value.get(ELEMENTS))[:1] for name in _EXPORTS)


def _kind(span: Span) -> str:
    """Return what a span stands for: ``tool``, ``model``, ``waiting``, ``log`` or ``other``."""
    if span.is_log:
        return "log"
    if span.name.endswith("blocked_on_user"):
        return "waiting"
    said = text(span.first("gen_ai.operation.name")) or ""
    drawn = (text(span.first("openinference.span.kind", "traceloop.span.kind", "ai.operationId")) or "").lower()
    if said == "execute_tool" or drawn == "tool" or span.name == "claude_code.tool":
        return "tool"
    if (
        said in _MODEL_CALLS
        or drawn == "llm"
        or span.name == "claude_code.llm_request"
        or "llm.request.type" in span.attributes
    ):
        return "model"
    return "other"


class _Export:
    """Holds the spans of a file, and reads them in the order of time when all are there."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._spans: list[Span] = []
        self._seen: set[str] = set()
        self._known: dict[str, list[int]] = {}
        self._said: set[tuple[str, str]] = set()

    def read(self, value: dict[str, Any]) -> None:
        for export in [mapping(item) for item in sequence(value.get(ELEMENTS))] or [value]:
            if not any(name in export for name in _EXPORTS):
                self._log.unknown("no export" if "resourceMetrics" not in export else "metrics")
            for span in spans_of(export, len(self._spans)):
                key = f"{span.trace} {span.own}"
                if key not in self._seen:
                    self._seen.add(key)
                    self._spans.append(span)

    def finish(self) -> None:
        """Read the spans: what began first comes first, and each result at its end."""
        by_id = {span.own: span for span in self._spans}
        ordered = sorted(self._spans, key=lambda span: (span.start, span.end and -span.end, span.order))
        sessions = _sessions(ordered, by_id)
        happenings: list[tuple[int, int, int, Span]] = []
        for place, span in enumerate(ordered):
            kind = _kind(span)
            if kind in ("tool", "waiting", "log"):
                happenings.append((span.start, 1, place, span))
            if kind in ("tool", "model") and span.end:
                happenings.append((span.end, 0, place, span))
        for at, starting, _, span in sorted(happenings, key=lambda item: item[:3]):
            t = self._transcript(span, sessions[span.own], by_id)
            t.place = span.own
            self._happened(t, span, at, starting=bool(starting))

    def _transcript(self, span: Span, session: tuple[str, str], by_id: dict[str, Span]) -> Transcript:
        """Return the part of the agent whose span it is; one that a tool call of another agent started is a sub-agent's."""
        name, first = session
        agent = span.agent or first or "main"
        if agent in (first, "main"):
            return self._log.session(name, agent=agent)
        above, parent, seen = by_id.get(span.parent), "", {span.own}
        while above is not None and above.own not in seen:
            seen.add(above.own)
            if _kind(above) == "tool" and above.agent != agent:
                owner = self._transcript(above, session, by_id)
                parent = next((owner.calls[key].entry for key in (_key(above), above.own) if key in owner.calls), "")
                break
            above = by_id.get(above.parent)
        return self._log.session(name, agent=agent, part=f"{name}/{agent}", parent=parent)

    def _happened(self, t: Transcript, span: Span, at: int, *, starting: bool) -> None:
        kind = _kind(span)
        if kind == "waiting":
            t.event("waiting", {"reason": "permission", "toolUseId": span.first("gen_ai.tool.call.id")}, at or None)
        elif kind == "log":
            _logged(t, span, span.first("timestamp") or at or None)
        elif kind == "model":
            self._answered(t, span, at or None)
        elif starting:
            self._call(t, span, at or None)
        else:
            _returned(t, span, at or None)

    def _answered(self, t: Transcript, span: Span, at: object) -> None:
        """Add what a model was newly told, and what it answered; each request repeats the conversation so far."""
        told = messages_of(span, "gen_ai.input.messages", "llm.input_messages", "gen_ai.prompt")
        marks = [hash(repr((role_of(message), message.get("content"), message.get("parts")))) for message in told]
        known = self._known.get(t.part, [])
        same = next((place for place, mark in enumerate(marks) if place >= len(known) or known[place] != mark), len(marks))
        for message in told[same:]:
            words = words_of(message.get("content", message.get("parts")))
            if role_of(message) in PEOPLE and words and (t.session, words) not in self._said:
                self._said.add((t.session, words))
                speak(t, words, span.start or at, None)
        answered = messages_of(span, "gen_ai.output.messages", "llm.output_messages", "gen_ai.completion")
        self._known[t.part] = marks
        for message in answered[:1] or []:
            read_message(t, {"role": "assistant", **message, "id": None}, at, None, response=span.own)
        t.usage(
            at, span.own, span.first("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
            inputTokens=span.first("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
            outputTokens=span.first(
                "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"
            ),
            cacheReadTokens=span.first("gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read"),
        )  # fmt: skip
        if span.failed:
            t.failure(span.error or span.first("error.type"), at, f"{span.own}:error", reason="apiError")

    def _call(self, t: Transcript, span: Span, at: object) -> None:
        key = _key(span)
        if key in t.calls:
            return
        if key == span.own and (asked := _asked(t, span)):
            span.attributes = {**span.attributes, "gen_ai.tool.call.id": asked}
            t.calls[asked].taken = True
            return
        name = span.first("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "tool_name") or span.name
        t.call(key, name, _given(span), at)


def _sessions(ordered: list[Span], by_id: dict[str, Span]) -> dict[str, tuple[str, str]]:
    """Return, by span, the session and the name of its first agent: all of a trace is of one session."""
    for span in ordered:
        above, seen = span, set[str]()
        while above is not None and above.own not in seen and not span.agent:
            seen.add(above.own)
            span.agent = text(above.first("gen_ai.agent.name", "agent_name", "agent.name", "graph.node.id")) or ""
            above = by_id.get(above.parent)
    traces: dict[str, tuple[str, str]] = {}
    for span in ordered:
        own = text(span.first(*_SESSIONS)) or text(mapping(parsed(span.first("metadata"))).get("thread_id"))
        key = span.trace or own or ""
        if key not in traces or (not traces[key][0] and own):
            traces[key] = own or "", traces.get(key, ("", ""))[1]
        if not traces[key][1] and span.agent:
            traces[key] = traces[key][0], span.agent
    found: dict[str, tuple[str, str]] = {}
    for span in ordered:
        own = text(span.first(*_SESSIONS))
        session, agent = traces[span.trace or own or ""]
        found[span.own] = session or span.trace, agent
    return found


def _key(span: Span) -> str:
    return text(span.first("gen_ai.tool.call.id", "tool_call.id", "call_id", "tool_use_id")) or span.own


def _asked(t: Transcript, span: Span) -> str | None:
    """Return the id of the oldest call that a model asked for and this span, which names none, may be."""
    name = span.first("tool.name", "gen_ai.tool.name", "traceloop.entity.name") or span.name
    waiting = {key: call for key, call in t.waiting.items() if not call.taken}
    handoff = isinstance(name, str) and name.startswith("handoff to ")
    return next((k for k, c in waiting.items() if c.action == name or (handoff and c.action.startswith("transfer_to_"))), None)


def _given(span: Span) -> Any:
    return parsed(
        span.first("gen_ai.tool.call.arguments", "tool.parameters", "input.value", "traceloop.entity.input", "full_command")
    )


def _returned(t: Transcript, span: Span, at: object) -> None:
    shown = parsed(span.first("gen_ai.tool.call.result", "output.value", "traceloop.entity.output"))
    body = mapping(mapping(shown).get("kwargs")) or mapping(mapping(shown).get("output")) or mapping(shown)
    if "content" in body:
        shown = body["content"]
    status, output, error = judged({"status": body.get("status")}, shown)
    failed = span.failed or span.first("success") in (False, "false")
    if failed and status == "ok":
        status, error = "error", span.error or error or text(span.first("error", "error.type"))
    spent = (span.end - span.start) / 1e6 if span.end >= span.start > 0 else None
    t.result(_key(span), output, at, status=status, error=error, duration_ms=spent)


def _logged(t: Transcript, span: Span, at: object) -> None:
    """Add a log event of an agent's own telemetry: Claude Code's and Codex's are alike."""
    name = span.name.rpartition(".")[2]
    if name == "user_prompt":
        t.user(text(span.first("prompt")) or "", at, span.own)
    elif name == "tool_result":
        key, spent = _key(span), number(_count(span.first("duration_ms"))) or 0
        begun = int(span.start - spent * 1e6) if span.start else None
        tool = span.first("tool_name", "gen_ai.tool.name")
        t.call(key, tool, parsed(span.first("arguments", "tool_input", "tool_parameters")), begun)
        failed = span.first("success") in (False, "false")
        shown = clean(span.first("output", "tool_result"))
        t.result(key, shown, at, status="error" if failed else "ok", error=text(span.first("error")), duration_ms=spent)
    elif name == "tool_decision" and text(span.first("decision")) in ("reject", "denied", "deny", "abort"):
        key = _key(span)
        t.call(key, span.first("tool_name"), parsed(span.first("arguments", "tool_input", "tool_parameters")), at)
        t.result(key, None, at, status="denied")
    elif name in ("api_request", "sse_event"):
        t.usage(
            at, span.first("request_id") or span.own, span.first("model"),
            inputTokens=_count(span.first("input_tokens", "input_token_count")),
            outputTokens=_count(span.first("output_tokens", "output_token_count")),
            cacheReadTokens=_count(span.first("cache_read_tokens", "cached_token_count")),
        )  # fmt: skip
    elif name == "api_error":
        t.failure(span.first("error", "error.message"), at, span.own, reason="apiError")


def _count(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 16 else value


OTLP = JsonImporter(
    name="otlp",
    title="OpenTelemetry (OTLP/JSON)",
    proves=_proves,
    reader=_Export,
    coverage=Coverage(),
    lists=("resourceSpans", "resourceLogs"),
)
