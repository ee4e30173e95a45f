"""The statuses of a goal's nodes, which may follow which, and the goal as a source of facts for recovery and packages."""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.types.base import Shape, Text

GOAL_ID = "goal"
"""The id of the root of the tree."""

NodeStatus = Literal["pending", "in_progress", "done", "failed", "blocked", "split", "dropped"]
AttemptStatus = Literal["in_progress", "done", "failed", "left"]
LoopType = Literal["A", "B", "C"]
BlockedBy = Literal["loop", "attempts", "escalation", "user"]

TRANSITIONS: dict[NodeStatus, frozenset[NodeStatus]] = {
    "pending": frozenset({"in_progress", "done", "failed", "blocked", "split", "dropped"}),
    "in_progress": frozenset({"pending", "done", "failed", "blocked", "split", "dropped"}),
    "failed": frozenset({"pending", "in_progress", "done", "blocked", "split", "dropped"}),
    "blocked": frozenset({"pending", "in_progress", "done", "failed", "split", "dropped"}),
    "done": frozenset({"pending", "in_progress", "failed", "blocked"}),
    "split": frozenset(),
    "dropped": frozenset(),
}
"""Which status may follow which, of any node. What is split or dropped stays so; what is done opens again only where
something is added below it or it is blocked, never by working on it: `LEAF_TRANSITIONS` is the narrower table of leaves."""

LEAF_TRANSITIONS: dict[NodeStatus, frozenset[NodeStatus]] = {
    "pending": frozenset({"in_progress", "done", "failed", "blocked", "split", "dropped"}),
    "in_progress": frozenset({"pending", "done", "failed", "blocked", "split", "dropped"}),
    "failed": frozenset({"in_progress", "done", "blocked", "split", "dropped"}),
    "blocked": frozenset({"pending", "failed", "split", "dropped"}),
    "done": frozenset(),
    "split": frozenset(),
    "dropped": frozenset(),
}
"""Which status may follow which, of a leaf."""


ProbeKind = Literal["fileExists", "fileContains", "command"]


class ProbeResult(Shape):
    """What a probe saw; ``ok`` is null when it could not be asked (a command that is not allowed, no permission)."""

    name: Text
    kind: ProbeKind
    ok: bool | None
    detail: Text | None = None


class GoalSource(Shape):
    """The goal as a source for recovery and context packages: plain facts, no history."""

    session: Text
    goal: Text
    status: NodeStatus
    percent: int
    task: Text | None
    subtask: Text | None
    attempt: int | None
    done: list[Text]
    open: list[Text]
    blocked: list[Text]
    next: Text | None
    next_step: Text | None
    in_flight: list[Text]
    probe_state: list[ProbeResult]
    extra: dict[str, Any] = {}
