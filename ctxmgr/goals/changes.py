"""The changes of a goal tree. Each change is checked and then applied; folding the history gives the state.

A change is the ``data`` of an event in the history. A live change and its replay use the same two functions, so the state
depends only on the history. An illegal change raises an error and changes nothing. Folding never raises: it counts records that
are illegal at their place (written by hand, or by a superseded owner).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.goals.state import (
    KEPT_BLOCKED,
    KEPT_LOOPS,
    KEPT_OPEN,
    KEPT_OUTCOMES,
    KEPT_PROBES,
    WINDOW,
    Node,
    OpenAction,
    Outcome,
    Owner,
    State,
    Tree,
    call_key,
    is_child_id,
    plain_line,
    shorten,
)
from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_array, json_object, text_or_none
from ctxmgr.types.base import Shape
from ctxmgr.types.goal import GOAL_ID, LEAF_TRANSITIONS, Block, BlockedAction, LoopRecord, NodeStatus, Probe, ProbeResult

Data = dict[str, Any]
_REMOVED = ("split", "dropped")
_MAX_NODES = 5_000  # every state file contains the whole tree
# The limit of `ctxmgr.types.goal.Description`, because a history may contain text that no request wrote.
_MAX_TEXT_CHARS = 4_000


def find_node(state: State, name: object) -> Node:
    """Return the node with this id.

    Raises:
        NotFound: no node has this id.
    """
    node = state.tree.get(name) if state.exists else None
    if node is None:
        raise NotFound(f"{name!r} is no task or subtask of the goal", "'ctxmgr goal tree' shows their ids")
    return node


def _check_create(state: State, data: Data) -> None:
    _check_text(data.get("text"))
    # Check against an empty tree, because a goal that replaces another one counts its ids from 1 again.
    _check_new(Tree(Node(id=GOAL_ID, text="")), GOAL_ID, data.get("nodes", []))


def _create(state: State, data: Data, ts: str | None) -> None:
    carried_over = {"epoch": state.epoch, "owner": state.owner, "ignored": state.ignored, "last_ts": state.last_ts}
    goal = Node(id=GOAL_ID, text=data["text"])
    # Update in place, because others hold this state. Ownership and the count of ignored records survive a replacement.
    vars(state).update(vars(State(session=str(data.get("session") or "goal"), goal=goal, **carried_over)))
    _insert(state, goal, 0, data.get("nodes", []))


def _check_add(state: State, data: Data) -> None:
    parent = find_node(state, data.get("parent") or GOAL_ID)
    if parent.status in _REMOVED or "." in parent.id:
        raise InvalidInput(f"nothing can be added to {parent.id!r}", "subtasks go below a task that is still there")
    at = data.get("at")
    if at is not None and (not isinstance(at, int) or isinstance(at, bool) or at < 0):
        raise InvalidInput("a place is a number from 0 up")
    _check_new(state.tree, parent.id, data.get("nodes"))


def _add(state: State, data: Data, ts: str | None) -> None:
    parent = find_node(state, data.get("parent") or GOAL_ID)
    # With children the node is no leaf, and only leaves can be active.
    if state.active == parent.id:
        _leave_active(state)
    # New subtasks continue a task that was blocked for failed attempts. A block by a person stays.
    if parent.is_leaf and parent.block and parent.block.by != "user":
        parent.block = None
    at = data.get("at")
    _insert(state, parent, len(parent.children) if at is None else at, data["nodes"])
    state.tree.climb(parent)


def _check_split(state: State, data: Data) -> None:
    node = find_node(state, data.get("id"))
    if node is state.goal or node.status in ("done", *_REMOVED):
        raise InvalidInput(f"{node.id!r} can't be split: it is {'the goal' if node is state.goal else node.status}")
    parent = state.tree.parent(node)
    _check_new(state.tree, parent.id if parent else GOAL_ID, data.get("nodes"))


def _split(state: State, data: Data, ts: str | None) -> None:
    node = find_node(state, data["id"])
    _close_subtree(state, node, "split", data.get("reason"))
    parent = state.tree.parent(node) or state.goal
    _insert(state, parent, parent.children.index(node) + 1, data["nodes"])
    state.tree.climb(parent)


def _check_drop(state: State, data: Data) -> None:
    node = find_node(state, data.get("id"))
    if node is state.goal or node.status in ("done", *_REMOVED):
        raise InvalidInput(f"{node.id!r} can't be dropped: it is {'the goal' if node is state.goal else node.status}")


def _drop(state: State, data: Data, ts: str | None) -> None:
    node = find_node(state, data["id"])
    _close_subtree(state, node, "dropped", data.get("reason"))
    state.tree.climb(node)


def _check_order(state: State, data: Data) -> None:
    parent = find_node(state, data.get("parent") or GOAL_ID)
    order = data.get("order")
    own = {child.id for child in parent.children}
    if not isinstance(order, list) or not order:
        raise InvalidInput("an order names at least one id")
    names = cast("list[object]", order)
    odd = [name for name in names if not isinstance(name, str) or name not in own]
    if odd or len(set(cast("list[str]", names))) != len(names):
        raise InvalidInput(f"{(odd or names)[0]!r} is not below {parent.id!r}, or named twice")


def _order(state: State, data: Data, ts: str | None) -> None:
    parent = find_node(state, data.get("parent") or GOAL_ID)
    places = {name: place for place, name in enumerate(data["order"])}
    # The sort is stable: unnamed children follow in their former order.
    parent.children.sort(key=lambda child: places.get(child.id, len(places)))


def _check_enter(state: State, data: Data) -> None:
    node = find_node(state, data.get("id"))
    if not state.tree.can_work(node):
        raise InvalidInput(f"{node.id!r} can't be worked on: {why_not(state, node)}")
    active = state.tree.get(state.active)
    if active is not None and active is not node and active.status == "in_progress" and data.get("leave") is not True:
        raise InvalidInput(
            f"{active.id!r} is still in progress",
            f"say 'goal done' or 'goal fail', or name where to go: 'goal next {node.id}'",
        )


def enter(state: State, node: Node) -> None:
    """Make a leaf the active one, and begin an attempt unless one is running."""
    if state.current() is not node:
        state.next_step = None  # the advice of a continuation was for the previous step
    if state.active != node.id:
        _leave_active(state)
    state.active = node.id
    node.begin()
    if node.status != "in_progress":
        node.status = "in_progress"
        state.tree.climb(node)


def _enter(state: State, data: Data, ts: str | None) -> None:
    enter(state, find_node(state, data["id"]))


def _check_end(state: State, data: Data) -> None:
    node = find_node(state, data.get("subtask"))
    if not isinstance(data.get("success"), bool):
        raise InvalidInput("an attempt ends with success true or false")
    if not state.tree.can_work(node):
        raise InvalidInput(f"{node.id!r} can't be ended: {why_not(state, node)}", _hint(state, node))


def _end(state: State, data: Data, ts: str | None) -> None:
    node = find_node(state, data["subtask"])
    success: bool = data["success"]
    if state.current() is node:
        state.next_step = None
    node.begin()
    node.status, node.reason = ("done" if success else "failed"), _text_or_none(data.get("reason"))
    node.change_attempt(status=node.status, reason=node.reason)
    state.outcomes = [*state.outcomes[1 - KEPT_OUTCOMES :], Outcome(node=node.id, success=success)]
    if not success and not state.active:
        state.active = node.id  # a failed leaf is retried, or unblocked, before other work
    if success:
        state.blocked_actions = [each for each in state.blocked_actions if each.node != node.id]
        if state.active == node.id:
            state.active = ""
    elif isinstance(data.get("blocked"), str):
        node.status, node.block = "blocked", Block(by="attempts", reason=data["blocked"][:_MAX_TEXT_CHARS], since=ts)
        failed = sum(each.node == node.id and not each.success for each in state.outcomes)
        state.add("C")
        loop = LoopRecord(
            timestamp=ts, type="C", action_signature=node.text[:300], attempt_count=failed, node=node.id,
            kind="escalatingFailure", reason=node.block.reason,
        )  # fmt: skip
        note_loop(state, loop)
    state.tree.climb(node)


def note_loop(state: State, loop: LoopRecord) -> None:
    """Append a loop to the list for ``loops.json``, which keeps only the latest loops."""
    state.loops = [*state.loops[1 - KEPT_LOOPS :], loop]


def _check_block(state: State, data: Data) -> None:
    node = find_node(state, data.get("id"))
    if node.status in ("done", *_REMOVED):
        raise InvalidInput(f"{node.id!r} can't be blocked: it is {node.status}")
    _check_text(data.get("reason"))


def _block(state: State, data: Data, ts: str | None) -> None:
    node = find_node(state, data["id"])
    node.block = Block(by="user", reason=data["reason"], since=ts)
    node.status = "blocked"
    state.tree.climb(node)


def _check_unblock(state: State, data: Data) -> None:
    if data.get("all") is True:
        return
    nodes, actions = data.get("nodes"), data.get("actions")
    if not isinstance(nodes, list) or not isinstance(actions, list):
        raise InvalidInput("nothing is named that could be unblocked")
    for name in cast("list[object]", nodes):
        find_node(state, name)


def _unblock(state: State, data: Data, ts: str | None) -> None:
    if data.get("all") is True:
        lift_all(state)
    else:
        _lift_nodes(state, [node for name in data["nodes"] if (node := state.tree.get(name)) is not None])
        state.blocked_actions = [each for each in state.blocked_actions if each.key not in data["actions"]]
    state.fresh = state.count("actions")


def lift_all(state: State, *, by_hand: bool = True, evidence: bool = True) -> None:
    """Lift every block. ``by_hand`` includes blocks by a person; ``evidence`` also forgets the failed attempts."""
    outcomes = state.outcomes
    _lift_nodes(state, [state.goal], by_hand=by_hand)
    state.blocked_actions = []
    if not evidence:
        state.outcomes = outcomes


def _lift_nodes(state: State, tops: list[Node], *, by_hand: bool = True) -> None:
    for top in tops:
        below = list(top.walk())
        for node in below:
            if node.block is not None and (by_hand or node.block.by != "user"):
                node.block = None
                if node.is_leaf and node.status == "blocked":
                    node.status = "pending"
        # Children before parents, because the status of a parent depends on its children.
        for node in reversed(below):
            state.tree.settle(node)
        state.tree.climb(top)
        names = {node.id for node in below}
        state.outcomes = [each for each in state.outcomes if each.node not in names]
        state.blocked_actions = [each for each in state.blocked_actions if each.node not in names]


CHANGES: dict[str, tuple[Callable[[State, Data], None], Callable[[State, Data, str | None], None]]] = {
    "create": (_check_create, _create),
    "add": (_check_add, _add),
    "split": (_check_split, _split),
    "drop": (_check_drop, _drop),
    "order": (_check_order, _order),
    "enter": (_check_enter, _enter),
    "end": (_check_end, _end),
    "block": (_check_block, _block),
    "unblock": (_check_unblock, _unblock),
}
"""Operation -> (check, which raises an error if the change is illegal; function that applies the change)."""


def why_not(state: State, node: Node) -> str:
    """Return why a node can't be worked on, as the end of a sentence."""
    for each in state.tree.path(node):
        if each.status == "blocked":
            reason = each.block.reason if each.block else "blocked"
            return f"{'it' if each is node else each.id} is blocked: {reason}"
        if each.status in _REMOVED:
            return f"{'it' if each is node else each.id} was {each.status}"
    if not node.is_leaf:
        return "it has subtasks; name one of them"
    return f"it is {node.status}"


