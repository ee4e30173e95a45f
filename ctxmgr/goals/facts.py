"""The state of a goal as plain facts for recovery and context packages."""

from __future__ import annotations

from ctxmgr.goals.brief import following_in_task
from ctxmgr.goals.responses import action_view
from ctxmgr.goals.state import State
from ctxmgr.goals.truncation import plain_line
from ctxmgr.types.goal_source import GoalSource, ProbeResult

_MOST = 50


def source_of(state: State) -> GoalSource:
    """Return the present task and subtask, what is done, open and blocked, and the next step; texts as recorded."""
    node, goal = state.current(), state.goal
    path = state.tree.path(node) if node is not None else [goal]
    task = next((each for each in path if each is not goal and "." not in each.id), None)
    leaves = list(goal.leaves())
    following = following_in_task(state, node) if node is not None else None
    blocked = [f"{each.id} {each.text}: {each.block.reason}" for each in goal.walk() if each.block is not None and each.is_leaf]
    blocked += [f"{each['action']}: {each['reason']}" for each in state.blocked]
    attempt = node.attempt if node is not None else None
    return GoalSource(
        session=state.session, goal=goal.text, status=goal.status, percent=goal.percent(),
        task=f"{task.id} {task.text}" if task else None,
        subtask=f"{node.id} {node.text}" if node is not None and "." in node.id else None,
        attempt=attempt.number if attempt else None,
        done=[f"{each.id} {each.text}" for each in leaves if each.status == "done"][-_MOST:],
        open=[f"{each.id} {each.text}" for each in leaves if each.status in ("pending", "in_progress", "failed")][:_MOST],
        blocked=blocked[:_MOST], next=f"{following.id} {following.text}" if following else None, next_step=state.next_step,
        in_flight=[f"{each.action} {plain_line(each.args)}".strip() for each in map(action_view, state.in_flight)],
        probe_state=[
            ProbeResult(name=each["name"], kind=each["kind"], ok=each.get("ok"), detail=each.get("detail"))
            for each in state.probe_state
            if each.get("kind") in ("fileExists", "fileContains", "command") and each.get("ok") in (True, False, None)
        ],
    )  # fmt: skip
