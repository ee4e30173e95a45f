"""OpenHands: a folder with one event per file (since 1.0), or one list of events or one file per event (earlier)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, Place
from ctxmgr.importers.chat import content_words, judge_result, speak
from ctxmgr.importers.log_files import ELEMENTS
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, parse_json, sequence, text

_KINDS = frozenset(
    (
        "MessageEvent", "SystemPromptEvent", "ActionEvent", "ObservationEvent", "UserRejectObservation", "AgentErrorEvent",
        "Condensation", "CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent",
        "ConversationErrorEvent", "PauseEvent", "ACPToolCallEvent", "StreamingDelta", "TokenEvent", "HookExecutionEvent",
    )
)  # fmt: skip
_NUMBER = re.compile(r"(\d+)")
# Events before 1.0 that are bookkeeping of the program, or are read elsewhere (thoughts).
_BOOKKEEPING = frozenset(
    ("null", "agent_state_changed", "change_agent_state", "recall", "system", "agent_think", "think", "condensation_request")
)
_FINAL_ACTIONS = frozenset(("finish", "reject"))
"""Actions that end a run. No observation follows them, so they contain their own result."""


def _proves(value: dict[str, Any]) -> bool:
    if {"id", "timestamp", "source"} <= value.keys():
        return text(value.get("kind")) in _KINDS or (("action" in value or "observation" in value) and "message" in value)
    first = [mapping(item) for item in sequence(value.get(ELEMENTS))[:2]]
    return bool(first) and all("source" in item and ("action" in item or "observation" in item) for item in first)


class _Conversation:
    """Reads the events of a conversation in the order of their files."""

    def __init__(self, log: Log) -> None:
        self._log = log
        name = log.path.parent
        # Events do not name their conversation. The folder around the folder of events has its id as name.
        self._named = name.parent.name if name.name == "events" else None
        self._calls: dict[str, str] = {}

    def read(self, value: dict[str, Any]) -> None:
        t = self._log.session(self._named)
        listed = sequence(value.get(ELEMENTS))
        for place, item in enumerate(listed, 1):
            t.place = place
            self._read_event(t, mapping(item))
        if not listed and "source" in value:
            self._read_event(t, value)
        elif not listed:
            t.describe(model=mapping(mapping(value.get("agent")).get("llm")).get("model"))

    def _read_event(self, t: Transcript, value: dict[str, Any]) -> None:
        kind, at = text(value.get("kind")), value.get("timestamp")
        # Before 1.0, ids were numbers.
        own = str(value["id"]) if isinstance(value.get("id"), str | int) else None
        if own is not None and t.is_repeated(own):
            return
        if kind is None:
            self._read_old(t, value, own, at)
        elif kind not in _KINDS:
            self._log.unknown(kind)
        elif kind == "ActionEvent":
            self._action(t, value, own, at)
        elif kind == "ACPToolCallEvent":
            self._read_foreign(t, value, own, at)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._observation(t, kind, value, at)
        elif kind == "MessageEvent":
            _add_thoughts(t, value, at)
            words = content_words(mapping(value.get("llm_message")).get("content"))
            self._add_message(t, text(value.get("source")), words, own, at)
        else:
            _read_program_event(t, kind, value, own, at)

    def _add_message(self, t: Transcript, source: str | None, words: str, own: str | None, at: object) -> None:
        if source == "user":
            speak(t, words, at, own)
        elif source == "agent":
            t.message(words, at, own)
        elif words:
            t.nudge(words, source or "environment", at, own)

    def _action(self, t: Transcript, value: dict[str, Any], own: str | None, at: object) -> None:
        t.step = f"{t.part}:{text(value.get('llm_response_id')) or own or t.place}"
        _add_thoughts(t, value, at)
        t.message(content_words(value.get("thought")), at)
        call = mapping(value.get("tool_call"))
        given = parse_json(call.get("arguments")) if call.get("arguments") is not None else value.get("action")
        key = text(value.get("tool_call_id")) or text(call.get("id")) or f"event {own}"
        t.call(key, value.get("tool_name") or call.get("name"), given, at)
        self._calls[own or ""] = key

    def _read_foreign(self, t: Transcript, value: dict[str, Any], own: str | None, at: object) -> None:
        """Add a call of an agent that runs over ACP. One event contains all of it, or several events report its progress."""
        key = text(value.get("tool_call_id")) or f"event {own}"
        if not t.has_answer(key):
            t.call(key, value.get("tool_kind") or value.get("title"), value.get("raw_input"), at)
        state = text(value.get("status"))
        if state in ("completed", "failed") or value.get("is_error") is True:
            failed = state == "failed" or value.get("is_error") is True
            status, output, error = judge_result({"is_error": failed}, value.get("raw_output", value.get("content")))
            t.result(key, output, at, status=status, error=error)

    def _observation(self, t: Transcript, kind: str, value: dict[str, Any], at: object) -> None:
        key = text(value.get("tool_call_id")) or self._calls.get(text(value.get("action_id")) or "")
        if kind == "UserRejectObservation":
            t.result(key, None, at, status="denied", error=value.get("rejection_reason"))
        elif kind == "AgentErrorEvent":
            t.result(key, None, at, status="error", error=value.get("error"))
        else:
            body = mapping(value.get("observation"))
            status, output, error = judge_result(body, body.get("content", body.get("output")))
            code = integer(body.get("exit_code", mapping(body.get("metadata")).get("exit_code")))
            failed = status == "ok" and code not in (None, 0, -1)  # -1: the command still runs
            t.result(
                key, output, at, status="error" if failed else status, error=error, kind="exitCode" if failed else "toolError",
                meta={"exitCode": code},
            )  # fmt: skip

    def _read_old(self, t: Transcript, value: dict[str, Any], own: str | None, at: object) -> None:
        """Read an event from before 1.0, in which results name their calls by number."""
        action, seen = text(value.get("action")), text(value.get("observation"))
        args, extras = mapping(value.get("args")), mapping(value.get("extras"))
        call_metadata = mapping(value.get("tool_call_metadata"))
        if action == "message" or (action is None and seen is None):
            words = text(args.get("content")) or text(value.get("message")) or ""
            self._add_message(t, text(value.get("source")), words, own, at)
        elif action == "condensation":
            t.event("compaction", {"text": text(args.get("summary")) or ""}, at, own)
        elif action is not None and action not in _BOOKKEEPING:
            t.message(text(args.get("thought")) or "", at)
            # Thoughts and the program's ratings are left out of the input, because they would make equal calls differ.
            given = {
                name: item for name, item in args.items() if name not in ("thought", "security_risk", "confirmation_state")
            }
            t.step = f"{t.part}:{own or t.place}"
            t.call(f"event {own}", text(call_metadata.get("function_name")) or action, given, at)
            response = mapping(call_metadata.get("model_response"))
            _add_usage(t, mapping(response.get("usage")), response.get("id"), response.get("model"), at)
            if action in _FINAL_ACTIONS:
                t.message(text(args.get("final_thought")) or text(value.get("message")) or "", at)
                t.result(f"event {own}", args.get("outputs"), at)
        elif action in ("think", "agent_think"):
            t.add_thought(text(args.get("thought")) or "", at, own)
        elif seen is not None and "cause" in value and f"event {value['cause']}" in t.calls:
            code = integer(mapping(extras.get("metadata")).get("exit_code", extras.get("exit_code")))
            bad = seen == "error" or code not in (None, 0, -1)
            status = "denied" if seen == "user_rejected" else "error" if bad else "ok"
            t.result(
                f"event {value['cause']}", text(value.get("content")), at, status=status,
                kind="exitCode" if code else "toolError", meta={"exitCode": code},
            )  # fmt: skip
        elif seen == "error":
            t.failure(value.get("content") or value.get("message"), at, own)


def _count_usage(t: Transcript, state: dict[str, Any], at: object) -> None:
    """Count the responses in the state of a conversation. Each update lists all of them again."""
    kinds = mapping(state.get("usage_to_metrics")) or mapping(mapping(state.get("stats")).get("usage_to_metrics"))
    for kind in map(mapping, kinds.values()):
        for used in map(mapping, sequence(kind.get("token_usages"))):
            if response := text(used.get("response_id")):
                _add_usage(t, used, response, used.get("model"), at)


def _add_usage(t: Transcript, used: dict[str, Any], response: object, model: object, at: object) -> None:
    if used:
        t.usage(
            at, response, model, inputTokens=used.get("prompt_tokens"), outputTokens=used.get("completion_tokens"),
            cacheReadTokens=used.get("cache_read_tokens"), cacheCreationTokens=used.get("cache_write_tokens"),
            reasoningTokens=used.get("reasoning_tokens"),
        )  # fmt: skip


def _read_program_event(t: Transcript, kind: str, value: dict[str, Any], own: str | None, at: object) -> None:
    if kind == "Condensation":
        t.event("compaction", {"text": text(value.get("summary")) or ""}, at, own)
    elif kind == "ConversationStateUpdateEvent":
        _count_usage(t, mapping(value.get("value")), at)
    elif kind == "ConversationErrorEvent":
        t.failure(value.get("detail"), at, own, reason=text(value.get("code")) or "error")
    elif kind == "PauseEvent":
        t.event("interrupt", {"text": "paused"}, at, own)


def _add_thoughts(t: Transcript, value: dict[str, Any], at: object) -> None:
    blocks = [text(mapping(block).get("thinking")) or "" for block in sequence(value.get("thinking_blocks"))]
    t.add_thought("\n".join(filter(None, blocks)) or text(value.get("reasoning_content")) or "", at)


def _events(path: Path) -> Sequence[Path]:
    """Return the files of a conversation in the order of their numbers. A single file is a complete conversation."""
    if path.parent.name != "events":
        return [path]
    return sorted(path.parent.glob("*.json"), key=lambda file: (_number(file), file.name))


def _number(path: Path) -> int:
    found = _NUMBER.search(path.name)
    return int(found[1][:18]) if found else -1


OPENHANDS = JsonImporter(
    name="openhands",
    title="OpenHands",
    proves=_proves,
    reader=_Conversation,
    coverage=Coverage(sub_agents=False),
    places=(
        Place(".openhands/conversations", "*/events/*.json", variable="OPENHANDS_PERSISTENCE_DIR", below="conversations"),
        Place(".openhands/sessions", "*/events/*.json"),
    ),
    related=_events,
)
