"""``goal probe|resume|compare|recover``: what is seen on disk, what the brief is worth, and the way out of a loop."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.types.goal import Comparison, ProbeView, RecoverAnswer, ResumeAnswer
from tests.cli.console import run
from tests.cli.goals import data, goal, kind

pytestmark = pytest.mark.usefixtures("project")


@pytest.mark.requirement("H-probes", "H-next")
def test_probes_look_at_the_files(project: Path) -> None:
    """Probes are added, listed, checked and stand in the brief; a command runs only where it is allowed."""
    data("start", "fix it")
    data("probe", "add", "pkg_exists", "--exists", "mathx/__init__.py")
    data("probe", "add", "has_add", "--file", "mathx/__init__.py", "--contains", "def add(")
    data("probe", "add", "ran", "--code", "3", "--", sys.executable, "-c", "open('ran', 'w'); raise SystemExit(3)")
    assert [ProbeView.model_validate(row).ok for row in data("probe", "list")] == [None, None, None]

    assert [row["ok"] for row in data("probe", "check")] == [False, False, None]
    assert not (project / "ran").exists()
    (project / "mathx").mkdir()
    (project / "mathx" / "__init__.py").write_text("def add(a, b): ...\n", "utf-8")
    assert [row["ok"] for row in data("probe", "check", "--allow-commands")] == [True, True, True]
    assert "pkg_exists:✓ has_add:✓ ran:✓" in data("brief")["text"]
    assert "pkg_exists" in run("goal", "probe", "list").out

    assert kind("probe", "add", "a b", "--exists", "x") == (2, "invalid")
    assert kind("probe", "add", "x", "--exists", "x", "--file", "y", "--contains", "z") == (2, "invalid")
    assert kind("probe", "add", "x") == (2, "invalid")
    assert kind("probe", "add", "x", "--file", "y") == (2, "invalid")


def test_a_project_without_probes_answers_empty() -> None:
    """No probes is an answer."""
    data("start", "fix it")
    ran = goal("probe", "list")

    assert (ran.code, ran.envelope["status"], ran.envelope["data"]) == (0, "empty", [])


@pytest.mark.requirement("H-probes")
def test_commands_of_probes_may_be_allowed_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTXMGR_ALLOW_COMMANDS=1 allows them for every call; 0 does not."""
    data("start", "fix it")
    data("probe", "add", "ok", "--", "true")

    for value, ok in (("0", None), ("1", True)):
        monkeypatch.setenv("CTXMGR_ALLOW_COMMANDS", value)
        assert [row["ok"] for row in data("probe", "check")] == [ok]


