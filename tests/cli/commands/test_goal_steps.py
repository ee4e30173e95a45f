"""``goal``: the steps of a goal are walked through, changed, recorded under the guard, and told in a brief."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.types.goal import BriefAnswer, GoalAnswer, RecordAnswer, ResumeAnswer
from tests.cli.console import run
from tests.cli.goals import data, goal, kind, outline, state

pytestmark = pytest.mark.usefixtures("project")


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


def test_done_said_twice_ends_one_step() -> None:
    """The second ``done`` and ``fail`` are refused until the next step is begun; of a named step ``done`` may be said again."""
    data("start", "--from", "plan.md")
    data("next")
    data("done")

    for command in ("done", "fail"):
        again = run("goal", command)
        assert (again.code, again.out) == (2, "")
        assert "t1.3 is not begun; t1.2 is done already" in again.err
        assert "'ctxmgr goal next' begins it" in again.err
    assert data("done", "t1.2")["message"] == "t1.2 is done already"
    assert [line for line in outline() if line.endswith("done")] == ["t1.1 done", "t1.2 done"]


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


def test_who_begins_an_action_is_given_its_id_and_told_of_an_equal_one() -> None:
    """``--begin`` prints what ``--entry`` takes; a second one hears on stderr, and in JSON, that one is in flight."""
    data("start", "--from", "plan.md")
    deploy = ("record", "deploy", "--args", '{"to": "prod"}')
    first = run("goal", *deploy, "--begin")
    entry = state().in_flight[0].id
    assert first.err == ""
    assert f"→ its result: --entry {entry} --result RESULT" in first.out

    second = run("goal", *deploy, "--ask")
    assert "the same call is in flight already" in second.err
    assert f"--entry {entry}" in second.err
    begun = goal(*deploy, "--begin").envelope
    assert begun["data"]["inFlight"] == [entry]
    assert begun["warnings"] == [begun["data"]["hint"]]

    assert f'in flight: deploy {{"to": "prod"}} [{entry}]' in run("goal", "tree").out
    assert entry in run("goal", "resume").out
    for name in (entry, begun["data"]["entry"]):
        data("done" if name == entry else "next")
        assert data("record", "deploy", "--entry", name, "--result", "success")["node"] == "t1.2"
    assert state().in_flight == []


@pytest.mark.requirement("H-damage")
def test_damage_of_the_history_is_said_by_every_command() -> None:
    """A record that was changed behind the back of the goal is told on stderr, in JSON among the warnings, each time."""
    data("start", "--from", "plan.md")
    data("record", "look", "--result", "success")
    history = Path(".agent_context/history.jsonl")
    lines = history.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"kind"', b'"kinX"', 1)
    history.write_bytes(b"".join(lines))

    for words in (
        ("brief",), ("tree",), ("resume",), ("record", "look", "--ask"), ("record", "look", "--result", "success"), ("done",),
        ("next",), ("compare",), ("probe", "list"), ("say", "go on"),
    ):  # fmt: skip
        ran = run("goal", *words)
        assert (ran.code, "history.jsonl is damaged: sum does not match" in ran.err) == (0, True), words
    assert any("is damaged" in each for each in goal("brief").envelope["warnings"])


@pytest.mark.requirement("H-damage")
def test_a_missing_history_is_said_before_anybody_begins_anew() -> None:
    """Where only the state is left, every command ends with 5 and names the goal; ``--replace`` gives it up."""
    data("start", "--from", "plan.md")
    Path(".agent_context/history.jsonl").unlink()

    for words in (("tree",), ("resume",), ("record", "x", "--result", "success"), ("start", "brand new")):
        ran = run("goal", *words)
        assert ran.code == 5, words
        assert "history.jsonl' is missing, but the saved state knows one: 'Create the mathx package'" in ran.err
    assert run("goal", "start", "brand new", "--replace").code == 0
    assert state().goal.description == "brand new"


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
    goal("record", "read", "--args", "{}", "--result", "-", given="what came back\n")
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
