"""Gemini CLI: once a document a session, since 0.4x lines, of which a later one replaces an earlier one of the same id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.chat import exit_code, judged, read_message, speak, words_of
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.json_importer import JsonImporter, Log
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text
from ctxmgr.paths import open_regular

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
        with open(open_regular(path), "rb") as stream:
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