def _hint(state: State, node: Node) -> str | None:
    blocked = any(each.status == "blocked" for each in state.tree.path(node))
    return f"'ctxmgr goal unblock {node.id}' lifts the block" if blocked else None


def _close_subtree(state: State, node: Node, status: NodeStatus, reason: object) -> None:
    for each in node.walk():
        if each.status in ("done", *_REMOVED):
            continue
        if each.is_leaf and status not in LEAF_TRANSITIONS[each.status]:
            continue
        if state.active == each.id:
            _leave_active(state)
        each.status, each.block = status, None
    node.reason = _text_or_none(reason)


def _leave_active(state: State) -> None:
    """Stop the work on the active leaf, if there is one, without an outcome."""
    node, state.active = state.tree.get(state.active), ""
    if node is None:
        return
    state.next_step = None
    if node.status not in ("in_progress", "failed"):
        return
    if node.attempt is not None and node.attempt.status == "in_progress":
        node.change_attempt(status="left")
    if node.status == "in_progress":
        node.status = "pending"
        state.tree.climb(node)


def _check_text(value: object) -> None:
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_TEXT_CHARS:
        raise InvalidInput(f"a description or reason is a text of 1 to {_MAX_TEXT_CHARS:,} characters")


def _check_new(tree: Tree, parent: str, nodes: object) -> None:
    """Check the nodes to add below ``parent``: their ids, texts, depth and number."""
    if not isinstance(nodes, list):
        raise InvalidInput("what is to be added is a list")
    ids: set[str] = set()
    total = len(tree)
    for each in cast("list[object]", nodes):
        total += _check_one(tree, parent, each, ids)
    if total > _MAX_NODES:
        raise InvalidInput(f"a goal has at most {_MAX_NODES:,} tasks and subtasks", "make parts of it goals of their own")


