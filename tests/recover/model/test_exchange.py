"""What a model may use up, and how it refers to agents and entries: bounded, and never to what it was not shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.base.light_dataclass import replace
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.exchange import (
    PLAIN,
    Budget,
    BudgetError,
    ShownNames,
    aliases,
    parse_place,
    settle_answer,
)
from ctxmgr.types.model_proposal import Proposal

CHOICE = replace(ModelChoice("m"), max_requests=5, max_tool_calls=3, max_characters=2_000, max_tokens=1_000, seconds=20.0)


def budget() -> tuple[Budget, list[float]]:
    """Return a budget, and the moment that its clock shows."""
    moment = [100.0]
    return Budget(CHOICE, lambda: moment[0]), moment


@pytest.mark.requirement("SC-004")
def test_the_time_counts_from_the_first_request_on() -> None:
    """Loading the library costs none of it; what is left is never less than nothing."""
    used, moment = budget()
    moment[0] += 50
    assert (used.began, used.spent, used.left) == (False, 0.0, 20.0)

    used.request()
    moment[0] += 15
    used.request()
    assert (used.began, used.spent, used.left) == (True, 15.0, 5.0)
    moment[0] += 50
    assert used.left == 0.0


def test_requests_tokens_calls_and_characters_have_an_end() -> None:
    """The one that is too many is refused with the limit in words; calls are counted on, so that the use is told truly."""
    used, _ = budget()
    for _ in range(5):
        used.request()
    with pytest.raises(BudgetError, match="the limit of 5 requests was reached"):
        used.request()
    assert used.requests == 5
    assert [used.call() for _ in range(5)] == [True, True, True, False, False]
    assert used.tool_calls == 5
    used.tell(1_500)
    used.tell(1_500)
    assert used.characters == 0
    used.tokens = 1_000
    used.require_tokens()
    used.tokens = 1_001
    with pytest.raises(BudgetError, match="the limit of 1,000 tokens"):
        used.require_tokens()


def _ask(used: Budget, _: list[float]) -> None:
    for _number in range(3):
        used.request()


def _call(used: Budget, _: list[float]) -> None:
    for _number in range(3):
        used.call()


def _read(used: Budget, _: list[float]) -> None:
    used.tell(1_401)


def _spend(used: Budget, _: list[float]) -> None:
    used.tokens = 751


def _wait(used: Budget, moment: list[float]) -> None:
    used.request()
    moment[0] += 15.5


@pytest.mark.parametrize(
    "use",
    [_ask, _call, _read, _spend, _wait],
    ids=["requests", "calls", "characters", "tokens", "time"],
)
def test_a_model_is_told_to_answer_before_anything_runs_out(use: Callable[[Budget, list[float]], Any]) -> None:
    """A late answer is lost, a less informed one is not."""
    used, moment = budget()
    used.request()
    assert not used.is_low

    use(used, moment)
    assert used.is_low


@given(st.lists(st.one_of(st.sampled_from(["coder", "agent-1", "agent-2", "a b", "<x>", ""]), st.text(max_size=5)), max_size=8))
def test_each_agent_has_one_alias_that_is_plain(agents: list[str]) -> None:
    """Plain names stay; a hostile one gets a number that is nobody's name; the order stays, and none is lost."""
    named = aliases(agents)

    assert list(named.values()) == list(dict.fromkeys(agents))
    assert all(PLAIN.fullmatch(alias) for alias in named)
    assert all(named[agent] == agent for agent in agents if PLAIN.fullmatch(agent))


@pytest.mark.parametrize(
    ("text", "place"),
    [("@12", 12), ("12", 12), (" @-1 ", -1), ("@", None), ("e12", None), ("@1.5", None), ("@" + "9" * 13, None), ("@١", None)],
)
def test_a_place_is_told_from_an_id(text: str, place: int | None) -> None:
    """Digits alone, in a length that an index can have."""
    assert parse_place(text) == place


def seen() -> ShownNames:
    """Return what a model was told of, e1 at 1 and e2, and shown: e5 at 5, and x3 at 3 of the related session s1."""
    names = ShownNames(["e1", "e2"], {"e1": 1, "e9": 9})
    names.add("e5", 5)
    names.add("x3", 3, "s1")
    return names


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("e1", "e1"), (" e2 ", "e2"), ("@1", "e1"), ("1", "e1"), ("@5", "e5"), ("e5", "e5"), ("s1@3", "x3"), ("x3", "x3"),
        ("e9", None), ("@9", None), ("@2", None), ("@3", None), ("s2@3", None), ("s1@5", None), ("nonsense", None), ("", None),
    ],
)  # fmt: skip
def test_only_what_was_shown_or_told_of_is_known(reference: str, found: str | None) -> None:
    """By its id or its place, in the session that it is of; all else is unknown, whether it exists or not."""
    assert seen().find(reference) == found


def answer(**fields: Any) -> Proposal:
    """Return an answer to the coder that cites e1."""
    known = {
        "target": "agent-1", "reason": "r", "summary": "s", "facts": [{"text": "t", "entries": ["@1", "e1", "@5"]}],
        "advice": [{"text": "a", "entries": ["s1@3"]}], "dropped": [{"entry": "@5", "reason": "old"}],
    }  # fmt: skip
    return Proposal.model_validate({**known, **fields})


def test_an_answer_comes_back_in_the_sessions_own_names() -> None:
    """Target and entries are those of the record, each once."""
    settled, problems = settle_answer(answer(), {"agent-1": "the coder"}, seen())

    assert problems == []
    assert settled is not None
    assert settled.target == "the coder"
    assert [fact.entries for fact in settled.facts] == [["e1", "e5"]]
    assert [advice.entries for advice in settled.advice] == [["x3"]]
    assert [dropped.entry for dropped in settled.dropped] == ["e5"]


def test_what_is_wrong_with_an_answer_is_said_once_and_briefly() -> None:
    """The target first, then each entry that was not shown; not more than a model can act on."""
    facts = [{"text": "t", "entries": [f"e{number}" for number in (70, 70, 71, 72, 73, 74)]}]
    settled, problems = settle_answer(answer(target="ghost", facts=facts), {"agent-1": "the coder"}, seen())

    assert settled is None
    assert len(problems) == 4
    assert problems[0] == '"ghost" is none of the agents that may continue'
    assert problems[1] == '"e70" was not shown to you: look at it first, or cite another'
    assert problems[2].startswith('"e71"')
