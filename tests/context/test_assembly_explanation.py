"""Why an item is in a package, was shortened, or is not there; an agent is told of nothing that it may not read."""

from __future__ import annotations

import pytest

from ctxmgr.errors import InvalidInput, NotFound
from tests import builders as b
from tests.context.world import PROSE, World

LONG = "# Title\n\n" + PROSE * 100


def said(world: World, item: str, **more: str | None) -> tuple[str | None, str, str]:
    """Return (asked, got, rule) of an item."""
    answer = world.why(item, **more)
    assert answer.reason
    return answer.asked, answer.got, answer.rule


@pytest.mark.requirement("003-P10")
def test_every_end_that_an_item_can_come_to(world: World) -> None:
    """Given, shortened, left out, held, asked for twice, not needed, not there, put later: each has its rule and reason."""
    world.put("arch", "a.md", "first")
    world.put("arch", "long.md", LONG)
    identity = world.put("data", "b.md", "second")
    world.keys(name="x")
    b.write(world.store, "run", ["!make:all -> boom"], agent="dev")
    for pattern, need, more in (
        ("arch/a.md", "required", {}), ("arch/*", "optional", {"maxTokens": 300}), ("error_context", "optional", {}),
    ):  # fmt: skip
        world.need("dev", pattern, need, **more)
    first = world.assemble(task_context={"title": "T"})
    world.put("arch", "late.md", "third")

    assert said(world, "arch/a.md") == ("full", "full", "requiredFull")
    assert [one.rule for one in world.why("arch/a.md").decisions] == ["requiredFull", "duplicate"]
    assert said(world, "arch/long.md") == ("full", "summary", "overMaxTokens")
    assert said(world, world.id_of("arch/a.md")) == ("full", "full", "requiredFull")
    assert said(world, "project_context") == ("full", "full", "everyPackage")
    assert said(world, "task_context") == ("full", "full", "everyPackage")
    assert said(world, "arch/late.md") == (None, "absent", "later")
    assert said(world, "data/b.md") == said(world, identity) == (None, "absent", "noNeed")
    assert said(world, "entry:run-e0000") == (None, "absent", "noNeed")
    assert said(world, "data/none.md") == said(world, "art_" + "0" * 16) == (None, "absent", "notThere")
    assert said(world, "arch/*")[1] == "full"
    world.assemble(diff=True)
    assert said(world, "arch/a.md") == ("full", "held", "held")
    assert first.id is not None
    assert first.id in world.why("arch/a.md").reason
    assert said(world, "arch/a.md", package=first.id) == ("full", "full", "requiredFull")


def test_what_fell_to_the_budget(world: World) -> None:
    """What was left out for want of room says how much it would have taken and how much was left."""
    world.put("arch", "a.md", LONG)
    world.put("arch", "b.md", LONG + "b")
    world.need("dev", "arch/a.md", priority=1)
    world.need("dev", "arch/b.md", "optional")
    world.assemble(tokens=2_120)
    answer = world.why("arch/b.md")

    assert (answer.got, answer.rule) == ("omitted", "noRoom")
    assert "were left" in answer.reason


@pytest.mark.parametrize("item", ["data/secret.md", "ID", "entry:hid-e0000"])
def test_the_operator_alone_is_told_of_a_denial(world: World, item: str) -> None:
    """The operator hears that the agent may not read it; the agent hears what it would hear of nothing, to the byte."""
    identity = world.put("data", "secret.md", "hidden")
    b.write(world.store, "hid", ["Bash:ls"], agent="data")
    world.rule("dev", "artifact", "arch/*")
    world.assemble()
    item = item.replace("ID", identity)
    gone = {identity: "art_" + "0" * 16, "data/secret.md": "data/nothing.md", "entry:hid-e0000": "entry:hid-e0009"}[item]

    assert said(world, item) == (None, "absent", "denied")
    denied, missing = world.why(item, asker="dev"), world.why(gone, asker="dev")
    assert denied == missing.model_copy(update={"item": item})


def test_what_may_not_be_read_any_more_is_gone(world: World) -> None:
    """An item that was given once reads as not there for the agent as soon as its rules deny it; the operator still sees it."""
    world.put("arch", "a.md", "first")
    world.rule("dev", "artifact", "arch/*")
    world.need("dev", "arch/*")
    world.assemble()
    world.rule("dev", "artifact", "arch/a.md", "none", 1)

    assert said(world, "arch/a.md", asker="dev") == (None, "absent", "notThere")
    assert said(world, "arch/a.md")[1] == "full"


def test_packages_of_others_are_not_there(world: World) -> None:
    """An agent is told of its own packages alone, whether it names another agent or a package."""
    world.rule("dev", "artifact", "*")
    world.rule("spy", "artifact", "*")
    other = world.assemble("dev")
    for more in ({"agent": "dev"}, {"package": other.id}, {}):
        with pytest.raises(NotFound):
            world.why("arch/a.md", asker="spy", **more)
    mine = world.assemble("spy")

    assert world.why("arch/a.md", asker="spy").package == mine.id
    assert world.why("arch/a.md", agent="dev").package == other.id
    assert world.why("arch/a.md").package == mine.id


def test_questions_that_are_none(world: World) -> None:
    """Without a package there is nothing to explain, and what can't be named can't be asked for."""
    with pytest.raises(NotFound, match="no package"):
        world.why("arch/a.md")
    world.assemble()
    with pytest.raises(NotFound, match="no package 'zz'"):
        world.why("arch/a.md", package="zz")
    with pytest.raises(InvalidInput):
        world.why("nonsense")
