"""The state of a goal and its tree of tasks. The state file has these fields in this order.

A node of the tree is the goal, a task or a subtask. `ctxmgr.goals.changes` defines the effects of changes. The key, the
arguments and the outcome of an action are stored in bounded space.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from ctxmgr.detect.text.fingerprints import MAX_TEXT, canonical, mask_volatile, one_line
from ctxmgr.log.codec import fingerprint
from ctxmgr.log.fast_json import json_object, text_or_none
from ctxmgr.log.json_value import describe, plain
from ctxmgr.types.base import Json, StoredShape, Text
from ctxmgr.types.goal import (
    GOAL_ID,
    ActionView,
    AttemptView,
    Block,
    BlockedAction,
    GoalState,
    GoalView,
    LoopRecord,
    LoopType,
    Moment,
    NodeStatus,
    OwnerView,
    Probe,
    ProbeResult,
    ResultStatus,
    SubtaskView,
    TaskView,
)

KEPT_ATTEMPTS = 10
"""Number of latest attempts to keep per leaf. Their numbering continues."""

_REMOVED = frozenset({"split", "dropped"})
_OPEN = frozenset({"pending", "in_progress", "failed"})
_FAILED_TASKS_THAT_BLOCK_GOAL = 2  # after one failed task, the others can still be worked on (spec 004)


class Node(StoredShape):
    """The goal, a task or a subtask. ``minted`` counts all children it has ever had, for new ids."""

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
        """Return the running attempt, or begin a new one if the last has ended."""
        last = self.attempt
        if last is None or last.status != "in_progress":
            last = AttemptView(number=last.number + 1 if last else 1, status="in_progress", actions=0)
            self.attempts = [*self.attempts[1 - KEPT_ATTEMPTS :], last]
        return last

    def change_attempt(self, **values: Any) -> None:
        """Change the latest attempt."""
        self.attempts[-1] = self.attempts[-1].model_copy(update=values)

    def walk(self) -> Iterator[Node]:
        """Yield the node and all nodes below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """Yield the leaves that count for progress: no split or dropped ones, but finished leaves below those."""
        if self.is_leaf:
            if self.status not in _REMOVED:
                yield self
            return
        for child in self.children:
            yield from child.leaves()

    def percent(self) -> int:
        """Return the percentage of leaves that are done, rounded down, so that 100 means all of them."""
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
        """Return the node above, or None for the goal."""
        if node is self.root:
            return None
        # The id tells the place: ``t2`` is above ``t2.1``, and the goal above ``t2``.
        return self._nodes.get(node.id.rpartition(".")[0] or GOAL_ID)

    def path(self, node: Node) -> list[Node]:
        """Return the node and the nodes above it, the goal last."""
        found = [node]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return found

    def insert(self, parent: Node, at: int, nodes: list[Node]) -> None:
        """Insert nodes, with their own children, at index ``at`` of a node's children."""
        parent.children[at:at] = nodes
        for node in nodes:
            self._nodes.update((each.id, each) for each in node.walk())
            # Its number is used, so that no later child gets the id of an earlier one.
            parent.minted = max(parent.minted, id_number(node.id))

    def can_work(self, node: Node) -> bool:
        """Whether a node is an open leaf and nothing above it is blocked, split or dropped."""
        if not node.is_leaf or node.status not in _OPEN:
            return False
        return not any(above.status == "blocked" or above.status in _REMOVED for above in self.path(node)[1:])

    def first_open(self, after: Node | None = None) -> Node | None:
        """Return the first workable leaf. With ``after``, return the first one after that leaf, else one before it."""
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
        """Set the status of a node from the statuses of its children, if it has any."""
        if node.status in _REMOVED or node.is_leaf:
            return
        # A block by a person or the guard stays, whatever the children do. An escalation comes and goes with their blocks.
        own = node.block if node.block and node.block.by != "escalation" else None
        climbed = None if own else self._block_from_children(node)
        node.block = own or climbed
        node.status = "blocked" if node.block else _status_from_children(node, is_root=node is self.root)

    def _block_from_children(self, node: Node) -> Block | None:
        blocked = [child for child in node.children if child.status == "blocked"]
        if not blocked:
            return None
        # A failed child blocks its task at once, and the second failed task blocks the goal. A block by a person climbs
        # only if no other child is open.
        failed = [child for child in blocked if child.block is not None and child.block.by != "user"]
        enough = _FAILED_TASKS_THAT_BLOCK_GOAL if node is self.root else 1
        if len(failed) < enough and any(child.status in _OPEN for child in node.children):
            return None
        first = (failed or blocked)[-1]
        why = first.block.reason if first.block else "blocked"
        since = first.block.since if first.block else None
        return Block(by="escalation", reason=f"{first.id} is blocked: {why}", since=since)


def _status_from_children(node: Node, *, is_root: bool) -> NodeStatus:
    statuses = [child.status for child in node.children if child.status not in _REMOVED]
    if not statuses:
        # A task without remaining children is given up with them. The goal can still get new tasks.
        return "pending" if is_root else "dropped"
    if all(status == "done" for status in statuses):
        return "done"
    started = any(status in ("in_progress", "failed", "done") for status in statuses) or any(
        each.attempts for each in node.walk()
    )
    return "in_progress" if started else "pending"


