"""``goal start`` where a plan must be accepted: a person at a terminal, and the proposals of a model."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli import model_proposals
from ctxmgr.cli.model_proposals import Split
from ctxmgr.types.goal import StartAnswer
from tests.cli.console import LIMIT, command, run
from tests.cli.goals import goal, kind

ROOT = Path(__file__).parents[3]
MODEL = ("--model", "scripted", "--base-url", "http://127.0.0.1:9/v1")

pytestmark = pytest.mark.usefixtures("project")


@pytest.mark.cases(2)
@pytest.mark.requirement("H-plan")
@pytest.mark.parametrize(("typed", "started"), [(b"n\n", False), (b"\n", True), (b"y\n", True)])
def test_a_person_is_asked(typed: bytes, started: bool, project: Path) -> None:
    """At a terminal the plan is shown and counts when the person says yes."""
    ours, theirs = pty.openpty()
    start = command("goal", "start", "--from", str(project / "plan.md"), "--dir", str(project))
    with subprocess.Popen(start, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT) as process:
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        try:
            while data := os.read(ours, 4096):
                shown += data
        except OSError:  # the other side is closed
            pass
        assert process.wait(LIMIT) == 0
    os.close(ours)

    assert b"Start with this plan? [Y/n]" in shown
    assert b"Add sub()" in shown
    assert (project / ".agent_context").exists() is started
    assert (b"not started" in shown) is not started


def _answering(monkeypatch: pytest.MonkeyPatch, tasks: list[dict[str, Any]] | None, failure: str | None = None) -> None:
    found = None if tasks is None else Split.model_validate({"tasks": tasks})

    def asked(*_: object) -> tuple[Split | None, str | None]:
        return found, failure

    monkeypatch.setattr(model_proposals, "_ask_model", asked)


def _start(*arguments: str) -> tuple[int, StartAnswer]:
    ran = goal("start", *arguments)
    return ran.code, StartAnswer.model_validate(ran.envelope["data"])


@pytest.mark.requirement("H-plan")
def test_a_model_proposes_and_a_person_accepts(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """What a model proposes is shown, also to a script, and starts nothing without --yes; with it, it does."""
    _answering(monkeypatch, [{"title": "Build", "subtasks": ["a", "b"]}, {"title": "Test"}])
    code, found = _start("Create mathx", *MODEL)

    assert (code, found.started, found.state) == (20, False, None)
    assert found.plan is not None
    assert (found.plan.by, found.plan.model) == ("model", "scripted")
    assert not (project / ".agent_context").exists()

    code, found = _start("Create mathx", *MODEL, "--yes")
    assert (code, found.started) == (0, True)
    assert found.state is not None
    assert [task.description for task in found.state.goal.tasks] == ["Build", "Test"]


def test_a_model_that_fails_leaves_the_rules_plan_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules' split stands in, says why, and waits for --yes too: it is not what was asked for."""
    _answering(monkeypatch, None, "no answer within 30 s")
    ran = goal("start", "--from", "plan.md", *MODEL)
    found = StartAnswer.model_validate(ran.envelope["data"])

    assert (ran.code, found.started) == (20, False)
    assert found.plan is not None
    assert (found.plan.by, found.plan.failure, len(found.plan.tasks)) == ("rules", "no answer within 30 s", 2)
    assert any("the rules split the goal" in line for line in ran.envelope["warnings"])
    assert _start("--from", "plan.md", *MODEL, "--yes")[1].started


def test_a_configured_model_is_asked_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal goes to a model only where the call says so; --by-model takes the configured one."""
    _answering(monkeypatch, [{"title": "Build"}])
    monkeypatch.setenv("CTXMGR_MODEL", "openai:scripted")

    assert _start("one")[0] == 0
    code, found = _start("two", "--by-model", "--plan")
    assert (code, found.plan and found.plan.by) == (0, "model")
    monkeypatch.setenv("CTXMGR_MODEL", "none")
    assert kind("start", "three", "--by-model") == (2, "invalid")


def test_a_goal_without_steps_says_how_to_add_some() -> None:
    """In a pipe the answer stays data; as JSON the next commands are named."""
    assert run("goal", "start", "one").err == ""
    assert goal("start", "one").envelope["next"] == ["ctxmgr goal next", "ctxmgr goal brief"]


def test_what_a_plan_has_ticked_is_part_of_its_first_record(project: Path) -> None:
    """A long plan whose steps are ticked starts at once: in the records that a plan without a tick takes."""
    lines = [f"- [x] step {number}" if number % 3 else f"- [ ] step {number}" for number in range(600)]
    (project / "long.md").write_text("# Long\n\n## One\n" + "\n".join(lines), "utf-8")
    code, found = _start("--from", "long.md", "--yes")

    assert code == 0
    assert found.state is not None
    task = found.state.goal.tasks[0]
    assert ([step.status == "done" for step in task.subtasks], task.percent) == ([bool(n % 3) for n in range(600)], 66)
    assert (found.state.records, found.state.current) == (2, "t1.1")


def test_without_a_goal_the_whole_command_is_named() -> None:
    """Who types ``goal start`` alone is not sent back to what was typed."""
    told = goal("start")

    assert told.code == 3
    assert told.envelope["error"]["hint"].startswith('begin one: ctxmgr goal start "what is to be done"')
