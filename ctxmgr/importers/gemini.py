"""Gemini CLI: files of JSON lines whose messages consist of parts; and the output of its command.

Qwen Code is derived from it. Its lines have the envelope of Claude Code, and its messages have Gemini's parts.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, Place
from ctxmgr.importers.chat import content_words, exit_code, harness_origin, judge_result, read_message
from ctxmgr.importers.log_files import HEAD_SIZE, open_plain, plain_name, small_object
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, sequence, text

_TYPES = frozenset(("user", "gemini", "info", "warning", "error"))
_BLOCKED = "Command injection detected: "
"""Beginning of the result of a command that the shell tool refused to run. The client calls it a success."""
_ENDS = frozenset(("success", "error", "cancelled"))  # a call with any other status is not over
_SHELL = frozenset(("run_shell_command", "shell"))
_SNAPSHOT = "<state_snapshot>"
"""Marks the message that replaces all earlier messages at a compression."""

_SHORT = 8
# The id of a session is recorded text and becomes a folder name, so it must not have a slash or a leading dot.
_FOLDER = re.compile(r"\w[\w.-]{0,200}", re.ASCII)


def _proves(value: dict[str, Any]) -> bool:
    if "projectHash" in value:
        return text(value.get("sessionId")) is not None and ("startTime" in value or "messages" in value)
    shaped = {"id", "timestamp", "type", "content"} <= value.keys() and "uuid" not in value and "message" not in value
    return (shaped and value["type"] == "gemini") or "$rewindTo" in value


class _Session:
    """Reads a session, and then the sessions of its sub-agents."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._path: Path | None = None
        self._t: Transcript | None = None
        self._agents: dict[str, str] = {}
        self._said: set[str] = set()

    def read(self, value: dict[str, Any]) -> None:
        # The file of a sub-agent has its own list of messages, although it belongs to the session's group.
        if self._path != self._log.path:
            self._path, self._t = self._log.path, None
        if "projectHash" in value or "startTime" in value:
            self._begin(value)
        t = self._t = self._t or self._log.session()
        changed = mapping(value.get("$set"))
        listed = sequence(value.get("messages")) or sequence(changed.get("messages"))
        # ``$set`` with messages rebuilds the list. Most of them were on earlier lines, and `is_repeated` skips those.
        for message in listed:
            t.place = f"{self._log.place}.{text(mapping(message).get('id')) or '?'}"
            self._message(t, mapping(message))
        # Ids of listed messages are derived below the line. The rest of this line uses the line itself again.
        t.place = self._log.place
        if "$rewindTo" in value:
            t.event("rewind", {"from": text(value.get("$rewindTo"))}, changed.get("lastUpdated"))
        elif text(value.get("type")) is not None:
            self._message(t, value)
        elif not listed and not changed and "projectHash" not in value:
            self._log.unknown(value.get("type"))

    def _begin(self, value: dict[str, Any]) -> None:
        # The file of a sub-agent lies in a folder named after the session that started it.
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
        # A message is written again at every update. Its last form is complete.
        elif own is not None and t.is_repeated(own):
            return
        elif kind == "user":
            if _SNAPSHOT in content_words(value.get("content"))[:HEAD_SIZE]:
                t.event("compaction", {"text": content_words(value.get("content"))}, at, own)
                return
            said = value.get("displayContent") or value.get("content")  # without the files that the words mention
            read_message(t, {"role": "user", "content": said}, at, own)
        elif kind == "error":
            t.failure(content_words(value.get("content")), at, own)

    def _answer(self, t: Transcript, value: dict[str, Any], own: str, at: object) -> None:
        t.step = f"{t.part}:{own or t.place}"
        # A line is written again when its calls get results. Thoughts and words are in its first form.
        if not (own and t.is_repeated(own)):
            for place, thought in enumerate(map(mapping, sequence(value.get("thoughts")))):
                words = ": ".join(filter(None, (text(thought.get("subject")), text(thought.get("description")))))
                t.add_thought(words, thought.get("timestamp"), f"{own}:thought{place}" if own else None)
        words = content_words(value.get("content"))
        # The first form may lack words. They have their own check, so that they are added when they come.
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
        for part in sequence(value.get("content")):
            call = mapping(mapping(part).get("functionCall"))
            # Some lines have a call among the parts of their content, without ``toolCalls``.
            if text(call.get("id")) and call["id"] not in t.calls:
                t.call(call["id"], call.get("name"), call.get("args"), at)

    def _call(self, t: Transcript, call: dict[str, Any], key: str, at: object) -> None:
        # Later forms of the message repeat the call. Only its first end counts.
        if t.has_answer(key):
            return
        entry = t.call(key, call.get("name"), call.get("args"), at)
        if agent := text(call.get("agentId")):
            self._agents.setdefault(agent, entry)
        source = text(call.get("status"))
        if source not in _ENDS:
            return
        responses = [mapping(mapping(part).get("functionResponse")).get("response") for part in sequence(call.get("result"))]
        shown = responses[0] if len(responses) == 1 else responses or call.get("resultDisplay")
        status, output, error, code = read_return(source, shown, call.get("name"))
        kind = "exitCode" if code else "toolError"
        meta = {"sourceStatus": source, "exitCode": code}
        t.result(key, output, call.get("timestamp"), status=status, error=error, kind=kind, meta=meta)


