"""Qwen Code, made from Gemini CLI: lines in the envelope of Claude Code, with messages of Gemini's parts."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import JsonImporter, Log
from ctxmgr.importers.chat import harness_origin, read_message, words_of
from ctxmgr.importers.gemini import returned
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.log_files import plain_name, small_object
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text, whole

_TYPES = frozenset(("user", "assistant", "tool_result", "system"))
_INJECTED = frozenset(
    ("notification", "cron", "background_task_completed", "agent_launch_prompt", "agent_retry", "goal_runtime")
)
"""Kinds of records in a person's name that a program wrote."""

_CHATS, _SUBAGENTS = "chats", "subagents"


def _is_qwen(value: dict[str, Any]) -> bool:
    if not {"uuid", "parentUuid", "sessionId", "type"} <= value.keys():
        return False
    return isinstance(mapping(value.get("message")).get("parts"), list) or (
        value.get("type") == "system" and "systemPayload" in value
    )


class _Session:
    """Reads the lines of a session, and after them those of its sub-agents."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: str | None = None
        self._agents: dict[str, Transcript] = {}

    def read(self, value: dict[str, Any]) -> None:
        kind, own, at = text(value.get("type")), text(value.get("uuid")), value.get("timestamp")
        if kind not in _TYPES:
            self._log.unknown(kind)
            return
        t = self._part(value)
        t.describe(value.get("version"), at, cwd=value.get("cwd"), gitBranch=value.get("gitBranch"))
        if own is not None and t.seen(own):
            return
        message = mapping(value.get("message"))
        if kind == "assistant":
            read_message(t, {**message, "role": "assistant"}, at, own)
            used = mapping(value.get("usageMetadata"))
            t.usage(
                at, own, value.get("model"), inputTokens=used.get("promptTokenCount"),
                outputTokens=used.get("candidatesTokenCount"), cacheReadTokens=used.get("cachedContentTokenCount"),
                reasoningTokens=used.get("thoughtsTokenCount"),
            )  # fmt: skip
        elif kind == "tool_result":
            _result(t, message, mapping(value.get("toolCallResult")), at)
        elif kind == "user":
            self._user(t, value, message, own)
        else:
            _add_program_event(t, text(value.get("subtype")), mapping(value.get("systemPayload")), at, own)
        self._last = own

    def _part(self, value: dict[str, Any]) -> Transcript:
        """Return the part of the agent whose record it is; what stands beside a sub-agent's log names the call."""
        main = self._log.session(value.get("sessionId"))
        agent = text(value.get("agentId")) if value.get("isSidechain") is True else None
        if agent is None:
            return main
        if agent not in self._agents:
            name, beside = text(value.get("agentName")) or "agent", self._log.path
            beside = beside.with_name(f"{plain_name(beside).removesuffix('.jsonl')}.meta.json")
            name = agent if agent.startswith(name) else f"{name}-{agent[-8:]}"
            self._agents[agent] = self._log.sub_agent(main, agent, name, small_object(beside).get("toolUseId"))
        return self._agents[agent]

    def _user(self, t: Transcript, value: dict[str, Any], message: dict[str, Any], own: str | None) -> None:
        words, at = words_of(message.get("parts")), value.get("timestamp")
        origin, kind = text(value.get("provenance")), text(value.get("subtype"))
        if origin not in (None, "real_user") or kind in _INJECTED:
            t.nudge(words, harness_origin(words) or kind or origin or "program", at, own)
            return
        if self._last is not None and value.get("parentUuid") not in (None, self._last):
            t.event("rewind", {"from": text(value.get("parentUuid"))}, at)
        read_message(t, {**message, "role": "user"}, at, own)


def _result(t: Transcript, message: dict[str, Any], details: dict[str, Any], at: object) -> None:
    """Add the results of calls; what the client tells beside them holds for a single one."""
    parts = [mapping(mapping(part).get("functionResponse")) for part in sequence(message.get("parts"))]
    for part in filter(None, parts):
        stated = whole(mapping(details.get("resultDisplay")).get("exitCode"))
        status, output, error, code = returned(text(details.get("status")), part.get("response"), part.get("name"), stated)
        if details.get("errorType") in ("execution_denied", "user_denied"):
            status = "denied"
        t.result(
            text(part.get("id")) or text(details.get("callId")), output, at, status=status, error=error,
            kind="exitCode" if code else "toolError", duration_ms=details.get("durationMs"),
            meta={"sourceStatus": text(details.get("status")), "exitCode": code},
        )  # fmt: skip


def _add_program_event(t: Transcript, kind: str | None, payload: dict[str, Any], at: object, own: str | None) -> None:
    event = mapping(payload.get("uiEvent"))
    name = text(event.get("event.name")) or ""
    if kind == "chat_compression":
        info = mapping(payload.get("info"))
        t.event("compaction", {"preTokens": info.get("originalTokenCount"), "postTokens": info.get("newTokenCount")}, at, own)
    elif kind == "rewind":
        t.event("rewind", {"count": payload.get("truncatedCount")}, at, own)
    elif name.endswith(".api_error"):
        t.failure(event.get("error") or event.get("error_message"), at, own, reason="apiError")
    elif name.endswith("loop_detected") or kind == "notification":
        t.nudge(text(event.get("loop_type")) or words_of(payload.get("content")) or name, "loopGuard", at, own)


def _family(path: Path) -> Sequence[Path]:
    """Return a session's log and those of its sub-agents: ``chats/<session>.jsonl``, ``subagents/<session>/agent-*.jsonl``."""
    name = path.parent.name if path.parent.parent.name == _SUBAGENTS else plain_name(path).removesuffix(".jsonl")
    project = path.parents[2] if path.parent.parent.name == _SUBAGENTS else path.parents[1]
    if path.parent.parent.name != _SUBAGENTS and path.parent.name != _CHATS:
        return [path]
    main = [path] if path.parent.name == _CHATS else sorted((project / _CHATS).glob(f"{glob.escape(name)}.jsonl*"))
    agents = sorted((project / _SUBAGENTS / name).glob("agent-*.jsonl*"))
    return [*main, *(other for other in agents if plain_name(other).endswith(".jsonl"))] or [path]


QWEN = JsonImporter(
    name="qwen",
    title="Qwen Code",
    proves=_is_qwen,
    reader=_Session,
    coverage=Coverage(),
    places=(
        Place(".qwen/projects", "*/chats/*.jsonl", variable="QWEN_HOME", below="projects"),
        Place(".qwen/tmp", "*/chats/*.jsonl", variable="QWEN_HOME", below="tmp"),
    ),
    related=_family,
)
