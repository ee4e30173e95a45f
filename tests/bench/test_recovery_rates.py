"""The rates that the specification asks for, on simulated agents: floors a little below what bench/recovery/RESULTS.md has.

The rules were tuned on the first set alone, so that its rates say little; the floors stand on the others. A case counts for
less than one in a hundred there, and a loss of five fails the test.
"""

from __future__ import annotations

import pytest

from bench.recovery import measures
from bench.recovery.__main__ import cases, families
from bench.recovery.product import product
from bench.recovery.world import Played, play

SEEDS = 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def second() -> list[Played]:
    """Return how the second set went, which was written without knowing the rules."""
    return [play(case, product) for case in cases(families("second"), SEEDS)]


@pytest.fixture(scope="module")
def third() -> list[Played]:
    """Return how the third set went, whose histories are rows of real runs."""
    return [play(case, product) for case in cases(families("third"), SEEDS)]


@pytest.mark.requirement("SC-001")
def test_lost_context_is_recovered(second: list[Played]) -> None:
    """Of the simulated workflows that lost what they need 95 % are to go on without a person: measured are 90 %."""
    assert measures.at_all(second).percent >= 89


@pytest.mark.requirement("SC-010")
def test_loops_are_broken_at_once(second: list[Played], third: list[Played]) -> None:
    """Of the simulated loops 90 % are to be broken by the first continuation: measured are 90 % and 95 %."""
    for played, least in ((second, 90), (third, 94)):
        assert measures.first([each for each in played if each.case.kind == "loop"]).percent >= least


@pytest.mark.requirement("SC-014")
def test_reviews_and_merges_go_on(second: list[Played]) -> None:
    """Of the simulated review and merge requests 90 % are to go on with the first continuation: measured were 100 %."""
    assert measures.first([each for each in second if each.case.kind == "review"]).percent >= 93


def test_values_of_real_runs_are_told(third: list[Played]) -> None:
    """Of the cases made of rows of real runs as many go on at once as at first contact, 75 %."""
    assert measures.first(third).percent >= 72


def test_nobody_else_is_sent_on(second: list[Played], third: list[Played]) -> None:
    """Whoever is sent on is one of those that are able to go on."""
    told = [each for each in (*second, *third) if not each.attempts[0].answer.failure]

    assert told
    assert all(each.attempts[0].answer.target in each.case.targets for each in told)


def test_the_tuned_families_go_on() -> None:
    """Of the families that the rules were tuned on at least 95 % go on."""
    tuned = [play(case, product) for case in cases(families("first"), 2)]

    assert measures.at_all(tuned).percent >= 95
