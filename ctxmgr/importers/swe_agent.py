"""SWE-agent: one document a run, its steps in ``trajectory``, the conversation in ``history``; without times."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.chat import MODELS, PEOPLE, read_message, role_of, words_of
from ctxmgr.importers.interface import Coverage
from ctxmgr.importers.json_importer import JsonImporter, Log, named_session
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, number, parsed, sequence, text

_NOTHING: dict[str, Any] = {}


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
        told = [message for message in history if message.get("is_demo") is not True]
        asked = next((message for message in told if role_of(message) in PEOPLE), _NOTHING)
        t = self._log.session(named_session(self._log.path, words_of(asked.get("content"))))
        t.describe(environment=value.get("environment"))
        steps = sequence(value.get("trajectory"))
        if steps:
            if asked:
                t.user(words_of(asked.get("content")), None, "task")
            for place, step in enumerate(map(mapping, steps), 1):
                t.place = place
                _step(t, step)
        else:
            for place, message in enumerate(told, 1):
                t.place = place
                _message(t, message)
        _outcome(t, mapping(value.get("info")))


def _step(t: Transcript, step: dict[str, Any]) -> None:
    """Add a step: what was thought, the command, and what it answered. A step without a command is a message."""
    command, words = text(step.get("action")), text(step.get("thought")) or text(step.get("response")) or ""
    t.step = f"{t.part}:{t.place}"
    t.message(words)
    if command is None or not command.strip():
        if shown := text(step.get("observation")):
            t.failure(shown, reason="noCommand")
        return
    entry = t.call(None, command.split(maxsplit=1)[0], {"command": command})
    if step.get("observation") is None:
        return
    spent = number(step.get("execution_time"))
    state = mapping(parsed(step.get("state")))
    t.result(
        entry, step.get("observation"), duration_ms=None if spent is None else spent * 1000,
        meta={"cwd": text(state.get("working_dir"))},
    )  # fmt: skip


def _message(t: Transcript, message: dict[str, Any]) -> None:
    """Add a message of an old log, in which an observation is a message of the user's."""
    if role_of(message) in MODELS and not sequence(message.get("tool_calls")) and text(message.get("action")):
        _step(t, {**message, "thought": message.get("thought") or message.get("content"), "observation": None})
    elif role_of(message) in PEOPLE and t.turn is not None:
        pending = next((call.entry for call in t.waiting.values()), None)
        if pending is None:
            t.failure(words_of(message.get("content")), reason="noCommand")
        else:
            t.result(pending, words_of(message.get("content")))
    else:
        read_message(t, message)


def _outcome(t: Transcript, info: dict[str, Any]) -> None:
    t.place = "end"
    used = mapping(info.get("model_stats"))
    t.usage(None, "total", inputTokens=used.get("tokens_sent"), outputTokens=used.get("tokens_received"))
    ended = text(info.get("exit_status"))
    if ended is None:
        return
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