def _check_one(tree: Tree, parent: str, node: object, ids: set[str]) -> int:
    if not isinstance(node, dict):
        raise InvalidInput("a task is an object")
    fields = cast("dict[str, object]", node)
    name, below = fields.get("id"), fields.get("nodes", [])
    if not isinstance(name, str) or not is_child_id(name, parent) or name in ids or tree.get(name) is not None:
        raise InvalidInput(f"{str(name)[:80]!r} is no new id below {parent!r}")
    ids.add(name)
    _check_text(fields.get("text"))
    if not isinstance(below, list) or (below and parent != GOAL_ID):
        raise InvalidInput("a subtask has no subtasks of its own")
    if not isinstance(fields.get("done", False), bool):
        raise InvalidInput("a task is done, true or false")
    return 1 + sum(_check_one(tree, name, each, ids) for each in cast("list[object]", below))


def _insert(state: State, parent: Node, at: int, nodes: list[Data]) -> None:
    """Insert new nodes below ``parent``, some of which may be done, and update the statuses of parents."""
    made = [_make_node(each) for each in nodes]
    state.tree.insert(parent, at, made)
    for node in (*made, parent):
        state.tree.settle(node)


def _make_node(fields: Data) -> Node:
    children = [_make_node(each) for each in fields.get("nodes", [])]
    status: NodeStatus = "done" if fields.get("done") is True and not children else "pending"
    return Node(id=fields["id"], text=fields["text"], status=status, children=children, minted=len(children))


