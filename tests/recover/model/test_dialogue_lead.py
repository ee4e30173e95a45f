"""The narrow question: which of the numbered entries answers it, and what becomes of every other answer."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.store import Store
from tests.builders import entry_id
from tests.recover.model.asking import LEAD, ask, lead


def test_a_number_names_its_entry(stuck: Store) -> None:
    """The numbers stand for the candidates in their order."""
    for number, index in ((1, 6), (7, 0)):
        found, script = ask(stuck, [lead(number=number)], choice=LEAD)
        assert found.lead is not None
        assert (found.lead.need, found.lead.entry) == ("the port", entry_id("stuck", index))
        assert found.use.mode == "lead"
        assert script.offered == [[]]


def test_none_of_them_is_an_answer(stuck: Store) -> None:
    """With 0 there is a need and no entry, and it is no failure."""
    found, _ = ask(stuck, [lead(number=0)], choice=LEAD)

    assert found.lead is not None
    assert found.lead.entry is None
    assert found.use.failure is None


NO_ANSWERS: list[Any] = [
    lead(number=8), lead(number=-1), lead(number="x"), lead(need=""), lead(need="x" * 400), "7", "", "the planner knows",
    '{"answer": 7}', ("continue_workflow", {"target": "coder"}),
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("line", NO_ANSWERS)
def test_what_is_no_answer_is_asked_for_once_more(stuck: Store, line: Any) -> None:
    """One retry: an answer then counts, a second bad one is a failure."""
    heard, _ = ask(stuck, [line, lead()], choice=LEAD)
    given_up, script = ask(stuck, [line], choice=LEAD)

    assert heard.lead is not None
    assert given_up.lead is None
    assert given_up.use.failure
    assert given_up.use.failure.isprintable()
    assert len(script.told) == 2


def test_without_candidates_nothing_is_asked(stuck: Store) -> None:
    """No entry to choose from is a failure, and no request."""
    found, script = ask(stuck, [lead()], choice=LEAD, candidates=[])

    assert found.use.failure == "there is no entry to choose from"
    assert (found.use.requests, script.told) == (0, [])
