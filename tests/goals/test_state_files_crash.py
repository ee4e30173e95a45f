"""A goal survives a kill at every call that changes a file, and goes on at the last step that was acknowledged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.goals import Goals, state_files
from ctxmgr.log.journal import read
from ctxmgr.types.goal import ActionRequest, AddRequest, NextRequest, RecordRequest, ResumeRequest, TaskDraft, UnblockRequest
from tests.goals.kills import DIED, ENDED, run_until
from tests.goals.scene import act, bare, begun, contents, done, fail, open_goals

CHANGES: dict[str, Callable[[Goals], object]] = {
    "record": lambda goals: act(goals, "edit", {"path": "a"}),
    "refused": lambda goals: act(goals, "look", {"n": 0}),
    "begin": lambda goals: goals.begin(ActionRequest(action="build")),
    "done": done,
    "fail": lambda goals: fail(goals, "it did not work"),
    "next": lambda goals: goals.next(NextRequest(to="t2.1")),
    "add": lambda goals: goals.add(AddRequest(tasks=[TaskDraft(description="more")])),
    "unblock": lambda goals: goals.unblock(UnblockRequest()),
    "resume": lambda goals: goals.resume(ResumeRequest()),
}


def _prepared(folder: Path) -> None:
    """Leave a goal in the middle of work, with an owner that died and one block by hand."""
    from ctxmgr.types.goal import BlockRequest

    assert run_until(lambda: _by_an_owner(folder), 1_000) == ENDED
    goals = open_goals(folder)
    goals.block(BlockRequest(id="t2", reason="later"))
    goals.unblock(UnblockRequest())
    goals.block(BlockRequest(id="t1.2", reason="later"))


def _by_an_owner(folder: Path) -> None:
    goals = begun(folder, hold=True)
    for _ in range(3):
        act(goals, "look", {"n": 0})


def _parseable(folder: Path) -> None:
    place = folder / ".agent_context"
    for name in (state_files.STATE, state_files.PREVIOUS, state_files.LOOPS):
        if (place / name).exists():
            json.loads((place / name).read_text(encoding="ascii"))
    damaged: list[str] = []
    list(read(place / state_files.HISTORY, damage=lambda offset, length, reason: damaged.append(reason)))
    assert all("torn" in each for each in damaged), damaged


def _state(folder: Path) -> Any:
    shape = bare(open_goals(folder).state())
    return {name: value for name, value in shape.items() if name not in ("owner",)}


@pytest.mark.long
@pytest.mark.requirement("H-resume", "R-19")
@pytest.mark.parametrize("halves", [False, True], ids=["before a call", "in the middle of a write"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_kill_at_every_call(tmp_path: Path, change: Callable[[Goals], object], halves: bool) -> None:
    """Whatever call a change is killed at, the goal is as before it or as after it, and a second resume changes nothing."""
    start = tmp_path / "start"
    start.mkdir()
    _prepared(start)
    before = _state(start)
    whole = tmp_path / "whole"
    shutil.copytree(start, whole)
    change(open_goals(whole))
    after = _state(whole)

    points = 0
    seen: set[bool] = set()
    while True:
        folder = tmp_path / f"at-{points}"
        shutil.copytree(start, folder)
        if run_until(lambda folder=folder: change(open_goals(folder)), points + 1, halves=halves) != DIED:
            break
        points += 1
        _parseable(folder)
        found = _state(folder)
        assert found in (before, after), f"killed at call {points}"
        seen.add(found == after)
        open_goals(folder).resume()
        assert _state(folder) == found
        once = contents(folder)
        open_goals(folder).resume()
        assert contents(folder) == once
        shutil.rmtree(folder)

    assert points >= 8
    if before != after:
        assert seen == {True, False}


@pytest.mark.slow
@pytest.mark.requirement("H-resume")
def test_a_kill_while_a_goal_begins(tmp_path: Path) -> None:
    """A goal whose beginning was killed is there, or is not; beginning it again leads to the same goal."""
    points = 0
    while True:
        folder = tmp_path / f"at-{points}"
        folder.mkdir()
        if run_until(lambda folder=folder: begun(folder), points + 1, halves=True) != DIED:
            break
        points += 1
        goals = begun(folder)
        assert goals.state().goal.description == "Create mathx"
        assert len(goals.state().goal.tasks) == 2
    assert points >= 10


@pytest.mark.requirement("H-resume", "H-told")
def test_an_action_in_flight_at_a_crash(tmp_path: Path) -> None:
    """What was begun and has no result is told by every resume as in flight, until its result is recorded."""

    def crash() -> None:
        goals = begun(tmp_path, hold=True)
        goals.begin(ActionRequest(action="deploy", args={"to": "test"}))

    assert run_until(crash, 1_000) == ENDED
    first = open_goals(tmp_path).resume()
    second = open_goals(tmp_path).resume()

    assert [(each.action, each.status, each.result) for each in first.in_flight] == [("deploy", "open", None)]
    assert (first.took_over, second.took_over) == (True, False)
    assert second.in_flight == first.in_flight
    assert "effect unknown" in first.brief
    again = act(open_goals(tmp_path), "deploy", {"to": "test"})
    assert again.in_flight == [first.in_flight[0].id]
    open_goals(tmp_path).record(RecordRequest(action="deploy", entry=first.in_flight[0].id, status="interrupted"))
    assert open_goals(tmp_path).resume().in_flight == []
