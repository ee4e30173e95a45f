"""The tree changes as its table says: statuses climb, ids stay, and what is not legal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals import Goals
from ctxmgr.goals.reducer import fold
from ctxmgr.goals.state import State
from ctxmgr.types.goal import (
    LEAF_TRANSITIONS,
    TRANSITIONS,
    AddRequest,
    BlockRequest,
    DropRequest,
    EndRequest,
    NextRequest,
    ReorderRequest,
    SplitRequest,
    StartRequest,
    SubtaskDraft,
    TaskDraft,
    UnblockRequest,
)
from tests.goals.scene import act, advance, bare, begun, contents, done, open_goals, statuses


def _drafts(*texts: str) -> list[TaskDraft]:
    return [TaskDraft(description=text) for text in texts]


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


@pytest.mark.requirement("H-2")
def test_per_cent_at_every_level(tmp_path: Path) -> None:
    """Per cent is the share of leaves that are done, of the goal, of each task and of each subtask."""
    goals = begun(tmp_path)
    done(goals)
    goal = goals.state().goal

    assert (goal.percent, goal.tasks[0].percent, goal.tasks[0].subtasks[0].percent, goal.tasks[1].percent) == (33, 50, 100, 0)
    done(goals)
    done(goals)
    assert goals.state().goal.percent == 100
    assert set(statuses(goals.state()).values()) == {"done"}


def test_a_goal_without_tasks_is_worked_on_itself(tmp_path: Path) -> None:
    """Actions and attempts belong to the goal while it has no tasks, to a task while it has no subtasks."""
    goals = open_goals(tmp_path)
    goals.start(StartRequest(goal="small"))
    assert act(goals, "look").node == "goal"
    goals.add(AddRequest(tasks=_drafts("one")))
    assert act(goals, "look more").node == "t1"
    goals.add(AddRequest(tasks=_drafts("part"), parent="t1"))
    assert act(goals, "look closer").node == "t1.1"
    assert statuses(goals.state()) == {"goal": "in_progress", "t1": "in_progress", "t1.1": "in_progress"}
    done(goals)
    assert goals.state().goal.status == "done"


@pytest.mark.requirement("H-reorder")
def test_tasks_are_inserted_where_asked(tmp_path: Path) -> None:
    """New tasks and subtasks stand at the place given, with ids that nobody had before."""
    goals = begun(tmp_path)
    goals.add(AddRequest(tasks=_drafts("first", "second"), at=0))
    goals.add(AddRequest(tasks=_drafts("between"), parent="t1", at=1))

    tasks = goals.state().goal.tasks
    assert [each.id for each in tasks] == ["t3", "t4", "t1", "t2"]
    assert [each.id for each in tasks[2].subtasks] == ["t1.1", "t1.3", "t1.2"]
    with pytest.raises(InvalidInput):
        goals.add(AddRequest(tasks=_drafts("x"), parent="t1.1"))
    with pytest.raises(InvalidInput):
        goals.add(AddRequest(tasks=[TaskDraft(description="x", subtasks=[SubtaskDraft(description="y")])], parent="t1"))


@pytest.mark.requirement("H-reorder")
def test_order_changes_what_comes_next(tmp_path: Path) -> None:
    """Reordering changes which leaf is next, and keeps those that are not named in their order."""
    goals = begun(tmp_path)
    goals.add(AddRequest(tasks=_drafts("third")))
    goals.reorder(ReorderRequest(order=["t2"]))
    assert [each.id for each in goals.state().goal.tasks] == ["t2", "t1", "t3"]
    goals.reorder(ReorderRequest(order=["t1.2", "t1.1"], parent="t1"))
    advance(goals)
    assert goals.state().current == "t2.1"
    done(goals)
    advance(goals)
    assert goals.state().current == "t1.2"


@pytest.mark.requirement("H-reorder")
def test_a_task_is_split_while_it_is_worked_on(tmp_path: Path) -> None:
    """What replaces a task stands at its place; what was done below it stays done and counts."""
    goals = begun(tmp_path)
    done(goals)
    advance(goals)
    act(goals, "look")
    goals.split(SplitRequest(id="t1", into=_drafts("smaller", "smallest"), reason="too big"))

    state = goals.state()
    assert [each.id for each in state.goal.tasks] == ["t1", "t3", "t4", "t2"]
    assert {name: statuses(state)[name] for name in ("t1", "t1.1", "t1.2", "t3")} == {
        "t1": "split", "t1.1": "done", "t1.2": "split", "t3": "pending",
    }  # fmt: skip
    assert state.current == "t3"
    assert state.goal.percent == 25
    goals.split(SplitRequest(id="t2.1", into=_drafts("a", "b")))
    assert [each.id for each in goals.state().goal.tasks[3].subtasks] == ["t2.1", "t2.2", "t2.3"]


def test_a_dropped_task_does_not_count(tmp_path: Path) -> None:
    """A task that is given up is left out of the per cent, and a goal is done without it."""
    goals = begun(tmp_path)
    goals.drop(DropRequest(id="t1", reason="not wanted"))
    done(goals)

    assert statuses(goals.state()) == {
        "goal": "done", "t1": "dropped", "t1.1": "dropped", "t1.2": "dropped", "t2": "done", "t2.1": "done",
    }  # fmt: skip
    assert goals.state().goal.percent == 100


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
    ("done twice", lambda goals: goals.done(EndRequest(id="t1.1"))),
    ("fail what is done", lambda goals: goals.fail(EndRequest(id="t1.1"))),
    ("go to what is done", lambda goals: goals.next(NextRequest(to="t1.1"))),
    ("block what is done", lambda goals: goals.block(BlockRequest(id="t1.1", reason="x"))),
    ("drop what is done", lambda goals: goals.drop(DropRequest(id="t1.1"))),
    ("drop the goal", lambda goals: goals.drop(DropRequest(id="goal"))),
    ("split the goal", lambda goals: goals.split(SplitRequest(id="goal", into=_drafts("x")))),
    ("split what is done", lambda goals: goals.split(SplitRequest(id="t1.1", into=_drafts("x")))),
    ("end what has subtasks", lambda goals: goals.done(EndRequest(id="t1"))),
    ("end what is blocked", lambda goals: goals.done(EndRequest(id="t2.1"))),
    ("go to what is blocked", lambda goals: goals.next(NextRequest(to="t2.1"))),
    ("an unknown id", lambda goals: goals.done(EndRequest(id="t9"))),
    ("an order of strangers", lambda goals: goals.reorder(ReorderRequest(order=["t1.1"]))),
    ("an order that names one twice", lambda goals: goals.reorder(ReorderRequest(order=["t1", "t1"]))),
    ("unblock what is free", lambda goals: goals.unblock(UnblockRequest(target="t1.2"))),
    ("unblock what is unknown", lambda goals: goals.unblock(UnblockRequest(target="nothing"))),
    ("too many tasks", lambda goals: [goals.add(AddRequest(tasks=_drafts(*["x"] * 1000))) for _ in range(6)]),
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
    for ask in (goals.state, goals.brief, goals.resume, lambda: done(goals), lambda: act(goals, "x"), goals.compacted):
        with pytest.raises(NotFound):
            ask()
    assert list(tmp_path.iterdir()) == []


def test_what_is_put_off_by_hand_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A subtask that a person blocked leaves its neighbours open; its task is blocked when nothing else is left of it."""
    goals = begun(tmp_path)
    goals.block(BlockRequest(id="t1.2", reason="waiting for a key"))
    assert statuses(goals.state())["t1"] == "pending"
    done(goals)
    state = goals.state()
    assert (statuses(state)["t1"], statuses(state)["goal"], state.current) == ("blocked", "in_progress", "t2.1")


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
    added = goals.add(AddRequest(tasks=_drafts("x"))).changed[0]
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
