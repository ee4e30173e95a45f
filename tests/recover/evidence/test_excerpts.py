"""A request is read as clauses: what they ask for, whether they ask, and the telling words with their other forms."""

from __future__ import annotations

import pytest

from ctxmgr.recover.evidence.excerpts import alike, clauses, needed, telling
from ctxmgr.text.tokens import stem


def test_clauses_that_ask() -> None:
    """A clause that says that something is not known asks; one that tells does not."""
    found = clauses("I read the plan. I do not know which bucket holds the state.")

    assert [clause.asks for clause in found] == [False, True]


def test_a_request_asks() -> None:
    """Where no clause of a request says that it asks, all do, and are marked as implied."""
    assert [(clause.asks, clause.implied) for clause in clauses("the decision of ADR 14", ask=True)] == [(True, True)]
    assert [clause.implied for clause in clauses("which decision is in ADR 14?", ask=True)] == [False]


def test_reasons_are_asked_for() -> None:
    """Who asks why, or for a reason, asks for a reason; who asks for a value does not."""
    assert clauses("why was the limit cut")[0].reason
    assert clauses("nobody told me the reasons for the limit")[0].reason
    assert not clauses("which limit holds")[0].reason


def test_names_come_first() -> None:
    """Names of things come before words of prose, and words that fill any sentence are left out."""
    assert [term.word for term in telling("please tell me the bucket in infra/backend.tf")] == ["infra/backend.tf", "bucket"]


def test_forms_of_a_word() -> None:
    """The forms of a word share a stem, and words of the same meaning are found by each other."""
    assert stem("merging") == stem("merged")
    assert stem("hostname") in set(alike("machine"))
    assert stem("machine") in set(alike("hostname"))


@pytest.mark.parametrize(
    ("goal", "wanted"),
    [
        ("deployer rolls it out; it needs the image reference", ["the image reference"]),
        ("server loads the adapter; tell it where that was saved", ["where that was saved"]),
        ("publisher has to know which table was checked, and publishes it", ["which table was checked, and publishes it"]),
        ("the README needs an update", []),
        ("merge the approved branch into the target branch", []),
        ("it needs to be done by Friday", []),
    ],
)
def test_what_an_instruction_says_that_somebody_needs(goal: str, wanted: list[str]) -> None:
    """Only what is said to be needed or to be told is taken out of an instruction; work that is needed is none of it."""
    assert needed(goal) == wanted
