"""Run ``goal`` in the current project: a plan to start from, and answers as data."""

from __future__ import annotations

from typing import Any

from ctxmgr.types.goal import GoalState
from tests.cli.console import Ran, run

PLAN = """\
# Create the mathx package

## Background
- it is needed

## Create package
- [x] Create `mathx/__init__.py`
- [ ] Add add()
- [ ] Add sub()

## Add tests
1. Write the tests
2. Run them
"""


def goal(*arguments: str, given: str | None = None) -> Ran:
    """Run a part of ``goal`` with --json."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return run("goal", *arguments[:end], "--json", *arguments[end:], given=given)


def data(*arguments: str, code: int = 0) -> Any:
    """Return the data of a part of ``goal`` that says nothing else and ends with this code."""
    ran = goal(*arguments)
    assert (ran.code, ran.err) == (code, ""), ran.out
    return ran.envelope["data"]


def kind(*arguments: str) -> tuple[int, str]:
    """Return how a part of ``goal`` failed."""
    ran = goal(*arguments)
    return ran.code, ran.envelope["error"]["kind"]


def state() -> GoalState:
    """Return the goal."""
    return GoalState.model_validate(data("tree"))


def outline() -> list[str]:
    """Return each step's id and status."""
    nodes = [node for task in state().goal.tasks for node in (task, *task.subtasks)]
    return [f"{node.id} {node.status}" for node in nodes]
