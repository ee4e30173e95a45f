"""``goal``: every part explains itself, and a goal is started from a plan, text or a list, through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ctxmgr.cli.commands.goal import goal_app
from ctxmgr.cli.commands.goal_steps import probe_app
from ctxmgr.types.goal import StartAnswer
from tests.cli.console import run
from tests.cli.goals import data, goal, kind, outline, state

COMMANDS = [str(command.name) for command in goal_app.registered_commands]

pytestmark = pytest.mark.usefixtures("project")


@pytest.mark.parametrize("part", [*COMMANDS, *(f"probe {command.name}" for command in probe_app.registered_commands)])
def test_every_part_explains_itself_with_examples(part: str) -> None:
    """The help of each part shows examples that begin with it."""
    ran = run("goal", *part.split(), "--help")

    assert ran.code == 0
    assert re.search(rf"\n +ctxmgr goal {part}\b", ran.out.partition("Examples:")[2])


@pytest.mark.parametrize("part", [name for name in COMMANDS if name != "start"])
def test_without_a_goal_every_part_says_how_to_begin(part: str, project: Path) -> None:
    """Nothing is made where no goal is: the error names the command that begins one."""
    given = {"record": ["x", "--result", "success"], "block": ["t1", "--reason", "r"], "split": ["t1", "a"], "say": ["hi"],
             "move": ["t1", "--after", "t2"], "add": ["x"], "drop": ["t1"]}  # fmt: skip
    ran = goal(part, *given.get(part, []))

    assert (ran.code, ran.envelope["error"]["kind"]) == (3, "notFound")
    assert "ctxmgr goal start" in ran.envelope["error"]["hint"]
    assert not (project / ".agent_context").exists()


@pytest.mark.requirement("H-plan")
def test_a_script_starts_a_goal_from_its_plan() -> None:
    """With --json a plan counts at once; what it says is done is done, and what was left out is told."""
    ran = goal("start", "--from", "plan.md")
    found = StartAnswer.model_validate(ran.envelope["data"])

    assert (ran.code, found.started) == (0, True)
    assert found.plan is not None
    assert (found.plan.goal, found.plan.by) == ("Create the mathx package", "rules")
    assert ran.envelope["warnings"] == ["left out: the section 'Background', which reads like background"]
    assert outline() == [
        "t1 in_progress", "t1.1 done", "t1.2 pending", "t1.3 pending", "t2 pending", "t2.1 pending", "t2.2 pending",
    ]  # fmt: skip
    assert state().goal.percent == 20


@pytest.mark.requirement("H-plan")
def test_a_plan_is_shown_before_it_counts(project: Path) -> None:
    """Without --json and without a terminal a plan is shown and waits for --yes; --plan only ever shows it."""
    for extra, code in (((), 20), (("--plan",), 0)):
        ran = run("goal", "start", "--from", "plan.md", *extra)
        assert ran.code == code
        assert "Create the mathx package\n  ○ Create package\n      ✓ Create mathx/__init__.py\n" in ran.out
        assert not (project / ".agent_context").exists()
    assert "accept the plan with --yes" in run("goal", "start", "--from", "plan.md").err
    assert data("start", "--from", "plan.md", "--plan")["started"] is False

    assert run("goal", "start", "--from", "plan.md", "--yes").code == 0
    assert (project / ".agent_context").is_dir()


def test_a_shown_plan_is_a_plan_again() -> None:
    """The plan in the answer, saved as JSON, edited or not, starts the same tasks."""
    shown = data("start", "--from", "plan.md", "--plan")["plan"]
    Path("plan.json").write_text(json.dumps(shown), "utf-8")
    again = data("start", "--from", "plan.json")

    assert again["plan"]["tasks"] == shown["tasks"]
    assert again["state"]["goal"]["description"] == "Create the mathx package"


def test_a_goal_comes_from_text_stdin_or_a_list() -> None:
    """A goal may be one sentence, a list of its own, or a plan on stdin that takes its title from the call."""
    assert data("start", "Just do it")["state"]["goal"]["tasks"] == []
    listed = data("start", "Ship it\n\n- build\n  - compile\n- test\n", "--replace")["state"]["goal"]
    assert (listed["description"], [task["description"] for task in listed["tasks"]]) == ("Ship it", ["build", "test"])

    ran = goal("start", "Named here", "--from", "-", "--replace", given="- a\n- b\n")
    assert ran.envelope["data"]["state"]["goal"]["description"] == "Named here"


def test_a_plan_without_a_title_still_starts() -> None:
    """A nameless plan takes its file's name, and the person hears how to say it better."""
    Path("todo.md").write_text("- a\n- b\n", "utf-8")
    ran = goal("start", "--from", "todo.md")

    assert ran.envelope["data"]["state"]["goal"]["description"] == "Do what todo.md lists"
    assert "ctxmgr goal start TEXT --from todo.md" in ran.envelope["warnings"][0]


def test_the_same_goal_goes_on_and_another_is_a_conflict() -> None:
    """Starting what is there goes on with it; another goal has to be asked for."""
    data("start", "one")
    data("add", "task")

    assert data("start", "one")["message"] == "the goal goes on"
    assert len(data("start")["state"]["goal"]["tasks"]) == 1
    assert kind("start", "two") == (2, "conflict")
    assert data("start", "two", "--replace")["state"]["goal"]["tasks"] == []


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        (("start", "--from", "none.md"), "notFound", 3), (("start", "--from", "."), "invalid", 2),
        (("start", "x", "--plan"), "invalid", 2), (("start", "x", "--by-model"), "invalid", 2),
        (("start",), "notFound", 3), (("tree", "--dir", "none"), "invalid", 2), (("start", " "), "invalid", 2),
    ],
)  # fmt: skip
def test_what_cannot_start_says_why(arguments: tuple[str, ...], error: str, code: int, project: Path) -> None:
    """A missing or odd plan, a plan that is no plan and a model that is none are told, and nothing is made."""
    assert kind(*arguments) == (code, error)
    assert not (project / ".agent_context" / "state.json").exists()
