"""Models around a goal: a proposed plan, probes, a recovery, a comparison."""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.goal import GoalState, Probe
from ctxmgr.types.route import Continuation

FactKind = Literal["task", "subtask", "action", "blocked"]


class Size(Shape):
    """The size of one text, or of several together."""

    messages: int
    chars: int
    tokens: int


class Fact(Shape):
    """Something that the next step needs, and whether the brief holds it.

    The facts are the current task, the active subtask, the last three actions with their results, and blocked actions.
    """

    kind: FactKind
    text: Text
    held: bool


class Comparison(Shape):
    """The brief against the whole history and against its last ten messages.

    ``saved...`` are per cent of what would be read without the brief, negative where the brief is longer, null where there
    is nothing to read. ``counter`` names what counted the tokens.
    """

    brief: Size
    last_ten: Size
    history: Size
    saved_chars: float | None
    saved_tokens: float | None
    saved_chars_of_last_ten: float | None
    saved_tokens_of_last_ten: float | None
    facts: list[Fact]
    counter: Text


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