def _text_or_none(value: object) -> str | None:
    return value[:_MAX_TEXT_CHARS] if isinstance(value, str) else None


EVENT, ENDED = "goal", "subtask_result"
"""Types of the events that change a goal. The detectors recognise failed attempts by the second type."""

_Shape = TypeVar("_Shape", bound=Shape)
_RESULTS = ("ok", "error", "denied", "interrupted")  # a tuple: a hostile record may hold an unhashable value
_PERSON = ("user_message", "interrupt")


def entry_task(node: str, attempt: int) -> str:
    """Return the ``task`` of an entry, ``leaf/attempt``, e.g. ``t1.2/1``."""
    return f"{node}/{attempt}"


def fold(state: State, record: Record) -> None:
    """Apply the next record of the history to the state."""
    try:
        kind, ts = record.get("kind"), record.get("ts")
        op = json_object(record.get("data")).get("op") if kind == "event" and record.get("type") == EVENT else None
        # These operations concern the folder instead of the session, because a replacement of the goal begins a new session.
        if op in ("create", "own", "release"):
            _change(state, {**json_object(record.get("data")), "session": record.get("session")}, ts)
        elif state.exists and record.get("session") == state.session:
            _apply_record(state, record, kind, text_or_none(ts))
        # Shortened, because a record may contain any text, and every state file contains this one.
        if isinstance(ts, str):
            state.last_ts = ts[:64]
    except (CtxmgrError, TypeError, ValueError, KeyError, AttributeError, RecursionError):
        state.ignored += 1


