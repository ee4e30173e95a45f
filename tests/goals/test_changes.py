"""The tree changes as its table says: statuses climb, ids stay, and what is not legal changes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.goals import Goals
from ctxmgr.goals.changes import fold
from ctxmgr.goals.state import State
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
    StartRequest,
    SubtaskDraft,
    TaskDraft,
    UnblockRequest,
)
from tests.goals.scene import act, advance, bare, begun, contents, done, drafts, open_goals, statuses, stored

TRANSITIONS = {
    "pending": frozenset({"in_progress", "done", "failed", "blocked", "split", "dropped"}),
    "in_progress": frozenset({"pending", "done", "failed", "blocked", "split", "dropped"}),
    "failed": frozenset({"pending", "in_progress", "done", "blocked", "split", "dropped"}),
    "blocked": frozenset({"pending", "in_progress", "done", "failed", "split", "dropped"}),
    "done": frozenset({"pending", "in_progress", "failed", "blocked"}),
    "split": frozenset[str](),
    "dropped": frozenset[str](),
}
"""Which status may follow which, of any node; what is done opens again where something is added below it or it is blocked."""


@pytest.mark.requirement("H-1", "H-2")
def test_work_starts_where_nobody_said(tmp_path: Path) -> None:
    """The first action begins an attempt at the first subtask, and the task and goal with it."""
    goals = begun(tmp_path)
    assert (goals.state().current, goals.state().active) == ("t1.1", False)

    act(goals, "look")

    state = goals.state()
    assert {name for name, status in statuses(state).items() if status == "in_progress"} == {"goal", "t1", "t1.1"}
    assert {name for name, status in statuses(state).items() if status == "pending"} == {"t2", "t1.2", "t2.1"}
    attempt = state.goal.tasks[0].subtasks[0].attempts[0]
    assert (attempt.number, attempt.status, attempt.actions) == (1, "in_progress", 1)


def test_going_elsewhere_leaves_an_attempt(tmp_path: Path) -> None:
    """Going to another leaf by its id leaves the attempt at the first without an outcome; it can be taken up again."""
    goals = begun(tmp_path)
    act(goals, "look")
    with pytest.raises(InvalidInput, match="still in progress"):
        advance(goals)
    advance(goals, "t2.1")
    state = goals.state()
    assert (statuses(state)["t1.1"], state.goal.tasks[0].subtasks[0].attempts[0].status) == ("pending", "left")
    advance(goals, "t1.1")
    assert goals.state().goal.tasks[0].subtasks[0].attempts[-1].number == 2


@pytest.mark.parametrize("blocked", ["t1", "t1.1"])
def test_next_leaves_what_was_blocked_meanwhile(tmp_path: Path, blocked: str) -> None:
    """A step that was blocked while it was worked on, itself or by its task, does not keep ``next`` from the others."""
    goals = begun(tmp_path)
    act(goals, "look")
    goals.block(BlockRequest(id=blocked, reason="wait"))

    advance(goals)

    state = goals.state()
    assert (state.current, state.active) == ("t2.1" if blocked == "t1" else "t1.2", True)
    goals.unblock(UnblockRequest())
    assert statuses(goals.state())["t1.1"] == "pending"
    assert bare(goals.state()) == bare(open_goals(tmp_path).state())


def test_nothing_left_is_said(tmp_path: Path) -> None:
    """``next`` says when everything is done, and when what is left is blocked."""
    goals = begun(tmp_path)
    goals.block(BlockRequest(id="goal", reason="stop"))
    assert "blocked" in (goals.next(NextRequest()).message or "")
    goals.unblock(UnblockRequest(target="goal"))
    for _ in range(3):
        done(goals)
    assert goals.next(NextRequest()).message == "everything is done"
    with pytest.raises(InvalidInput):
        goals.done(EndRequest())


ILLEGAL: list[tuple[str, Callable[[Goals], object]]] = [
    ("fail what is done", lambda goals: goals.fail(EndRequest(id="t1.1"))),
    ("go to what is done", lambda goals: goals.next(NextRequest(to="t1.1"))),
    ("block what is done", lambda goals: goals.block(BlockRequest(id="t1.1", reason="x"))),
    ("drop what is done", lambda goals: goals.drop(DropRequest(id="t1.1"))),
    ("drop the goal", lambda goals: goals.drop(DropRequest(id="goal"))),
    ("split the goal", lambda goals: goals.split(SplitRequest(id="goal", into=drafts("x")))),
    ("split what is done", lambda goals: goals.split(SplitRequest(id="t1.1", into=drafts("x")))),
    ("end what has subtasks", lambda goals: goals.done(EndRequest(id="t1"))),
    ("end what is blocked", lambda goals: goals.done(EndRequest(id="t2.1"))),
    ("go to what is blocked", lambda goals: goals.next(NextRequest(to="t2.1"))),
    ("an unknown id", lambda goals: goals.done(EndRequest(id="t9"))),
    ("an order of strangers", lambda goals: goals.reorder(ReorderRequest(order=["t1.1"]))),
    ("an order that names one twice", lambda goals: goals.reorder(ReorderRequest(order=["t1", "t1"]))),
    ("unblock what is free", lambda goals: goals.unblock(UnblockRequest(target="t1.2"))),
    ("unblock what is unknown", lambda goals: goals.unblock(UnblockRequest(target="nothing"))),
    ("too many tasks", lambda goals: [goals.add(AddRequest(tasks=drafts(*["x"] * 1000))) for _ in range(6)]),
]


@pytest.mark.requirement("H-transitions")
@pytest.mark.parametrize("change", [each for _, each in ILLEGAL[:-1]], ids=[name for name, _ in ILLEGAL[:-1]])
def test_what_is_not_legal_changes_nothing(tmp_path: Path, change: Callable[[Goals], object]) -> None:
    """An illegal change raises, and not a byte of any file is another one."""
    goals = begun(tmp_path)
    done(goals)
    goals.block(BlockRequest(id="t2", reason="waiting"))
    before, state = contents(tmp_path), bare(goals.state())

    with pytest.raises((InvalidInput, NotFound)):
        change(goals)

    assert contents(tmp_path) == before
    assert bare(goals.state()) == state


def test_a_goal_has_a_limit(tmp_path: Path) -> None:
    """A goal takes no more tasks than it can show and save at every step."""
    goals = begun(tmp_path)
    with pytest.raises(InvalidInput, match="at most"):
        ILLEGAL[-1][1](goals)


@pytest.mark.requirement("H-transitions")
def test_the_tables_are_whole() -> None:
    """Both tables name every status, the one of leaves is the narrower, and what is gone stays gone."""
    assert TRANSITIONS.keys() == LEAF_TRANSITIONS.keys()
    assert all(after <= TRANSITIONS[before] | {"pending"} for before, after in LEAF_TRANSITIONS.items())
    assert TRANSITIONS["split"] == TRANSITIONS["dropped"] == frozenset()


def test_there_must_be_a_goal(tmp_path: Path) -> None:
    """Without a goal every request but the first says so, and no folder is made."""
    goals = open_goals(tmp_path)
    for ask in (goals.state, goals.brief, goals.resume, lambda: done(goals), lambda: act(goals, "x"), goals.record_compaction):
        with pytest.raises(NotFound):
            ask()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("H-2")
def test_what_is_done_already_is_begun_done(tmp_path: Path) -> None:
    """Steps that were done before are so from the first record on; what holds them follows, up to the goal."""
    half = TaskDraft(description="a", subtasks=[SubtaskDraft(description="b", done=True), SubtaskDraft(description="c")])
    whole = TaskDraft(description="d", subtasks=[SubtaskDraft(description="e", done=True)])
    goals = open_goals(tmp_path)
    state = goals.start(StartRequest(goal="g", tasks=[half, whole, TaskDraft(description="f", done=True)])).state

    assert statuses(state) == {
        "goal": "in_progress", "t1": "in_progress", "t1.1": "done", "t1.2": "pending", "t2": "done", "t2.1": "done",
        "t3": "done",
    }  # fmt: skip
    assert (state.goal.percent, state.current, state.records) == (75, "t1.2", 2)
    done(goals)
    assert goals.state().goal.status == "done"
    goals.add(AddRequest(tasks=[TaskDraft(description="more", done=True)], parent="t2"))
    assert goals.state().goal.status == "done"
    added = goals.add(AddRequest(tasks=drafts("x"))).changed[0]
    goals.split(SplitRequest(id=added, into=[TaskDraft(description="y", done=True)]))
    assert bare(open_goals(tmp_path).state()) == bare(goals.state())
    assert goals.state().goal.status == "done"


@pytest.mark.parametrize("odd", [1, "yes", None, []])
def test_done_is_true_or_false(odd: object) -> None:
    """A record that calls a step done in any other way begins nothing."""
    state = State()
    data = {"op": "create", "text": "g", "nodes": [{"id": "t1", "text": "a", "done": odd}]}
    fold(state, {"kind": "event", "session": "s", "id": "0", "type": "goal", "data": data})

    assert (state.exists, state.ignored) == (False, 1)


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
        "compacted": goals.record_compaction,
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
        assert new[name] in {status, *TRANSITIONS[status]}, (name, status, new[name])
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
