"""Fold the history of a goal into its state, one record at a time. Pure; never raises.

A record that is illegal at its place (written by hand, or by an owner that was superseded) changes nothing and is counted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TypeVar, cast

from ctxmgr.errors import CtxmgrError
from ctxmgr.goals.changes import CHANGES, Data, enter, lift_all, note_loop
from ctxmgr.goals.state import KEPT_BLOCKED, KEPT_OPEN, KEPT_PROBES, WINDOW, Node, OpenAction, Owner, State
from ctxmgr.goals.truncation import key_of, plain_line, reduced
from ctxmgr.log.codec import Record
from ctxmgr.types.base import Shape
from ctxmgr.types.goal import BlockedAction, LoopRecord, Probe, ProbeResult

EVENT, ENDED = "goal", "subtask_result"
"""Types of the events that change a goal; the second one is the type by which the detectors know a failed attempt."""

_Shape = TypeVar("_Shape", bound=Shape)
_RESULTS = ("ok", "error", "denied", "interrupted")  # a tuple: a hostile record may hold an unhashable value
_PERSON = ("user_message", "interrupt")


def task_of(node: str, attempt: int) -> str:
    """Return the ``task`` of an entry, ``leaf/attempt``, e.g. ``t1.2/1``."""
    return f"{node}/{attempt}"


def fold(state: State, record: Record) -> None:
    """Apply one more record of the history to the state."""
    try:
        kind, ts = record.get("kind"), record.get("ts")
        op = _data(record).get("op") if kind == "event" and record.get("type") == EVENT else None
        # These concern the folder and not the session: a goal that replaces another one begins a new session.
        if op in ("create", "own", "release"):
            _change(state, {**_data(record), "session": record.get("session")}, ts)
        elif state.exists and record.get("session") == state.session:
            _apply(state, record, kind, ts if isinstance(ts, str) else None)
        if isinstance(ts, str):
            state.last_ts = ts[:64]
    except (CtxmgrError, TypeError, ValueError, KeyError, AttributeError, RecursionError):
        state.ignored += 1


def _apply(state: State, record: Record, kind: object, ts: str | None) -> None:
    if kind == "entry":
        _entry(state, record, ts)
    elif kind == "result":
        _result(state, record, ts)
    elif kind == "continuation":
        _apply_continuation(state, record)
    elif kind == "event":
        _event(state, record, ts)


def _event(state: State, record: Record, ts: str | None) -> None:
    kind, data = record.get("type"), _data(record)
    if kind == EVENT:
        _change(state, data, ts)
    elif kind == ENDED:
        _change(state, {**data, "op": "end"}, ts)
    elif kind == "compaction":
        state.moment = "compaction"
    # A program that plays a person, as benchmarks have, has seen nothing (ruling 8).
    elif kind in _PERSON and data.get("synthetic") is not True:
        lift_all(state, by_hand=False)
        state.fresh = state.count("actions")


def _change(state: State, data: Data, ts: object) -> None:
    op = data.get("op")
    when = ts if isinstance(ts, str) else None
    # Checked on replay too, so that a live change and its replay give the same state.
    if isinstance(op, str) and op in CHANGES:
        check, change = CHANGES[op]
        check(state, data)
        change(state, data, when)
    elif op == "own":
        _own(state, data, when)
    elif op == "release":
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


def _own(state: State, data: Data, ts: str | None) -> None:
    epoch = data.get("epoch")
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch <= state.epoch:
        # So the record of an owner that was superseded, appended late, takes nothing back.
        raise ValueError("an epoch only grows")
    state.epoch = epoch
    own = {name: data.get(name) for name in Owner.model_fields if name != "ts"}
    state.owner = Owner(**own, ts=ts) if data.get("held") is True else None
    if state.count("actions") or state.in_flight:
        state.moment = "resume"


def _entry(state: State, record: Record, ts: str | None) -> None:
    name, action = record.get("id"), record.get("action")
    if not isinstance(name, str) or not isinstance(action, str):
        raise ValueError("an entry has an id and an action")
    node, number = _locate_attempt(state, record)
    item = OpenAction(
        id=name, agent=record.get("agent"), action=action[:1000], key=key_of(action, record.get("input")),
        args=reduced(record.get("input")), began=ts, node=node.id, attempt=number,
    )  # fmt: skip
    # The same call begun again replaces the one without a result: its process was killed in between.
    state.in_flight = [each for each in state.in_flight if each.key != item.key or each.node != node.id]
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
    """Return the leaf and the attempt's number of an entry; the leaf becomes active if it can be worked on."""
    named, _, _ = str(record.get("task") or "").rpartition("/")
    node = state.tree.get(named) or state.current() or state.goal
    if state.tree.can_work(node):
        if state.active != node.id or node.status != "in_progress":
            enter(state, node)
        return node, node.begin().number
    return node, node.attempt.number if node.attempt else 0


def _result(state: State, record: Record, ts: str | None) -> None:
    item = next((each for each in state.in_flight if each.id == record.get("entry")), None)
    if item is None or record.get("status") not in _RESULTS:
        return
    state.in_flight = [each for each in state.in_flight if each is not item]
    _finish(state, item, record, ts)


def _finish(state: State, item: OpenAction, record: Record, ts: str | None) -> None:
    output, error = reduced(record.get("output")), reduced(record.get("error"))
    done = item.finished(state.add("actions"), record["status"], output, error, ts)
    state.actions = [*state.actions[1 - WINDOW :], done]
    # A blocked action that was allowed has a new result, so the reason of its block is over.
    state.blocked_actions = [each for each in state.blocked_actions if each.key != item.key or each.node != item.node]
    state.next_step = None


def _apply_continuation(state: State, record: Record) -> None:
    """Lift what the guard blocked, but keep the evidence: else a loop would reset it by asking for help (ruling 8).

    The next step is that of the diagnosis, else the first alternative.
    """
    lift_all(state, by_hand=False, evidence=False)
    cause, options = record.get("diagnosis"), record.get("alternatives")
    text = cast("dict[str, object]", cause).get("nextStep") if isinstance(cause, dict) else None
    first = cast("list[object]", options)[0] if isinstance(options, list) and options else None
    text = text or (cast("dict[str, object]", first).get("text") if isinstance(first, dict) else None)
    state.next_step = plain_line(text or record.get("goal") or record.get("reason") or "", 500) or state.next_step


def _apply_refusal(state: State, data: Data, ts: str | None) -> None:
    action, loop, node = data.get("action"), data.get("type"), data.get("node")
    if not isinstance(action, str) or loop not in ("A", "B", "C", None) or not isinstance(node, str):
        raise ValueError("a refusal names the action, the node and the type of loop")
    state.add("refused")
    # Type C ends attempts, not actions: it is noted where the attempt ends.
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
        key=key, action=action[:1000], args=reduced(data.get("args")), type=loop, node=node, reason=reason, times=1, since=ts
    )
    state.blocked_actions = [*blocked[1 - KEPT_BLOCKED :], refused]


def _shapes(shape: type[_Shape], value: object) -> list[_Shape]:
    """Return the valid items of a list; a history written by hand may hold anything."""
    found: list[_Shape] = []
    for each in cast("list[object]", value) if isinstance(value, list) else []:
        with suppress(ValueError):
            found.append(shape.model_validate(each))
    return found[:KEPT_PROBES]


def _data(record: Record) -> Data:
    data = record.get("data")
    return cast("Data", data) if isinstance(data, dict) else {}
