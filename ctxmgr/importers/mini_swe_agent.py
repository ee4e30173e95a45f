"""Runs of mini-swe-agent: one document each, chat messages with the commands and their exit codes beside them."""

from __future__ import annotations

import re
from typing import Any

from ctxmgr.importers.chat import MODELS, PEOPLE, is_message, read_message, role_of, words_of
from ctxmgr.importers.interface import Coverage
from ctxmgr.importers.json_importer import JsonImporter, Log, named_session
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text, whole
from ctxmgr.text.lazy_pattern import lazy_pattern

_COMMAND = lazy_pattern(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_SUBMITTED = "action was not executed"
"""How the last command is answered, which hands in the work."""

_CODE = lazy_pattern(r"<returncode>\s*(-?\d{1,9})\s*</returncode>")


_NOTHING: dict[str, Any] = {}


def _proves(value: dict[str, Any]) -> bool:
    if (text(value.get("trajectory_format")) or "").startswith("mini-swe-agent"):
        return True
    info = mapping(value.get("info"))
    return "mini_version" in info or ({"config", "model_stats"} <= info.keys() and "agent" in mapping(info.get("config")))


class _Run:
    """Reads the document of a run."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, value: dict[str, Any]) -> None:
        info = mapping(value.get("info"))
        messages = [mapping(item) for item in sequence(value.get("messages"))]
        asked = next((message for message in messages if role_of(message) in PEOPLE), _NOTHING)
        t = self._log.session(named_session(self._log.path, words_of(asked.get("content"))))
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
        at, role = extra.get("timestamp") or message.get("timestamp"), role_of(message)
        if role == "exit":
            return
        if not is_message(message):
            self._log.unknown(f"role {role}")
        elif role == "tool" or (role in PEOPLE and t.turn is not None):
            _observed(t, message, extra, at)
        else:
            read_message(t, message, at)
        if role in MODELS:
            _answered(t, message, extra, at)


def _answered(t: Transcript, message: dict[str, Any], extra: dict[str, Any], at: object) -> None:
    """Add what stands beside an answer: the command, where it is no tool's call, and the tokens."""
    if not sequence(message.get("tool_calls")):
        written = _COMMAND.findall(words_of(message.get("content")))
        listed = [text(mapping(action).get("command")) for action in sequence(extra.get("actions"))]
        for command in filter(None, listed or written[:1]):
            t.unnamed.append(t.call(None, "bash", {"command": command}, at))
    response = mapping(extra.get("response"))
    used = mapping(response.get("usage"))
    t.usage(
        at, response.get("id"), response.get("model"), inputTokens=used.get("prompt_tokens"),
        outputTokens=used.get("completion_tokens"),
    )  # fmt: skip


def _observed(t: Transcript, message: dict[str, Any], extra: dict[str, Any], at: object) -> None:
    """Add the result of a command; a message in the user's name that is none is what the program had to say."""
    words, key = words_of(message.get("content")), text(message.get("tool_call_id"))
    if key is None and not t.unnamed:
        t.failure(words, at, reason="noCommand")
        return
    found = _CODE.search(words)
    code = whole(extra.get("returncode")) if "returncode" in extra else int(found[1]) if found else None
    fault = text(extra.get("exception_info"))
    ended = fault == _SUBMITTED
    shown = str(extra["raw_output"]) if isinstance(extra.get("raw_output"), str) else words
    t.result(
        key or t.unnamed.pop(0), shown, at, status="error" if code and not ended else "ok", kind="exitCode",
        error=None if ended else fault or shown, meta={"exitCode": code},
    )  # fmt: skip


MINI_SWE_AGENT = JsonImporter(
    name="mini-swe-agent",
    title="mini-swe-agent trajectories",
    proves=_proves,
    reader=_Run,
    coverage=Coverage(sub_agents=False),
    lists=("messages",),
)