@pytest.mark.requirement("H-probes")
def test_a_project_allows_its_probes_nothing_by_itself(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``[goal] allow_commands`` holds in a trusted project's file and in the user's own, unless the environment says 0."""
    data("start", "fix it")
    data("probe", "add", "ok", "--", "true")
    settings = project / "ctxmgr.toml"
    settings.write_text("[goal]\nallow_commands = true\n", "utf-8")

    ran = goal("probe", "check")
    assert (ran.envelope["data"][0]["ok"], "goal.allow_commands" in ran.err, "ctxmgr trust" in ran.err) == (None, True, True)
    assert run("trust").code == 0
    assert [row["ok"] for row in data("probe", "check")] == [True]
    assert data("resume")["claims"][0]["basis"] == "verified"
    monkeypatch.setenv("CTXMGR_ALLOW_COMMANDS", "0")
    assert [row["ok"] for row in data("probe", "check")] == [None]
    monkeypatch.delenv("CTXMGR_ALLOW_COMMANDS")

    settings.unlink()
    user_file().write_text("[goal]\nallow_commands = true\n", "utf-8")
    assert [row["ok"] for row in data("probe", "check")] == [True]
    settings.write_text("[goal]\nallow_commands = false\n", "utf-8")  # a project may always take away
    assert [row["ok"] for row in data("probe", "check")] == [None]
    for wrong in ('allow_commands = "yes"', "commands = true"):
        settings.write_text(f"[goal]\n{wrong}\n", "utf-8")
        assert kind("probe", "check") == (2, "invalid")


def user_file() -> Path:
    """Return the user's own file, in a folder that is there."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "ctxmgr" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.requirement("H-probes")
def test_a_command_that_comes_after_the_trust_does_not_run(project: Path) -> None:
    """A probe that arrived later, a changed script, and the same words in another folder are not covered, and named."""
    script = project / "check.sh"
    script.write_text("touch ran\n", "utf-8")
    (project / "ctxmgr.toml").write_text("[goal]\nallow_commands = true\n", "utf-8")
    data("start", "fix it")
    data("probe", "add", "script", "--", "sh", "check.sh")
    data("probe", "add", "line", "--", "sh", "-c", "true && ./check.sh; true")
    assert run("trust").code == 0
    assert [row["ok"] for row in data("probe", "check")] == [True, True]
    (project / "ran").unlink()

    data("probe", "add", "later", "--", "touch", "later")
    ran = goal("probe", "check")
    assert [row["ok"] for row in ran.envelope["data"]] == [True, True, None]
    assert "not run: later" in ran.err
    (project / "ran").unlink()

    script.write_text("touch ran; true\n", "utf-8")
    ran = goal("resume")
    assert "not run: script, line, later" in ran.err
    assert sorted(item.name for item in project.iterdir()) == [".agent_context", "check.sh", "ctxmgr.toml", "plan.md"]

    assert run("trust").code == 0
    assert [row["ok"] for row in data("probe", "check")] == [True, True, True]
    inner = project / "vendor"
    (project / "ran").unlink()
    shutil.copytree(project / ".agent_context", inner / ".agent_context")
    shutil.copy(script, inner / "check.sh")
    assert "not run: script, line, later" in goal("probe", "check", "--dir", str(inner)).err


@pytest.mark.requirement("H-told")
def test_resume_tells_what_is_seen_and_what_is_assumed(project: Path) -> None:
    """Claims are verified or refuted by the files on disk, or only assumed; a second resume changes nothing."""
    data("start", "--from", "plan.md")
    data("next")
    data("probe", "add", "pkg_exists", "--exists", "mathx")
    first = ResumeAnswer.model_validate(data("resume"))
    before = (project / ".agent_context" / "history.jsonl").read_bytes()
    second = ResumeAnswer.model_validate(data("resume"))

    assert {claim.basis for claim in first.claims} == {"refuted", "assumed"}
    assert (second.state.current, second.in_flight) == ("t1.2", [])
    assert (project / ".agent_context" / "history.jsonl").read_bytes() == before
    assert "resumed Create the mathx package" in run("goal", "resume").out


@pytest.mark.requirement("H-damage")
def test_a_damaged_state_is_made_anew(project: Path) -> None:
    """A hand-edited state file is set aside, said so, and made anew from the history."""
    data("start", "--from", "plan.md")
    data("next")
    data("resume")
    place = project / ".agent_context" / "state.json"
    place.write_text(place.read_text("utf-8").replace("mathx", "other"), "utf-8")
    (project / ".agent_context" / "state.prev.json").unlink(missing_ok=True)
    found = ResumeAnswer.model_validate(goal("resume").envelope["data"])

    assert found.rebuilt
    assert found.state.goal.description == "Create the mathx package"
    assert [name for name in os.listdir(project / ".agent_context") if "damaged" in name]


@pytest.mark.requirement("H-compare")
def test_compare_weighs_the_brief() -> None:
    """The comparison holds sizes and facts; as text it says whether the facts are in the brief."""
    data("start", "--from", "plan.md")
    for number in range(12):
        data("record", "read", "--args", json.dumps({"path": f"f{number}"}), "--result", "x" * 500)
    found = Comparison.model_validate(data("compare"))

    assert (found.history.messages, found.last_ten.messages, found.counter) == (24, 10, "estimate")
    assert found.saved_chars is not None
    assert found.saved_chars > 80
    assert {fact.kind for fact in found.facts} == {"task", "subtask", "action"}
    assert all(fact.held for fact in found.facts)
    assert "5 of 5 facts that the next step needs are in the brief" in run("goal", "compare").out
    assert kind("compare", "--counter", "odd") == (2, "invalid")


def test_nothing_is_wrong_with_a_goal_that_is_done(project: Path) -> None:
    """A goal without an open step is stuck only if it did not reach its end."""
    data("start", "Mend the parser")
    data("done")

    assert kind("recover") == (21, "healthy")


@pytest.mark.requirement("H-lift", "H-source")
def test_recover_answers_a_goal_that_is_stuck(project: Path) -> None:
    """One continuation is worked out from the goal's own history and taken up; with --plan nothing is written."""
    data("start", "--from", "plan.md")
    assert kind("recover") == (21, "healthy")
    for _ in range(4):
        goal("record", "run_tests", "--args", "{}", "--result", "error: 2 failed")
    before = (project / ".agent_context" / "history.jsonl").read_bytes()
    planned = RecoverAnswer.model_validate_json(json.dumps(_shown(data("recover", "--plan"))))
    assert planned.state is None
    facts = [(fact.whole, fact.label) for fact in planned.continuation.context.facts[:3]]
    assert facts[0] == ('The goal that is worked on (in_progress, 20 %): "Create the mathx package"', "recorded")
    assert facts[1:] == [
        ('Its current task: "t1 Create package"', "recorded"),
        ('Its current subtask, attempt 1: "t1.2 Add add()"', "recorded"),
    ]
    assert (project / ".agent_context" / "history.jsonl").read_bytes() == before

    done = data("recover")
    assert done["continuation"]["loop"]["kind"] == "repetition"
    assert done["state"]["blockedActions"] == []
    assert done["state"]["nextStep"]
    assert done["state"]["nextStep"] in data("brief")["text"]
    text = run("goal", "recover", "--force", "--plan").out
    assert "Do not repeat" in text
    assert "shown only" in text


def _shown(given: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in the library's form: on the wire the candidates are branches of ``returnTo``."""
    branches = given["continuation"].pop("returnTo")
    for part in (*given["continuation"]["context"]["facts"], *given["continuation"]["context"]["sections"]):
        del part["hash"]
    return {**given, "continuation": {**given["continuation"], "candidates": list(branches)}}


def test_another_folder_is_named_with_dir(tmp_path: Path) -> None:
    """``--dir`` works on another project from anywhere."""
    other = tmp_path / "other"
    other.mkdir()
    data("start", "there", "--dir", str(other))

    assert (other / ".agent_context" / "history.jsonl").exists()
    assert data("tree", "--dir", str(other))["goal"]["description"] == "there"
    assert kind("tree") == (3, "notFound")
