"""Summaries are made once for each content, strategy and counter; whatever writes better ones can't make them worse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.context import candidates
from ctxmgr.context.candidates import Draft, Improver, strategy_key
from ctxmgr.text.tokens import ESTIMATE, KINDS
from tests.context.world import PROSE, World

LONG = "# Title\n\n" + PROSE * 100


def summaries(world: World) -> list[tuple[str, str]]:
    """Return (strategy, counter) of what is cached."""
    return [(row[0], row[1]) for row in world.store.engine.query("SELECT strategy, counter FROM summary ORDER BY 1, 2")]


def made(world: World) -> int:
    """Return how many summaries the last question made."""
    assert world.service is not None
    return world.service.summarised


@pytest.mark.requirement("003-P13")
def test_a_second_package_makes_no_summary(world: World) -> None:
    """A summary is made once; the second package takes it from the cache and reads nothing for it, with the same bytes."""
    world.put("arch", "a.md", LONG)
    first = world.assemble(tokens=900, items=["arch/a.md"])
    assert (made(world), len(world.reads)) == (1, 1)
    second = world.assemble(tokens=900, items=["arch/a.md"])

    assert (made(world), len(world.reads)) == (0, 1)
    assert second.package == first.package
    assert summaries(world) == [(strategy_key("markdown"), "estimate")]


@pytest.mark.requirement("003-P13")
def test_a_changed_content_drops_its_summary(world: World) -> None:
    """New content has a summary of its own, and the one of a content that no version shows any more is dropped."""
    world.put("arch", "a.md", LONG)
    world.assemble(tokens=900, items=["arch/a.md"])
    world.put("arch", "a.md", LONG.replace("first", "newest"))
    changed = world.assemble(tokens=900, items=["arch/a.md"])

    assert made(world) == 1
    assert "newest" in changed.package.artifacts[0].content
    world.store.engine.execute("DELETE FROM artifact WHERE version = 1")
    world.put("arch", "b.md", LONG + "more")
    world.assemble(tokens=900, items=["arch/b.md"])
    assert len(summaries(world)) == 2


def test_each_counter_has_its_own(world: World) -> None:
    """A summary measured by one counter is not taken for another one's."""
    pytest.importorskip("bpe_openai")
    world.put("arch", "a.md", LONG)
    for counter in ("estimate", "o200k_base", "estimate"):
        world.assemble(tokens=700, items=["arch/a.md"], counter=counter)

    assert made(world) == 0
    assert [counter for _, counter in summaries(world)] == ["estimate", "o200k_base"]


def test_a_text_that_is_its_own_summary_is_not_stored_twice(world: World) -> None:
    """Of a text that nothing shorter says only that is cached, not the text."""
    world.put("arch", "a.md", "short")
    world.need("dev", "arch/a.md", "reference")
    for _ in range(2):
        assert world.assemble().package.artifacts[0].content == "short"

    assert world.store.engine.query("SELECT text, lossless FROM summary") == [("", 1)]
    assert made(world) == 0


def test_the_same_content_twice_is_summarised_once(world: World) -> None:
    """Two artifacts with the same content share one summary."""
    world.put("arch", "a.md", LONG)
    world.put("data", "b.md", LONG)
    world.assemble(tokens=900, items=["arch/a.md", "data/b.md"])

    assert made(world) == 1


def test_nothing_is_kept_of_a_package_that_failed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Summaries and the package are stored together or not at all."""
    world.put("arch", "a.md", LONG)

    def no_record(*_: object) -> dict[str, object]:
        return {"v": 1, "kind": "event"}

    monkeypatch.setattr("ctxmgr.context.assembly.package_record", no_record)
    with pytest.raises(Exception, match="not a record"):
        world.assemble(tokens=900, items=["arch/a.md"])

    assert summaries(world) == []


def test_a_strategy_tells_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary made without a grammar is not taken for one made with it."""
    named = {kind: strategy_key(kind) for kind in KINDS}

    def missing(_: str) -> bool:
        return False

    monkeypatch.setattr("ctxmgr.context.summaries.grammar.has_grammar", missing)
    candidates.strategy_key.cache_clear()
    without = strategy_key("go")
    candidates.strategy_key.cache_clear()

    assert len(set(named.values())) == len(KINDS)
    assert "grammar/2" not in without
    assert without != named["go"] or "grammar/2" not in named["go"]


class Better:
    """An improver that answers what it is told to; ``asked`` counts."""

    name = "test/1"

    def __init__(self, answer: Callable[[Draft], object]) -> None:
        self._answer = answer
        self.asked = 0

    def improve(self, draft: Draft) -> str | None:
        """Return the answer."""
        self.asked += 1
        return self._answer(draft)  # pyright: ignore[reportReturnType]


def _boom(_: Draft) -> object:
    raise RuntimeError("the model fell over")


BAD: dict[str, Callable[[Draft], object]] = {
    "nothing": lambda _: None,
    "empty": lambda _: "",
    "blank": lambda _: " \n\t ",
    "no text": lambda _: 7,
    "longer": lambda draft: draft.summary + "x",
    "the whole text": lambda draft: draft.text,
    "more tokens": lambda draft: "\n" * (len(draft.summary) + 1),
    "control characters": lambda _: "fine \x1b[2J not",
    "half a character": lambda _: "fine \ud800",
    "an error": _boom,
}


@pytest.mark.requirement("003-P15")
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_bad_improvement_is_not_taken(world: World, answer: Callable[[Draft], object]) -> None:
    """Whatever an improver answers or raises, the summary by structure stands, and nothing else is cached."""
    world.put("arch", "a.md", LONG)
    plain = world.assemble(tokens=900, items=["arch/a.md"], dry_run=True)
    world.improver = Better(answer)
    improved = world.assemble(tokens=900, items=["arch/a.md"])

    assert improved.package == plain.package
    assert summaries(world) == [(strategy_key("markdown"), "estimate")]


@pytest.mark.requirement("003-P15")
def test_a_good_improvement_is_taken_and_cached(world: World) -> None:
    """A better summary that is no longer stands in the package and in the cache, beside the one by structure."""
    world.put("arch", "a.md", LONG)
    better = Better(lambda draft: f"Better, of {draft.name}, {draft.kind}.")
    world.improver = better
    for _ in range(2):
        made_ = world.assemble(tokens=900, items=["arch/a.md"])
        assert made_.package.artifacts[0].content == "Better, of a.md, markdown."
        assert made_.package.artifacts[0].included == "summary"
    world.improver = None
    plain = world.assemble(tokens=900, items=["arch/a.md"])

    assert better.asked == 1
    assert "Better" not in plain.package.artifacts[0].content
    assert made(world) == 0
    assert len(summaries(world)) == 2


def test_an_improver_is_asked_within_bounds(world: World) -> None:
    """What it may write is said: at most as many tokens as the summary by structure; a short text is not its business."""
    world.put("arch", "a.md", LONG)
    world.put("arch", "short.md", "short")
    seen: list[Draft] = []
    better: Improver = Better(lambda draft: seen.append(draft))
    world.improver = better
    world.need("dev", "arch/*", "reference")
    world.assemble(tokens=900)

    assert [(draft.name, draft.text) for draft in seen] == [("a.md", LONG)]
    assert seen[0].most == ESTIMATE.count(seen[0].summary, "markdown") < ESTIMATE.count(LONG, "markdown")
