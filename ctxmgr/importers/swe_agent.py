"""Runs of SWE-agent and of mini-swe-agent: one document each, with steps or with chat messages and their commands."""

from __future__ import annotations

import re
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, session_name
from ctxmgr.importers.chat import MODELS, PEOPLE, content_words, is_message, message_role, read_message
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, number, parse_json, sequence, text

_NO_MESSAGE: dict[str, Any] = {}
_EXIT = re.compile(r"\s*exit_[a-z_]+\s*")
"""Text in the place of a command, in the step in which the program gave up."""


def _proves(value: dict[str, Any]) -> bool:
    step = mapping(next(iter(sequence(value.get("trajectory"))), None))
    if {"action", "observation"} <= step.keys():
        return "thought" in step or "response" in step
    first = mapping(next(iter(sequence(value.get("history"))), None))
    return {"role", "content", "agent"} <= first.keys()


class _Run:
    """Reads the document of a run."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, value: dict[str, Any]) -> None:
        history = [mapping(item) for item in sequence(value.get("history"))]
        own_messages = [message for message in history if message.get("is_demo") is not True]
        # Demonstrations come before the task in the history, but belong to another run.
        asked = next((message for message in own_messages if message_role(message) in PEOPLE), _NO_MESSAGE)
        t = self._log.session(session_name(self._log.path, content_words(asked.get("content"))))
        t.describe(environment=value.get("environment"))
        # Old demonstrations have a history and no steps. If there are steps, the history only repeats them.
        steps = sequence(value.get("trajectory"))
        if steps:
            if asked:
                t.user(content_words(asked.get("content")), None, "task")
            for place, step in enumerate(map(mapping, steps), 1):
                t.place = place
                _step(t, step)
        else:
            for place, message in enumerate(own_messages, 1):
                t.place = place
                _message(t, message)
        _outcome(t, mapping(value.get("info")))


def _step(t: Transcript, step: dict[str, Any]) -> None:
    """Add a step: thought, command and observation. A step without a command is a message."""
    command, words = text(step.get("action")), text(step.get("thought")) or text(step.get("response")) or ""
    t.step = f"{t.part}:{t.place}"
    t.message(words)
    if command is None or not command.strip() or _EXIT.fullmatch(command):
        if shown := text(step.get("observation")):
            t.failure(shown, reason="exitStatus" if command and command.strip() else "noCommand")
        return
    # The agent's tools are shell commands such as ``edit 1:3``. The first word is the name of the tool.
    entry = t.call(None, command.split(maxsplit=1)[0], {"command": command})
    if step.get("observation") is None:
        return
    spent = number(step.get("execution_time"))
    state = mapping(parse_json(step.get("state")))
    t.result(
        entry, step.get("observation"), duration_ms=None if spent is None else spent * 1000,
        meta={"cwd": text(state.get("working_dir"))},
    )  # fmt: skip


def _message(t: Transcript, message: dict[str, Any]) -> None:
    """Add a message of an old log, in which observations are messages of the user."""
    if message_role(message) in MODELS and not sequence(message.get("tool_calls")) and text(message.get("action")):
        _step(t, {**message, "thought": message.get("thought") or message.get("content"), "observation": None})
    elif message_role(message) in PEOPLE and t.turn is not None:
        # The format has no ids. An observation is the result of the only open command.
        pending = next((call.entry for call in t.waiting.values()), None)
        if pending is None:
            t.failure(content_words(message.get("content")), reason="noCommand")
        else:
            t.result(pending, content_words(message.get("content")))
    else:
        read_message(t, message)


def _outcome(t: Transcript, info: dict[str, Any]) -> None:
    t.place = "end"
    used = mapping(info.get("model_stats"))
    # The format has the sum of tokens of a run, but no tokens per step.
    t.usage(None, "total", inputTokens=used.get("tokens_sent"), outputTokens=used.get("tokens_received"))
    ended = text(info.get("exit_status"))
    if ended is None:
        return
    # ``submitted (exit_cost)`` was stopped by the cost limit, but its work was handed in.
    if not ended.startswith("submitted"):
        t.failure(ended, reason="exitStatus")
    t.end("completed" if ended.startswith("submitted") else "failed")


SWE_AGENT = JsonImporter(
    name="swe-agent",
    title="SWE-agent trajectories",
    proves=_proves,
    reader=_Run,
    coverage=Coverage(errors=False, sub_agents=False, times=False),
    lists=("trajectory", "history"),
)


_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)[^\S\n]*\n")
_SUBMITTED = "action was not executed"
"""Result of the last command, which hands in the work. It is no failure."""

# The first version gives no exit code for a command that it stopped: "The last command <command>sleep 99</command> timed out".
_TIMED_OUT = re.compile(r"\s*The (?:last )?command <command>.{0,2000}?</command> timed out", re.DOTALL)
_CODE = re.compile(r"<returncode>\s*(-?\d{1,9})\s*</returncode>")


def _is_mini(value: dict[str, Any]) -> bool:
    if (text(value.get("trajectory_format")) or "").startswith("mini-swe-agent"):
        return True
    info = mapping(value.get("info"))
    return "mini_version" in info or ({"config", "model_stats"} <= info.keys() and "agent" in mapping(info.get("config")))


class _MiniRun:
    """Reads the document of a run."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, value: dict[str, Any]) -> None:
        info = mapping(value.get("info"))
        messages = [mapping(item) for item in sequence(value.get("messages"))]
        asked = next((message for message in messages if message_role(message) in PEOPLE), _NO_MESSAGE)
        t = self._log.session(session_name(self._log.path, content_words(asked.get("content"))))
        model = mapping(mapping(info.get("config")).get("model")).get("model_name")
        t.describe(info.get("mini_version"), formatVersion=value.get("trajectory_format"), model=model)
        for place, message in enumerate(messages, 1):
            t.place = place
            self._message(t, message)
        t.place = "end"
        ended = text(info.get("exit_status"))
        if ended is not None:
            if ended != "Submitted":
                t.failure(ended, reason="exitStatus")
            t.end("completed" if ended == "Submitted" else "failed")

    def _message(self, t: Transcript, message: dict[str, Any]) -> None:
        extra = mapping(message.get("extra"))
        at, role = extra.get("timestamp") or message.get("timestamp"), message_role(message)
        # The last message by the program says how the run ended, as ``info`` does.
        if role == "exit":
            return
        if not is_message(message):
            self._log.unknown(f"role {role}")
        elif role == "tool" or (role in PEOPLE and t.turn is not None):
            _add_observation(t, message, extra, at)
        else:
            read_message(t, message, at)
        if role in MODELS:
            _add_answer(t, message, extra, at)


