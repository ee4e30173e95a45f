"""Sessions of pi: a JSON lines file each, with messages in a tree by ``parentId``; or the output of ``pi --mode json``.

A fork is a separate file that begins with copies of the lines of its original session. These lines keep their original ids, so
that a store with both files has each line once.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, Place, session_name
from ctxmgr.importers.chat import content_words, read_message
from ctxmgr.importers.log_files import HEAD_SIZE, open_plain
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, text
from ctxmgr.log.ids import parse_time

_STATE = frozenset(("model_change", "thinking_level_change", "label", "session_info", "custom", "leaf"))
_KINDS = _STATE | {"message", "compaction", "branch_summary", "custom_message"}
# First parts of names of printed events that only repeat the messages.
_PRINTED = ("agent_", "turn_", "message_", "tool_execution_", "auto_", "compaction_", "queue_", "extension_", "session_")
_ROLES = {
    "custom": "custom_message",
    "hookMessage": "custom_message",
    "compactionSummary": "compaction",
    "branchSummary": "branch_summary",
}
"""Roles of messages whose content is in separate lines elsewhere."""


def _proves(value: dict[str, Any]) -> bool:
    if value.get("type") == "session":
        return {"id", "timestamp", "cwd"} <= value.keys() and ("version" in value or "thinkingLevel" in value)
    # Events of Copilot CLI have a ``parentId`` too, but keep everything else in ``data``.
    shaped = "parentId" in value and "uuid" not in value and "data" not in value and text(value.get("id")) is not None
    return shaped and text(value.get("type")) in _KINDS - {"custom"}


_MAX_FORKS = 50  # a chain of forks; recorded paths may form a circle


def _owners(path: Path, header: dict[str, Any]) -> list[tuple[float | None, str]]:
    """Return (beginning, session) of a fork and of the sessions it was forked from, the newest first; else nothing.

    Only files in the same folder are opened, because a recorded path may name anything.
    """
    found: list[tuple[float | None, str]] = []
    while origin := text(header.get("parentSession")):
        found.append((parse_time(header.get("timestamp")), text(header.get("id")) or session_name(path)))
        path = path.with_name(PurePosixPath(origin.replace("\\", "/")).name or "?")
        header = _header(path) if len(found) < _MAX_FORKS else {}
    return [*found, (None, text(header.get("id")) or session_name(path))] if found else []


def _header(path: Path) -> dict[str, Any]:
    try:
        with open_plain(path) as stream:
            return mapping(json.loads(stream.readline(HEAD_SIZE)))
    except (OSError, ValueError, RecursionError):
        return {}


class _Session:
    """Reads the lines of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._started: str | None = None
        self._last: str | None = None
        self._owners: list[tuple[float | None, str]] = []

    def _owner(self, at: object) -> str | None:
        """Return the session for which a line was first written. The fork's own lines are not older than the fork."""
        moment = parse_time(at)
        return next((name for begun, name in self._owners if moment is None or begun is None or moment >= begun), None)

    def read(self, value: dict[str, Any]) -> None:
        kind, at = text(value.get("type")) or "", value.get("timestamp")
        if kind == "session":
            self._started = text(value.get("id"))
            self._owners = _owners(self._log.path, value)
            # ``pi --mode json`` prints the same line first, so both forms are one session.
            self._log.session(self._started).describe(
                started=at, cwd=value.get("cwd"), forkedFrom=value.get("parentSession"), formatVersion=value.get("version")
            )
            return
        t = self._log.session(self._started)
        t.part = self._owner(at) or t.session
        if t.is_repeated(value.get("id")):
            return
        # Ids of lines are 8 hex digits, unique only within one file. The first version of pi wrote none.
        own = f"{t.part}:{value['id']}" if text(value.get("id")) else None
        message = mapping(value.get("message")) if kind in ("message", "message_end") else {}
        if role := _ROLES.get(text(message.get("role")) or ""):
            kind, value = role, {**value, **message}
        # The printed stream has a time only in the message, in milliseconds.
        at = at or message.get("timestamp")
        if message and not role:
            self._message(t, value, message, at, own)
        elif kind == "compaction":
            t.event("compaction", {"text": text(value.get("summary")) or "", "preTokens": value.get("tokensBefore")}, at, own)
        elif kind == "branch_summary":
            t.event("rewind", {"text": text(value.get("summary")) or "", "from": text(value.get("fromId"))}, at, own)
        elif kind == "custom_message":
            t.nudge(content_words(value.get("content")), text(value.get("customType")) or "extension", at, own)
        elif kind not in _KINDS and not kind.startswith(_PRINTED):
            self._log.unknown(kind)
        self._last = text(value.get("id")) or self._last

    def _message(self, t: Transcript, value: dict[str, Any], message: dict[str, Any], at: object, own: str | None) -> None:
        # The file is a tree. A prompt that does not follow the last line goes back to an earlier one. The printed stream
        # and the first version write no ``parentId``; there, every line follows the last one.
        if message.get("role") == "user" and value.get("parentId", self._last) != self._last:
            t.event("rewind", {"from": text(value.get("parentId"))}, at)
        if message.get("role") == "bashExecution":  # a command that the person typed
            entry = t.call(own, "bash", {"command": text(message.get("command")) or ""}, at)
            # ``!command`` by the person: ``byUser`` says that the model did not ask for it.
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
