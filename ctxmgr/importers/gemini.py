"""Gemini CLI, and Qwen Code, which was made from it: files of lines whose messages are made of Gemini's parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.chat import exit_code, harness_origin, judged, read_message, speak, words_of
from ctxmgr.importers.descriptions import JsonImporter, Log
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.log_files import open_plain
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text, whole

_TYPES = frozenset(("user", "gemini", "info", "warning", "error"))
_BLOCKED = "Command injection detected: "
"""Begins the result of a command that the shell tool did not run; the client calls that a success."""
_ENDS = {"success": "ok", "error": "error", "cancelled": "interrupted"}
_SHELL = frozenset(("run_shell_command", "shell"))
_HEAD = 1 << 16


def _proves(value: dict[str, Any]) -> bool:
    if "projectHash" in value:
        return text(value.get("sessionId")) is not None and ("startTime" in value or "messages" in value)
    shaped = {"id", "timestamp", "type", "content"} <= value.keys() and "uuid" not in value and "message" not in value
    return (shaped and value["type"] == "gemini") or "$rewindTo" in value


class _Session:
    """Reads a session, and after it those of its sub-agents."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._path: Path | None = None
        self._t: Transcript | None = None
        self._agents: dict[str, str] = {}
        self._said: set[str] = set()

    def read(self, value: dict[str, Any]) -> None:
        if self._path != self._log.path:
            self._path, self._t = self._log.path, None
        if "projectHash" in value or "startTime" in value:
            self._begin(value)
        t = self._t = self._t or self._log.session()
        changed = mapping(value.get("$set"))
        listed = sequence(value.get("messages")) or sequence(changed.get("messages"))
        for message in listed:
            t.place = f"{self._log.place}.{text(mapping(message).get('id')) or '?'}"
            self._message(t, mapping(message))
        t.place = self._log.place
        if "$rewindTo" in value:
            t.event("rewind", {"from": text(value.get("$rewindTo"))}, changed.get("lastUpdated"))
        elif text(value.get("type")) is not None:
            self._message(t, value)
        elif not listed and not changed and "projectHash" not in value:
            self._log.unknown(value.get("type"))

    def _begin(self, value: dict[str, Any]) -> None:
        own = text(value.get("sessionId"))
        above = self._log.path.parent.name
        if value.get("kind") == "subagent" and above != "chats":
            name, parent = f"agent-{(own or 'x')[:8]}", self._agents.get(own or "", "")
            self._t = self._log.session(above, agent=name, part=own or self._log.path.stem, parent=parent)
        else:
            self._t = self._log.session(own)
        self._t.describe(started=value.get("startTime"), project=value.get("projectHash"), summary=value.get("summary"))

    def _message(self, t: Transcript, value: dict[str, Any]) -> None:
        kind, own, at = text(value.get("type")), text(value.get("id")), value.get("timestamp")
        if kind not in _TYPES:
            self._log.unknown(kind)
        elif kind == "gemini":
            self._answer(t, value, own or "", at)
        elif own is not None and t.seen(own):
            return
        elif kind == "user":
            if isinstance(value.get("content"), str):
                speak(t, str(value["content"]), at, own)
            else:
                read_message(t, {"role": "user", "content": value.get("content")}, at, own)
        elif kind == "error":
            t.failure(words_of(value.get("content")), at, own)

    def _answer(self, t: Transcript, value: dict[str, Any], own: str, at: object) -> None:
        t.step = f"{t.part}:{own or t.place}"
        if not (own and t.seen(own)):
            for place, thought in enumerate(map(mapping, sequence(value.get("thoughts")))):
                words = ": ".join(filter(None, (text(thought.get("subject")), text(thought.get("description")))))
                t.thought(words, thought.get("timestamp"), f"{own}:thought{place}" if own else None)
        words = words_of(value.get("content"))
        if words.strip() and own not in self._said:
            self._said.add(own or words)
            t.message(words, at, own or None)
        used = mapping(value.get("tokens"))
        t.usage(
            at, own, value.get("model"), inputTokens=used.get("input"), outputTokens=used.get("output"),
            cacheReadTokens=used.get("cached"), reasoningTokens=used.get("thoughts"),
        )  # fmt: skip
        for place, call in enumerate(map(mapping, sequence(value.get("toolCalls")))):
            self._call(t, call, text(call.get("id")) or f"{own}:call{place}", at)

    def _call(self, t: Transcript, call: dict[str, Any], key: str, at: object) -> None:
        if t.answered(key):
            return
        entry = t.call(key, call.get("name"), call.get("args"), at)
        if agent := text(call.get("agentId")):
            self._agents.setdefault(agent, entry)
        source = text(call.get("status"))
        if source not in _ENDS:
            return
        responses = [mapping(mapping(part).get("functionResponse")).get("response") for part in sequence(call.get("result"))]
        shown = responses[0] if len(responses) == 1 else responses or call.get("resultDisplay")
        _, output, error = judged({}, shown)
        status, kind = _ENDS[source], "toolError"
        body = mapping(output)
        output = body["output"] if set(body) == {"output"} else error if set(body) == {"error"} and error else output
        code = exit_code(output) if isinstance(output, str) and text(call.get("name")) in _SHELL else None
        if status == "ok" and code:
            status, kind = "error", "exitCode"
        elif status == "ok" and text(call.get("name")) in _SHELL and isinstance(output, str) and output.startswith(_BLOCKED):
            status, error = "error", output
        told = {"sourceStatus": source, "exitCode": code}
        t.result(key, output, call.get("timestamp"), status=status, error=error, kind=kind, meta=told)


