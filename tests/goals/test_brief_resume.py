"""A resume tells where the work is, what was seen on the disk, and what is only assumed; the goal is a source for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.types.goal import ActionRequest, NextRequest, Probe, UnblockRequest
from tests.goals.scene import act, advance, begun, done, fail, open_goals


@pytest.mark.requirement("H-told")
def test_what_was_verified_and_what_is_assumed(tmp_path: Path) -> None:
    """Probes and files that actions named are looked at; what only the history says is called assumed."""
    goals = begun(tmp_path)
    goals.add_probe(Probe(name="pkg", kind="fileExists", path="mathx"))
    goals.add_probe(Probe(name="tests", kind="fileExists", path="tests"))
    goals.add_probe(Probe(name="builds", kind="command", argv=["true"]))
    act(goals, "write_file", {"path": "mathx/__init__.py"})
    done(goals)
    advance(goals)
    act(goals, "write_file", {"path": "mathx/lost.py"})
    act(goals, "delete_file", {"path": "mathx/old.py"})
    (tmp_path / "mathx").mkdir()
    (tmp_path / "mathx" / "__init__.py").touch()

    answer = open_goals(tmp_path).resume()

    assert answer.state.current == "t1.2"
    found = [(each.basis, each.text.partition(":")[0].partition(" is ")[0]) for each in answer.claims]
    assert found[:5] == [
        ("verified", "pkg"), ("refuted", "tests"), ("assumed", "builds"), ("verified", "mathx/__init__.py"),
        ("refuted", "mathx/lost.py"),
    ]  # fmt: skip
    assert [each.text for each in answer.claims[5:]] == [
        "t1.1 is done: init", "2 actions of attempt 1 at t1.2 had the effect that was recorded",
    ]  # fmt: skip
    assert {each.basis for each in answer.claims[5:]} == {"assumed"}
    assert "do not start over" in answer.brief


@pytest.mark.parametrize("path", ["a\0b", "x" * 2000, "http://e.example/a", "../" * 400, 7, None, ["a"]])
def test_odd_paths_are_not_looked_at(tmp_path: Path, path: object) -> None:
    """A path that is none is no claim, and raises nothing."""
    goals = begun(tmp_path)
    act(goals, "write_file", {"path": path})

    assert [each.basis for each in goals.resume().claims] == ["assumed"]


def test_a_changed_probe_is_written_once(tmp_path: Path) -> None:
    """A resume keeps what the probes saw when that changed, and writes nothing when it did not."""
    goals = begun(tmp_path)
    goals.add_probe(Probe(name="pkg", kind="fileExists", path="mathx"))
    records = [open_goals(tmp_path).resume().state.records for _ in range(3)]
    (tmp_path / "mathx").touch()
    records += [open_goals(tmp_path).resume().state.records for _ in range(2)]

    assert [each - records[0] for each in records] == [0, 0, 0, 1, 1]


@pytest.mark.requirement("H-source")
def test_the_goal_as_a_source(tmp_path: Path) -> None:
    """Where the work stands comes as plain facts: task, subtask, done, open, blocked, in flight and next."""
    goals = begun(tmp_path)
    done(goals)
    advance(goals)
    for _ in range(4):
        act(goals, "look", {"n": 1})
    goals.begin(ActionRequest(action="deploy"))
    source = open_goals(tmp_path).source()

    assert (source.goal, source.task, source.subtask, source.attempt) == ("Create mathx", "t1 Create package", "t1.2 add", 1)
    assert source.done == ["t1.1 init"]
    assert source.open == ["t1.2 add", "t2.1 cases"]
    assert [each.partition(":")[0] for each in source.blocked] == ["look"]
    assert source.in_flight == ["deploy"]


@pytest.mark.requirement("H-source", "H-lift")
def test_a_recovered_session_updates_the_tree(tmp_path: Path) -> None:
    """A continuation lifts what failed attempts blocked, and its first alternative is the next step of the brief."""
    goals = begun(tmp_path)
    fail(goals)
    fail(goals)
    wire: dict[str, object] = {
        "id": "c1", "session": "elsewhere", "v": 7, "kind": "odd", "target": "coder", "reason": "stuck",
        "alternatives": [{"text": "write the test first", "basis": "x", "entries": []}],
    }  # fmt: skip
    goals.apply(wire)

    state = goals.state()
    assert state.goal.tasks[0].subtasks[0].status == "pending"
    assert "NEXT: write the test first" in goals.brief().text
    fail(goals)
    assert goals.state().goal.tasks[0].subtasks[0].status == "blocked"
    goals.unblock(UnblockRequest())
    assert goals.next(NextRequest()).changed == ["t1.1"]


@pytest.mark.parametrize("odd", [{}, {"alternatives": 7, "goal": []}, {"id": 3, "alternatives": [None]}, {"reason": "\x1b[2J"}])
def test_odd_continuations_are_taken(tmp_path: Path, odd: dict[str, object]) -> None:
    """A continuation of whatever shape lifts the blocks and breaks nothing."""
    goals = begun(tmp_path)
    fail(goals)
    fail(goals)
    goals.apply(odd)

    assert goals.state().goal.tasks[0].status == "in_progress"
    assert "\x1b" not in goals.brief().text
