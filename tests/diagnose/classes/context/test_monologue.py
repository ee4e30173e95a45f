"""A monologue: an agent that talks to itself is told to act, one that answers is not."""

from __future__ import annotations

from ctxmgr.diagnose.classes.context import monologue
from tests.diagnose.build import Said, bash, evidence

REFUSAL = "I am sorry, but insurance can't be added after the booking. Let me know how you would like to proceed."


def test_answers_to_the_same_question_are_no_plan_to_act() -> None:
    """Whoever is asked again and again may not be told to call the tool for what it announced: it announced nothing."""
    asked = [Said("Please add insurance to my booking."), Said(REFUSAL, who="main")]

    found = monologue.diagnose(evidence(bash("find_booking PEP4E0"), *asked * 4, loop=1, kind="monologue"))

    assert found is not None
    assert "asks for the same again" in found.cause
    assert "in one sentence" in found.next_step
    assert "Call a tool" not in found.next_step


def test_talk_without_an_answer_is_to_become_a_call() -> None:
    """Nobody speaks between the messages."""
    said = [Said("Now I will write the parser in parser.py.", who="main")]

    found = monologue.diagnose(evidence(Said("Write parser.py."), bash("ls"), *said * 4, loop=1, kind="monologue"))

    assert found is not None
    assert "Call a tool now" in found.next_step
