"""What to do about a refusal that no permission can lift."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, evidence


def test_a_rule_of_the_user_comes_before_a_question() -> None:
    """What the user said may be used alone is told, with an answer that has it."""
    search = Call("web_search", {"q": "heat pumps"}, {"results": [{"title": "IDAE informe 2025"}, {"title": "AFEC"}]})
    drafts = [
        Call("submit_draft", {"text": f"{number} were sold (AFEC)."}, "Rejected by reviewer: source not allowed.", "denied")
        for number in (189, 176, 185)
    ]
    told = diagnose(evidence(Said("Write one paragraph. Only figures from public bodies (IDAE, Eurostat)."), search, *drafts))

    assert told is not None
    assert "Only figures from public bodies" in told.cause
    assert "`IDAE`" in told.next_step


def test_a_refusal_by_the_user_is_an_answer() -> None:
    """Nobody is sent to ask whether it may be done after the user has said no."""
    call = Call("Bash", {"command": "npm publish"}, "The user rejected this tool call.", "denied")
    told = diagnose(evidence(Said("Release it."), call, call, call))

    assert told is not None
    assert "the user has refused this call" in told.cause
    assert "ask the user whether" not in told.next_step
