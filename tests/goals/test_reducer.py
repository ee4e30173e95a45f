"""The state is a fold of the history: whatever is done, a replay arrives at what the live process holds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.errors import CtxmgrError
from ctxmgr.goals import Goals
from ctxmgr.goals.reducer import fold
from ctxmgr.goals.state import State, may_follow
from ctxmgr.log.journal import read
from ctxmgr.types.goal import (
    LEAF_TRANSITIONS,
    ActionRequest,
    AddRequest,
    BlockRequest,
    DropRequest,
    EndRequest,
    GoalState,
    MessageRequest,
    NextRequest,
    Probe,
    RecordRequest,
    ReorderRequest,
    SplitRequest,
    TaskDraft,
    UnblockRequest,
)
from tests.goals.scene import bare, begun, contents, open_goals, statuses, stored

_KEYS = ["op", "id", "text", "nodes", "parent", "at", "order", "epoch", "held", "reason", "success", "subtask", "type", "node",
         "action", "key", "probes", "name", "kind"]  # fmt: skip
_IDS = st.sampled_from(["goal", "t1", "t2", "t3", "t1.1", "t1.2", "t1.3", "t2.1", "t2.2", "nothing"])
_ACTIONS = st.tuples(
    st.sampled_from(["look", "run", "edit"]), st.integers(0, 2), st.sampled_from(["success", "error", "new text"])
)
_DRAFTS = [TaskDraft(description="more"), TaskDraft(description="and more")]
_STEPS = st.one_of(
    st.tuples(st.just("record"), _ACTIONS),
    st.tuples(st.just("record"), _ACTIONS),
    st.tuples(st.just("record"), _ACTIONS),
    st.tuples(st.just("begin"), _ACTIONS),
    st.tuples(st.just("finish"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["done", "fail", "fail"]), st.one_of(st.none(), _IDS)),
    st.tuples(st.just("next"), st.one_of(st.none(), st.none(), _IDS)),
    st.tuples(st.sampled_from(["add", "split", "drop", "block", "unblock", "order"]), _IDS),
    st.tuples(st.sampled_from(["message", "compacted", "continuation", "probe", "reopen", "unblock all"]), st.none()),
)


def _do(goals: Goals, step: str, given: Any) -> None:
    in_flight = [each.id for each in goals.state().in_flight]
    requests: dict[str, Any] = {
        "record": lambda: goals.record(RecordRequest(action=given[0], args={"n": given[1]}, result=given[2])),
        "begin": lambda: goals.begin(ActionRequest(action=given[0], args={"n": given[1]})),
        "finish": lambda: goals.record(
            RecordRequest(action="x", entry=in_flight[int(given) % len(in_flight)] if in_flight else "no", result="success")
        ),
        "done": lambda: goals.done(EndRequest(id=given)),
        "fail": lambda: goals.fail(EndRequest(id=given, reason="it did not work")),
        "next": lambda: goals.next(NextRequest(to=given)),
        "add": lambda: goals.add(AddRequest(tasks=_DRAFTS, parent=given, at=1)),
        "split": lambda: goals.split(SplitRequest(id=given, into=_DRAFTS)),
        "drop": lambda: goals.drop(DropRequest(id=given)),
        "block": lambda: goals.block(BlockRequest(id=given, reason="by hand")),
        "unblock": lambda: goals.unblock(UnblockRequest(target=given)),
        "unblock all": lambda: goals.unblock(UnblockRequest()),
        "order": lambda: goals.reorder(ReorderRequest(order=[given])),
        "message": lambda: goals.message(MessageRequest(text="go on")),
        "compacted": goals.compacted,
        "continuation": lambda: goals.apply({"id": "c", "reason": "stuck"}),
        "probe": lambda: goals.add_probe(Probe(name="here", kind="fileExists", path="x")),
    }
    requests[step]()


def _replayed(folder: Path) -> State:
    state = State()
    for line in read(folder / ".agent_context" / "history.jsonl"):
        fold(state, line.record)
    return state


def _check_transitions(before: GoalState, after: GoalState) -> None:
    old, new = statuses(before), statuses(after)
    inner = {each.rpartition(".")[0] or "goal" for each in {*old, *new} if each != "goal"}
    for name, status in old.items():
        assert may_follow(status, new[name]), (name, status, new[name])  # pyright: ignore[reportArgumentType]
        if name not in inner and status != new[name] and status != "done":
            assert new[name] in LEAF_TRANSITIONS[status] or (status, new[name]) == ("failed", "pending")  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("H-transitions", "H-state", "R-19")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_STEPS, max_size=30))
def test_replay_is_what_was_lived(steps: list[tuple[str, Any]]) -> None:
    """After any requests the replayed history, the saved state and the live one are equal; refusals change nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        goals = begun(folder, hold=True, durability="process")
        for step, given in steps:
            if step == "reopen":
                goals.close()
                goals = open_goals(folder, hold=True, durability="process")
                continue
            before, files = goals.state(), contents(folder)
            try:
                _do(goals, step, given)
            except CtxmgrError:
                assert contents(folder) == files
                assert bare(goals.state()) == bare(before)
            _check_transitions(before, goals.state())
        live = goals.state()
        replayed = _replayed(folder)
        assert bare(open_goals(folder).state()) == bare(live)
        assert replayed.ignored == 0
        goals.close()
        assert State.from_json(stored(folder)).to_json() == _replayed(folder).to_json()


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["entry", "result", "event", "continuation", "odd"]), "session": st.just("s")},
            optional={
                name: st.recursive(
                    st.none()
                    | st.booleans()
                    | st.integers()
                    | st.floats()
                    | st.text(max_size=4)
                    | st.sampled_from(["goal", "t1"]),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
                    max_leaves=6,
                )
                for name in (
                    "id",
                    "action",
                    "input",
                    "task",
                    "status",
                    "output",
                    "error",
                    "entry",
                    "ts",
                    "type",
                    "data",
                    "agent",
                )
            },
        ),
        max_size=8,
    )
)
def test_any_record_is_folded_without_raising(records: list[dict[str, Any]]) -> None:
    """Records that a hand wrote, of whatever shape, change nothing that they must not and never raise."""
    state = State()
    start = {"op": "create", "text": "g", "nodes": [{"id": "t1", "text": "one"}]}
    fold(state, {"kind": "event", "session": "s", "id": "0", "type": "goal", "data": start})
    for record in records:
        if record["kind"] == "event" and isinstance(record.get("data"), dict):
            record["type"] = "goal"
        fold(state, record)

    assert state.goal.text == "g"
    assert State.from_json(state.to_json()).to_json() == state.to_json()
