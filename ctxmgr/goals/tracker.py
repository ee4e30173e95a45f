"""Track a goal inside an agent's loop: start or resume, record actions, get the brief (spec 004).

    ctx = GoalTracker()
    ctx.load_or_init("Create mathx package")
    ctx.state.goal.tasks.append(Task("Create package", [Subtask("Create __init__.py"), Subtask("Add add() function")]))
    if not ctx.record_action("write_file", {"path": "mathx/__init__.py"}, "success"):
        ...  # a loop: try something else
    prompt = ctx.get_compact_context(max_chars=2000)
    ctx.mark_subtask_complete(success=True)
    ctx.advance_to_next_subtask()

The tracker holds the goal from `load_or_init` to `close`, so that no second process works on it unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, MutableSequence
from typing import Any, overload

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.plan_edits import FOLDER
from ctxmgr.goals.service import Goals
from ctxmgr.types.goal import (
    DEFAULT_CHARS,
    ActionRequest,
    AddRequest,
    BriefRequest,
    EndRequest,
    GoalState,
    GoalView,
    MessageRequest,
    NextRequest,
    NodeStatus,
    RecordAnswer,
    RecordRequest,
    ResumeAnswer,
    ResumeRequest,
    StartRequest,
    SubtaskDraft,
    SubtaskView,
    TaskDraft,
    UnblockRequest,
)


class Subtask:
    """A subtask. ``id`` is None until it belongs to a goal; after that, status and percentage are read from the goal."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.id: str | None = None
        self._look: Callable[[str], SubtaskView | None] | None = None

    @property
    def view(self) -> SubtaskView | None:
        """The subtask in the goal, or None if it belongs to no goal."""
        return self._look(self.id) if self._look is not None and self.id is not None else None

    @property
    def status(self) -> NodeStatus:
        """Its status."""
        view = self.view
        return view.status if view is not None else "pending"

    @property
    def percent(self) -> int:
        """Progress in percent, 0 to 100."""
        view = self.view
        return view.percent if view is not None else 0

    def attach(self, name: str, look: Callable[[str], SubtaskView | None]) -> None:
        """Bind this object to the node with this id. ``look`` returns the node's current view."""
        self.id, self._look = name, look

    def __repr__(self) -> str:
        return f"{type(self).__name__}(description={self.description!r}, id={self.id!r})"


class Task(Subtask):
    """A task. When it belongs to a goal, subtasks added to ``subtasks`` are added to the goal at once."""

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
        # ``subtasks += [...]`` passes this list itself, whose items have already been added.
        for each in new:
            if each.id is None:
                self._subtasks.append(each)

    def bind(self, children: MutableSequence[Subtask]) -> None:
        """Use ``children`` as the list of subtasks from now on."""
        self._subtasks = children

    def draft(self) -> TaskDraft:
        """Return the task with its subtasks as a draft for a request."""
        parts = [SubtaskDraft(description=each.description) for each in self._subtasks]
        return TaskDraft(description=self.description, subtasks=parts)


