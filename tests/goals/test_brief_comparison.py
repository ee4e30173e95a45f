"""The brief is weighed against the history as messages, and asked for the facts that the next step needs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.goals.brief import compare, facts, messages
from ctxmgr.log.codec import Record
from ctxmgr.types.goal import (
    ActionStatus,
    ActionView,
    BlockedAction,
    GoalState,
    GoalView,
    OwnerView,
    SubtaskView,
    TaskView,
)


def _entry(**fields: Any) -> Record:
    return {"v": 1, "kind": "entry", "session": "s", "id": "e", "agent": "a", "action": "read", **fields}


def _state(*actions: tuple[str, ActionStatus, str | None], blocked: tuple[str, ...] = ()) -> GoalState:
    part = SubtaskView(id="t1.1", description="Create the module", status="in_progress", percent=0)
    other = TaskView(id="t2", description="Write docs", status="pending", percent=0)
    task = TaskView(id="t1", description="Build the package", status="in_progress", percent=0, subtasks=[part])
    goal = GoalView(id="goal", description="Ship", status="in_progress", percent=0, session="s", tasks=[task, other])
    views = [
        ActionView(id=f"e{n}", action=name, args=None, status=status, result=said, ts=None, node="t1.1", attempt=1)
        for n, (name, status, said) in enumerate(actions)
    ]
    stopped = [
        BlockedAction(key=name, action=name, args=None, type="A", node="t1.1", reason="again and again", times=1)
        for name in blocked
    ]
    return GoalState(
        goal=goal, current="t1.1", active=True, next=None, next_step=None, actions=views, in_flight=[], blocked_actions=stopped,
        loop_counts={}, probes=[], probe_state=[], actions_total=0, refused_total=0, owner=OwnerView(epoch=0), generation=0,
        records=0, sum="",
    )  # fmt: skip


def _held(state: GoalState, text: str) -> dict[str, bool]:
    return {fact.text: fact.held for fact in facts(state, text)}


def test_a_history_becomes_the_messages_a_loop_would_send() -> None:
    """A call and its result are two messages, whether recorded together or apart; what was said is one; the rest is none."""
    said = list(
        messages([
            {"kind": "session"},
            {"kind": "event", "type": "user_message", "data": {"text": "ship it"}},
            _entry(input={"path": "a"}),
            {"kind": "result", "entry": "e", "status": "ok", "output": "text"},
            _entry(status="error", error={"message": "no"}),
            {"kind": "event", "type": "thought", "data": "hm"},
            {"kind": "event", "type": "heartbeat", "data": {}},
            {"kind": "note", "content": "x"},
        ])
    )  # fmt: skip

    assert said == [
        '{"role":"user","content":"ship it"}',
        '{"role":"assistant","call":"read","arguments":{"path":"a"}}',
        '{"role":"tool","status":"ok","content":"text"}',
        '{"role":"assistant","call":"read","arguments":null}',
        '{"role":"tool","status":"error","content":null,"error":{"message":"no"}}',
        '{"role":"assistant","content":"hm"}',
    ]


@given(st.dictionaries(st.sampled_from(["kind", "type", "data", "status", "error", "input", "action"]), st.one_of(
    st.sampled_from(["entry", "result", "event", "user_message"]), st.none(), st.floats(), st.lists(st.none()), st.text(),
)))  # fmt: skip
def test_no_record_is_too_odd(record: dict[str, Any]) -> None:
    """Whatever a record holds, each of its messages is one line of text."""
    for kind in ("entry", "result", record.get("kind")):
        told = list(messages([{**record, "kind": kind}]))
        assert told or kind not in ("entry", "result")
        assert all("\n" not in message for message in told)


@pytest.mark.requirement("H-compare")
def test_sizes_and_savings() -> None:
    """The brief is one message; the last ten and the whole history are sums, each counted by its own kind of text."""
    kinds: list[str] = []

    def count(text: str, kind: str) -> int:
        kinds.append(kind)
        return len(text) // 2

    records = [_entry(input="x" * 80, status="ok", output="y" * 80) for _ in range(10)]
    found = compare(records, _state(), "b" * 100, count, "half")

    assert (found.brief.messages, found.brief.chars, found.brief.tokens) == (1, 100, 50)
    assert (found.last_ten.messages, found.history.messages) == (10, 20)
    assert found.history.chars == 2 * found.last_ten.chars
    assert found.saved_chars == round(100 * (1 - 100 / found.history.chars), 1)
    assert found.saved_tokens_of_last_ten is not None
    assert set(kinds) == {"json", "text"}
    assert found.counter == "half"


def test_nothing_is_saved_where_there_is_no_history() -> None:
    """Without messages there is nothing to compare with, and a brief longer than the history saves less than nothing."""
    empty = compare([], _state(), "brief", lambda text, _: len(text), "c")
    short = compare([_entry()], _state(), "b" * 1_000, lambda text, _: len(text), "c")

    assert (empty.saved_chars, empty.saved_tokens_of_last_ten) == (None, None)
    assert short.saved_chars is not None
    assert short.saved_chars < 0


@pytest.mark.requirement("H-compare")
def test_the_facts_are_what_the_next_step_needs() -> None:
    """Task, subtask, the last three actions with their results and blocked actions; other tasks are none of them."""
    state = _state(
        ("old", "ok", "x"), ("read", "ok", "text"), ("make", "error", "boom"), ("make", "open", None), blocked=("deploy",)
    )
    text = "TASK: Build the  package\nSUBTASK: create the module\n- read -> text\n- make -> error: boom\n- make: in flight\n"

    assert _held(state, text + "BLOCKED: deploy\n") == {
        "Build the package": True, "Create the module": True, "read: ok, text": True, "make: error, boom": True,
        "make: open": True, "deploy: again and again": True,
    }  # fmt: skip
    assert not any(_held(state, "something else").values())


@pytest.mark.parametrize("line", ["make -> success", "build -> error: boom", "make"])
def test_an_action_without_its_outcome_is_not_held(line: str) -> None:
    """A fact about an action is its name and how it ended, in one line."""
    assert _held(_state(("make", "error", "boom")), line)["make: error, boom"] is False
