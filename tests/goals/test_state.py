"""The tree of a goal: per cent at every level, where work stands, and how a result is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.goals.state import outcome
from ctxmgr.types.goal import AddRequest, StartRequest
from tests.goals.scene import act, begun, done, drafts, open_goals, statuses


@pytest.mark.requirement("H-2")
def test_per_cent_at_every_level(tmp_path: Path) -> None:
    """Per cent is the share of leaves that are done, of the goal, of each task and of each subtask."""
    goals = begun(tmp_path)
    done(goals)
    goal = goals.state().goal

    assert (goal.percent, goal.tasks[0].percent, goal.tasks[0].subtasks[0].percent, goal.tasks[1].percent) == (33, 50, 100, 0)
    done(goals)
    done(goals)
    assert goals.state().goal.percent == 100
    assert set(statuses(goals.state()).values()) == {"done"}


def test_a_goal_without_tasks_is_worked_on_itself(tmp_path: Path) -> None:
    """Actions and attempts belong to the goal while it has no tasks, to a task while it has no subtasks."""
    goals = open_goals(tmp_path)
    goals.start(StartRequest(goal="small"))
    assert act(goals, "look").node == "goal"
    goals.add(AddRequest(tasks=drafts("one")))
    assert act(goals, "look more").node == "t1"
    goals.add(AddRequest(tasks=drafts("part"), parent="t1"))
    assert act(goals, "look closer").node == "t1.1"
    assert statuses(goals.state()) == {"goal": "in_progress", "t1": "in_progress", "t1.1": "in_progress"}
    done(goals)
    assert goals.state().goal.status == "done"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("success", ("ok", None, None)),
        ("Error", ("error", None, None)),
        ("error: it broke: badly", ("error", None, {"message": "it broke: badly"})),
        ("error 5 happened", ("ok", "error 5 happened", None)),
        ("denied", ("denied", None, None)),
        ("3 files", ("ok", "3 files", None)),
        (None, ("ok", None, None)),
        ({"rows": 3}, ("ok", {"rows": 3}, None)),
        ({"error": "no"}, ("error", {"error": "no"}, {"message": "no"})),
        (ValueError("bad"), ("error", None, {"type": "ValueError", "message": "bad"})),
        (float("nan"), ("ok", "NaN", None)),
    ],
)
def test_results_are_understood(result: Any, expected: Any) -> None:
    """Words say how an action ended, everything else is what came back."""
    assert outcome(result) == expected
