"""The three types of loops are refused where ruling 6 says, and what is no loop is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.types.goal import EndRequest, MessageRequest, UnblockRequest
from tests.builders import detect
from tests.goals.scene import act, advance, ask, begun, done, fail, open_goals, statuses, stored, ticking

Action = tuple[str, Any, Any]
A: Action = ("action_A", {"x": 1}, "success")
B: Action = ("action_B", {"y": 2}, "success")
C: Action = ("action_C", {}, "success")


def _pair(one: Action, two: Action) -> list[Action]:
    return [one, two]


def _run(folder: Path, actions: list[Action], **options: Any) -> str:
    goals = begun(folder, **options)
    answers = [act(goals, *each) for each in actions]
    return "".join("." if each else (each.type or "?") for each in answers)


_TEXT = "x" * 9000
_RUN: Action = ("run_tests", {}, "error")
REFUSED: list[tuple[list[Action], str]] = [
    ([A] * 4, "...A"),
    ([A] * 6, "...AAA"),
    ([("run_cmd", {"cmd": "make"}, "error")] * 4, "...A"),
    ([("read_file", {"path": "a"}, "same text")] * 4, "...A"),
    ([("write_file", {"path": "a", "content": _TEXT}, "success")] * 4, "...A"),
    ([A, B, A, B], "...B"),
    ([A, B, A, B, A], "...B."),
    ([("write", {"f": 1}, "success"), _RUN] * 2, "...B"),
    ([A, B, C] * 3, "........B"),
    ([A, A, B, A, A], "....."),
    ([A, A, A, B, A], "....."),
]
ALLOWED: list[list[Action]] = [
    [("read_log", {"path": "log"}, f"{n} lines") for n in range(8)],
    [("run_tests", {}, f"{9 - n} failed") for n in range(8)],
    [step for n in range(5) for step in _pair(("edit", {"f": "a", "new": n}, "success"), _RUN)],
    [("list_dir", {"path": str(n)}, "success") for n in range(8)],
    [("press_key", {"key": "down"}, "success")] * 8,
    [step for n in range(4) for step in _pair(C, ("action_D", {}, f"answer {n}"))],
    [("write_file", {"path": "a", "content": _TEXT + str(n)}, "success") for n in range(6)],
]


@pytest.mark.requirement("H-A", "H-B")
@pytest.mark.parametrize(("actions", "expected"), REFUSED)
def test_what_is_refused(tmp_path: Path, actions: list[Action], expected: str) -> None:
    """The fourth identical action, the second B of A-B-A-B and the last step of a third longer round are refused."""
    assert _run(tmp_path, actions) == expected


@pytest.mark.requirement("H-legitimate", "R-06")
@pytest.mark.parametrize("actions", ALLOWED)
def test_what_is_not(tmp_path: Path, actions: list[Action]) -> None:
    """Repetition whose results or arguments change is not refused, nor are key presses."""
    assert set(_run(tmp_path, actions)) == {"."}


def test_a_patient_poll_is_not_a_loop(tmp_path: Path) -> None:
    """A poll that waits between its questions may be asked again."""
    polls: list[Action] = [("check_status", {"job": 1}, "pending")] * 8

    assert set(_run(tmp_path, polls, clock=ticking(step=10))) == {"."}


def test_asking_first_assumes_the_same_result(tmp_path: Path) -> None:
    """Before it is done, an action is judged as if it brought what it brought the last time; asking writes nothing."""
    goals = begun(tmp_path)
    for each in (A, B, A):
        act(goals, *each)
    before = (tmp_path / ".agent_context" / "history.jsonl").read_bytes()

    answer = ask(goals, B[0], B[1])

    assert (answer.allowed, answer.type) == (False, "B")
    assert ask(goals, C[0], C[1]).allowed
    assert (tmp_path / ".agent_context" / "history.jsonl").read_bytes() == before


@pytest.mark.requirement("H-blocked")
def test_a_refused_action_stays_blocked_with_its_reason(tmp_path: Path) -> None:
    """A refused action is part of the state and of the brief, and stays refused whatever lies between."""
    goals = begun(tmp_path)
    first = [act(goals, *A) for _ in range(4)][-1]
    act(goals, *B)
    again = act(goals, *A)

    state = goals.state()
    refused = [each["id"] for each in goals.records() if each["kind"] == "event" and each["data"].get("op") == "refused"]
    assert (again.allowed, again.type) == (False, "A")
    assert first.finding is not None
    assert refused[0] == first.finding.last
    assert [(each.action, each.type, each.times) for each in state.blocked_actions] == [("action_A", "A", 2)]
    assert state.blocked_actions[0].reason in goals.brief().text
    assert state.loop_counts == {"A": 2, "B": 0, "C": 0}
    assert [each["action"] for each in stored(tmp_path)["blockedActions"]] == ["action_A"]


def test_a_blocked_action_with_a_new_result_is_news(tmp_path: Path) -> None:
    """What was blocked because its result did not change is allowed, and free again, when it did."""
    goals = begun(tmp_path)
    for _ in range(4):
        act(goals, *A)
    assert act(goals, A[0], A[1], "something new")
    assert goals.state().blocked_actions == []


@pytest.mark.requirement("H-lift")
@pytest.mark.parametrize("how", ["unblock", "unblock key", "unblock name", "unblock node", "message"])
def test_a_block_is_lifted(tmp_path: Path, how: str) -> None:
    """A person's message and ``unblock``, by whatever it names the action, let it be done again."""
    goals = begun(tmp_path)
    for _ in range(4):
        act(goals, *A)
    key = goals.state().blocked_actions[0].key
    target = {"unblock": None, "unblock key": key, "unblock name": "action_A", "unblock node": "t1.1"}.get(how)
    if how == "message":
        goals.message(MessageRequest(text="try it once more"))
    else:
        goals.unblock(UnblockRequest(target=target))

    assert goals.state().blocked_actions == []
    assert [bool(act(goals, *A)) for _ in range(4)] == [True, True, True, False]


