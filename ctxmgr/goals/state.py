"""The state of a goal; the fields, in this order, are the members of the state file."""

from __future__ import annotations

from typing import Any

from ctxmgr.goals.tree import Node, Tree
from ctxmgr.types.base import Json, Stored, Text
from ctxmgr.types.goal import GOAL_ID, BlockedAction, LoopRecord, Moment, Probe, ProbeResult, ResultStatus

WINDOW = 36
"""Number of latest actions kept: three rounds of the longest cycle that the guard looks for."""
# Bounds of the lists below: the state file, and the time to write it, must not grow with the length of a run.
KEPT_OPEN, KEPT_BLOCKED, KEPT_LOOPS, KEPT_OUTCOMES, KEPT_PROBES = 32, 200, 100, 64, 100


class OpenAction(Stored):
    """An action without a result; ``args`` may be shortened, but ``key`` identifies action and full arguments."""

    id: Text
    agent: Json
    action: Text
    key: Text
    args: Json
    began: Text | None
    node: Text
    attempt: int

    def finished(self, n: int, status: ResultStatus, output: Json, error: Json, ts: str | None) -> Action:
        """Return the action with its result."""
        return Action(**self.__dict__, n=n, status=status, output=output, error=error, ts=ts)


class Action(OpenAction):
    """A finished action; ``n`` counts all actions of the goal from 1, ``ts`` is when it ended."""

    n: int
    status: ResultStatus
    output: Json
    error: Json
    ts: Text | None


class Outcome(Stored):
    """How an attempt at a leaf ended."""

    node: Text
    success: bool


class Owner(Stored):
    """The owner of the goal since ``ts``; untyped fields, because anybody may have written the history."""

    owner: Json = None
    pid: Json = None
    host: Json = None
    boot: Json = None
    start: Json = None
    ts: Text | None = None


class State(Stored):
    """The result of folding the history.

    Attributes:
        session: id of the goal's session in the log, "" before there is a goal.
        goal: the root of the tree; ``tree`` finds every node of it by its id.
        active: id of the leaf that is worked on, "" for none.
        actions: the latest finished actions, oldest first.
        fresh: number of the last action that loop detection ignores, since a person has seen what was before.
        in_flight: actions without a result.
        blocked_actions: refused actions.
        outcomes: how attempts ended, since a person last stepped in.
        loops: what was refused or escalated, for ``loops.json``.
        counts: actions and refusals in all, and refusals for each type of loop.
        moment: what happened last.
        epoch, owner: who may work, None when nobody holds it.
        last_ts: time of the last record.
        ignored: records of the history that could not be applied.
    """

    session: Text = ""
    goal: Node
    active: Text = ""
    actions: list[Action] = []
    fresh: int = 0
    in_flight: list[OpenAction] = []
    blocked_actions: list[BlockedAction] = []
    outcomes: list[Outcome] = []
    loops: list[LoopRecord] = []
    counts: dict[str, int] = {}
    moment: Moment = "start"
    next_step: Text | None = None
    probes: list[Probe] = []
    probe_state: list[ProbeResult] = []
    epoch: int = 0
    owner: Owner | None = None
    last_ts: Text | None = None
    ignored: int = 0

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"goal": Node(id=GOAL_ID, text=""), **values})

    def model_checked(self) -> None:
        """Refuse a tree of more than two levels below the goal; index any other."""
        if any(part.children for task in self.goal.children for part in task.children):
            raise ValueError("no node")
        self.tree = Tree(self.goal)

    @property
    def exists(self) -> bool:
        """Whether a goal was ever begun."""
        return bool(self.session)

    def current(self) -> Node | None:
        """Return the leaf that actions belong to: the active one, else the first that can be worked on."""
        active = self.tree.get(self.active)
        if active is not None and active.is_leaf and active.status in ("pending", "in_progress", "failed", "blocked"):
            return active
        return self.tree.first_open()

    def count(self, name: str) -> int:
        """Return a counter."""
        return self.counts.get(name, 0)

    def add(self, name: str) -> int:
        """Raise a counter by one and return it."""
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]
