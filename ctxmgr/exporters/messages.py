"""Write a list of chat messages in the form of OpenAI's API, with one document per session and agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctxmgr.exporters.conversation import (
    Conversation,
    Exporter,
    Losses,
    Turn,
    as_text,
    lose_events,
    read_usage,
)

_USAGE = {"prompt_tokens": ("inputTokens",), "completion_tokens": ("outputTokens",)}


def _write(conversation: Conversation, losses: Losses) -> Iterator[str]:
    """Yield one line per agent, with the list of its messages."""
    lose_events(conversation, losses, "nudge")
    for place, part in enumerate(conversation.parts):
        listed = [message for step in part.steps for message in _messages(step, losses)]
        if not listed:
            continue
        if place:
            losses["sub-agents, each written as a conversation of its own"] += 1
        # The format knows only conversations, so readers take another name for another session.
        name = conversation.session if not place else f"{conversation.session}/{part.agent}"
        document = {"session_id": name, "model": part.model, "messages": listed}
        yield json.dumps({key: value for key, value in document.items() if value is not None})


def _messages(step: Turn, losses: Losses) -> Iterator[dict[str, Any]]:
    when = {"timestamp": step.at} if step.at else {}
    if step.source == "user":
        yield {"role": "user", "content": step.text, **when}
    elif step.source == "nudge":
        losses["nudges, written as messages of the system"] += 1
        yield {"role": "system", "content": step.text, **when}
    elif step.source == "agent":
        yield _answer(step, losses) | when
        for call in step.calls:
            if call.result is not None:
                shown = call.result.get("output")
                if shown is not None and not isinstance(shown, str):
                    losses["outputs that are no text, written as JSON"] += 1
                content = as_text(shown) or call.error or ""
                at = {"timestamp": call.result["ts"]} if call.result.get("ts") else {}
                yield {"role": "tool", "tool_call_id": call.name, "content": content, "status": call.status, **at}
                losses["statuses, written in a member that not every reader knows"] += call.status != "ok"


def _answer(step: Turn, losses: Losses) -> dict[str, Any]:
    answer: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.thought:
        answer["reasoning_content"] = step.thought
    if step.calls:
        answer["tool_calls"] = [
            {
                "id": call.name, "type": "function",
                "function": {"name": call.record["action"], "arguments": json.dumps(call.record.get("input"))},
            }
            for call in step.calls
        ]  # fmt: skip
    if step.usage:
        answer["usage"] = read_usage(step, _USAGE, losses, "token counts of other kinds than input and output")
    return answer


MESSAGES = Exporter("messages", "message lists (OpenAI's shape)", _write)
