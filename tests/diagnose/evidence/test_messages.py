"""What people, agents and programs said, told apart: approvals count from persons alone."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose.evidence.messages import messages_of
from ctxmgr.types.view import EventView


def event(type_: str, data: Any, *, agent: str | None = "main", after: int | None = 0) -> EventView:
    """Return an event."""
    return EventView(
        id="v", session="s", ts="2026-01-22T10:00:00Z", type=type_, agent=agent, entry=None, after=after, data=data
    )  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "data", "said"),
    [
        ("user_message", {"text": "go"}, ("user", "user")),
        ("user_message", {"text": "go", "synthetic": True}, ("main", "program")),
        ("user_message", {"text": "go", "synthetic": True, "simulated": True}, ("user", "user")),
        ("message", {"text": "go"}, ("main", "agent")), ("nudge", {"text": "go"}, ("main", "program")),
        ("agent_message_chunk", {"content": [{"text": "go"}]}, ("main", "agent")), ("user_message", "go", ("user", "user")),
        ("user_message", {"text": "go", "synthetic": "yes"}, ("user", "user")),
        ("tool_call_update", {"status": "in_progress", "stderr": "go"}, ("main", "program")),
    ],
)  # fmt: skip
def test_who_said_it_follows_from_the_event(type_: str, data: Any, said: tuple[str, str]) -> None:
    """A program that writes in a person's name is none, unless it plays the person of the whole conversation."""
    (found,) = messages_of([event(type_, data)])

    assert (found.who, found.by, found.text) == (*said, "go")


@pytest.mark.parametrize("sent", [{"to": "b, c"}, {"recipients": ["b", "c"]}, {}])
def test_a_message_has_its_addressees(sent: dict[str, Any]) -> None:
    """Whoever it was sent to, where that is recorded."""
    (found,) = messages_of([event("message", {"text": "go", **sent})])

    assert found.to.replace("\n", ", ") == ("b, c" if sent else "")


def test_chunks_of_one_message_are_joined() -> None:
    """Of one agent behind one entry; a whole text that is told again at the end is not added twice to it."""
    parts = [event("agent_message_chunk", {"text": text}) for text in ("half a ", "sentence, and ", "its end")]
    other = event("agent_message_chunk", {"text": "mine"}, agent="other")
    later = event("agent_message_chunk", {"text": "later"}, after=1)

    assert [message.text for message in messages_of([*parts, other, later])] == [
        "half a sentence, and its end",
        "mine",
        "later",
    ]
    whole = "a sentence that is told in one piece, and then once more"
    assert len(messages_of([event("agent_message_chunk", {"text": whole})] * 2)) == 2


NOTHING: list[Any] = [None, "", " ", [], {}, {"text": None}, {"text": [[]]}, {"other": "x"}]


@pytest.mark.parametrize("data", NOTHING)
def test_an_event_that_says_nothing_is_left_out(data: Any) -> None:
    """Unless it is one that counts without words."""
    assert messages_of([event("message", data)]) == messages_of([event("heartbeat", data)]) == []
    assert [message.kind for message in messages_of([event("compaction", data)])] == ["compaction"]
