"""A model that means harm: whatever it does, one valid continuation or a typed failure, and nothing else in the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from bench.hostile.report import invalid
from bench.hostile.trial import Outcome, run
from ctxmgr.recover import recovery
from ctxmgr.recover.answer.draft import Additions, Draft
from ctxmgr.recover.model import consultation
from ctxmgr.recover.model.exchange import Budget
from ctxmgr.recover.model.messages import Fence
from ctxmgr.recover.recovery import ConsultationResult
from ctxmgr.store.repositories.bookkeeping import Leases
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.plain_records import build

SEED, RUNS, PARTS = 4, 150, 3


@pytest.mark.long
@pytest.mark.requirement("FR-018", "FR-019", "SC-007", "SC-012")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_outcome_is_invalid(part: int) -> None:
    """Each recovery ends with one allowed, grounded, recorded continuation, or as the rules alone would have refused."""
    outcomes = [run(SEED, number) for number in range(part, RUNS, PARTS)]

    assert invalid(outcomes) == []
    assert 0.1 < sum(each.ended == "model" for each in outcomes) / len(outcomes) < 0.9
    assert len({each.ended for each in outcomes if each.ended.startswith("fallback")}) >= 3


@pytest.mark.slow
def test_a_run_can_be_repeated() -> None:
    """A seed and a number make the same run again, deed by deed, and its delimiters are new nevertheless."""
    first, second = run(SEED, 11), run(SEED, 11)

    assert (first.ended, first.acts, first.written, first.mood) == (second.ended, second.acts, second.written, second.mood)
    assert not first.delimiters & second.delimiters


def _no_gate(patch: pytest.MonkeyPatch) -> None:
    def none(_proposal: Proposal, _draft: Draft) -> list[str]:
        return []

    patch.setattr(consultation, "objections", none)


def _no_fence(patch: pytest.MonkeyPatch) -> None:
    def plain(_self: Fence, source: str, body: Any, **_more: Any) -> str:
        return f"{source}: {json.dumps(body, ensure_ascii=False)}"

    patch.setattr(Fence, "wrap", plain)
    patch.setattr(Fence, "text", plain)


def _one_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consultation, "Fence", lambda: Fence("0123456789abcdef"))


def _no_limit(patch: pytest.MonkeyPatch) -> None:
    def always(_self: Budget) -> bool:
        return True

    patch.setattr(Budget, "call", always)


def _no_sieve(patch: pytest.MonkeyPatch) -> None:
    def nothing(_text: str) -> None:
        return None

    patch.setattr(consultation, "suspicion", nothing)


def _no_lease_given_back(patch: pytest.MonkeyPatch) -> None:
    def kept(_self: Leases, _session: str, _holder: str) -> None:
        return None

    patch.setattr(Leases, "release", kept)


def _more_written(patch: pytest.MonkeyPatch) -> None:
    honest = cast("Callable[..., Any]", getattr(recovery, "_merge_additions"))  # noqa: B009

    def merged(*given: Any) -> Any:
        consulted, continuation = honest(*given)
        note = build("note", given[0].case.request.session, None, id="late", entries=[], content="x")
        return ConsultationResult(consulted.added, [*consulted.records, note]), continuation

    patch.setattr(recovery, "_merge_additions", merged)


def _unmarked_fallback(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Additions, "counts", property(lambda _self: True))


SABOTAGE: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str, tuple[str, ...]]] = {
    "the gate lets everything pass": (_no_gate, "order is passed on", ("obey", "drop", "read")),
    "recorded text is not fenced": (_no_fence, "outside of the fences", ("read",)),
    "the delimiter is always the same": (_one_fence, "delimiter", ("answer",)),
    "tool calls are not counted": (_no_limit, "tool calls", ("many", "read")),
    "orders of the model are kept": (_no_sieve, "order is passed on", ("fail", "scribble")),
    "the lease stays": (_no_lease_given_back, "lease", ("answer",)),
    "something more is written": (_more_written, "note", ("answer",)),
    "a failure counts as an answer": (_unmarked_fallback, "fallback", ("fail",)),
}
"""What is broken on purpose, a word of the faults that must then be found, and what the models do."""


@pytest.mark.long
@pytest.mark.parametrize("name", list(SABOTAGE))
def test_the_battery_sees_what_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one guard taken away, some runs of the battery are invalid for that reason."""
    sabotage, told, acts = SABOTAGE[name]
    sabotage(monkeypatch)
    monkeypatch.setattr("bench.hostile.model.MOODS", {name: acts})
    outcomes: list[Outcome] = []
    for number in range(40):
        outcomes.append(run(SEED, number))
        if len(outcomes) % 4 == 0 and any(told in line.partition("): ")[2] or told in line[:20] for line in invalid(outcomes)):
            return
    pytest.fail("\n".join(invalid(outcomes)[:10]) or "every run was taken for valid")
