"""Text without end: when much of it is a suspicion, and when it is a loop."""

from __future__ import annotations

from tests.detect.scenario import Scenario


def _essay(part: str) -> dict[str, str]:
    """Return a long message of prose that does not repeat itself."""
    return {"text": " ".join(f"{part} sentence {number} tells of topic {number * 7}." for number in range(180))}


def _severities(story: Scenario) -> list[tuple[str, str]]:
    return [(finding.kind, finding.severity) for finding in story.found() if finding.kind == "chanting"]


def test_message_after_message_with_nothing_between_is_a_loop() -> None:
    """Three long messages on end, for more than a minute, are an agent that has stopped working."""
    story = Scenario()
    for part in ("alpha", "beta", "gamma"):
        story.say("message", _essay(part), agent="main", wait=40)
    assert _severities(story) == [("chanting", "loop")]


def test_long_messages_in_a_conversation_are_a_suspicion() -> None:
    """The same messages with another agent's words between are only warned of; with an action between, they are not."""
    talk, work = Scenario(), Scenario()
    for part in ("alpha", "beta", "gamma"):
        for story in (talk, work):
            story.say("message", _essay(part), agent="main", wait=40)
        talk.say("message", {"text": f"What about {part}?"}, agent="other")
        work.call("Read", {"path": part}, f"text of {part}")
    assert _severities(talk) == [("chanting", "warn")]
    assert _severities(work) == []


def test_one_long_answer_in_pieces_is_a_suspicion() -> None:
    """A streamed answer of any length may be what was asked for."""
    story = Scenario()
    for part in ("alpha", "beta", "gamma"):
        story.say("agent_message_chunk", _essay(part), agent="main", wait=40)
    assert _severities(story) == [("chanting", "warn")]
