"""A whole package: within its budget in both formats, the same bytes for the same state, and every item explained."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ctxmgr.context.budget import Item
from ctxmgr.context.packages import render, whole_cost
from ctxmgr.context.packing import Order, assemble
from ctxmgr.context.summaries import Summary, summarise
from ctxmgr.errors import BudgetExceeded, InvalidInput
from ctxmgr.text.tokens import ESTIMATE, Counter
from ctxmgr.types.context_package import Assembly

NOW = "2026-01-31T12:00:00Z"
NO_RESERVES = {"reserve_prompt": 0, "reserve_task": 0}
SPEC_RESERVES: dict[str, Any] = {"reserve_prompt": 5_000, "reserve_task": 2_000}


class Shelf:
    """Texts by the id of their item."""

    def __init__(self, texts: dict[str, str], counter: Counter = ESTIMATE) -> None:
        self.texts = texts
        self.counter = counter

    def full(self, item: Item) -> str:
        """Return the text."""
        return self.texts[item.id]

    def summary(self, item: Item, most: int | None = None) -> Summary:
        """Return its summary."""
        return summarise(item.name, self.texts[item.id], item.kind, self.counter)

    def items(self, need: str = "optional", kind: str = "text") -> list[Item]:
        """Return an item for each text."""
        return [
            Item(id=name, source="dev", name=name, kind=kind, need=need, tokens=self.counter.count(text, kind))  # pyright: ignore[reportArgumentType]
            for name, text in self.texts.items()
        ]


def ordered(shelf: Shelf, budget: int, items: list[Item] | None = None, **more: Any) -> Assembly:
    """Assemble with no reserves unless told."""
    values: dict[str, Any] = {**NO_RESERVES, "assembled_at": NOW, "counter": shelf.counter, **more}
    return assemble(Order("me", budget=budget, items=shelf.items() if items is None else items, texts=shelf, **values))


PROSE = "The first sentence says it. The second one adds something to that.\n\n"
PIECES = st.sampled_from(
    [PROSE, "# Title\n", '"quoted\\": "', "    indented\n", "\x1b[2J\r", "key: value\n", "字" * 20, "\ud800", "\n", "word "]
)


class Greedy:
    """A counter that finds more tokens in a whole than in its parts."""

    name = "greedy"
    band = 1.0

    def count(self, text: str, kind: str) -> int:
        """Return a number that grows a little faster than the text."""
        return len(text) // 3 + len(text) // 1_000


@pytest.mark.slow
@settings(max_examples=300)
@given(
    texts=st.dictionaries(st.sampled_from("abcdefgh"), st.lists(PIECES, max_size=60).map("".join), max_size=8),
    budget=st.integers(1, 3_000),
    seed=st.integers(0, 10**6),
    counter=st.sampled_from([ESTIMATE, Greedy()]),
)
def test_no_package_is_over_its_budget(texts: dict[str, str], budget: int, seed: int, counter: Counter) -> None:
    """Over random texts, needs and budgets, neither format takes more than the budget, and both are read back the same."""
    source, shelf = random.Random(seed), Shelf(texts, counter)
    items = [
        Item(
            one.id,
            one.source,
            one.name,
            source.choice(["text", "markdown", "yaml"]),
            source.choice(["required", "optional", "reference"]),
            one.tokens,
            source.randrange(3),
            source.choice([None, None, 50]),
            source.random() < 0.3,
        )
        for one in shelf.items()
    ]
    try:
        made = ordered(shelf, budget, items, project_context={"name": "Finance CLI", "n": 1.5}, missing=[("x", "y")])
    except BudgetExceeded:
        return
    package = made.package
    source.shuffle(items)
    again = ordered(
        shelf, budget, items, project_context={"name": "Finance CLI", "n": 1.5}, missing=[("x", "y")], assembled_at="later"
    )

    assert whole_cost(package, counter) <= package.metadata.total_tokens <= budget
    assert sum(row.tokens for row in made.budget) == budget
    assert again.package.digest == package.digest
    assert render(again.package).replace("later", NOW) == render(package)
    for item in (one for one in items if one.need == "required" and not one.use_summary):
        assert next(one.content for one in package.artifacts if one.id == item.id) == texts[item.id]
    _read_back(made)


def _read_back(made: Assembly) -> None:
    package = made.package
    read: Any = YAML(typ="safe", pure=True).load(render(package))["context_package"]
    data = json.loads(render(package, "json"))
    contents = [one.content for one in package.artifacts]

    render(package, "json").encode("utf-8")
    render(package).encode("utf-8")
    assert [one["content"] for one in read["artifacts"]] == [one["content"] for one in data["artifacts"]] == contents
    assert read["metadata"]["total_tokens"] == data["metadata"]["totalTokens"] == package.metadata.total_tokens
    assert read["project_context"] == data["projectContext"] == {"name": "Finance CLI", "n": 1.5}
    assert read.get("warnings", []) == data["warnings"] == package.warnings
    assert read["missing"] == data["missing"] == [{"source": "x", "name": "y"}]


def test_every_item_is_explained() -> None:
    """Each item has one decision with what it asked and got, and what was shortened is in the warnings."""
    shelf = Shelf({"a.md": PROSE * 40, "b.md": PROSE * 4})
    made = ordered(shelf, 500)

    assert {one.name: one.got for one in made.decisions} == {"a.md": "summary", "b.md": "full"}
    assert made.package.warnings == [
        f"dev/a.md summarised: all of it is {shelf.items()[0].tokens:,} tokens, and "
        + made.decisions[0].reason.rpartition("and ")[2]
    ]
    assert made.package.artifacts[0].original_tokens == shelf.items()[0].tokens


@pytest.mark.slow
def test_many_items_left_out_do_not_crowd_the_package() -> None:
    """Thousands of items that do not fit leave a few warnings and one that counts the others."""
    shelf = Shelf({f"{number:04}": PROSE * 20 for number in range(2_000)})
    made = ordered(shelf, 1_000)

    assert made.package.metadata.total_tokens <= 1_000
    assert made.package.warnings[-1].endswith("more items were masked, shortened or left out")
    assert len(made.decisions) == 2_000


def test_the_context_pays_from_its_reserve() -> None:
    """Project and task context take from the reserve for them, and from the items' room only what is beyond it."""
    shelf = Shelf({"a": "word " * 40})
    small = ordered(shelf, 8_000, **SPEC_RESERVES)
    large = ordered(shelf, 12_000, **SPEC_RESERVES, task_context={"description": "x" * 8_000})

    assert small.package.metadata.total_tokens <= 3_000
    assert large.package.metadata.total_tokens <= 7_000
    with pytest.raises(BudgetExceeded):
        ordered(shelf, 7_200, **SPEC_RESERVES, task_context={"description": "x" * 8_000})