def _apply_record(state: State, record: Record, kind: object, ts: str | None) -> None:
    if kind == "entry":
        _apply_entry(state, record, ts)
    elif kind == "result":
        _result(state, record, ts)
    elif kind == "continuation":
        _apply_continuation(state, record)
    elif kind == "event":
        _apply_event(state, record, ts)


def _apply_event(state: State, record: Record, ts: str | None) -> None:
    kind, data = record.get("type"), json_object(record.get("data"))
    if kind == EVENT:
        _change(state, data, ts)
    elif kind == ENDED:
        _change(state, {**data, "op": "end"}, ts)
    elif kind == "compaction":
        state.moment = "compaction"
    # A program that plays a person, as in benchmarks, has not seen anything (ruling 8).
    elif kind in _PERSON and data.get("synthetic") is not True:
        lift_all(state, by_hand=False)
        state.fresh = state.count("actions")


def _change(state: State, data: Data, ts: object) -> None:
    op = data.get("op")
    when = text_or_none(ts)
    # Checked on replay too, so that a live change and its replay give the same state.
    if isinstance(op, str) and op in CHANGES:
        check, change = CHANGES[op]
        check(state, data)
        change(state, data, when)
    elif op == "own":
        _take_ownership(state, data, when)
    elif op == "release":
        # A late release by a superseded owner must not take the goal from its successor.
        if data.get("epoch") == state.epoch:
            state.owner = None
    elif op == "refused":
        _apply_refusal(state, data, when)
    elif op == "step":
        state.next_step = plain_line(data.get("text"), 500) or None
    elif op == "probes":
        state.probes = _shapes(Probe, data.get("probes"))
    elif op == "probed":
        state.probe_state = _shapes(ProbeResult, data.get("results"))


def _take_ownership(state: State, data: Data, ts: str | None) -> None:
    epoch = data.get("epoch")
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch <= state.epoch:
        # A record that a superseded owner appends late must not take the goal back.
        raise ValueError("an epoch only grows")
    state.epoch = epoch
    own = {name: data.get(name) for name in Owner.model_fields if name != "ts"}
    state.owner = Owner(**own, ts=ts) if data.get("held") is True else None
    if state.count("actions") or state.in_flight:
        state.moment = "resume"


def _apply_entry(state: State, record: Record, ts: str | None) -> None:
    name, action = record.get("id"), record.get("action")
    if not isinstance(name, str) or not isinstance(action, str):
        raise ValueError("an entry has an id and an action")
    node, number = _locate_attempt(state, record)
    item = OpenAction(
        id=name, agent=record.get("agent"), action=action[:1000], key=call_key(action, record.get("input")),
        args=shorten(record.get("input")), began=ts, node=node.id, attempt=number,
    )  # fmt: skip
    # Only its own result ends an action: not the end of its step, nor the same call again, which may be another agent's.
    state.in_flight = [each for each in state.in_flight if each.id != name]
    attempt = node.attempt
    if attempt is not None and attempt.number == number:
        node.change_attempt(actions=attempt.actions + 1, first=attempt.first or name, last=name)
    state.add("begun")
    state.moment = "continue"
    if record.get("status") in _RESULTS:
        _finish(state, item, record, ts)
    else:
        state.in_flight = [*state.in_flight[1 - KEPT_OPEN :], item]