def id_number(name: str) -> int:
    """Return the number at the end of an id, or 0."""
    digits = name.rpartition(".")[2].lstrip("t")
    # The length limit is for hostile ids: `int` raises an error beyond 4,300 digits.
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def is_child_id(name: str, parent: str) -> bool:
    """Whether an id is valid for a child of ``parent``: ``t3`` for the goal, ``t3.1`` for a task."""
    # ``t03`` would be a second id with the number 3.
    number = id_number(name)
    return number > 0 and name == (f"t{number}" if parent == GOAL_ID else f"{parent}.{number}")


WINDOW = 36
"""Number of latest actions to keep: three rounds of the longest cycle that the guard looks for."""
# Limits of the lists below, because the state file and the time to write it must not grow with the length of a run.
KEPT_OPEN, KEPT_BLOCKED, KEPT_LOOPS, KEPT_OUTCOMES, KEPT_PROBES = 32, 200, 100, 64, 100


class OpenAction(StoredShape):
    """An action without a result. ``args`` may be shortened, but ``key`` identifies the action with its full arguments."""

    id: Text
    agent: Json
    action: Text
    key: Text
    args: Json
    began: Text | None
    node: Text
    attempt: int

    def finish(self, n: int, status: ResultStatus, output: Json, error: Json, ts: str | None) -> Action:
        """Return the action with its result."""
        return Action(**self.__dict__, n=n, status=status, output=output, error=error, ts=ts)


class Action(OpenAction):
    """A finished action. ``n`` counts all actions of the goal from 1; ``ts`` is the time of its end."""

    n: int
    status: ResultStatus
    output: Json
    error: Json
    ts: Text | None


class Outcome(StoredShape):
    """The outcome of an attempt at a leaf."""

    node: Text
    success: bool


class Owner(StoredShape):
    """The owner of the goal since ``ts``. The fields are untyped, because anybody may have written the history."""

    owner: Json = None
    pid: Json = None
    host: Json = None
    boot: Json = None
    start: Json = None
    ts: Text | None = None


class State(StoredShape):
    """The result of folding the history.

    Attributes:
        session: id of the goal's session in the log, "" before there is a goal.
        goal: the root of the tree; ``tree`` finds its nodes by id.
        active: id of the active leaf, or "".
        actions: the latest finished actions, oldest first.
        fresh: number of the last action that loop detection ignores, because a person has seen it.
        in_flight: actions without a result.
        blocked_actions: refused actions.
        outcomes: outcomes of attempts since the last intervention of a person.
        loops: refused and escalated loops, for ``loops.json``.
        counts: numbers of actions and refusals, and of refusals per type of loop.
        moment: kind of the latest event.
        epoch, owner: who may work; the owner is None if nobody holds the goal.
        last_ts: time of the last record.
        ignored: number of records in the history that could not be applied.
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

    def model_check(self) -> None:
        """Refuse a tree with more than two levels below the goal, or with ids in wrong places; otherwise index it."""
        if any(part.children for task in self.goal.children for part in task.children):
            raise ValueError("no node")
        self.tree = Tree(self.goal)
        nodes = list(self.goal.walk())
        # Paths upwards follow the ids. A repeated or misplaced id could lead into a circle.
        placed = all(is_child_id(child.id, node.id) for node in nodes for child in node.children)
        if self.goal.id != GOAL_ID or not placed or len(self.tree) < len(nodes):
            raise ValueError("an id does not say where its node stands")

    @property
    def exists(self) -> bool:
        """Whether a goal was ever begun."""
        return bool(self.session)

    def current(self) -> Node | None:
        """Return the leaf to which actions belong: the active one, else the first workable one."""
        active = self.tree.get(self.active)
        if active is not None and active.is_leaf and active.status in ("pending", "in_progress", "failed", "blocked"):
            return active
        return self.tree.first_open()

    def count(self, name: str) -> int:
        """Return a counter."""
        return self.counts.get(name, 0)

    def add(self, name: str) -> int:
        """Increment a counter and return it."""
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]


MAX_WHOLE_CHARS = 1_200
"""Maximum length of arguments or a result to keep unchanged, in characters of canonical JSON."""

_MAX_TEXT_CHARS, _HEAD = 500, 320  # of a text, and of the kept beginning of a longer text
_OUTCOME_CHARS = 120
_SUCCESS_WORDS = frozenset({"success", "ok", "succeeded", "done", "passed", "pass"})
_ERROR_WORDS = frozenset({"error", "failure", "failed", "fail"})
_OTHER_WORDS: dict[str, ResultStatus] = {"denied": "denied", "interrupted": "interrupted"}


def call_key(action: str, args: object) -> str:
    """Return the key of a call. It is equal for the same action and arguments, whatever the order of their keys."""
    return fingerprint([action, canonical(args)])


def shorten(value: object) -> Any:
    """Return the value, or for a long one its beginning and a fingerprint of the whole, so that equal values stay equal."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _shorten_text(value)
    full = canonical(value)
    if full is not None and len(full) <= MAX_WHOLE_CHARS:
        return value
    # Short fields, such as a path beside a file's content, distinguish a long call from others.
    if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) <= 16:
        fields = {str(name)[:100]: shorten(item) for name, item in cast("dict[Any, object]", value).items()}
        # Sixteen fields may be too long together, even if each is within its own limit.
        if len(canonical(fields) or "") <= 2 * MAX_WHOLE_CHARS:
            return fields
    return {"tooLarge": len(full or ""), "fingerprint": fingerprint(cast("object", value)), "head": (full or "")[:_HEAD]}


