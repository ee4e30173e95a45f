"""The first and the third set of families: each case is what it says it is, and the product answers it in due form."""

from __future__ import annotations

import random

import pytest

from bench.recovery.__main__ import cases, families, sets
from bench.recovery.case import Case
from bench.recovery.policies import PRODUCT
from bench.recovery.product import product
from bench.recovery.world import plain, play, stands, told

FIRST = families("first")
ALL = {**FIRST, **families("third")}


def _transcript(case: Case) -> str:
    return plain("\n".join(map(told, case.records)))


@pytest.mark.slow
def test_the_first_set_is_large_and_mixed() -> None:
    """At least 300 cases of at least 10 kinds, and about a third of them without an answer."""
    made = list(cases(FIRST, 20))
    assert len(made) >= 300
    assert len(FIRST) >= 10
    assert 0.25 <= sum(not case.answered for case in made) / len(made) <= 0.4
    assert "first" in sets()
    assert PRODUCT


@pytest.mark.parametrize("name", ALL)
def test_histories_hold_what_the_case_says(name: str) -> None:
    """Where there is an answer, all that is needed stands in the history; else something is missing from it."""
    for seed in range(6):
        case = ALL[name](random.Random(f"{name}/{seed}"), seed)
        read = _transcript(case)
        held = [any(stands(phrase, read) for phrase in need.phrases) for need in case.needs]
        assert all(held) == case.answered, (name, seed)
        ids = {record["id"] for record in case.records if "id" in record}
        assert case.cites <= ids
        assert all(plain(text) in read for text in case.never)
        assert case.targets & ({record.get("agent") for record in case.records} | {case.ask.to})
        assert sum(record["kind"] == "entry" for record in case.records) >= 20


@pytest.mark.parametrize("name", ALL)
def test_cases_are_the_same_for_the_same_seed(name: str) -> None:
    """A case depends on its seed alone."""
    one, two = (ALL[name](random.Random("x"), 4) for _ in range(2))
    assert (one.records, one.ask, one.needs) == (two.records, two.ask, two.needs)
    assert one.again(1) == two.again(1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ALL)
def test_the_product_answers_in_due_form(name: str) -> None:
    """Each question gets exactly one continuation or a typed failure, never an exception; nothing is recursive."""
    attempts = play(ALL[name](random.Random(f"{name}/0"), 0), product).attempts
    assert attempts
    for attempt in attempts:
        assert not attempt.answer.failure.startswith("crash"), attempt.answer.failure
        assert bool(attempt.answer.failure) != (attempt.answer.branches == 1)
        assert not attempt.recursive
