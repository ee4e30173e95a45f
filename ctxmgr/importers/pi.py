"""Sessions of pi: one file of JSON lines each, a tree of messages by ``parentId``; or what ``pi --mode json`` prints."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.chat import read_message, words_of
from ctxmgr.importers.descriptions import JsonImporter, Log
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, text

_STATE = frozenset(("model_change", "thinking_level_change", "label", "session_info", "custom", "leaf"))
_KINDS = _STATE | {"message", "compaction", "branch_summary", "custom_message"}
_PRINTED = ("agent_", "turn_", "message_", "tool_execution_", "auto_", "compaction_", "queue_", "extension_", "session_")
_ROLES = {
    "custom": "custom_message",
    "hookMessage": "custom_message",
    "compactionSummary": "compaction",
    "branchSummary": "branch_summary",
}
"""Roles of messages that say what a line of their own says elsewhere."""


def _proves(value: dict[str, Any]) -> bool:
    if value.get("type") == "session":
        return {"id", "timestamp", "cwd"} <= value.keys() and ("version" in value or "thinkingLevel" in value)
    shaped = "parentId" in value and "uuid" not in value and "data" not in value and text(value.get("id")) is not None
    return shaped and text(value.get("type")) in _KINDS - {"custom"}


class _Session:
    """Reads the lines of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._started: str | None = None
        self._last: str | None = None

    def read(self, value: dict[str, Any]) -> None:
        kind, at = text(value.get("type")) or "", value.get("timestamp")
        if kind == "session":
            self._started = text(value.get("id"))
            self._log.session(self._started).describe(
                started=at, cwd=value.get("cwd"), forkedFrom=value.get("parentSession"), formatVersion=value.get("version")
            )
            return
        t = self._log.session(self._started)
        if t.seen(value.get("id")):
            return
        own = f"{t.part}:{value['id']}" if text(value.get("id")) else None
        message = mapping(value.get("message")) if kind in ("message", "message_end") else {}
        if role := _ROLES.get(text(message.get("role")) or ""):
            kind, value = role, {**value, **message}
        at = at or message.get("timestamp")
        if message and not role:
            self._message(t, value, message, at, own)
        elif kind == "compaction":
            t.event("compaction", {"text": text(value.get("summary")) or "", "preTokens": value.get("tokensBefore")}, at, own)
        elif kind == "branch_summary":
            t.event("rewind", {"text": text(value.get("summary")) or "", "from": text(value.get("fromId"))}, at, own)
        elif kind == "custom_message":
            t.nudge(words_of(value.get("content")), text(value.get("customType")) or "extension", at, own)
        elif kind not in _KINDS and not kind.startswith(_PRINTED):
            self._log.unknown(kind)
        self._last = text(value.get("id")) or self._last

    def _message(self, t: Transcript, value: dict[str, Any], message: dict[str, Any], at: object, own: str | None) -> None:
        # The file is a tree: a prompt that does not follow on the last line went back to an earlier one.
        if message.get("role") == "user" and value.get("parentId", self._last) != self._last:
            t.event("rewind", {"from": text(value.get("parentId"))}, at)
        if message.get("role") == "bashExecution":  # a command that the person typed
            entry = t.call(own, "bash", {"command": text(message.get("command")) or ""}, at)
            code = message.get("exitCode")
            status = "interrupted" if message.get("cancelled") is True else "error" if code not in (0, None) else "ok"
            output = text(message.get("output"))
            t.result(own or entry, output, at, status=status, kind="exitCode", meta={"byUser": True})
            return
        read_message(t, message, at, own)
        if message.get("role") == "assistant":
            used = mapping(message.get("usage"))
            t.usage(
                at, own, message.get("model"), inputTokens=used.get("input"), outputTokens=used.get("output"),
                cacheReadTokens=used.get("cacheRead"), cacheCreationTokens=used.get("cacheWrite"),
            )  # fmt: skip
            if message.get("stopReason") == "error":
                t.failure(message.get("errorMessage"), at, reason="apiError")
            elif message.get("stopReason") == "aborted":
                t.event("interrupt", {"text": text(message.get("errorMessage")) or "aborted"}, at)


PI = JsonImporter(
    name="pi",
    title="pi",
    proves=_proves,
    reader=_Session,
    coverage=Coverage(sub_agents=False),
    places=(Place(".pi/agent/sessions", "*/*.jsonl", variable="PI_CODING_AGENT_DIR", below="sessions"),),
)
