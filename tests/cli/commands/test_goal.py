"""``goal``: a goal is started, walked through, guarded and briefed, through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ctxmgr.cli.commands.goal import goal_app
from ctxmgr.cli.commands.goal_steps import probe_app
from ctxmgr.types.goal import BriefAnswer, GoalAnswer, RecordAnswer, ResumeAnswer, StartAnswer
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


@pytest.mark.requirement("H-1", "H-C")
def test_the_tree_is_walked_through() -> None:
    """Steps are begun, done, failed, blocked after two failures, escalated, and unblocked."""
    data("start", "--from", "plan.md")

    assert GoalAnswer.model_validate(data("next")).changed == ["t1.2"]
    assert kind("next") == (2, "invalid")
    data("done")
    data("next")
    data("fail", "--reason", "no idea")
    data("next")
    blocked = GoalAnswer.model_validate(data("fail", "--reason", "still none"))
    assert blocked.message is not None
    assert "t1.3 is blocked" in blocked.message
    assert [line for line in outline() if "blocked" in line] == ["t1 blocked", "t1.3 blocked"]

    data("unblock", "t1.3")
    assert not [line for line in outline() if "blocked" in line]
    data("block", "t2", "--reason", "waiting for the key")
    assert kind("next", "t2.1") == (2, "invalid")
    data("unblock", "t2")
    assert data("next", "t2.1")["changed"] == ["t2.1"]


@pytest.mark.requirement("H-reorder")
def test_the_tree_is_changed_while_it_is_walked_through() -> None:
    """Tasks and subtasks are added at any place, split, moved and dropped; what has no place is told."""
    data("start", "--from", "plan.md")
    data("add", "Document", "--subtask", "write", "--subtask", "read")
    data("add", "first of all", "--before", "t1.1")
    data("add", "more", "--to", "t2")
    data("add", "between", "--after", "t1")
    assert [line.split()[0] for line in outline()] == [
        "t1", "t1.4", "t1.1", "t1.2", "t1.3", "t4", "t2", "t2.1", "t2.2", "t2.3", "t3", "t3.1", "t3.2",
    ]  # fmt: skip

    data("split", "t1.2", "head", "body", "--reason", "too big")
    data("move", "t3", "--before", "t1")
    data("move", "t2.3", "--after", "t2.1")
    data("drop", "t4", "--reason", "not needed")
    assert outline() == [
        "t3 pending", "t3.1 pending", "t3.2 pending", "t1 in_progress", "t1.4 pending", "t1.1 done", "t1.2 split",
        "t1.5 pending", "t1.6 pending", "t1.3 pending", "t4 dropped", "t2 pending", "t2.1 pending", "t2.3 pending",
        "t2.2 pending",
    ]  # fmt: skip

    assert kind("move", "t1", "--after", "t2.1") == (2, "invalid")
    assert kind("move", "t1") == (2, "invalid")
    assert kind("move", "t9", "--after", "t1") == (3, "notFound")
    assert kind("add", "x", "--to", "t1", "--before", "t2.1") == (2, "invalid")
    assert kind("add", "x", "--before", "t1", "--after", "t2") == (2, "invalid")
    assert kind("add", "x", "--to", "t1", "--subtask", "y") == (2, "invalid")
    assert kind("add", "") == (2, "invalid")


@pytest.mark.requirement("H-A", "H-blocked", "H-lift")
def test_the_fourth_same_action_is_refused_until_something_changes() -> None:
    """The exit code tells a script: 0 allowed, 10 refused; a new result, a person or unblock lifts it."""
    data("start", "fix it")
    again = ("record", "run_tests", "--args", '{"path": "tests"}', "--result", "error: 2 failed")
    for _ in range(3):
        assert RecordAnswer.model_validate(data(*again)).allowed

    refused = goal(*again)
    found = RecordAnswer.model_validate(refused.envelope["data"])
    assert (refused.code, found.allowed, found.type, found.entry) == (10, False, "A", None)
    assert found.reason is not None
    assert "3 times" in found.reason
    assert found.finding is not None
    assert found.finding.kind == "repetition"
    assert refused.envelope["next"] == ["ctxmgr goal recover", "ctxmgr goal unblock"]
    assert data("record", "run_tests", "--args", '{"path": "tests"}', "--ask", code=10)["allowed"] is False
    assert "run_tests" in data("brief")["text"].partition("BLOCKED")[2]

    assert data("record", "run_tests", "--args", '{"path": "tests"}', "--result", "success")["allowed"] is True
    for _ in range(3):
        goal(*again)
    assert goal(*again).code == 10
    data("unblock", "run_tests")
    assert goal(*again).code == 0


def test_a_person_lifts_what_the_guard_blocked() -> None:
    """After a human message the counting starts anew."""
    data("start", "fix it")
    codes = [goal("record", "look", "--result", "same").code for _ in range(4)]
    data("say", "go on, it changes soon")

    assert codes == [0, 0, 0, 10]
    assert goal("record", "look", "--result", "same").code == 0


def test_an_action_that_began_is_in_flight_until_its_result() -> None:
    """A begun action is told by resume as of unknown effect; its result may come later, once."""
    data("start", "fix it")
    entry = data("record", "deploy", "--args", '{"to": "prod"}', "--begin")["entry"]
    flight = ResumeAnswer.model_validate(data("resume")).in_flight

    assert [(action.id, action.action, action.status) for action in flight] == [(entry, "deploy", "open")]
    assert data("record", "deploy", "--entry", entry, "--status", "ok")["allowed"] is True
    assert data("resume")["inFlight"] == []
    assert kind("record", "deploy", "--entry", entry, "--result", "success") == (2, "invalid")


@pytest.mark.parametrize(
    "arguments",
    [
        ("x",), ("x", "--ask", "--begin"), ("x", "--ask", "--result", "success"), ("x", "--args", "{", "--result", "success"),
        ("x", "--args", "NaN", "--result", "success"), ("x", "--args", "[" * 100_000, "--result", "success"),
        ("x", "--status", "odd"), ("", "--result", "success"), ("x", "--args", "-", "--result", "-"),
    ],
)  # fmt: skip
def test_what_cannot_be_recorded_says_why(arguments: tuple[str, ...]) -> None:
    """An action needs a name, JSON arguments and one way of saying how it ended; nothing is recorded otherwise."""
    data("start", "fix it")

    assert kind("record", *arguments) == (2, "invalid")
    assert state().actions_total == 0


def test_arguments_and_results_come_from_stdin() -> None:
    """What is too long for a command line is read from stdin."""
    data("start", "fix it")
    goal("record", "write", "--args", "-", "--result", "success", given='{"path": "a.py"}')
    goal("record", "read", "--args", "{}", "--result", "-", given="what came back")
    first, second = state().actions

    assert first.args == {"path": "a.py"}
    assert second.result == "what came back"


@pytest.mark.requirement("H-limit", "H-words", "H-need")
def test_the_brief_is_plain_text_within_its_limit() -> None:
    """The brief goes to stdout as it is; it is never longer than was asked for and says which words it was given in."""
    data("start", "--from", "plan.md")
    data("next")
    plain = run("goal", "brief")
    found = BriefAnswer.model_validate(data("brief"))

    assert plain.out == found.text + "\n"
    assert "Write the tests" not in found.text
    for most in (0, 10, 80, 200):
        small = BriefAnswer.model_validate(data("brief", "--max-chars", str(most)))
        assert (small.chars, small.chars <= most) == (len(small.text), True)
    briefs = {moment: data("brief", "--moment", moment)["text"] for moment in ("start", "continue", "resume", "compaction")}
    assert len(set(briefs.values())) == 4
    assert kind("brief", "--moment", "odd") == (2, "invalid")
    assert kind("brief", "--max-chars", "-1") == (2, "invalid")
