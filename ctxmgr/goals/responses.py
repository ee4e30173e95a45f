"""Convert goal state to response models."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from ctxmgr.goals import tree
from ctxmgr.goals.state import Item, State
from ctxmgr.goals.tree import Node
from ctxmgr.goals.truncation import told
from ctxmgr.types.base import Shape
from ctxmgr.types.goal import (
    ActionStatus,
    ActionView,
    AttemptView,
    Block,
    BlockedAction,
    GoalState,
    GoalView,
    LoopType,
    OwnerView,
    Probe,
    ProbeResult,
    SubtaskView,
    TaskView,
)

_Model = TypeVar("_Model", bound=Shape)
SHOWN_ACTIONS = 10
"""Latest actions of the current leaf that a state shows."""


def state_view(state: State, generation: int, records: int, total: str, warnings: Sequence[str]) -> GoalState:
    """Return all that is known of a goal."""
    node = state.current()
    after = state.tree.first_open(node) if node is not None else None
    own = [each for each in state.actions if node is not None and each.get("node") == node.id][-SHOWN_ACTIONS:]
    counts: dict[LoopType, int] = {"A": state.count("A"), "B": state.count("B"), "C": state.count("C")}
    return GoalState(
        goal=goal_view(state), current=node.id if node else None, active=node is not None and node.id == state.active,
        next=after.id if after else None, next_step=state.next_step, actions=[action_view(each) for each in own],
        in_flight=[action_view(each) for each in state.in_flight], blocked_actions=_models(BlockedAction, state.blocked),
        loop_counts=counts, probes=_models(Probe, state.probes), probe_state=_models(ProbeResult, state.probe_state),
        actions_total=state.count("begun"), refused_total=state.count("refused"), owner=owner_view(state.epoch, state.owner),
        generation=generation, records=records, sum=total, warnings=list(warnings),
    )  # fmt: skip


def goal_view(state: State) -> GoalView:
    """Return the whole tree."""
    goal = state.goal
    tasks = [
        TaskView(**_common(task), subtasks=[SubtaskView(**_common(each)) for each in task.children]) for task in goal.children
    ]
    return GoalView(**_common(goal), session=state.session, tasks=tasks)


def action_view(item: Item) -> ActionView:
    """Return an action; one without a result is open."""
    status = item.get("status")
    return ActionView(
        id=item["id"], action=item["action"], args=item.get("args"), status=cast("ActionStatus", status or "open"),
        result=told(status, item.get("output"), item.get("error")) if isinstance(status, str) else None,
        ts=item.get("ts") or item.get("began"), node=item["node"], attempt=item["attempt"],
    )  # fmt: skip


def owner_view(epoch: int, owner: Item | None) -> OwnerView:
    """Return who may work on the goal."""
    named = owner or {}

    def text(name: str) -> str | None:
        value = named.get(name)
        return value if isinstance(value, str) else None

    pid = named.get("pid")
    return OwnerView(
        epoch=epoch, owner=text("owner"), pid=pid if isinstance(pid, int) else None, host=text("host"), since=text("ts")
    )


def _common(node: Node) -> dict[str, Any]:
    return {
        "id": node.id, "description": node.text, "status": node.status, "percent": node.percent(), "reason": node.reason,
        "attempts": [_attempt(each) for each in node.attempts],
        "block": Block(by=node.block.by, reason=node.block.reason, since=node.block.since) if node.block else None,
    }  # fmt: skip


def _attempt(attempt: tree.Attempt) -> AttemptView:
    return AttemptView(
        number=attempt.number, status=attempt.status, actions=attempt.actions, first=attempt.first, last=attempt.last,
        reason=attempt.reason,
    )  # fmt: skip


def _models(model: type[_Model], items: Sequence[Item]) -> list[_Model]:
    """Return what of the items is of a shape; a history written by hand may hold anything."""
    found: list[_Model] = []
    for each in items:
        with suppress(ValueError):
            found.append(model.model_validate(each))
    return found
