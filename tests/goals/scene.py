"""A goal with two tasks, a clock that ticks a second a record, and what of a state does not depend on ids and times."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ctxmgr.goals import Goals, state_files
from ctxmgr.log.ids import format_time
from ctxmgr.types.goal import (
    ActionRequest,
    EndRequest,
    GoalState,
    NextRequest,
    RecordAnswer,
    RecordRequest,
    StartRequest,
    SubtaskDraft,
    TaskDraft,
)

TASKS = [
    TaskDraft(description="Create package", subtasks=[SubtaskDraft(description="init"), SubtaskDraft(description="add")]),
    TaskDraft(description="Write tests", subtasks=[SubtaskDraft(description="cases")]),
]
_NAMELESS = frozenset(
    {"id", "ts", "since", "first", "last", "session", "timestamp", "warnings", "sum", "generation", "owner", "records"}
)


def ticking(start: float = 1_700_000_000.0, step: float = 1.0) -> Callable[[], str]:
    """Return a clock that goes on a step at each look."""
    moment = [start]

    def now() -> str:
        moment[0] += step
        return format_time(moment[0])

    return now


def open_goals(folder: Path, *, hold: bool = False, **options: Any) -> Goals:
    """Return the goals of a folder's ``.agent_context``."""
    return Goals(folder / ".agent_context", hold=hold, clock=options.pop("clock", ticking()), **options)


def drafts(*texts: str) -> list[TaskDraft]:
    """Return a task with each of these descriptions."""
    return [TaskDraft(description=text) for text in texts]


def begun(folder: Path, *, hold: bool = False, **options: Any) -> Goals:
    """Return goals of which one is begun."""
    goals = open_goals(folder, hold=hold, **options)
    goals.start(StartRequest(goal="Create mathx", tasks=TASKS))
    return goals


def act(goals: Goals, action: str, args: Any = None, result: Any = "success") -> RecordAnswer:
    """Record an action."""
    return goals.record(RecordRequest(action=action, args=args, result=result))


def ask(goals: Goals, action: str, args: Any = None) -> RecordAnswer:
    """Ask whether an action would be allowed."""
    return goals.check(ActionRequest(action=action, args=args))


def done(goals: Goals, name: str | None = None) -> None:
    """End an attempt at the current leaf, or at the named one, as done."""
    if name is None:
        _begin(goals)
    goals.done(EndRequest(id=name))


def fail(goals: Goals, reason: str | None = None) -> None:
    """End an attempt at the current leaf as failed."""
    _begin(goals)
    goals.fail(EndRequest(reason=reason))


def _begin(goals: Goals) -> None:
    """Begin an attempt at the current leaf, unless one is under way or it is blocked."""
    state = goals.state()
    if state.current is not None and statuses(state)[state.current] in ("pending", "failed"):
        goals.next(NextRequest(to=state.current))


def advance(goals: Goals, to: str | None = None) -> None:
    """Go to the next leaf, or the one named."""
    goals.next(NextRequest(to=to))


def statuses(state: GoalState) -> dict[str, str]:
    """Return the status of every node by its id."""
    goal = state.goal
    return {each.id: each.status for each in (goal, *goal.tasks, *(sub for task in goal.tasks for sub in task.subtasks))}


def bare(state: GoalState) -> Any:
    """Return a state without ids of records, times and the figures of files."""
    return _bare(state.to_json())


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bare(item) for name, item in cast("dict[str, Any]", value).items() if not _is_nameless(name, item)}
    if isinstance(value, list):
        return [_bare(each) for each in cast("list[Any]", value)]
    return value


def _is_nameless(name: str, item: Any) -> bool:
    return name in _NAMELESS and not (name == "id" and isinstance(item, str) and len(item) < 8)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a goal but the lock, which names the process that looked last."""
    place = folder / ".agent_context"
    return {name: (place / name).read_bytes() for name in sorted(os.listdir(place)) if name not in ("lock", "gate")}


def sealed(body: dict[str, Any]) -> str:
    """Return a state file of what `stored` returned, with the fingerprint that makes it whole."""
    text = json.dumps({name: value for name, value in body.items() if name != "check"}, separators=(",", ":"))
    return f'{text[:-1]},"check":"{state_files._checksum(text)}"}}\n'  # pyright: ignore[reportPrivateUsage]


def stored(folder: Path) -> dict[str, Any]:
    """Return what the state file holds."""
    return json.loads((folder / ".agent_context" / "state.json").read_text(encoding="utf-8"))