class Children(MutableSequence[Subtask]):
    """The children of a goal or a task, as a list that reads the goal and records insertions.

    Children can't be removed or replaced, because a plan stays in the history. `GoalTracker.goals` drops and splits.
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
        """Insert a task or subtask at an index."""
        count = len(self)
        # Like a list, accept any index: one beyond the ends means the end.
        self._tracker.insert(self._parent, min(count, index if index >= 0 else max(0, count + index)), value)


class GoalHandle:
    """The goal of a tracker. ``tasks`` accepts new tasks."""

    def __init__(self, tracker: GoalTracker) -> None:
        self._tracker = tracker
        self.tasks: MutableSequence[Subtask] = Children(tracker, "goal")

    @property
    def view(self) -> GoalView:
        """The whole tree."""
        return self._tracker.goals.state().goal

    @property
    def description(self) -> str:
        """What is to be achieved."""
        return self.view.description

    @property
    def status(self) -> NodeStatus:
        """Its status."""
        return self.view.status

    @property
    def percent(self) -> int:
        """The percentage of leaves that are done."""
        return self.view.percent


class StateHandle:
    """The state of a tracker. ``goal`` accepts new tasks; ``view`` is the full state."""

    def __init__(self, tracker: GoalTracker) -> None:
        self._tracker = tracker
        self.goal = GoalHandle(tracker)

    @property
    def view(self) -> GoalState:
        """The full current state of the goal."""
        return self._tracker.goals.state()


class GoalTracker:
    """A goal that this process works on.

    Args:
        folder: folder of the goal.
        agent: agent whose actions are recorded.
        settings: thresholds of loop detection.
        commands: whether probes may run commands.

    Attributes:
        goals: all other requests.
        state: the goal, to which tasks can be added.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = FOLDER, *, agent: str = "agent", settings: DetectSettings | None = None,
        commands: bool = False,
    ) -> None:  # fmt: skip
        self.goals = Goals(folder, agent=agent, hold=True, settings=settings, commands=commands)
        self._handles: dict[str, Subtask] = {}
        self.state = StateHandle(self)

    def __enter__(self) -> GoalTracker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the goal. The next `load_or_init` continues it."""
        self.goals.close()

    def load_or_init(self, goal: str | None = None, *, replace: bool = False) -> GoalState:
        """Continue the existing goal, or begin this one.

        Raises:
            Conflict: there is another, unfinished goal, and ``replace`` is false.
            NotFound: no goal is named, and there is none.
            Busy: another live process holds the goal.
        """
        return self.goals.start(StartRequest(goal=goal, replace=replace)).state

    def resume(self, *, take_over: bool = False) -> ResumeAnswer:
        """Continue after a crash or a hand-over. The answer says what was verified and what is only assumed."""
        return self.goals.resume(ResumeRequest(take_over=take_over))

    def check_action(self, name: str, args: Any = None) -> RecordAnswer:
        """Return whether an action would be allowed, as an answer that is true if it is. Records nothing."""
        return self.goals.check(ActionRequest(action=name, args=args))

    def begin_action(self, name: str, args: Any = None) -> RecordAnswer:
        """Record the beginning of an action, unless it is refused. ``finish_action`` takes the ``entry`` of the answer."""
        return self.goals.begin(ActionRequest(action=name, args=args))

    def finish_action(self, entry: str, result: Any = "success") -> RecordAnswer:
        """Record the result of an action that was begun."""
        return self.goals.record(RecordRequest(action="result", entry=entry, result=result))

    def record_action(self, name: str, args: Any = None, result: Any = "success") -> RecordAnswer:
        """Record an action with its result, unless it closes a loop. The answer is true if the action was allowed.

        ``result`` is ``success``, ``error``, ``error: MESSAGE``, or the output.
        """
        return self.goals.record(RecordRequest(action=name, args=args, result=result))

    def get_compact_context(self, max_chars: int = DEFAULT_CHARS) -> str:
        """Return the brief: what an agent needs to know now, in at most ``max_chars`` characters."""
        return self.goals.brief(BriefRequest(max_chars=max_chars)).text

    def mark_subtask_complete(self, success: bool = True, reason: str | None = None) -> GoalState:
        """End the attempt at the active subtask. The second failed attempt blocks it (ruling 6).

        Raises:
            InvalidInput: no attempt is under way: an action or `advance_to_next_subtask` begins one. So a call that is made
                again does not end the next subtask.
        """
        request = EndRequest(reason=reason)
        return (self.goals.done(request) if success else self.goals.fail(request)).state

    def advance_to_next_subtask(self) -> SubtaskView | None:
        """Make the next open subtask the active one and return it, or None if there is no work left.

        A subtask in progress is returned unchanged: an agent that continues after a crash calls this before it ends any.
        """
        try:
            answer = self.goals.next(NextRequest())
        except InvalidInput:
            state = self.goals.state()
            found = self.find(state.current) if state.active and state.current else None
            if found is None or found.status != "in_progress":
                raise
            return found
        return self.find(answer.changed[0]) if answer.changed else None

    def unblock(self, target: str | None = None, reason: str | None = None) -> GoalState:
        """Lift one block (by task id, action key or action name), or all."""
        return self.goals.unblock(UnblockRequest(target=target, reason=reason)).state

    def human_message(self, text: str) -> GoalState:
        """Record a person's message, which lifts the guard's blocks."""
        return self.goals.message(MessageRequest(text=text)).state

    def find(self, name: str) -> SubtaskView | None:
        """Return the goal, a task or a subtask by its id, or None."""
        for task in (goal := self.goals.state().goal).tasks:
            for each in (task, *task.subtasks):
                if each.id == name:
                    return each
        return goal if name == goal.id else None

    def children(self, parent: str) -> list[Subtask]:
        """Return the tasks (of ``goal``) or the subtasks (of a task)."""
        goal = self.goals.state().goal
        if parent == goal.id:
            return [self._handle(each, Task) for each in goal.tasks]
        return [self._handle(each, Subtask) for task in goal.tasks if task.id == parent for each in task.subtasks]

    def insert(self, parent: str, at: int, what: Subtask) -> None:
        """Insert a task or subtask with its children at index ``at``, and bind the objects to their nodes."""
        draft = what.draft() if isinstance(what, Task) else TaskDraft(description=what.description)
        answer = self.goals.add(AddRequest(tasks=[draft], parent=parent, at=at))
        name = answer.changed[0]
        # Copied now, because the list of a bound task is read from the goal.
        own = list(what.subtasks) if isinstance(what, Task) else []
        what.attach(name, self.find)
        self._handles[name] = what
        # The ids that `ctxmgr.goals.plan_edits.subtasks` gives the children of a new task.
        for number, each in enumerate(own, 1):
            each.attach(f"{name}.{number}", self.find)
            self._handles[f"{name}.{number}"] = each
        if isinstance(what, Task):
            what.bind(Children(self, name))

    def _handle(self, view: SubtaskView, kind: type[Subtask]) -> Subtask:
        # One object per node, so that the caller's own `Task` is the one in the list.
        known = self._handles.get(view.id)
        if known is None:
            known = self._handles[view.id] = kind(view.description)
            known.attach(view.id, self.find)
            if isinstance(known, Task):
                known.bind(Children(self, view.id))
        return known
