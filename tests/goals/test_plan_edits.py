"""Changes that people make to a plan: insert, reorder, split, drop and put off; ids and what is done stay."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.types.goal import (
    AddRequest,
    BlockRequest,
    DropRequest,
    EndRequest,
    Probe,
    ReorderRequest,
    SplitRequest,
    SubtaskDraft,
    TaskDraft,
)
from tests.goals.scene import act, advance, begun, done, drafts, open_goals, statuses


@pytest.mark.requirement("H-reorder")
def test_tasks_are_inserted_where_asked(tmp_path: Path) -> None:
    """New tasks and subtasks stand at the place given, with ids that nobody had before."""
    goals = begun(tmp_path)
    goals.add(AddRequest(tasks=drafts("first", "second"), at=0))
    goals.add(AddRequest(tasks=drafts("between"), parent="t1", at=1))

    tasks = goals.state().goal.tasks
    assert [each.id for each in tasks] == ["t3", "t4", "t1", "t2"]
    assert [each.id for each in tasks[2].subtasks] == ["t1.1", "t1.3", "t1.2"]
    with pytest.raises(InvalidInput):
        goals.add(AddRequest(tasks=drafts("x"), parent="t1.1"))
    with pytest.raises(InvalidInput):
        goals.add(AddRequest(tasks=[TaskDraft(description="x", subtasks=[SubtaskDraft(description="y")])], parent="t1"))


@pytest.mark.requirement("H-reorder")
def test_order_changes_what_comes_next(tmp_path: Path) -> None:
    """Reordering changes which leaf is next, and keeps those that are not named in their order."""
    goals = begun(tmp_path)
    goals.add(AddRequest(tasks=drafts("third")))
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
    goals.split(SplitRequest(id="t1", into=drafts("smaller", "smallest"), reason="too big"))

    state = goals.state()
    assert [each.id for each in state.goal.tasks] == ["t1", "t3", "t4", "t2"]
    assert {name: statuses(state)[name] for name in ("t1", "t1.1", "t1.2", "t3")} == {
        "t1": "split", "t1.1": "done", "t1.2": "split", "t3": "pending",
    }  # fmt: skip
    assert state.current == "t3"
    assert state.goal.percent == 25
    goals.split(SplitRequest(id="t2.1", into=drafts("a", "b")))
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


def test_what_is_put_off_by_hand_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A subtask that a person blocked leaves its neighbours open; its task is blocked when nothing else is left of it."""
    goals = begun(tmp_path)
    goals.block(BlockRequest(id="t1.2", reason="waiting for a key"))
    assert statuses(goals.state())["t1"] == "pending"
    done(goals)
    state = goals.state()
    assert (statuses(state)["t1"], statuses(state)["goal"], state.current) == ("blocked", "in_progress", "t2.1")


def test_probes_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    """Who adds a probe keeps those that others added in the meantime."""
    begun(tmp_path)
    names = [f"p{number}" for number in range(8)]
    together = threading.Barrier(len(names))

    def add(name: str) -> None:
        goals = open_goals(tmp_path)
        together.wait()
        goals.add_probe(Probe(name=name, kind="fileExists", path=name))

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.name for each in open_goals(tmp_path).state().probes) == names


def test_texts_of_a_plan_are_single_lines(tmp_path: Path) -> None:
    """Line ends in descriptions of every level and in reasons become blanks, whichever request brings them."""
    goals = begun(tmp_path)
    goals.add(AddRequest(tasks=[TaskDraft(description="a\nb", subtasks=[SubtaskDraft(description="c\r\n  d")])]))
    goals.split(SplitRequest(id="t2.1", into=drafts("e\nf"), reason="too\nbig"))
    goals.drop(DropRequest(id="t1.2", reason="not\nneeded"))
    goals.block(BlockRequest(id="t3", reason="wait\nhere"))
    act(goals, "look")
    goals.fail(EndRequest(reason="it\nfailed\n"))

    first, second, third = goals.state().goal.tasks
    assert (third.description, third.subtasks[0].description, second.subtasks[1].description) == ("a b", "c d", "e f")
    assert (second.subtasks[0].reason, first.subtasks[1].reason) == ("too big", "not needed")
    assert (third.block and third.block.reason, first.subtasks[0].reason) == ("wait here", "it failed")
    for text in (" ", "\n"):
        with pytest.raises(InvalidInput, match="1 to 4,000 characters"):
            goals.add(AddRequest(tasks=drafts(text)))
