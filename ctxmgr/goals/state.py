"""The state of a goal and its tree of tasks; the fields, in this order, are the members of the state file.

A node of the tree is the goal, a task or a subtask. What a change does to them is in `ctxmgr.goals.changes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxmgr.types.base import Json, Stored, Text
from ctxmgr.types.goal import (
    GOAL_ID,
    TRANSITIONS,
    AttemptView,
    Block,
    BlockedAction,
    LoopRecord,
    Moment,
    NodeStatus,
    Probe,
    ProbeResult,
    ResultStatus,
)

KEPT_ATTEMPTS = 10
"""Number of latest attempts kept for each leaf; their numbers go on counting."""

_REMOVED = frozenset({"split", "dropped"})
_OPEN = frozenset({"pending", "in_progress", "failed"})
_FAILED_TASKS_THAT_BLOCK_GOAL = 2  # one failed task leaves the others to work on (spec 004)


class Node(Stored):
    """The goal, a task or a subtask; ``minted`` counts all children it ever had, for new ids."""

    id: Text
    text: Text
    status: NodeStatus = "pending"
    reason: Text | None = None
    minted: int = 0
    block: Block | None = None
    attempts: list[AttemptView] = []
    children: list[Node] = []

    @property
    def is_leaf(self) -> bool:
        """Whether attempts and actions belong to this node itself."""
        return not self.children

    @property
    def attempt(self) -> AttemptView | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None

    def begin(self) -> AttemptView:
        """Return the attempt under way; begin a new one if the last has ended."""
        last = self.attempt
        if last is None or last.status != "in_progress":
            last = AttemptView(number=last.number + 1 if last else 1, status="in_progress", actions=0)
            self.attempts = [*self.attempts[1 - KEPT_ATTEMPTS :], last]
        return last

    def change_attempt(self, **values: Any) -> None:
        """Change the latest attempt."""
        self.attempts[-1] = self.attempts[-1].model_copy(update=values)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """Yield the leaves that count for progress, without split and dropped ones; finished ones below these count."""
        if self.is_leaf:
            if self.status not in _REMOVED:
                yield self
            return
        for child in self.children:
            yield from child.leaves()

    def percent(self) -> int:
        """Return the per cent of leaves that are done, rounded down, so that 100 means all of them."""
        leaves = list(self.leaves())
        return 100 * sum(leaf.status == "done" for leaf in leaves) // len(leaves) if leaves else 0


class Tree:
    """A goal with its tasks and subtasks, indexed by id."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._nodes = {node.id: node for node in root.walk()}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, name: object) -> Node | None:
        """Return the node with this id, or None."""
        return self._nodes.get(name) if isinstance(name, str) else None

    def parent(self, node: Node) -> Node | None:
        """Return the node above; of the goal, None."""
        if node is self.root:
            return None
        return self._nodes.get(node.id.rpartition(".")[0] or GOAL_ID)

    def path(self, node: Node) -> list[Node]:
        """Return the node and those above it, the goal last."""
        found = [node]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return found

    def insert(self, parent: Node, at: int, nodes: list[Node]) -> None:
        """Insert nodes, with their own children, at index ``at`` of a node's children."""
        parent.children[at:at] = nodes
        for node in nodes:
            self._nodes.update((each.id, each) for each in node.walk())
            parent.minted = max(parent.minted, number_of(node.id))

    def can_work(self, node: Node) -> bool:
        """Whether a node is an open leaf and nothing above it is blocked, split or dropped."""
        if not node.is_leaf or node.status not in _OPEN:
            return False
        return not any(above.status == "blocked" or above.status in _REMOVED for above in self.path(node)[1:])

    def first_open(self, after: Node | None = None) -> Node | None:
        """Return the first leaf that can be worked on; with ``after`` the first one behind that leaf, or else before it."""
        leaves = [node for node in self.root.walk() if self.can_work(node)]
        if after is None:
            return leaves[0] if leaves else None
        order = {node.id: place for place, node in enumerate(self.root.walk())}
        later = [node for node in leaves if order[node.id] > order.get(after.id, -1)]
        return next(iter(later or [node for node in leaves if node is not after]), None)

    def climb(self, node: Node) -> None:
        """Update the statuses above a changed node."""
        for above in self.path(node)[1:]:
            self.settle(above)

    def settle(self, node: Node) -> None:
        """Set the status of a node from those of its children, if it has any."""
        if node.status in _REMOVED or node.is_leaf:
            return
        own = node.block if node.block and node.block.by != "escalation" else None
        climbed = None if own else self._block_from_children(node)
        node.block = own or climbed
        node.status = "blocked" if node.block else _status_from_children(node, is_root=node is self.root)

    def _block_from_children(self, node: Node) -> Block | None:
        blocked = [child for child in node.children if child.status == "blocked"]
        if not blocked:
            return None
        # A failed child blocks its task at once; the second failed task blocks the goal. A person's block climbs only when no
        # other child is open.
        failed = [child for child in blocked if child.block is not None and child.block.by != "user"]
        enough = _FAILED_TASKS_THAT_BLOCK_GOAL if node is self.root else 1
        if len(failed) < enough and any(child.status in _OPEN for child in node.children):
            return None
        first = (failed or blocked)[-1]
        why = first.block.reason if first.block else "blocked"
        since = first.block.since if first.block else None
        return Block(by="escalation", reason=f"{first.id} is blocked: {why}", since=since)


def _status_from_children(node: Node, *, is_root: bool) -> NodeStatus:
    counted = [child.status for child in node.children if child.status not in _REMOVED]
    if not counted:
        return "pending" if is_root else "dropped"
    if all(status == "done" for status in counted):
        return "done"
    started = any(status in ("in_progress", "failed", "done") for status in counted) or any(
        each.attempts for each in node.walk()
    )
    return "in_progress" if started else "pending"


def may_follow(before: NodeStatus, after: NodeStatus) -> bool:
    """Whether a node may go from one status to another."""
    return before == after or after in TRANSITIONS[before]


def number_of(name: str) -> int:
    """Return the number at the end of an id, 0 when it has none."""
    digits = name.rpartition(".")[2].lstrip("t")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def is_child_id(name: str, parent: str) -> bool:
    """Whether an id is one that a child of ``parent`` could have: ``t3`` of the goal, ``t3.1`` of a task."""
    number = number_of(name)
    return number > 0 and name == (f"t{number}" if parent == GOAL_ID else f"{parent}.{number}")


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
