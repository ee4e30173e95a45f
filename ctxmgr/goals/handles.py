"""Task and subtask objects as a program uses them (spec 004)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence
from typing import TYPE_CHECKING, overload

from ctxmgr.errors import InvalidInput
from ctxmgr.types.goal import GoalState, GoalView, SubtaskDraft, SubtaskView, TaskDraft
from ctxmgr.types.goal_status import NodeStatus

if TYPE_CHECKING:
    from ctxmgr.goals.tracker import GoalTracker


class Subtask:
    """A subtask: ``id`` is None until it is part of a goal; from then on the status and per cent are the goal's."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.id: str | None = None
        self._look: Callable[[str], SubtaskView | None] | None = None

    @property
    def view(self) -> SubtaskView | None:
        """What the goal knows of it, None while it is part of none."""
        return self._look(self.id) if self._look is not None and self.id is not None else None

    @property
    def status(self) -> NodeStatus:
        """Its status."""
        view = self.view
        return view.status if view is not None else "pending"

    @property
    def percent(self) -> int:
        """The share of it that is done."""
        view = self.view
        return view.percent if view is not None else 0

    def attach(self, name: str, look: Callable[[str], SubtaskView | None]) -> None:
        """Make it the node of this id."""
        self.id, self._look = name, look

    def __repr__(self) -> str:
        return f"{type(self).__name__}(description={self.description!r}, id={self.id!r})"


class Task(Subtask):
    """A task; what is put into ``subtasks`` after it was added to a goal is added to the goal at once."""

    def __init__(self, description: str, subtasks: Iterable[Subtask] = ()) -> None:
        super().__init__(description)
        self._subtasks: MutableSequence[Subtask] = list(subtasks)

    @property
    def subtasks(self) -> MutableSequence[Subtask]:
        """Its subtasks in order."""
        return self._subtasks

    @subtasks.setter
    def subtasks(self, wanted: Iterable[Subtask]) -> None:
        new = list(wanted)
        if self.id is None:
            self._subtasks = new
            return
        for each in new:
            if each.id is None:
                self._subtasks.append(each)

    def bind(self, children: MutableSequence[Subtask]) -> None:
        """Have further subtasks added through ``children``."""
        self._subtasks = children

    def draft(self) -> TaskDraft:
        """Return it as what a request adds."""
        parts = [SubtaskDraft(description=each.description) for each in self._subtasks]
        return TaskDraft(description=self.description, subtasks=parts)


class Children(MutableSequence[Subtask]):
    """The children of a goal or a task: reads what is there, and adds to the history what is inserted.

    Children can't be taken out or replaced: what was planned stays in the history (`GoalTracker.goals` drops and splits).
    """

    def __init__(self, tracker: GoalTracker, parent: str) -> None:
        self._tracker = tracker
        self._parent = parent

    def _all(self) -> list[Subtask]:
        return self._tracker.children(self._parent)

    def __len__(self) -> int:
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> Subtask: ...
    @overload
    def __getitem__(self, index: slice) -> list[Subtask]: ...
    def __getitem__(self, index: int | slice) -> Subtask | list[Subtask]:
        return self._all()[index]

    def __setitem__(self, index: int | slice, value: object) -> None:
        raise InvalidInput("a task can't be replaced", "split or drop it")

    def __delitem__(self, index: int | slice) -> None:
        raise InvalidInput("a task can't be taken out", "drop it")

    def insert(self, index: int, value: Subtask) -> None:
        """Add a task or subtask at a place."""
        count = len(self)
        self._tracker.insert(self._parent, min(count, index if index >= 0 else max(0, count + index)), value)


class GoalHandle:
    """The goal of a tracker: ``tasks`` takes new tasks."""

    def __init__(self, tracker: GoalTracker) -> None:
        self._tracker = tracker
        self.tasks: MutableSequence[Subtask] = Children(tracker, "goal")

    @property
    def view(self) -> GoalView:
        """The whole tree."""
        return self._tracker.goals.state().goal

    @property
    def description(self) -> str:
        """What is to be reached."""
        return self.view.description

    @property
    def status(self) -> NodeStatus:
        """Its status."""
        return self.view.status

    @property
    def percent(self) -> int:
        """The share of its leaves that is done."""
        return self.view.percent


class StateHandle:
    """The state of a tracker: ``goal`` can be added to, ``view`` is everything that is known."""

    def __init__(self, tracker: GoalTracker) -> None:
        self._tracker = tracker
        self.goal = GoalHandle(tracker)

    @property
    def view(self) -> GoalState:
        """Everything that is known of the goal now."""
        return self._tracker.goals.state()