def _locate_attempt(state: State, record: Record) -> tuple[Node, int]:
    """Return the leaf and the attempt number of an entry. The leaf becomes active if it can be worked on."""
    named, _, _ = str(record.get("task") or "").rpartition("/")
    node = state.tree.get(named) or state.current() or state.goal
    if state.tree.can_work(node):
        if state.active != node.id or node.status != "in_progress":
            enter(state, node)
        return node, node.begin().number
    return node, node.attempt.number if node.attempt else 0


def _result(state: State, record: Record, ts: str | None) -> None:
    item = next((each for each in state.in_flight if each.id == record.get("entry")), None)
    # There were too many open actions, or the goal is another one.
    if item is None or record.get("status") not in _RESULTS:
        return
    state.in_flight = [each for each in state.in_flight if each is not item]
    _finish(state, item, record, ts)


def _finish(state: State, item: OpenAction, record: Record, ts: str | None) -> None:
    output, error = shorten(record.get("output")), shorten(record.get("error"))
    done = item.finish(state.add("actions"), record["status"], output, error, ts)
    state.actions = [*state.actions[1 - WINDOW :], done]
    # A blocked action that was allowed has a new result, so the reason for its block is gone.
    state.blocked_actions = [each for each in state.blocked_actions if each.key != item.key or each.node != item.node]
    state.next_step = None


def _apply_continuation(state: State, record: Record) -> None:
    """Lift the guard's blocks, but keep the evidence. Otherwise a loop would reset itself by asking for help (ruling 8).

    The next step comes from the diagnosis, else from the first alternative.
    """
    lift_all(state, by_hand=False, evidence=False)
    options = record.get("alternatives")
    first = cast("list[object]", options)[0] if isinstance(options, list) and options else None
    text = json_object(record.get("diagnosis")).get("nextStep") or json_object(first).get("text")
    state.next_step = plain_line(text or record.get("goal") or record.get("reason") or "", 500) or state.next_step


def _apply_refusal(state: State, data: Data, ts: str | None) -> None:
    action, loop, node = data.get("action"), data.get("type"), data.get("node")
    if not isinstance(action, str) or loop not in ("A", "B", "C", None) or not isinstance(node, str):
        raise ValueError("a refusal names the action, the node and the type of loop")
    state.add("refused")
    # Type C ends attempts instead of actions, so it is recorded at the end of the attempt.
    if loop not in ("A", "B"):
        return
    state.add(str(loop))
    key, reason = str(data.get("key"))[:64], plain_line(data.get("reason"), 500)
    blocked = state.blocked_actions
    for place, old in enumerate(blocked):
        if old.key == key and old.node == node:
            blocked[place] = old.model_copy(update={"times": old.times + 1})
            return
    count, signature = data.get("count"), plain_line(data.get("signature") or action, 300)
    found = LoopRecord(
        timestamp=ts, type=loop, action_signature=signature, attempt_count=count if isinstance(count, int) else 1, node=node,
        kind=plain_line(data.get("kind"), 40), reason=reason,
    )  # fmt: skip
    note_loop(state, found)
    refused = BlockedAction(
        key=key, action=action[:1000], args=shorten(data.get("args")), type=loop, node=node, reason=reason, times=1, since=ts
    )
    state.blocked_actions = [*blocked[1 - KEPT_BLOCKED :], refused]


def _shapes(shape: type[_Shape], value: object) -> list[_Shape]:
    """Return the valid items of a list. A history written by hand may contain anything."""
    found: list[_Shape] = []
    for each in json_array(value):
        with suppress(ValueError):
            found.append(shape.model_validate(each))
    return found[:KEPT_PROBES]