def _add_answer(t: Transcript, message: dict[str, Any], extra: dict[str, Any], at: object) -> None:
    """Add the tokens of an answer, and its command if that is not a tool call."""
    if not sequence(message.get("tool_calls")):
        listed = [text(mapping(action).get("command")) for action in sequence(extra.get("actions"))]
        # Versions without a list of ``actions`` run one command per answer, from a block in its text.
        for command in filter(None, listed or [_written_command(content_words(message.get("content")))]):
            t.unnamed.append(t.call(None, "bash", {"command": command}, at))
    response = mapping(extra.get("response"))
    used = mapping(response.get("usage"))
    t.usage(
        at, response.get("id"), response.get("model"), inputTokens=used.get("prompt_tokens"),
        outputTokens=used.get("completion_tokens"),
    )  # fmt: skip


def _written_command(words: str) -> str:
    """Return the command in the first block of a text without leading empty lines, or an empty text."""
    opened = _COMMAND.search(words)
    end = words.find("\n```", opened.end()) if opened else -1
    command = words[opened.end() : end] if opened and end >= 0 else ""
    blank = len(command) - len(command.lstrip())
    return command[command.rfind("\n", 0, blank) + 1 :]


def _add_observation(t: Transcript, message: dict[str, Any], extra: dict[str, Any], at: object) -> None:
    """Add the result of a command. A message without more than the role of the user is output of the program."""
    words, key = content_words(message.get("content")), text(message.get("tool_call_id"))
    if key is None and not t.unnamed:
        t.failure(words, at, reason="noCommand")
        return
    found = _CODE.search(words)
    code = integer(extra.get("returncode")) if "returncode" in extra else int(found[1]) if found else None
    fault = text(extra.get("exception_info"))
    ended, late = fault == _SUBMITTED, _TIMED_OUT.match(words) is not None
    shown = str(extra["raw_output"]) if isinstance(extra.get("raw_output"), str) else words
    failed = (code or late) and not ended
    t.result(
        key or t.unnamed.pop(0), shown, at, status="error" if failed else "ok", kind="timeout" if late else "exitCode",
        error=None if ended else fault or shown, meta={"exitCode": code},
    )  # fmt: skip


MINI_SWE_AGENT = JsonImporter(
    name="mini-swe-agent",
    title="mini-swe-agent trajectories",
    proves=_is_mini,
    reader=_MiniRun,
    coverage=Coverage(sub_agents=False),
    lists=("messages",),
)
