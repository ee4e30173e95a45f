"""ATIF: the interchange format of agent trajectories that Harbor writes for some forty agents; documents or JSON lines."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log
from ctxmgr.importers.chat import content_words, judge_result, speak
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, parse_json, sequence, text

_MAX_DEPTH = 8


def _proves(value: dict[str, Any]) -> bool:
    return (text(value.get("schema_version")) or "").upper().startswith("ATIF")


class _Trajectories:
    """Reads trajectories and the trajectories of sub-agents inside them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._used: set[str] = set()

    def read(self, value: dict[str, Any]) -> None:
        if "steps" not in value and "schema_version" not in value:
            self._log.unknown(value.get("type"))
            return
        own = text(value.get("session_id")) or text(value.get("trajectory_id"))
        if own is not None and own in self._used:
            own = f"{own}-{self._log.place}"  # a later trajectory with the same id is another one
        self._used.add(own or "")
        t = self._log.session(own, agent=text(mapping(value.get("extra")).get("agent")) or "main")
        self._trajectory(t, value, 0)
        if outcome := text(mapping(value.get("extra")).get("outcome")):
            t.end(outcome)
        self._log.close()

    def _trajectory(self, t: Transcript, value: dict[str, Any], depth: int) -> None:
        agent = mapping(value.get("agent"))
        t.describe(
            agent.get("version"), program=agent.get("name"), model=agent.get("model_name"), notes=value.get("notes"),
            formatVersion=value.get("schema_version"),
        )  # fmt: skip
        below: dict[str, str] = {}
        for place, item in enumerate(sequence(value.get("steps")), 1):
            t.place = place
            step = mapping(item)
            if step.get("is_copied_context") is not True:  # copied from an earlier trajectory, which has it too
                self._log.count.records += 1
                self._step(t, step, below)
        for number, item in enumerate(sequence(value.get("subagent_trajectories")), 1):
            child = mapping(item)
            key = text(child.get("trajectory_id")) or text(child.get("session_id")) or str(number)
            name = f"{text(mapping(child.get('agent')).get('name')) or 'agent'}-{key[:12]}"
            name = text(mapping(child.get("extra")).get("agent")) or name
            # Nested trajectories are recorded data, and may nest without end.
            if depth < _MAX_DEPTH:
                part = self._log.session(t.session, agent=name, part=f"{t.part}/{key}", parent=below.get(key, ""))
                self._trajectory(part, child, depth + 1)

    def _step(self, t: Transcript, step: dict[str, Any], below: dict[str, str]) -> None:
        source, at, words = text(step.get("source")), step.get("timestamp"), content_words(step.get("message"))
        made: list[str] = []
        if source == "user":
            speak(t, words, at, None)
        elif source == "agent":
            t.step = f"{t.part}:{t.place}"
            t.add_thought(text(step.get("reasoning_content")) or "", at)
            t.message(words, at)
            for call in map(mapping, sequence(step.get("tool_calls"))):
                given = call.get("arguments")
                if mapping(call.get("extra")).get("bare") is True:
                    given = mapping(given).get("input")
                made.append(t.call(call.get("tool_call_id"), call.get("function_name"), given, at))
            used = mapping(step.get("metrics"))
            t.usage(
                at, f"step {t.place}", step.get("model_name"), inputTokens=used.get("prompt_tokens"),
                outputTokens=used.get("completion_tokens"), cacheReadTokens=used.get("cached_tokens"),
            )  # fmt: skip
        elif source == "system":
            _add_system_step(t, mapping(step.get("extra")), words, at)
        else:
            self._log.unknown(f"step of {source or '?'}")
        results = [mapping(result) for result in sequence(mapping(step.get("observation")).get("results"))]
        # Some of the forty converters do not name the call of a result. Then the position tells, if there
        # are as many results as calls.
        keys = {call.entry: key for key, call in t.waiting.items()}
        for place, result in enumerate(results):
            key = text(result.get("source_call_id")) or (keys.get(made[place]) if len(results) == len(made) else None)
            # The time of the step is that of its calls. The times of their results are unknown.
            self._observe(t, result, key, None if made else at, below)

    def _observe(self, t: Transcript, result: dict[str, Any], key: str | None, at: object, below: dict[str, str]) -> None:
        """Add a result. A result without a call is something that the environment showed.

        Results name their calls, or there are as many results as calls in their step.
        """
        extra = mapping(result.get("extra"))
        status, output, error = judge_result(extra, result.get("content"))
        if key is None:
            t.event("observation", {"text": content_words(result.get("content"))}, at)
            return
        for reference in map(mapping, sequence(result.get("subagent_trajectory_ref"))):
            if (child := text(reference.get("trajectory_id")) or text(reference.get("session_id"))) and key in t.calls:
                # The sub-agent's trajectory follows after all steps, and must be linked to the call that started it.
                below.setdefault(child, t.calls[key].entry)
        # The format only allows text, so our own export writes JSON as text and marks it.
        if extra.get("json") is True:
            output = parse_json(result.get("content"))
        t.result(
            key, output, extra.get("timestamp") or at, status=status,
            error=text(extra.get("error")) if status != "ok" and "error" in extra else error,
            duration_ms=extra.get("durationMs"),
        )  # fmt: skip


def _add_system_step(t: Transcript, extra: dict[str, Any], words: str, at: object) -> None:
    """Add an event that our own export put into a system step. Any other system step is about the set-up."""
    kind, data = text(extra.get("event")), mapping(extra.get("data"))
    if kind == "nudge":
        t.nudge(words, text(data.get("origin")) or "program", at)
    elif kind is not None:
        t.event(kind[:100], data, at)


ATIF = JsonImporter(
    name="atif",
    title="ATIF trajectories (Harbor)",
    proves=_proves,
    reader=_Trajectories,
    coverage=Coverage(errors=False),
    lists=("steps",),
)
