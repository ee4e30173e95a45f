"""What the commands around a goal answer: a proposed split and whether it was started, probes, a recovery."""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.goal import GoalState, Probe
from ctxmgr.types.route import Continuation


class PlannedStep(Shape):
    """A proposed subtask."""

    title: Text
    done: bool = False


class PlannedTask(PlannedStep):
    """A proposed task; ``done`` where all of it is."""

    subtasks: list[PlannedStep] = []


class GoalPlan(Shape):
    """A proposed split; saved as JSON it can be edited and given to ``goal start --from``.

    ``by`` says who split it. ``model`` is the one that was asked, ``failure`` why its answer does not count. ``notes`` tell
    what was left out or folded together.
    """

    goal: Text
    tasks: list[PlannedTask]
    by: Literal["rules", "model"]
    model: Text | None = None
    failure: Text | None = None
    notes: list[Text] = []


class StartAnswer(Shape):
    """Whether the goal was started; ``plan`` is what was proposed, ``state`` the goal where it was started."""

    started: bool
    plan: GoalPlan | None
    state: GoalState | None
    changed: list[str] = []
    message: Text | None = None


class ProbeView(Probe):
    """A probe and what it last saw: ``ok`` is null where it was not asked yet, or could not see."""

    ok: bool | None = None
    detail: Text | None = None


class RecoverAnswer(Shape):
    """The continuation that recovery gave for a goal, and the goal with it applied (null: it was only shown)."""

    continuation: Continuation
    state: GoalState | None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form, of the continuation too."""
        state = None if self.state is None else self.state.to_json()
        return {"continuation": self.continuation.to_json(), "state": state}
