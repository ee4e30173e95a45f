"""Convert goal state to response models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxmgr.goals.state import Action, OpenAction, Owner, State
from ctxmgr.goals.tree import Node
from ctxmgr.goals.truncation import outcome_text
from ctxmgr.types.goal import ActionView, GoalState, GoalView, LoopType, OwnerView, SubtaskView, TaskView

SHOWN_ACTIONS = 10
"""Latest actions of the current leaf that a state shows."""


def state_view(state: State, generation: int, records: int, total: str, warnings: Sequence[str]) -> GoalState:
    """Return all that is known of a goal."""
    node = state.current()
    after = state.tree.first_open(node) if node is not None else None
    own = [each for each in state.actions if node is not None and each.node == node.id][-SHOWN_ACTIONS:]
    counts: dict[LoopType, int] = {"A": state.count("A"), "B": state.count("B"), "C": state.count("C")}
    return GoalState(
        goal=goal_view(state), current=node.id if node else None, active=node is not None and node.id == state.active,
        next=after.id if after else None, next_step=state.next_step, actions=[action_view(each) for each in own],
        in_flight=[action_view(each) for each in state.in_flight], blocked_actions=state.blocked_actions, loop_counts=counts,
        probes=state.probes, probe_state=state.probe_state, actions_total=state.count("begun"),
        refused_total=state.count("refused"), owner=owner_view(state.epoch, state.owner), generation=generation,
        records=records, sum=total, warnings=list(warnings),
    )  # fmt: skip


def goal_view(state: State) -> GoalView:
    """Return the whole tree."""
    goal = state.goal
    tasks = [
        TaskView(**_common(task), subtasks=[SubtaskView(**_common(each)) for each in task.children]) for task in goal.children
    ]
    return GoalView(**_common(goal), session=state.session, tasks=tasks)


def action_view(item: OpenAction) -> ActionView:
    """Return an action; one without a result is open."""
    done = item if isinstance(item, Action) else None
    return ActionView(
        id=item.id, action=item.action, args=item.args, status=done.status if done else "open",
        result=outcome_text(done.status, done.output, done.error) if done else None,
        ts=(done.ts if done else None) or item.began, node=item.node, attempt=item.attempt,
    )  # fmt: skip


def owner_view(epoch: int, owner: Owner | None) -> OwnerView:
    """Return who may work on the goal; what of it is no text or number is null."""
    if owner is None:
        return OwnerView(epoch=epoch)

    def text(value: object) -> str | None:
        return value if isinstance(value, str) else None

    pid = owner.pid if isinstance(owner.pid, int) else None
    return OwnerView(epoch=epoch, owner=text(owner.owner), pid=pid, host=text(owner.host), since=owner.ts)


def _common(node: Node) -> dict[str, Any]:
    return {
        "id": node.id, "description": node.text, "status": node.status, "percent": node.percent(), "reason": node.reason,
        "attempts": node.attempts, "block": node.block,
    }  # fmt: skip
