"""Where a goal stands is an item of a package: named by a need, or given by the caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ctxmgr.errors import NotFound
from ctxmgr.types.goal import GoalSource, Probe
from tests.context.world import World, got
from tests.goals.scene import advance, begun, done


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> GoalSource:
    (tmp_path / "project").mkdir()
    goals = begun(tmp_path / "project")
    done(goals)
    advance(goals)
    goals.add_probe(Probe(name="there", kind="fileExists", path="gone"))
    goals.check_probes()
    return goals.source()


@pytest.mark.requirement("H-source")
def test_the_goal_is_an_item(world: World, source: GoalSource) -> None:
    """Task, subtask, what is done and open, and what the probes saw, as YAML."""
    made = world.assemble(goal=source)
    (item,) = made.package.artifacts
    told = YAML(typ="safe").load(item.content)

    assert got(made) == {"goal/goal_context": "full"}
    assert told == {
        "goal": "Create mathx", "status": "in_progress", "percent": 33, "task": "t1 Create package", "subtask": "t1.2 add",
        "attempt": 1, "probes": {"there": False}, "done": ["t1.1 init"], "open": ["t1.2 add", "t2.1 cases"],
    }  # fmt: skip
    assert world.why("goal_context").got == "full"


def test_a_need_names_the_goal(world: World, source: GoalSource) -> None:
    """A required need fails without a goal and says how to give one; with it the item is there once, for the need."""
    world.need("dev", "goal_context")
    with pytest.raises(NotFound) as failed:
        world.assemble()
    assert failed.value.hint == "name the folder of the goal with --goal-dir"

    made = world.assemble(goal=source)
    assert got(made) == {"goal/goal_context": "full"}
    assert world.assemble(goal=source, tokens=150, agent="other").package.metadata.total_tokens <= 150


def test_the_goal_is_not_there_unless_given(world: World, source: GoalSource) -> None:
    """An agent that asks for the goal besides, or why it is not in a package, is told that it is not there."""
    world.assemble()

    assert world.why("goal_context").rule == "notThere"
    assert world.request("goal_context").items[0].status == "missing"
    assert world.assemble(goal=source, diff=True).package.artifacts
    assert not world.assemble(goal=source, diff=True).package.artifacts


def test_a_goal_whose_text_is_odd_is_data(world: World, source: GoalSource) -> None:
    """No text of a goal breaks out of its field."""
    odd = "a: b\nstatus: done\x1b[2J\u2028- ---"
    told = world.assemble(goal=source.model_copy(update={"goal": odd, "task": odd, "done": [odd]}))
    fields = YAML(typ="safe").load(told.package.artifacts[0].content)

    assert (fields["status"], list(fields)[:2]) == ("in_progress", ["goal", "status"])
    assert "status: done" in fields["goal"]
