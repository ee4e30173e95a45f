"""Write ATIF trajectories, version 1.8: one document per session, with the sub-agents' trajectories inside.

The format has no field for a status, a denial or an interrupt. They go into ``extra`` fields, which our importer reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from ctxmgr.exporters.conversation import (
    Call,
    Conversation,
    Exporter,
    Losses,
    Part,
    Turn,
    as_text,
    read_usage,
)

VERSION = "ATIF-v1.8"
_USAGE = {
    "prompt_tokens": ("inputTokens",),
    "completion_tokens": ("outputTokens",),
    "cached_tokens": ("cacheReadTokens", "cachedInputTokens"),
}


def _write(conversation: Conversation, losses: Losses) -> Iterator[str]:
    """Yield the trajectory of a session, or nothing if the session has no step."""
    losses.update(conversation.left)
    main, *others = [part for part in conversation.parts if part.steps] or [None]
    if main is None:
        losses["sessions in which nothing happened"] += 1
        return
    children = {part.agent: part for part in others if part is not None}
    document = _trajectory(conversation, main, children, losses)
    document["session_id"] = document["trajectory_id"] = conversation.session
    if conversation.outcome is not None:
        document["extra"]["outcome"] = conversation.outcome
    if children:
        document["subagent_trajectories"] = [
            _trajectory(conversation, part, {}, losses) | {"trajectory_id": name} for name, part in children.items()
        ]
    yield json.dumps(document)


def _trajectory(conversation: Conversation, part: Part, children: dict[str, Part], losses: Losses) -> dict[str, Any]:
    about = conversation.about
    # The format names a sub-agent in the result of its call, so the name is lost if the call has no result.
    started = {child.parent: name for name, child in children.items() if child.parent}
    losses["links from a call to the sub-agent that it started"] += sum(
        not any(str(call.record["id"]) == child.parent and call.result for call in conversation.calls)
        for child in children.values()
    )
    name = str(about.get("program") or about.get("workflow") or "ctxmgr")
    agent = {"name": name, "version": str(about.get("version") or "unknown"), "model_name": part.model}
    steps = [_step(number, step, started, losses) for number, step in enumerate(part.steps, 1)]
    return {
        "schema_version": VERSION,
        "agent": {key: value for key, value in agent.items() if value is not None},
        "steps": steps,
        "extra": {"agent": part.agent, **({"title": about["title"]} if "title" in about else {})},
    }


def _step(number: int, step: Turn, started: dict[str, str], losses: Losses) -> dict[str, Any]:
    found: dict[str, Any] = {"step_id": number, "source": "system", "message": step.text}
    if step.at:
        found["timestamp"] = step.at
    if step.source == "user":
        return found | {"source": "user"} | ({"extra": step.data} if step.data else {})
    if step.source != "agent":
        return found | {"extra": {"event": step.source, "data": step.data}}
    found["source"] = "agent"
    if step.thought:
        found["reasoning_content"] = step.thought
    if step.calls:
        found["tool_calls"] = [_call(call) for call in step.calls]
        results = [_result(call, started, losses) for call in step.calls if call.result is not None]
        if results:
            found["observation"] = {"results": results}
    if step.usage:
        found["metrics"] = read_usage(step, _USAGE, losses)
        if isinstance(step.usage.get("model"), str):
            found["model_name"] = step.usage["model"]
    return found


def _call(call: Call) -> dict[str, Any]:
    given: object = call.record.get("input")
    plain = isinstance(given, dict)
    # The format accepts only objects. `bare` tells our importer that the input was something else.
    arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {"input": given}
    made: dict[str, Any] = {"tool_call_id": call.name, "function_name": call.record["action"], "arguments": arguments}
    return made if plain else made | {"extra": {"bare": True}}


def _result(call: Call, started: dict[str, str], losses: Losses) -> dict[str, Any]:
    result = call.result or {}
    shown = result.get("output")
    extra = {
        "status": call.status, "error": call.error, "timestamp": result.get("ts"),
        "durationMs": result.get("durationMs"), "json": None if isinstance(shown, str) or shown is None else True,
    }  # fmt: skip
    extra = {name: value for name, value in extra.items() if value is not None}
    losses["statuses, written in an extra member"] += call.status != "ok"
    found: dict[str, Any] = {"source_call_id": call.name, "content": as_text(shown)}
    if child := started.get(str(call.record["id"])):
        found["subagent_trajectory_ref"] = [{"trajectory_id": child}]
    return found | ({"extra": extra} if extra else {})


ATIF = Exporter("atif", "ATIF trajectories (Harbor)", _write)
