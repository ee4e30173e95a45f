"""A question that was answered before: the answer is told, and not asked for again."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.context import decided_before
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, evidence, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "the answer behind a receipt",
        evidence(
            Call("ask_user", {"question": "Which port shall I use, 80 or 81?"}, "sent"),
            Said("81, please."),
            *[Call("ask_user", {"question": "Which port shall I use, 80 or 81?"}, "was answered already", "error")] * THRICE,
        ),
        ["81, please."],
        ["81, please."],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, decided_before.KIND, cause, step)


def test_another_session_of_the_project_has_the_answer() -> None:
    """A question that was answered in a related session is not asked again."""
    asked = {"question": "Which database should I use, PostgreSQL or SQLite?"}
    earlier = evidence(Call("AskUserQuestion", asked, "SQLite", "ok")).entries
    now = evidence(*[Call("AskUserQuestion", asked, "The user is away.", "error")] * THRICE)
    found = diagnose(Evidence(now.entries, now.finding, now.messages, earlier))

    assert found is not None
    assert found.kind == "decidedBefore"
    assert "another session" in found.cause
