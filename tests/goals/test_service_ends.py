"""An attempt ends once: who says so again, late or from a second process, does not end the step that follows."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.goals import GoalTracker, Subtask, Task
from ctxmgr.goals.changes import fold
from ctxmgr.goals.state import State
from ctxmgr.types.goal import BlockRequest, EndRequest, NextRequest, StartRequest, UnblockRequest
from tests.goals.scene import act, advance, begun, contents, open_goals, statuses


@pytest.mark.requirement("H-API")
def test_done_said_again_does_not_end_the_next_step(tmp_path: Path) -> None:
    """A second ``done`` is refused, says what is done already and what to do, and writes nothing."""
    goals = begun(tmp_path)
    act(goals, "write")
    goals.done(EndRequest())
    before = contents(tmp_path)

    with pytest.raises(InvalidInput, match=r"t1\.2 is not begun; t1\.1 is done already") as refused:
        goals.done(EndRequest())

    assert refused.value.hint == "'ctxmgr goal next' begins it; 'ctxmgr goal done t1.2' says that it is done as it is"
    assert contents(tmp_path) == before
    advance(goals)
    goals.done(EndRequest())
    assert statuses(goals.state())["t1.2"] == "done"


def test_a_step_that_is_not_begun_can_not_fail(tmp_path: Path) -> None:
    """``fail`` needs an attempt, by name too: said again, it does not count as a second attempt that blocks the step."""
    goals = begun(tmp_path)
    for name in (None, "t1.1", "t2.1"):
        with pytest.raises(InvalidInput, match="is not begun"):
            goals.fail(EndRequest(id=name))
    act(goals, "write")
    goals.fail(EndRequest(reason="wrong sign"))

    for name in (None, "t1.1"):
        with pytest.raises(InvalidInput, match=r"attempt 1 at t1\.1 failed already, and attempt 2 is not begun") as refused:
            goals.fail(EndRequest(id=name))
        assert refused.value.hint == "'ctxmgr goal next' begins it"
    with pytest.raises(InvalidInput, match="failed already"):
        goals.done(EndRequest())
    advance(goals)
    assert "t1.1 is blocked" in (goals.fail(EndRequest()).message or "")


def test_a_named_step_is_done_as_it_is_and_only_once(tmp_path: Path) -> None:
    """Who names the step may end one that was never begun; said again, it is done already, and nothing is written."""
    goals = begun(tmp_path)
    assert goals.done(EndRequest(id="t1.2")).changed == ["t1.2"]
    before = contents(tmp_path)

    again = goals.done(EndRequest(id="t1.2"))

    assert (again.changed, again.message) == ([], "t1.2 is done already")
    assert contents(tmp_path) == before
    assert {name for name, status in statuses(goals.state()).items() if status == "done"} == {"t1.2"}


def test_a_step_that_was_left_is_begun_again_before_it_ends(tmp_path: Path) -> None:
    """An attempt that was left, or stopped by a block, is not under way, even where nothing else is."""
    goals = begun(tmp_path)
    act(goals, "write")
    goals.block(BlockRequest(id="t1.1", reason="wait"))
    advance(goals)
    goals.done(EndRequest())
    goals.unblock(UnblockRequest())

    assert goals.state().current == "t1.1"
    with pytest.raises(InvalidInput, match=r"t1\.1 is not begun"):
        goals.done(EndRequest())


def test_a_goal_without_tasks_is_under_way_from_its_start(tmp_path: Path) -> None:
    """``goal start`` and ``goal done`` are enough for it; after a failure the next attempt is begun first."""
    goals = open_goals(tmp_path)
    goals.start(StartRequest(goal="fix it"))
    goals.fail(EndRequest(reason="no"))
    with pytest.raises(InvalidInput, match="attempt 1 at goal failed already"):
        goals.done(EndRequest())
    goals.next(NextRequest())
    assert goals.done(EndRequest()).state.goal.status == "done"


def test_a_tracker_marks_a_step_once(tmp_path: Path) -> None:
    """``mark_subtask_complete`` does not advance: without ``advance_to_next_subtask``, a second mark is refused."""
    with GoalTracker(tmp_path / ".agent_context") as ctx:
        ctx.load_or_init("g")
        ctx.state.goal.tasks.append(Task("one", [Subtask("first"), Subtask("second"), Subtask("third")]))
        with pytest.raises(InvalidInput, match=r"t1\.1 is not begun"):
            ctx.mark_subtask_complete()
        ctx.advance_to_next_subtask()
        ctx.mark_subtask_complete()
        for success in (True, False):
            with pytest.raises(InvalidInput, match=r"t1\.2 is not begun"):
                ctx.mark_subtask_complete(success)
        ctx.advance_to_next_subtask()
        assert ctx.mark_subtask_complete().goal.percent == 66


def _end(folder: Path, barrier: object, answers: object) -> None:
    goals = open_goals(folder)
    goals.state()
    barrier.wait()  # type: ignore[attr-defined]
    try:
        goals.done(EndRequest())
        answers.put("done")  # type: ignore[attr-defined]
    except InvalidInput as error:
        answers.put(error.message)  # type: ignore[attr-defined]


def test_of_two_processes_that_say_done_one_is_refused(tmp_path: Path) -> None:
    """Two processes that end the step at once end one step: the other is told."""
    goals = begun(tmp_path)
    act(goals, "write")
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    children = [context.Process(target=_end, args=(tmp_path, barrier, answers)) for _ in range(2)]
    for child in children:
        child.start()
    told = sorted(answers.get(timeout=60) for _ in children)
    for child in children:
        child.join(60)

    assert told == ["done", "t1.2 is not begun; t1.1 is done already"]
    assert statuses(open_goals(tmp_path).state())["t1.2"] == "pending"


def test_a_history_in_which_a_step_ended_unbegun_is_read() -> None:
    """Version 0.2.0 ended such steps, so a replay still does."""
    state = State()
    nodes = [{"id": "t1", "text": "one", "nodes": [{"id": "t1.1", "text": "a"}, {"id": "t1.2", "text": "b"}]}]
    fold(state, {"kind": "event", "session": "s", "type": "goal", "data": {"op": "create", "text": "g", "nodes": nodes}})
    for name in ("t1.1", "t1.2"):
        fold(state, {"kind": "event", "session": "s", "type": "subtask_result", "data": {"subtask": name, "success": True}})

    assert (state.goal.status, state.ignored) == ("done", 0)