@pytest.mark.requirement("H-lift", "R-08")
def test_a_continuation_lifts_the_block_but_keeps_the_evidence(tmp_path: Path) -> None:
    """After a continuation the action may be tried behind others, but the loop is not forgotten."""
    goals = begun(tmp_path)
    for _ in range(4):
        act(goals, *A)
    goals.apply({"id": "c1", "goal": "Create mathx", "alternatives": [{"text": "use another tool"}]})

    assert goals.state().blocked_actions == []
    assert goals.state().next_step == "use another tool"
    assert not ask(goals, *A[:2])
    act(goals, *B)
    assert act(goals, *A)


def test_the_next_step_of_a_continuation_is_that_of_its_diagnosis(tmp_path: Path) -> None:
    """Where a continuation has a diagnosis, the goal's next step is the diagnosis's and no lead beside it."""
    goals = begun(tmp_path)
    cause = {"kind": "knownError", "nextStep": "install the module first"}
    goals.apply({"id": "c1", "goal": "Create mathx", "alternatives": [{"text": "use another tool"}], "diagnosis": cause})

    assert goals.state().next_step == "install the module first"


@pytest.mark.requirement("H-C")
def test_two_failed_attempts_block_and_climb(tmp_path: Path) -> None:
    """The second failed attempt blocks the subtask and its task; when nothing else is left, the goal."""
    goals = begun(tmp_path)
    fail(goals, "no idea")
    assert statuses(goals.state())["t1.1"] == "failed"
    fail(goals, "none yet")

    state = goals.state()
    assert {name: statuses(state)[name] for name in ("t1.1", "t1", "goal")} == {
        "t1.1": "blocked", "t1": "blocked", "goal": "in_progress",
    }  # fmt: skip
    refused = act(goals, "anything")
    assert (refused.allowed, refused.type) == (False, "C")
    advance(goals)
    assert goals.state().current == "t2.1"
    fail(goals)
    fail(goals)
    assert statuses(goals.state())["goal"] == "blocked"
    assert goals.state().goal.block is not None


