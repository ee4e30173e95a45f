"""The quick start of the source document works as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import Busy, Conflict, InvalidInput, NotFound, Superseded
from ctxmgr.goals import ContextManager, GoalTracker, Subtask, Task


@pytest.fixture
def ctx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoalTracker:
    """Return a tracker in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return ContextManager()


@pytest.mark.requirement("H-API", "H-1", "H-2")
def test_the_quick_start(ctx: GoalTracker, tmp_path: Path) -> None:
    """Every step of the quick start does what it says, with the names it uses."""
    ctx.load_or_init("Create mathx package")
    task = Task(description="Create package")
    task.subtasks = [Subtask(description="Create __init__.py"), Subtask(description="Add add() function")]
    ctx.state.goal.tasks.append(task)

    allowed = ctx.record_action(name="write_file", args={"path": "mathx/__init__.py", "content": "..."}, result="success")
    assert allowed
    context = ctx.get_compact_context(max_chars=2000)
    assert "GOAL: Create mathx package" in context
    assert "Create __init__.py" in context
    assert "write_file" in context

    ctx.mark_subtask_complete(success=True)
    following = ctx.advance_to_next_subtask()

    assert following is not None
    assert (following.id, following.status) == ("t1.2", "in_progress")
    assert [each.status for each in task.subtasks] == ["done", "in_progress"]
    assert (task.status, task.percent, ctx.state.goal.percent) == ("in_progress", 50, 50)
    assert sorted(each.name for each in (tmp_path / ".agent_context").glob("*.json*")) == [
        "history.jsonl", "loops.json", "state.json", "state.prev.json",
    ]  # fmt: skip


def test_a_refused_action_is_false(ctx: GoalTracker) -> None:
    """The answer to a refused action is false in a condition, and says why."""
    ctx.load_or_init("Create mathx package")
    answers = [ctx.record_action("action_X", {}, "success") for _ in range(4)]

    assert [bool(each) for each in answers] == [True, True, True, False]
    assert answers[3].reason
    assert answers[3].finding is not None
    assert answers[3].finding.kind == "repetition"


def test_tasks_grow_after_they_were_added(ctx: GoalTracker) -> None:
    """What is put into a task, or into the goal, later on is part of the tree at once and at the place it was given."""
    ctx.load_or_init("g")
    task = Task("one", [Subtask("first")])
    ctx.state.goal.tasks.append(task)
    task.subtasks.append(Subtask("third"))
    task.subtasks.insert(1, Subtask("second"))
    ctx.state.goal.tasks.insert(0, Task("zero"))

    tasks = ctx.state.goal.view.tasks
    assert [each.description for each in tasks] == ["zero", "one"]
    assert [each.description for each in tasks[1].subtasks] == ["first", "second", "third"]
    assert [each.description for each in task.subtasks] == ["first", "second", "third"]
    with pytest.raises(InvalidInput):
        del task.subtasks[0]
    with pytest.raises(InvalidInput):
        task.subtasks[0] = Subtask("other")


def test_a_second_tracker_goes_on(ctx: GoalTracker) -> None:
    """A new tracker takes the goal up where it was left; the old one is refused from then on."""
    ctx.load_or_init("g")
    ctx.state.goal.tasks.append(Task("one", [Subtask("first"), Subtask("second")]))
    ctx.record_action("look", {"n": 1})
    ctx.mark_subtask_complete()

    second = ContextManager()
    state = second.load_or_init("g")

    assert state.goal.tasks[0].percent == 50
    assert [each.description for each in second.state.goal.tasks] == ["one"]
    with pytest.raises(Superseded):
        ctx.record_action("look", {"n": 2})
    assert second.record_action("look", {"n": 3})


def test_another_goal_is_a_conflict(ctx: GoalTracker) -> None:
    """A goal is not given up for another one by accident, but is with ``replace``; a finished one gives way."""
    ctx.load_or_init("one")
    with pytest.raises(Conflict):
        ctx.load_or_init("two")
    assert ctx.load_or_init("two", replace=True).goal.description == "two"
    ctx.mark_subtask_complete()
    assert ctx.load_or_init("three").goal.description == "three"


def test_without_a_name_the_goal_must_be_there(ctx: GoalTracker) -> None:
    """Loading without a goal fails where there is none, and makes no folder."""
    with pytest.raises(NotFound):
        ctx.load_or_init()
    assert list(Path.cwd().iterdir()) == []


def test_a_closed_tracker_lets_go(ctx: GoalTracker) -> None:
    """After ``close`` nobody holds the goal."""
    with ctx:
        ctx.load_or_init("g")
        assert ctx.state.view.owner.pid is not None
    assert ctx.state.view.owner.pid is None


def test_actions_have_a_beginning_and_an_end(ctx: GoalTracker) -> None:
    """An action that was begun is in flight until its result is recorded."""
    ctx.load_or_init("g")
    begun = ctx.begin_action("build", {"target": "all"})
    assert begun.entry is not None
    assert [each.action for each in ctx.state.view.in_flight] == ["build"]

    ctx.finish_action(begun.entry, "error: no rule")

    assert ctx.state.view.in_flight == []
    assert [each.result for each in ctx.state.view.actions] == ["error: no rule"]
    with pytest.raises(InvalidInput):
        ctx.finish_action(begun.entry)


def test_busy_is_an_error_of_its_own() -> None:
    """That another live process holds the goal can be told from having lost it to one."""
    assert (Busy.kind, Superseded.kind) == ("busy", "superseded")
    assert not issubclass(Superseded, Busy)


@pytest.mark.requirement("H-resume")
def test_a_loop_that_goes_on_is_given_the_active_subtask(ctx: GoalTracker) -> None:
    """After a crash the next subtask is the one in progress, and asking for it changes nothing; what failed is tried anew."""
    ctx.load_or_init("g")
    ctx.state.goal.tasks.append(Task("one", [Subtask("first"), Subtask("second")]))
    ctx.record_action("look", {"n": 1})

    with ContextManager() as second:
        records = second.load_or_init("g").records
        found = second.advance_to_next_subtask()
        assert found is not None
        assert (found.id, found.status, len(found.attempts)) == ("t1.1", "in_progress", 1)
        assert second.state.view.records == records
        with pytest.raises(Superseded):
            ctx.advance_to_next_subtask()

        second.mark_subtask_complete(success=False)
        again = second.advance_to_next_subtask()
        assert again is not None
        assert (again.id, again.status, len(again.attempts)) == ("t1.1", "in_progress", 2)
