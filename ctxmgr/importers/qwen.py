"""Qwen Code: one file of lines a session, a tree by ``parentUuid`` whose messages are made of Gemini's parts."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.chat import harness_origin, judged, read_message, words_of
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.json_importer import JsonImporter, Log
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text, whole

_TYPES = frozenset(("user", "assistant", "tool_result", "system"))
_ENDS = {"success": "ok", "error": "error", "cancelled": "interrupted"}


def _proves(value: dict[str, Any]) -> bool:
    if not {"uuid", "parentUuid", "sessionId", "type"} <= value.keys() or "isSidechain" in value:
        return False
    return isinstance(mapping(value.get("message")).get("parts"), list) or (
        value.get("type") == "system" and "systemPayload" in value
    )


class _Session:
    """Reads the lines of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: str | None = None

    def read(self, value: dict[str, Any]) -> None:
        kind, own, at = text(value.get("type")), text(value.get("uuid")), value.get("timestamp")
        if kind not in _TYPES:
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
    proves=_proves,
    reader=_Session,
    coverage=Coverage(sub_agents=False),
    places=(Place(".qwen/projects", "*/chats/*.jsonl", variable="QWEN_HOME", below="projects"),),
)
