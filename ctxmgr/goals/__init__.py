"""Goals that survive a crash: the tree of goal, tasks and subtasks, its brief, and the guard against loops.

Start with `service`, which answers every request. The history is the truth. `changes` defines the effect of each event and
folds the history into `state`. `repository` writes both and decides who owns the goal. This package may import `ctxmgr.detect`,
`ctxmgr.types` and the layers below, but no store.

Names are resolved at first use, so that a command that reads a brief does not import the tracker. The source document calls the
`GoalTracker` `ContextManager`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxmgr.goals.service import Goals
    from ctxmgr.goals.tracker import GoalTracker, Subtask, Task
    from ctxmgr.goals.tracker import GoalTracker as ContextManager

__all__ = ["ContextManager", "GoalTracker", "Goals", "Subtask", "Task"]

_HOMES = {
    "ContextManager": ("ctxmgr.goals.tracker", "GoalTracker"),
    "GoalTracker": ("ctxmgr.goals.tracker", "GoalTracker"),
    "Goals": ("ctxmgr.goals.service", "Goals"),
    "Subtask": ("ctxmgr.goals.tracker", "Subtask"),
    "Task": ("ctxmgr.goals.tracker", "Task"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'ctxmgr.goals' has no attribute {name!r}")
    home, own = _HOMES[name]
    return getattr(import_module(home), own)
