"""The rates that the specification asks for, on simulated agents; bench/recovery/RESULTS.md has those of untuned families."""

from __future__ import annotations

import pytest

from bench.recovery import measures
from bench.recovery.__main__ import cases, families
from bench.recovery.product import product
from bench.recovery.world import Played, play

SEEDS = 2


@pytest.fixture(scope="module")
def played() -> list[Played]:
    """Return how the tuned families went, two seeds of each."""
    return [play(case, product) for case in cases(families("first"), SEEDS)]


@pytest.mark.long
@pytest.mark.requirement("SC-001")
def test_lost_context_is_recovered(played: list[Played]) -> None:
    """Of the simulated workflows that lost what they need at least 95 % go on without a person."""
    assert measures.at_all(played).percent >= 95


@pytest.mark.requirement("SC-010")
def test_loops_are_broken_at_once(played: list[Played]) -> None:
    """Of the simulated loops at least 90 % are broken by the first continuation."""
    assert measures.first([each for each in played if each.case.kind == "loop"]).percent >= 90


@pytest.mark.requirement("SC-014")
def test_reviews_and_merges_go_on(played: list[Played]) -> None:
    """Of the simulated review and merge requests at least 90 % go on with the first continuation."""
    assert measures.first([each for each in played if each.case.kind == "review"]).percent >= 90


@pytest.mark.slow
def test_untuned_families_do_not_fall_behind() -> None:
    """Of the families that the rules were not tuned on at least 70 % go on at once, and none is sent to the wrong agent."""
    untuned = [play(case, product) for case in cases(families("second"), 1)]
    told = [each for each in untuned if not each.attempts[0].answer.failure]

    assert measures.first(untuned).percent >= 70
    assert all(each.attempts[0].answer.target in each.case.targets for each in told)


@pytest.mark.slow
def test_reviews_and_merges_of_the_second_set_go_on() -> None:
    """Of the review and merge requests of the second set at least 90 % go on at once, those without an answer too."""
    review = {name: family for name, family in families("second").items() if name in _REVIEWS}

    assert measures.first([play(case, product) for case in cases(review, 5)]).percent >= 90


_REVIEWS = ("starved_reviewer", "review_done", "merge_conflict")
