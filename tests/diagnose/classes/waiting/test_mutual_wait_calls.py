"""What is told of two agents that wait for each other."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, evidence


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
