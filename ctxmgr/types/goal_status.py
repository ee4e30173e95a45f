"""The statuses of a goal's nodes, and which may follow which."""

from __future__ import annotations

from typing import Literal

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