def _shorten_text(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    full = mask_volatile(text) if len(text) <= MAX_TEXT else text  # longer blurred texts can't be compared across processes
    return f"{text[:_HEAD]}… [{len(text)} characters, {fingerprint(full)}]"


def is_shortened(text: str) -> bool:
    """Whether `shorten` has cut a text."""
    return len(text) > _HEAD and text[_HEAD : _HEAD + 3] == "… ["


def outcome(result: object, status: ResultStatus | None = None) -> tuple[ResultStatus, Any, dict[str, Any] | None]:
    """Return a caller's result as (status, output, error) of a record.

    ``success``, ``error`` and ``error: MESSAGE`` name the status. Exceptions and objects with an ``error`` are errors. Anything
    else is an output. An explicit ``status`` takes precedence.
    """
    if isinstance(result, BaseException):
        return status or "error", None, {"type": type(result).__name__, "message": describe(result)}
    value: Any = plain(result)
    if isinstance(value, str):
        word, colon, rest = value.partition(":")
        # Only a short text can be such a word, so an output of megabytes is not converted to lower case.
        keyword = word.strip().lower() if len(word) < 20 else ""
        if keyword in _ERROR_WORDS:
            message = rest.strip()
            return status or "error", None, {"message": message} if message else None
        if not colon and keyword in _OTHER_WORDS:
            return status or _OTHER_WORDS[keyword], None, None
        if not colon and keyword in _SUCCESS_WORDS:
            return status or "ok", None, None
        return status or "ok", value, None
    given = cast("object", value)
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        # Many tools return ``{"error": null, ...}`` on success.
        if error := fields.get("error"):
            body = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": plain_line(error)}
            return (
                status or "error",
                fields,
                {name: plain_line(body[name]) for name in ("type", "message") if name in body},
            )
    return status or "ok", cast("Any", given), None


def outcome_text(status: str, output: object, error: object) -> str:
    """Return an outcome as one line: ``success``, ``error: MESSAGE``, or the output."""
    message = json_object(error).get("message")
    if status == "ok":
        return plain_line(output, _OUTCOME_CHARS) if output not in (None, "", {}, []) else "success"
    detail = plain_line(message if message is not None else output, _OUTCOME_CHARS) if (message or output) else ""
    return f"{status}: {detail}" if detail else status


def plain_line(value: object, width: int = 200) -> str:
    """Return any recorded value as one printable line of at most ``width`` characters."""
    if width <= 0 or value is None:
        return ""
    text = value if isinstance(value, str) else canonical(value) or type(value).__name__
    return one_line(text, width)


SHOWN_ACTIONS = 10
"""Number of latest actions of the current leaf in a state view."""


def state_view(state: State, generation: int, records: int, total: str, warnings: Sequence[str]) -> GoalState:
    """Return the public view of a goal's state."""
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
    """Return the public view of the whole tree."""
    goal = state.goal
    tasks = [
        TaskView(**_common_fields(task), subtasks=[SubtaskView(**_common_fields(each)) for each in task.children])
        for task in goal.children
    ]
    return GoalView(**_common_fields(goal), session=state.session, tasks=tasks)


def action_view(item: OpenAction) -> ActionView:
    """Return the public view of an action. Without a result, its status is ``open``."""
    done = item if isinstance(item, Action) else None
    return ActionView(
        id=item.id, action=item.action, args=item.args, status=done.status if done else "open",
        result=outcome_text(done.status, done.output, done.error) if done else None,
        ts=(done.ts if done else None) or item.began, node=item.node, attempt=item.attempt,
    )  # fmt: skip


def owner_view(epoch: int, owner: Owner | None) -> OwnerView:
    """Return the public view of an owner. Fields of a wrong type become null."""
    if owner is None:
        return OwnerView(epoch=epoch)

    pid = owner.pid if isinstance(owner.pid, int) else None
    return OwnerView(epoch=epoch, owner=text_or_none(owner.owner), pid=pid, host=text_or_none(owner.host), since=owner.ts)


def _common_fields(node: Node) -> dict[str, Any]:
    return {
        "id": node.id, "description": node.text, "status": node.status, "percent": node.percent(), "reason": node.reason,
        "attempts": node.attempts, "block": node.block,
    }  # fmt: skip