def _family(path: Path) -> Sequence[Path]:
    """Return a session's log and those of its sub-agents, which lie in a folder of the session's name."""
    if path.parent.name != "chats":
        return [path]
    try:
        with open_plain(path) as stream:
            named = text(mapping(json.loads(stream.readline(_HEAD))).get("sessionId"))
    except (OSError, ValueError, RecursionError):
        return [path]
    own = named if named and Path(named).name == named and named not in (".", "..") else None
    return [path, *sorted((path.parent / own).glob("*.jsonl"))] if own else [path]


GEMINI = JsonImporter(
    name="gemini",
    title="Gemini CLI",
    proves=_proves,
    reader=_Session,
    coverage=Coverage(),
    places=(
        Place(".gemini/tmp", "*/chats/session-*.json", variable="GEMINI_CLI_HOME", below=".gemini/tmp"),
        Place(".gemini/tmp", "*/chats/**/*.jsonl", variable="GEMINI_CLI_HOME", below=".gemini/tmp"),
    ),
    lists=("messages",),
    related=_family,
)


_QWEN_TYPES = frozenset(("user", "assistant", "tool_result", "system"))


def _is_qwen(value: dict[str, Any]) -> bool:
    if not {"uuid", "parentUuid", "sessionId", "type"} <= value.keys() or "isSidechain" in value:
        return False
    return isinstance(mapping(value.get("message")).get("parts"), list) or (
        value.get("type") == "system" and "systemPayload" in value
    )


class _QwenSession:
    """Reads the lines of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: str | None = None

    def read(self, value: dict[str, Any]) -> None:
        kind, own, at = text(value.get("type")), text(value.get("uuid")), value.get("timestamp")
        if kind not in _QWEN_TYPES:
            self._log.unknown(kind)
            return
        t = self._log.session(value.get("sessionId"))
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
            _told(t, text(value.get("subtype")), mapping(value.get("systemPayload")), at, own)
        self._last = own

    def _user(self, t: Transcript, value: dict[str, Any], message: dict[str, Any], own: str | None) -> None:
        words, at = words_of(message.get("parts")), value.get("timestamp")
        origin = text(value.get("provenance"))
        if origin not in (None, "real_user") or harness_origin(words):
            t.nudge(words, harness_origin(words) or origin or "program", at, own)
            return
        if self._last is not None and value.get("parentUuid") not in (None, self._last):
            t.event("rewind", {"from": text(value.get("parentUuid"))}, at)
        read_message(t, {**message, "role": "user"}, at, own)


def _result(t: Transcript, message: dict[str, Any], told: dict[str, Any], at: object) -> None:
    """Add the results of calls; what the client tells beside them holds for a single one."""
    parts = [mapping(mapping(part).get("functionResponse")) for part in sequence(message.get("parts"))]
    for part in filter(None, parts):
        status, output, error = judged({}, part.get("response"))
        body = mapping(output)
        output = body["output"] if set(body) == {"output"} else error if set(body) == {"error"} and error else output
        code = whole(mapping(told.get("resultDisplay")).get("exitCode"))
        kind = "exitCode" if code else "toolError"
        status = _ENDS.get(text(told.get("status")) or "", status)
        if told.get("errorType") in ("execution_denied", "user_denied"):
            status = "denied"
        key = text(part.get("id")) or text(told.get("callId"))
        extra = {"sourceStatus": text(told.get("status")), "exitCode": code}
        t.result(key, output, at, status="error" if status == "ok" and code else status, error=error, kind=kind, meta=extra)


def _told(t: Transcript, kind: str | None, payload: dict[str, Any], at: object, own: str | None) -> None:
    event = mapping(payload.get("uiEvent"))
    name = text(event.get("event.name")) or ""
    if kind == "chat_compression":
        info = mapping(payload.get("info"))
        t.event("compaction", {"preTokens": info.get("originalTokenCount"), "postTokens": info.get("newTokenCount")}, at, own)
    elif name.endswith(".api_error"):
        t.failure(event.get("error") or event.get("error_message"), at, own, reason="apiError")
    elif name.endswith("loop_detected") or kind == "notification":
        t.nudge(text(event.get("loop_type")) or words_of(payload.get("content")) or name, "loopGuard", at, own)


QWEN = JsonImporter(
    name="qwen",
    title="Qwen Code",
    proves=_is_qwen,
    reader=_QwenSession,
    coverage=Coverage(sub_agents=False),
    places=(Place(".qwen/projects", "*/chats/*.jsonl", variable="QWEN_HOME", below="projects"),),
)