def read_return(
    source: str | None, shown: object, tool: object, code: int | None = None
) -> tuple[str, Any, str | None, int | None]:
    """Return (status, output, error, exit code) of the result of a tool.

    Args:
        source: the client's status of the call; some clients call a failed command a success.
        shown: output of the tool.
        tool: name of the tool.
        code: exit code, if the client states it apart from the text.
    """
    status, output, error = judge_result({"is_error": source in ("error", "cancelled")}, shown)
    # The client wraps the output of a tool: ``{"output": …}``, or ``{"error": …}``.
    body = mapping(output)
    output = body["output"] if set(body) == {"output"} else error if set(body) == {"error"} and error else output
    if source == "cancelled" and status != "denied":  # a refusal is a cancelled call too; only its words distinguish it
        status = "interrupted"
    # The client's status overrules the text, because a file that is read may begin like a refusal.
    if source == "success":
        status = "ok"
    if text(tool) in _SHELL and isinstance(output, str):
        code = exit_code(output) if code is None else code
        if status == "ok" and output.startswith(_BLOCKED):
            status, error = "error", output
    return "error" if status == "ok" and code else status, output, error, code


def _family(path: Path) -> Sequence[Path]:
    """Return a session's log and the logs of its sub-agents, which lie in a folder with the session's name."""
    if path.parent.parent.name == "chats":
        beside = sorted(path.parent.parent.glob(f"session-*-{glob.escape(path.parent.name[:_SHORT])}.jsonl"))
        # The name of the main log has 8 characters of the session's id. Others may begin alike, so check the first line.
        path = next((main for main in beside if _read_session_name(main) == path.parent.name), path)
    named = _read_session_name(path) if path.parent.name == "chats" else None
    return [path, *sorted((path.parent / named).glob("*.jsonl"))] if named and _FOLDER.fullmatch(named) else [path]


def _read_session_name(path: Path) -> str | None:
    """Return the session that the first line of a log names."""
    try:
        with open_plain(path) as stream:
            return text(mapping(json.loads(stream.readline(HEAD_SIZE))).get("sessionId"))
    except (OSError, ValueError, RecursionError):
        return None


GEMINI = JsonImporter(
    name="gemini",
    title="Gemini CLI",
    proves=_proves,
    reader=_Session,
    coverage=Coverage(),
    places=(
        Place(".gemini/tmp", "*/chats/session-*.json", variable="GEMINI_CLI_HOME", below=".gemini/tmp"),
        Place(".gemini/tmp", "*/chats/**/*.jsonl", variable="GEMINI_CLI_HOME", below=".gemini/tmp"),
        Place(".qwen/tmp", "*/chats/session-*.json", variable="QWEN_HOME", below="tmp"),
    ),
    lists=("messages",),
    related=_family,
)


# --- what `gemini --output-format stream-json` prints


