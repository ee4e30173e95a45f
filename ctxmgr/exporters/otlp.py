"""Write OpenTelemetry spans as OTLP/JSON, by the conventions for generative AI: one line with all spans of a session.

A span needs a beginning and an end. Without recorded times, spans get successive nanoseconds after 1970. This keeps the order,
and our importer reads such times as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from ctxmgr.exporters.conversation import (
    Call,
    Conversation,
    Exporter,
    Losses,
    Part,
    Turn,
    as_text,
    lose_events,
    read_usage,
)
from ctxmgr.log.ids import parse_time

_USAGE = {
    "gen_ai.usage.input_tokens": ("inputTokens",),
    "gen_ai.usage.output_tokens": ("outputTokens",),
    "gen_ai.usage.cache_read.input_tokens": ("cacheReadTokens", "cachedInputTokens"),
}


class _Spans:
    """The spans of one session. If times are equal or go back, each span begins a moment after the previous one."""

    def __init__(self, conversation: Conversation, losses: Losses) -> None:
        self._conversation, self._losses = conversation, losses
        self._trace = _mark(conversation.session)[:32]
        self._now = 0
        self._parts: dict[str, str] = {}
        self.found: list[dict[str, Any]] = []

    def moment(self, at: str | None) -> int:
        """Return a time in nanoseconds, always later than the previous one."""
        seconds = parse_time(at)
        self._losses["times that are not known"] += seconds is None
        # Via microseconds, the precision of our times: a float of nanoseconds would not give the same time back.
        self._now = max(self._now + 1, round((seconds or 0) * 1e6) * 1000)
        return self._now

    def add(self, name: str, span: tuple[int, int], above: str, failed: str | None = None, **attributes: Any) -> str:
        """Add a span and return its id."""
        # Derived from its place instead of random, so that repeated exports give the same file.
        own = _mark(f"{self._trace} {len(self.found)}")[:16]
        attributes["gen_ai.conversation.id"] = self._conversation.session
        self.found.append({
            "traceId": self._trace, "spanId": own, "parentSpanId": above, "name": name, "kind": 1,
            "startTimeUnixNano": str(span[0]), "endTimeUnixNano": str(span[1]),
            "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items() if value is not None],
            "status": {"code": 2, "message": failed} if failed is not None else {},
        })  # fmt: skip
        return own

    def part(self, part: Part, tools: dict[str, str]) -> None:
        """Add the steps of an agent. Its own span comes last, as programs write it."""
        root = _mark(f"{self._trace} agent {part.agent}")[:16]
        # Agents work concurrently. With a common clock, the times of the second would be pushed behind those of the first.
        self._now, first = 0, len(self.found)
        prompts: list[tuple[str, str | None]] = []
        for step in part.steps:
            if step.source == "user":
                prompts.append((step.text, step.at))
            elif step.source == "agent":
                self._response(part, step, prompts, root, tools)
                prompts = []
        # Messages without an answer go into an empty response, so that they are not lost.
        if prompts:
            self._response(part, Turn("agent", prompts[-1][1]), prompts, root, tools)
        if first == len(self.found):
            return
        start = int(self.found[first]["startTimeUnixNano"])
        above = tools.get(part.parent or "", "")
        self.add(f"invoke_agent {part.agent}", (start, self._now), above, **{"gen_ai.operation.name": "invoke_agent",
                 "gen_ai.agent.name": part.agent})  # fmt: skip
        self.found[-1]["spanId"] = root  # the id that its children already use as their parent

    def _response(
        self, part: Part, step: Turn, prompts: list[tuple[str, str | None]], root: str, tools: dict[str, str]
    ) -> None:
        parts: list[dict[str, Any]] = []
        if step.thought:
            parts.append({"type": "reasoning", "content": step.thought})
        if step.text:
            parts.append({"type": "text", "content": step.text})
        parts += [
            {"type": "tool_call", "id": call.name, "name": call.record["action"], "arguments": call.record.get("input")}
            for call in step.calls
        ]
        asked = [{"role": "user", "parts": [{"type": "text", "content": words}]} for words, _ in prompts]
        start = self.moment(prompts[0][1] if prompts else step.at)
        usage = read_usage(step, _USAGE, self._losses)
        # Requests usually repeat the conversation so far, and our importer skips known messages. Here all messages are new.
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat", "gen_ai.agent.name": part.agent, "gen_ai.request.model": part.model,
            "gen_ai.input.messages": json.dumps(asked) if asked else None, "ctxmgr.input.messages": "new",
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]) if parts else None, **usage,
        }  # fmt: skip
        self.add("chat", (start, self.moment(step.at)), root, **attributes)
        for call in step.calls:
            # A call without a result has no end, so it gets no span. The response that asked for it contains it.
            if call.result is not None:
                tools[str(call.record["id"])] = self._tool(part, call, root)

    def _tool(self, part: Part, call: Call, root: str) -> str:
        result = call.result or {}
        span = self.moment(call.record.get("ts")), self.moment(result.get("ts"))
        shown = result.get("output")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": part.agent,
            "gen_ai.tool.name": call.record["action"], "gen_ai.tool.call.id": call.name,
            "gen_ai.tool.call.arguments": json.dumps(call.record.get("input")),
            "gen_ai.tool.call.result": shown if isinstance(shown, str) else as_text(shown),
            "ctxmgr.status": call.status,
        }  # fmt: skip
        failed = None if call.status == "ok" else call.error or call.status
        return self.add(f"execute_tool {call.record['action']}", span, root, failed, **attributes)


def _write(conversation: Conversation, losses: Losses) -> Iterator[str]:
    """Yield one line with all spans of a session."""
    lose_events(conversation, losses)
    spans, tools = _Spans(conversation, losses), dict[str, str]()
    for part in conversation.parts:
        spans.part(part, tools)
    if spans.found:
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "ctxmgr"}}]}
        yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans.found}]}]})


def _value(value: object) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _mark(words: str) -> str:
    # Hashes of names, so that repeated exports give the same ids.
    return sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


OTLP = Exporter("otlp", "OpenTelemetry (OTLP/JSON)", _write)
