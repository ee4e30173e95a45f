"""A question that was answered before: the answer is told, and not asked for again."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.context import decided_before
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, evidence, read, require_told

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


RULING = (
    "# Retries of webhooks\n\nStatus: accepted\n\nA failed webhook goes into a delay queue with a dead letter topic, "
    "never into a cron job: the receivers are down for hours."
)
ASKED = {"question": "Shall failed webhooks be retried by a cron job, a delay queue or a topic of their own?"}


@pytest.mark.parametrize(
    "answer",
    [{"answered": False, "reason": "nobody is there"}, {"status": "timeout", "answer": None}, "No answer within 300 s"],
)
def test_a_question_to_nobody_is_settled_by_a_document_that_was_read(answer: object) -> None:
    """A call that ends well without an answer asks in vain, and the decision that was read answers it."""
    known = evidence(
        read("docs/adr/0012-webhook-retries.md", RULING),
        read("docs/adr/0013-names.md", "# Names\n\nStatus: accepted\n\nTopics begin with the team."),
        *[Call("ask_human", ASKED, answer)] * THRICE,
    )

    require_told(known, decided_before.KIND, ["0012-webhook-retries.md", "delay queue"], ["0012-webhook-retries.md", "queue"])


def test_a_document_gives_no_permission() -> None:
    """What a person has to allow is not decided by a text on the same subject."""
    asked = {"question": "May I delete the delay queue of failed webhooks, or the dead letter topic?"}
    known = evidence(
        read("docs/adr/0012-webhook-retries.md", RULING), *[Call("ask_human", asked, {"answered": False})] * THRICE
    )

    assert (told := diagnose(known)) is None or told.kind != decided_before.KIND


@pytest.mark.parametrize("status", ["proposed", "draft, not decided", "superseded by 0021"])
def test_an_open_document_settles_nothing(status: str) -> None:
    """A record that is only proposed answers no question."""
    known = evidence(
        read("docs/adr/0012-webhook-retries.md", RULING.replace("accepted", status)),
        *[Call("ask_human", ASKED, {"answered": False})] * THRICE,
    )

    assert (told := diagnose(known)) is None or told.kind != decided_before.KIND


def test_the_item_of_a_list_that_is_about_the_subject_is_told() -> None:
    """Of a list of decisions only the one that is debated counts, and a sentence that says where they are decides nothing."""
    listed = {
        "rulings": [
            {"no": "R-3", "subject": "Language of the labels", "outcome": "French", "decided_by": "Ines"},
            {
                "no": "R-4",
                "subject": "Carrier of parcels over 30 kg",
                "outcome": "depot pickup by Nordfracht",
                "decided_by": "Ines",
            },
            {"no": "R-9", "subject": "Carrier of parcels abroad", "outcome": "open", "decided_by": None},
        ]
    }
    known = evidence(
        Said("Plan the parcels. The decisions on each carrier are all written down in the register."),
        Call("rulings.search", {"query": "decisions"}, listed),
        Said("Which carrier for the parcels over 30 kg, Nordfracht or Alpenpost?", "planner"),
        Said("Alpenpost might be better for heavy parcels.", "buyer"),
        Said("Let us compare the carrier prices of both again.", "planner"),
        Said("Nordfracht might be right, but the depot is far. Compare again?", "buyer"),
        *[Call("quote.get", {"carrier": "Alpenpost", "kg": 31}, {"eur": 41})] * THRICE,
    )

    require_told(known, decided_before.KIND, ["R-4", "depot pickup by Nordfracht"], ["depot pickup by Nordfracht"])
    assert (told := diagnose(known)) is not None
    assert "R-3" not in told.cause
    assert "French" not in told.next_step