def test_failures_are_counted_by_the_engine(tmp_path: Path) -> None:
    """The history of a goal, read by the detection engine, holds the same escalating failure."""
    from ctxmgr.detect.replay import session_observations

    goals = begun(tmp_path)
    act(goals, "edit", {"n": 1})
    fail(goals)
    act(goals, "edit", {"n": 2})
    fail(goals)

    found = detect(session_observations(goals.records()))

    assert [each.kind for each in found if each.severity == "loop"] == ["escalatingFailure"]
    assert statuses(goals.state())["t1.1"] == "blocked"


def test_a_success_between_starts_the_count_again(tmp_path: Path) -> None:
    """Failures of different subtasks are not added up."""
    goals = begun(tmp_path)
    fail(goals)
    done(goals)
    advance(goals)
    fail(goals)

    assert statuses(goals.state())["t1.2"] == "failed"


@pytest.mark.requirement("H-lift")
def test_an_unblocked_subtask_has_two_attempts_again(tmp_path: Path) -> None:
    """Unblocking a subtask, or a person's message, gives it two new attempts; their numbers go on."""
    goals = begun(tmp_path)
    for lift in (lambda: goals.unblock(UnblockRequest(target="t1.1")), lambda: goals.message(MessageRequest(text="go on"))):
        fail(goals)
        fail(goals)
        assert statuses(goals.state())["t1"] == "blocked"
        lift()
        assert statuses(goals.state())["t1.1"] == "pending"
    fail(goals)
    assert goals.state().goal.tasks[0].subtasks[0].attempts[-1].number == 5


def test_what_a_person_blocked_only_unblock_lifts(tmp_path: Path) -> None:
    """A message does not lift a block that was set by hand."""
    from ctxmgr.types.goal import BlockRequest

    goals = begun(tmp_path)
    goals.block(BlockRequest(id="t1", reason="waiting for the key"))
    goals.message(MessageRequest(text="hello"))
    assert statuses(goals.state())["t1"] == "blocked"
    answer = act(goals, "anything")
    assert answer.allowed
    assert answer.node == "t2.1"
    goals.unblock(UnblockRequest(target="t1"))
    assert statuses(goals.state())["t1"] == "pending"


def test_a_block_belongs_to_its_subtask(tmp_path: Path) -> None:
    """An action that was refused in one subtask may be done in another."""
    goals = begun(tmp_path)
    for _ in range(4):
        act(goals, *A)
    act(goals, *B)
    done(goals)
    advance(goals)

    assert act(goals, *A)


def test_loops_are_listed(tmp_path: Path) -> None:
    """``loops.json`` lists every loop once, with its type, signature and count."""
    import json

    goals = begun(tmp_path)
    for _ in range(6):
        act(goals, *A)
    fail(goals)
    fail(goals)

    loops = json.loads((tmp_path / ".agent_context" / "loops.json").read_text())
    assert [(each["type"], each["attemptCount"]) for each in loops] == [("A", 4), ("C", 2)]
    assert loops[0]["actionSignature"] == 'action_A::{"x":1}'


def test_thresholds_are_settings(tmp_path: Path) -> None:
    """Exempt actions are never refused, and a higher threshold is one."""
    from ctxmgr.detect.settings import DetectSettings

    goals = begun(tmp_path, settings=DetectSettings(repeat_rounds=5, exempt_actions=frozenset({"action_B"})))

    assert [bool(act(goals, *A)) for _ in range(6)] == [True] * 5 + [False]
    assert all(act(goals, *B) for _ in range(8))


def test_the_answer_does_not_depend_on_the_process(tmp_path: Path) -> None:
    """A fresh process refuses exactly what the one before would have."""
    for number, expected in enumerate([True, True, True, False, False]):
        goals = begun(tmp_path) if number == 0 else open_goals(tmp_path)
        assert bool(act(goals, *A)) is expected


def test_ending_what_is_blocked_is_refused(tmp_path: Path) -> None:
    """A blocked subtask can't be called done before it is unblocked."""
    goals = begun(tmp_path)
    fail(goals)
    fail(goals)
    with pytest.raises(InvalidInput, match="blocked"):
        goals.done(EndRequest(id="t1.1"))
