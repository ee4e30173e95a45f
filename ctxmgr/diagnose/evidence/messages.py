"""What people, agents and programs said in a session, as messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.diagnose.evidence.texts import text_of
from ctxmgr.types.view import EventView

_MOST_TEXT = 20_000
_PEOPLE = ("user_message", "user_message_chunk")
_KEYS = ("text", "content", "message", "summary", "prompt", "question")
_SAID_AGAIN = 30

By = Literal["user", "agent", "program"]


@dataclass(frozen=True, slots=True)
class Message:
    """A message or a thought in a session.

    Attributes:
        who: the name of the agent, "user" for a person.
        by: whether a person, an agent or a program said it; only persons can approve and permit.
        at: RFC 3339, or null.
        kind: the event's type.
        after: index of the last entry before it, or null.
    """

    who: str
    by: By
    at: str | None
    text: str
    kind: str = "message"
    after: int | None = None


def messages_of(events: Iterable[EventView]) -> list[Message]:
    """Return the messages in events, in their order. Events without text are left out; chunks of one message are joined."""
    found: list[Message] = []
    for event in events:
        text = _message_text(event.data)
        if not text.strip() and event.type not in ("compaction", "waiting", "interrupt"):
            continue
        program = isinstance(event.data, dict) and cast("dict[str, Any]", event.data).get("synthetic") is True
        by: By = (
            "user"
            if event.type in _PEOPLE and not program
            else "agent"
            if _is_by_agent(event.type) and not program
            else "program"
        )
        who = "user" if by == "user" else event.agent or by
        last = found[-1] if found else None
        again = last is not None and len(text) > _SAID_AGAIN and last.text.endswith(text)
        if (
            last
            and not again
            and event.type.endswith("_chunk")
            and (last.kind, last.who, last.after) == (event.type, who, event.after)
        ):
            found[-1] = Message(who, by, last.at, (last.text + text)[:_MOST_TEXT], event.type, event.after)
        else:
            found.append(Message(who, by, event.ts, text[:_MOST_TEXT], event.type, event.after))
    return found


def _is_by_agent(kind: str) -> bool:
    return kind in ("message", "thought", "agent_message_chunk", "agent_thought_chunk")


def _message_text(data: Any) -> str:
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        return next((text for name in _KEYS if (text := text_of(fields.get(name)))), "")
    return text_of(data)
