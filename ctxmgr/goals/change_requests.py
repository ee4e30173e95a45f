"""Turn a request into the data of a change: ids for new nodes, targets of an unblock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals.state import State
from ctxmgr.goals.tree import Node
from ctxmgr.types.goal import AddRequest, SplitRequest, SubtaskDraft, TaskDraft, UnblockRequest


def tasks(drafts: Sequence[TaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new tasks with their subtasks, numbered from after ``minted``."""
    made: list[dict[str, Any]] = []
    for number, draft in enumerate(drafts, minted + 1):
        name = f"t{number}"
        made.append({**_leaf(name, draft), "nodes": subtasks(name, draft.subtasks, 0)})
    return made


def subtasks(parent: str, drafts: Sequence[SubtaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new subtasks of a task, numbered from after ``minted``."""
    return [_leaf(f"{parent}.{number}", draft) for number, draft in enumerate(drafts, minted + 1)]


def _leaf(name: str, draft: SubtaskDraft) -> dict[str, Any]:
    made: dict[str, Any] = {"id": name, "text": draft.description}
    return {**made, "done": True} if draft.done else made


def _below(parent: Node, drafts: Sequence[TaskDraft]) -> list[dict[str, Any]]:
    if parent.id == "goal":
        return tasks(drafts, parent.minted)
    if any(draft.subtasks for draft in drafts):
        raise InvalidInput("a subtask has no subtasks of its own", "add them as subtasks of the task")
    return subtasks(parent.id, drafts, parent.minted)


def add(parent: Node, request: AddRequest) -> dict[str, Any]:
    """Return the data of an addition."""
    return {"parent": parent.id, "at": request.at, "nodes": _below(parent, request.tasks)}


def split(node: Node, parent: Node, request: SplitRequest) -> dict[str, Any]:
    """Return the data of a split."""
    return {"id": node.id, "nodes": _below(parent, request.into), "reason": request.reason}


def unblock(state: State, request: UnblockRequest) -> dict[str, Any] | None:
    """Return the data of an unblocking, None when nothing is blocked.

    Raises:
        NotFound: what the request names is not blocked.
    """
    blocked = [node for node in state.goal.walk() if node.block is not None]
    if request.target is None:
        return {"all": True, "reason": request.reason} if blocked or state.blocked else None
    node = state.tree.get(request.target)
    if node is not None:
        held = {each["node"] for each in state.blocked}
        if not any(each.block is not None or each.id in held for each in node.walk()):
            raise NotFound(f"{node.id!r} is not blocked", "'ctxmgr goal tree' shows what is")
        return {"nodes": [node.id], "actions": [], "reason": request.reason}
    keys = [each["key"] for each in state.blocked if request.target in (each["key"], each["action"])]
    if not keys:
        raise NotFound(f"{request.target[:80]!r} is no blocked task or action", "'ctxmgr goal tree' shows what is blocked")
    return {"nodes": [], "actions": keys, "reason": request.reason}


def nothing_left(state: State) -> str:
    """Return why no leaf can be worked on."""
    if state.goal.status == "done":
        return "everything is done"
    if any(node.status == "blocked" for node in state.goal.walk()):
        return "what is left is blocked: unblock it, or ask with 'ctxmgr goal recover'"
    return "nothing is left to do"
