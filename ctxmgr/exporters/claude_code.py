"""Write transcripts in the format of Claude Code: one record per line, each with a reference to the previous one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from uuid import UUID

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

VERSION = "2.1.330"
"""Version of Claude Code whose format is written. Sessions of Claude Code keep their own version."""

_WRITTEN_EVENTS = ("nudge", "interrupt", "compaction", "error")
_USAGE = {
    "input_tokens": ("inputTokens",),
    "output_tokens": ("outputTokens",),
    "cache_read_input_tokens": ("cacheReadTokens", "cachedInputTokens"),
    "cache_creation_input_tokens": ("cacheCreationTokens",),
}


@dataclass(slots=True)
class _Transcript:
    """The lines of one agent. ``agent`` is the id of a sub-agent, or None for the main agent."""

    conversation: Conversation
    agent: str | None
    losses: Losses
    lines: list[str] = field(default_factory=lambda: list[str]())
    _parent: str | None = None

    def add(self, kind: str, at: str | None, **fields: Any) -> None:
        """Add a record."""
        about = self.conversation.about
        own = _uuid(self.conversation.session, self.agent or "", str(len(self.lines)))
        record = {
            "parentUuid": self._parent, "isSidechain": self.agent is not None, "userType": "external", "type": kind,
            "cwd": about.get("cwd") or "/", "sessionId": self.conversation.session, "uuid": own,
            "version": about.get("version") if about.get("workflow") == "claude-code" else VERSION,
            **({"timestamp": at} if at else {}), **({"agentId": self.agent} if self.agent else {}), **fields,
        }  # fmt: skip
        self._parent = own
        self.lines.append(json.dumps(record))

    def step(self, number: int, step: Turn, model: str | None) -> None:
        """Add a message, or a response of the model with the results of its calls."""
        if step.source == "agent":
            self._answer(number, step, model)
        elif step.source == "user":
            self._add_user_record(step.at, step.text)
        elif step.source == "nudge":
            # In a sub-agent's log, the user is the agent that started it, so messages of a program need no mark.
            origin = {} if self.agent else {"origin": {"kind": str(step.data.get("origin") or "program")}}
            self._add_user_record(step.at, step.text, **origin)
        elif step.source == "interrupt":
            self._add_user_record(step.at, "[Request interrupted by user]")
        elif step.source == "compaction":
            words = str(step.data.get("summary") or step.text)
            self.add("system", step.at, subtype="compact_boundary", content="Conversation compacted")
            self._add_user_record(step.at, words or "This session is being continued.", isCompactSummary=True)
        elif step.source == "error":
            error = {"formatted": step.text or str(step.data.get("message") or "error")}
            self.add("system", step.at, subtype="api_error", level="error", error=error)

    def _add_user_record(self, at: str | None, words: str, **fields: Any) -> None:
        self.add("user", at, message={"role": "user", "content": words}, **fields)

    def _answer(self, number: int, step: Turn, model: str | None) -> None:
        blocks: list[dict[str, Any]] = []
        if step.thought:
            # Only the model provider can sign a thought.
            blocks.append({"type": "thinking", "thinking": step.thought, "signature": ""})
        if step.text:
            blocks.append({"type": "text", "text": step.text})
        for call in step.calls:
            given = call.record.get("input")
            if not isinstance(given, dict):
                self.losses["inputs that are no objects, written as they are"] += 1
            blocks.append({"type": "tool_use", "id": call.name, "name": call.record["action"], "input": given})
        usage = read_usage(step, _USAGE, self.losses)
        message: dict[str, Any] = {
            "id": f"msg_{_uuid(self.conversation.session, self.agent or '', f'step {number}')[:24]}", "type": "message",
            "role": "assistant", "model": step.usage.get("model") or model or "unknown",
            "stop_reason": "tool_use" if step.calls else "end_turn",
        }  # fmt: skip
        # One record per block, each with the id and the usage of the response, as Claude Code writes them.
        for block in blocks or [None]:
            content = [block] if block is not None else []
            self.add("assistant", step.at, message={**message, "content": content, "usage": usage})
        for call in step.calls:
            if call.result is not None:
                self._result(call)

    def _result(self, call: Call) -> None:
        result = call.result or {}
        shown = result.get("output")
        if shown is not None and not isinstance(shown, str):
            self.losses["outputs that are no text, written as JSON"] += 1
        content = as_text(shown) or call.error or ""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.name, "content": content}
        side: dict[str, Any] = {}
        if call.status != "ok":
            block["is_error"] = True
        if call.status == "denied":
            # Not ``user-rejected``: a reader holds that back until the next record shows whether the person interrupted.
            side["toolDenialKind"] = "policy"
        if call.status == "interrupted":
            side["toolUseResult"] = {"interrupted": True}
        self.add("user", result.get("ts"), message={"role": "user", "content": [block]}, **side)


def _write(conversation: Conversation, losses: Losses) -> Iterator[str]:
    """Yield the lines of a session. The lines of its sub-agents follow as side chains."""
    lose_events(conversation, losses, *_WRITTEN_EVENTS)
    for place, part in enumerate(conversation.parts):
        yield from _lines(conversation, part, place, losses)


def _lines(conversation: Conversation, part: Part, place: int, losses: Losses) -> Iterator[str]:
    agent = _uuid(conversation.session, part.agent).replace("-", "")[:17] if place else None
    if place:
        losses["names of sub-agents, and the calls that started them"] += 1
    transcript = _Transcript(conversation, agent, losses)
    for number, step in enumerate(part.steps):
        transcript.step(number, step, part.model)
    yield from transcript.lines


def _uuid(*words: str) -> str:
    # Derived from the content, so that repeated exports give the same file.
    return str(UUID(bytes=sha256("\0".join(words).encode("utf-8", "surrogatepass")).digest()[:16], version=4))


CLAUDE_CODE = Exporter("claude-code", "Claude Code", _write)
