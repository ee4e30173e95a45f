"""What fits into a budget: never more, nothing required cut, and the same whatever the order of the items."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.context.budget import BudgetPlan, Item, Piece, Reserves, available, decide, usual_reserves
from ctxmgr.errors import BudgetExceeded, InvalidInput

FRAME = 7


class Sized:
    """A provider whose texts are signs, one a token; a summary is a fifth, and each item has a frame of seven tokens."""

    def full(self, item: Item) -> Piece:
        """Return the whole."""
        return Piece("x" * item.tokens, item.tokens, item.tokens + FRAME, True)

    def summary(self, item: Item, most: int | None = None) -> Piece:
        """Return a fifth; very short texts have no summary."""
        return (
            self.full(item)
            if item.tokens < 10
            else Piece("s" * (item.tokens // 5), item.tokens // 5, item.tokens // 5 + FRAME, False)
        )

    def cut(self, item: Item, text: str, tokens: int | None, cost: int) -> Piece | None:
        """Return as much as is allowed."""
        size = min(len(text), cost - FRAME, len(text) if tokens is None else tokens)
        return Piece(text[:size], size, size + FRAME, False) if size > 0 else None


def item(name: str, tokens: int = 100, need: str = "optional", **more: Any) -> Item:
    """Return an item of an agent called "a"."""
    return Item(id=name, source="a", name=name, kind="text", need=need, tokens=tokens, **more)  # pyright: ignore[reportArgumentType]


def got(plan: BudgetPlan) -> dict[str, str]:
    """Return what each item got."""
    return {made.name: made.got for made in [*(made for *_, made in plan.placed), *plan.omitted]}


ITEMS = st.lists(
    st.builds(
        item,
        st.sampled_from("abcdefghijklmnop"),
        st.integers(0, 400),
        st.sampled_from(["required", "optional", "optional", "if_exists", "reference"]),
        priority=st.integers(0, 3),
        max_tokens=st.none() | st.integers(0, 200),
        use_summary=st.booleans(),
    ),
    max_size=14,
)


@pytest.mark.long
@settings(max_examples=3_000)
@given(items=ITEMS, room=st.integers(0, 2_000), spare=st.integers(0, 100), seed=st.integers())
def test_a_budget_is_kept(items: list[Item], room: int, spare: int, seed: int) -> None:
    """Over random needs, sizes and rooms: never more than the room, no required item cut, and order decides nothing."""
    sizes = {one.id: one.tokens for one in items}
    items = [replace(one, tokens=sizes[one.id]) for one in items]
    if _least(items) > room:
        with pytest.raises(BudgetExceeded) as failed:
            decide(items, room, Sized(), min(spare, room))
        with pytest.raises(BudgetExceeded, match=re.escape(failed.value.message)):
            decide(shuffled_like(items, seed), room, Sized(), min(spare, room))
        return
    plan = decide(items, room, Sized(), min(spare, room))
    again_plan = decide(shuffled_like(items, seed), room, Sized(), min(spare, room))

    assert [made for *_, made in again_plan.placed] == [made for *_, made in plan.placed]
    assert sorted(map(str, again_plan.omitted)) == sorted(map(str, plan.omitted))
    _check(items, plan, room)


def shuffled_like(items: Sequence[Item], seed: int) -> list[Item]:
    """Return the items in another order."""
    return random.Random(seed).sample(items, len(items))


def _least(items: Sequence[Item]) -> int:
    """Return what the required items cost: the whole of each, or its summary where no need asks for more."""
    costs: dict[str, int] = {}
    for one in items:
        if one.need == "required":
            cost = (Sized().summary(one) if one.use_summary else Sized().full(one)).cost
            costs[one.id] = max(cost, costs.get(one.id, 0))
    return sum(costs.values())


def _check(items: Sequence[Item], plan: BudgetPlan, room: int) -> None:
    assert sum(piece.cost for _, piece, _ in plan.placed) + plan.left == room
    assert plan.left >= 0
    assert len(plan.placed) + len(plan.omitted) == len(items)
    assert {placed.id for placed, _, _ in plan.placed} | {made.id for made in plan.omitted} == {one.id for one in items}
    for placed, piece, made in plan.placed:
        if placed.need == "required":
            assert made.got == ("summary" if placed.use_summary and placed.tokens >= 10 else "full")
        elif placed.max_tokens is not None:
            assert piece.tokens <= placed.max_tokens
        assert (made.tokens, made.cost) == (piece.tokens, piece.cost)
    required = {one.id for one in items if one.need == "required"}
    assert required <= {placed.id for placed, _, _ in plan.placed}


@pytest.mark.requirement("003-P3")
def test_the_order_of_the_specification() -> None:
    """Required in full, then optional by priority in full, then as a summary, then references, then the first words."""
    items = [
        item("reference", 500, "reference", priority=0),
        item("late", 900, priority=3),
        item("middle", 600, priority=2),
        item("first", 300, priority=1),
        item("must", 200, "required", priority=9),
    ]
    plan = decide(items, 200 + 300 + 120 + 100 + 60 + 5 * FRAME, Sized())

    assert [(made.name, made.got, made.rule) for *_, made in plan.placed] == [
        ("must", "full", "requiredFull"),
        ("first", "full", "optionalFull"),
        ("middle", "summary", "noRoomInFull"),
        ("reference", "summary", "referenceSummary"),
        ("late", "truncated", "lowestPriority"),
    ]
    assert plan.left == 0


def test_a_lower_priority_takes_no_room_from_a_higher_one() -> None:
    """What does not fit in full gets its summary before anything of lower priority gets in at all."""
    plan = decide([item("high", 1_000, priority=1), item("low", 250, priority=2)], 300, Sized())

    assert got(plan) == {"high": "summary", "low": "summary"}


def test_required_items_that_do_not_fit_are_named() -> None:
    """The error names what does not fit, and by how many tokens it is too much."""
    with pytest.raises(BudgetExceeded) as failed:
        decide([item("one", 100, "required"), item("two", 300, "required"), item("three", 50)], 200, Sized())

    left = 200 - 100 - FRAME
    assert failed.value.kind == "budget"
    assert f"{300 + FRAME - left:,} tokens more" in failed.value.message
    assert "a/two (307 tokens)" in failed.value.message
    assert "a/one" not in failed.value.message


def test_a_required_item_over_its_own_limit_is_whole_and_said() -> None:
    """A limit never cuts what is required; the reason tells that it was over it."""
    plan = decide([item("one", 100, "required", max_tokens=10)], 200, Sized())

    assert got(plan) == {"one": "full"}
    assert "over its limit of 10 tokens" in plan.placed[0][2].reason


@pytest.mark.requirement("003-P5")
@pytest.mark.parametrize(
    ("more", "tokens", "expected"),
    [({"max_tokens": 50}, 100, "summary"), ({"max_tokens": 10}, 100, "truncated"), ({"use_summary": True}, 100, "summary"),
     ({"max_tokens": 0}, 100, "omitted"), ({"use_summary": True}, 5, "full")],
)  # fmt: skip
def test_limits_and_wishes_of_a_need(more: dict[str, Any], tokens: int, expected: str) -> None:
    """A limit makes a summary of an item, or the beginning of one; a wish for the summary is granted where there is one."""
    assert got(decide([item("one", tokens, **more)], 1_000, Sized())) == {"one": expected}


def test_several_needs_for_one_item_give_it_once() -> None:
    """The strongest need counts; the others are in the decisions as duplicates."""
    plan = decide([item("one", need="reference"), item("one", need="required"), item("one")], 1_000, Sized())

    assert [made.need for *_, made in plan.placed] == ["required"]
    assert [made.rule for made in plan.omitted] == ["duplicate", "duplicate"]


@pytest.mark.parametrize("budget", [0, -1, -(10**30)])
def test_a_budget_that_is_no_number_of_tokens_is_refused(budget: int) -> None:
    """Nothing and less than nothing are bad input."""
    with pytest.raises(InvalidInput):
        available(budget, usual_reserves(budget), 0)


def test_the_reserves_come_first() -> None:
    """Reserves beyond the budget fail with what is short; a larger head than its reserve takes the room of items."""
    spec = Reserves(prompt=5_000, task=2_000)
    with pytest.raises(BudgetExceeded, match="6,999 short"):
        available(1, spec, 50)
    with pytest.raises(InvalidInput):
        available(10, Reserves(prompt=-1, task=0), 0)

    assert available(100_000, spec, 1_000) == 93_000
    assert available(100_000, spec, 3_000) == 92_000


@pytest.mark.parametrize(
    ("budget", "prompt", "task"), [(100_000, 5_000, 2_000), (10**9, 5_000, 2_000), (300, 15, 6), (1, 0, 0), (-7, 0, 0)]
)
def test_the_usual_reserves_follow_the_budget(budget: int, prompt: int, task: int) -> None:
    """At 100,000 tokens they are those of the specification, larger budgets have no more, small ones keep their room."""
    assert usual_reserves(budget) == Reserves(prompt=prompt, task=task)