def _is_printed(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    if kind == "init":
        return {"session_id", "model", "timestamp"} <= value.keys()
    return kind in ("tool_use", "tool_result") and {"tool_id", "timestamp"} <= value.keys()


class _RunOutput:
    """Reads the output lines of one run. A message comes in pieces and is added when it is complete; tokens come at the end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._named: str | None = None
        self._pieces: list[str] = []
        self._at: object = None

    def read(self, value: dict[str, Any]) -> None:
        kind, at = text(value.get("type")), value.get("timestamp")
        self._named = self._named or text(value.get("session_id"))
        t = self._log.session(self._named)
        if kind == "message" and value.get("role") == "assistant":
            if not self._pieces:
                self._at, t.step = at, f"{t.part}:{t.place}"
            self._pieces.append(text(value.get("content")) or "")
            return
        self._say(t)
        if kind == "init":
            t.describe(started=at, model=value.get("model"))
        elif kind == "message":
            read_message(t, value, at)
        elif kind == "tool_use":
            t.call(value.get("tool_id"), value.get("tool_name"), value.get("parameters"), at)
        elif kind == "tool_result":
            reason = mapping(value.get("error")).get("message")
            status, output, error, _ = read_return(text(value.get("status")), reason or value.get("output"), None)
            t.result(value.get("tool_id"), value.get("output", output), at, status=status, error=reason or error)
        elif kind == "error":
            t.failure(value.get("message"), at)
        elif kind == "result":
            self._end(t, value, at)
        else:
            self._log.unknown(kind)

    def _say(self, t: Transcript) -> None:
        # Not called at the end of a file: a message that is cut there continues when the log has grown,
        # under the id of another line.
        t.message("".join(self._pieces), self._at)
        self._pieces.clear()

    def _end(self, t: Transcript, value: dict[str, Any], at: object) -> None:
        used = mapping(value.get("stats"))
        t.usage(
            at, "total", inputTokens=used.get("input_tokens"), outputTokens=used.get("output_tokens"),
            cacheReadTokens=used.get("cached"),
        )  # fmt: skip
        if reason := mapping(value.get("error")).get("message"):
            t.failure(reason, at)
        t.end("completed" if value.get("status") == "success" else "failed", at)


GEMINI_PRINTED = JsonImporter(
    name="gemini-printed",
    title="Gemini CLI (--output-format stream-json)",
    proves=_is_printed,
    reader=_RunOutput,
    coverage=Coverage(sub_agents=False),
)


_QWEN_TYPES = frozenset(("user", "assistant", "tool_result", "system"))
_INJECTED = frozenset(
    ("notification", "cron", "background_task_completed", "agent_launch_prompt", "agent_retry", "goal_runtime")
)
"""Kinds of records that a program writes in a person's name."""

_CHATS, _SUBAGENTS = "chats", "subagents"


def _is_qwen(value: dict[str, Any]) -> bool:
    if not {"uuid", "parentUuid", "sessionId", "type"} <= value.keys():
        return False
    return isinstance(mapping(value.get("message")).get("parts"), list) or (
        value.get("type") == "system" and "systemPayload" in value
    )


class _QwenSession:
    """Reads the lines of a session, and then those of its sub-agents."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: str | None = None
        self._agents: dict[str, Transcript] = {}

    def read(self, value: dict[str, Any]) -> None:
        kind, own, at = text(value.get("type")), text(value.get("uuid")), value.get("timestamp")
        if kind not in _QWEN_TYPES:
            self._log.unknown(kind)
            return
        t = self._part(value)
        t.describe(value.get("version"), at, cwd=value.get("cwd"), gitBranch=value.get("gitBranch"))
        if own is not None and t.is_repeated(own):
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
        """Return the part of the record's agent. A file beside a sub-agent's log names the call."""
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
        words, at = content_words(message.get("parts")), value.get("timestamp")
        origin, kind = text(value.get("provenance")), text(value.get("subtype"))
        if origin not in (None, "real_user") or kind in _INJECTED:
            t.nudge(words, harness_origin(words) or kind or origin or "program", at, own)
            return
        # Records form a tree. Words that do not follow the last record go back to an earlier one.
        if self._last is not None and value.get("parentUuid") not in (None, self._last):
            t.event("rewind", {"from": text(value.get("parentUuid"))}, at)
        read_message(t, {**message, "role": "user"}, at, own)


def _result(t: Transcript, message: dict[str, Any], details: dict[str, Any], at: object) -> None:
    """Add the results of calls. The client's details beside them belong to a single result."""
    parts = [mapping(mapping(part).get("functionResponse")) for part in sequence(message.get("parts"))]
    for part in filter(None, parts):
        stated = integer(mapping(details.get("resultDisplay")).get("exitCode"))
        status, output, error, code = read_return(text(details.get("status")), part.get("response"), part.get("name"), stated)
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
        t.nudge(text(event.get("loop_type")) or content_words(payload.get("content")) or name, "loopGuard", at, own)


def _qwen_family(path: Path) -> Sequence[Path]:
    """Return the logs of a session and its sub-agents: ``chats/<session>.jsonl``, ``subagents/<session>/agent-*.jsonl``."""
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
    reader=_QwenSession,
    coverage=Coverage(),
    places=(
        Place(".qwen/projects", "*/chats/*.jsonl", variable="QWEN_HOME", below="projects"),
        Place(".qwen/tmp", "*/chats/*.jsonl", variable="QWEN_HOME", below="tmp"),
    ),
    related=_qwen_family,
)
