"""What is told of two agents that wait for each other."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, evidence


def test_a_call_that_waits_is_not_told_as_words() -> None:
    """Its input is shown as what it was given, since the agent has not said that."""
    one = Call("await_reply", {"of": "tester"}, status="open", agent="writer")
    two = Call("await_reply", {"of": "writer"}, status="open", agent="tester")
    told = diagnose(evidence(one, two, loop=2, kind="hung", severity="hung"))

    assert told is not None
    assert told.kind == "mutualWait"
    assert " said" not in told.cause
    assert "writer called await_reply" in told.cause
    assert "`of: tester`" in told.cause


def _held(question: str, topic: str = "audience", answer: str = "", read: str = "") -> str:
    """Return cause and step of two agents that wait by calls, the one after a question."""
    page = Call("doc.read", {"doc": "brief"}, read or "The brief is short.", agent="writer")
    steps = [
        Said("Writer and painter make the leaflet."),
        Said(question, "painter"),
        page,
        *([Said(answer, "writer")] if answer else []),
        Call("task.wait", {"for": "writer", "topic": topic}, status="open", agent="painter"),
        Call("task.wait", {"for": "painter", "topic": "cover.png"}, status="open", agent="writer"),
    ]
    told = diagnose(evidence(*steps, loop=2, kind="hung", severity="hung"))

    assert told is not None
    assert told.kind == "mutualWait"
    return f"{told.cause}\n{told.next_step}"


ASKED = "Before I start I need to know which audience it is for, children or parents."


def test_the_question_behind_a_wait_is_told() -> None:
    """It says what is to be decided, and a page that was read may answer it."""
    told = _held(ASKED, read="1 Paper is white.\n2 The whole leaflet is made for parents, since children do not read it.")

    assert "Painter asked" in told
    assert "answer painter's question, `which audience it is for, children or parents`" in told
    assert "may answer it: `2 The whole leaflet is made for parents" in told


def test_no_other_question_is_told_as_the_one_behind_a_wait() -> None:
    """It is about something else, asks nothing, or was answered; a page about something else answers nothing."""
    for told in (
        _held(ASKED, topic="paper"),
        _held("The audience was children or parents in the last leaflet."),
        _held(ASKED, answer="painter: parents."),
    ):
        assert "Painter asked" not in told
    assert "may answer it" not in _held(ASKED, read="The audience of the theatre was large and loud in that year.")