@pytest.mark.parametrize(
    ("budget", "error"), [(0, InvalidInput), (-5, InvalidInput), (1, BudgetExceeded), (7_001, BudgetExceeded)]
)
def test_budgets_that_hold_nothing(budget: int, error: type[Exception]) -> None:
    """Budgets of nothing are bad input; those that the reserves use up can't fit."""
    with pytest.raises(error):
        ordered(Shelf({"a": PROSE}), budget, **SPEC_RESERVES)


def test_a_text_larger_than_the_budget_is_not_asked_for() -> None:
    """The whole of an item is only read where its stated size could fit."""

    class Heavy(Shelf):
        def full(self, item: Item) -> str:
            raise AssertionError("this text is too large to be read")

    item = Item("big", "dev", "big", "text", "optional", tokens=10**12)
    made = ordered(Heavy({"big": PROSE * 100}), 2_000, [item])

    assert [one.included for one in made.package.artifacts] == ["summary"]


def test_an_empty_package_is_a_package() -> None:
    """Without items there are the frame and the budget table, and nothing is warned of."""
    made = ordered(Shelf({}), 1_000)

    assert (made.package.artifacts, made.package.warnings, made.decisions) == ([], [], [])
    assert render(made.package).endswith("  artifacts: []\n")


def test_a_time_that_is_none_is_refused() -> None:
    """The time is a timestamp; a longer text would cost what nobody counted."""
    with pytest.raises(InvalidInput):
        ordered(Shelf({}), 1_000, assembled_at="x" * 33)
