"""``context assemble``, ``request``, ``why`` and ``need`` as a script, an agent and a person call them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.cli.invocation import set_agent
from ctxmgr.errors import StorageFailed
from ctxmgr.history.open_history import open_history
from ctxmgr.store import open_store
from ctxmgr.types.artifact import PutRequest
from tests.cli.console import Ran, process, run
from tests.goals.scene import begun, contents

LONG = "# Title\n\n" + "It is told here at some length, and then some more of it. " * 200 + "\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every command find a project with three artifacts, rules and needs."""
    place = tmp_path / "history.db"
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    set_agent(None)
    assert run("access", "load", "default").code == 0
    with closing(open_store(str(place))) as store:
        artifacts = ArtifactStore(store)
        for agent, name, content, depends in (
            ("requirements_gatherer", "req.yaml", "k: 1 # 字\n", []),
            ("system_architect", "arch.md", LONG, [{"agent": "requirements_gatherer", "name": "req.yaml", "type": "optional"}]),
            ("consulting_cpa", "secret.md", "hidden text\n", []),
        ):  # fmt: skip
            one = {"name": name, "content": content, "dependencies": depends}
            artifacts.put(PutRequest.model_validate({"agent": agent, "artifacts": [one]}))
    assert run("context", "set", "project_name", "Finance CLI").code == 0
    return place


def test_assemble_as_a_script_calls_it() -> None:
    """One envelope with package, decisions and budget; exit 6 when the required items can't fit, 2 for no budget at all."""
    ran = run("context", "assemble", "data_architect", "--max-tokens", "50000", "--json")
    small = run("context", "assemble", "data_architect", "--max-tokens", "300", "--json")
    data = ran.envelope["data"]

    assert (ran.code, ran.envelope["status"], ran.envelope["command"]) == (0, "ok", "context assemble")
    assert [one["name"] for one in data["package"]["artifacts"]] == ["req.yaml", "arch.md"]
    assert data["package"]["projectContext"]["project_name"] == "Finance CLI"
    assert {one["rule"] for one in data["decisions"]} == {"requiredFull"}
    assert sum(row["tokens"] for row in data["budget"]) == 50_000
    assert (small.code, small.envelope["error"]["kind"]) == (6, "budget")
    assert "system_architect/arch.md" in small.envelope["error"]["message"]
    for odd in ("0", "-5", "many"):
        assert run("context", "assemble", "data_architect", "--max-tokens", odd).code == 2
    assert run("context", "assemble", "*").code == 2
    assert run("context", "assemble", "parser_developer", "--json").envelope["error"]["kind"] == "notFound"


@pytest.mark.cases(1)
@pytest.mark.requirement("003-P8")
@pytest.mark.parametrize("options", [(), ("--format", "yaml")])
def test_a_pipe_gets_the_package(options: tuple[str, ...]) -> None:
    """Without a terminal, and wherever it is asked for, the answer is the YAML package alone, in UTF-8 whatever the locale."""
    ran = process("context", "assemble", "data_architect", *options, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    read: Any = YAML(typ="safe", pure=True).load(ran.out)["context_package"]

    assert (ran.code, ran.err) == (0, "")
    assert list(read) == ["metadata", "project_context", "artifacts"]
    assert read["metadata"]["assembled_for"] == "data_architect"
    assert [one["content"] for one in read["artifacts"]] == ["k: 1 # 字\n", LONG]


def test_a_dry_run_writes_nothing(project: Path) -> None:
    """A plan is shown and leaves the store as it was; the package itself is recorded and named."""
    before = project.read_bytes()
    plan = run("context", "assemble", "data_architect", "--plan", "--json")
    assert plan.envelope["data"]["id"] is None
    assert project.read_bytes() == before
    assert run("context", "why", "system_architect/arch.md").code == 3
    made = run("context", "assemble", "data_architect", "--json").envelope["data"]
    why = run("context", "why", "requirements_gatherer/req.yaml", "--json").envelope["data"]

    assert (why["package"], why["got"], why["rule"]) == (made["id"], "full", "requiredFull")
    assert [one["because"] for one in why["decisions"]] == ["need requirements_gatherer/*"]


def test_a_task_is_told(tmp_path: Path) -> None:
    """The task's id and what a file knows of it are in the package; a file that is none is refused, a missing one named."""
    place = tmp_path / "task.yaml"
    place.write_text("title: Parser\nparts: [1, {x: null}]\n", encoding="utf-8")
    ran = run("context", "assemble", "nobody_yet", "--task", "T-1", "--task-context", str(place), "--json")
    package = ran.envelope["data"]["package"]

    assert package["taskContext"] == {"id": "T-1", "title": "Parser", "parts": [1, {"x": None}]}
    assert package["metadata"]["taskId"] == "T-1"
    place.write_text("- a list\n", encoding="utf-8")
    assert run("context", "assemble", "x", "--task-context", str(place)).code == 2
    assert run("context", "assemble", "x", "--task-context", str(tmp_path / "none")).code == 3


def test_the_id_of_a_package_is_printed_raw() -> None:
    """``-r`` prints what ``--jq`` finds without quotes, as with every command."""
    shown = run("context", "assemble", "x", "--json", "--jq", ".data.package.metadata.assembledFor", "-r")

    assert (shown.code, shown.out) == (0, "x\n")


def test_an_agent_asks_for_itself() -> None:
    """With ``--as`` the agent's own rules hold; what it may not read reads as what is not there, to the byte."""
    own = run("context", "assemble", "data_architect", "--as", "data_architect", "--json")
    assert [one["name"] for one in own.envelope["data"]["package"]["artifacts"]] == ["req.yaml", "arch.md"]
    answers: dict[str, Ran] = {}
    for name in ("secret.md", "public.md"):
        item = f"consulting_cpa/{name}"
        ran = run("context", "request", "data_architect", item, "--as", "data_architect", "--json")
        why = run("context", "why", item, "--as", "data_architect", "--json")
        assert (ran.code, ran.envelope["status"], why.code) == (3, "empty", 0)
        answers[name] = Ran(ran.code, (ran.out + why.out).replace(name, "NAME"), ran.err + why.err)

    assert answers["secret.md"] == answers["public.md"]
    assert "hidden" not in answers["secret.md"].out


def test_a_request_is_answered_item_by_item() -> None:
    """What is found is given and the whole is partial, exit 0; a missing name brings others like it."""
    ran = run("context", "request", "parser_developer", "system_architect/arch.md", "system_architect/arhc.md", "--json")
    rows = ran.envelope["data"]

    assert (ran.code, ran.envelope["status"]) == (0, "partial")
    assert [(row["status"], row["content"]) for row in rows] == [("success", LONG), ("missing", None)]
    assert rows[1]["suggestions"] == ["system_architect/arch.md"]
    piped = run("context", "request", "parser_developer", "system_architect/arch.md", "no/x")
    assert LONG.splitlines()[0] in piped.out
    assert "no/x  missing" in piped.out


def test_needs_are_kept() -> None:
    """Needs are added, replaced, listed and removed; an agent can't change them, and sees its own."""
    added = run(
        "context", "need", "add", "dev", "system_architect/*", "--need", "optional", "--max-tokens", "50", "--summary", "-p",
        "3", "--json",
    )  # fmt: skip
    assert added.envelope["data"]["needs"] == [
        {
            "agent": "dev",
            "pattern": "system_architect/*",
            "need": "optional",
            "maxTokens": 50,
            "useSummary": True,
            "priority": 3,
        }
    ]
    listed = run("context", "need", "list", "dev", "--json")
    assert listed.envelope["data"] == added.envelope["data"]["needs"]
    assert run("context", "need", "add", "dev", "x/*", "--as", "dev").code == 4
    assert run("context", "need", "list", "system_architect", "--as", "dev", "--json").envelope["data"] == []
    assert run("context", "need", "add", "dev", "**").code == 2
    assert run("context", "need", "add", "dev", "x/*", "--need", "urgent").code == 2
    assert run("context", "need", "remove", "dev", "system_architect/*").code == 0
    assert run("context", "need", "list", "dev", "--json").envelope["status"] == "empty"
    assert run("context", "need", "remove", "dev", "system_architect/*").code == 3


def test_without_a_project(tmp_path: Path) -> None:
    """Where nothing is there yet a package is empty and says so; a store that was named and is not there is not found."""
    ran = process("context", "assemble", "dev", "--json", env={"CTXMGR_STORE": ""}, folder=tmp_path)
    envelope = ran.envelope

    assert (ran.code, envelope["data"]["id"], envelope["data"]["package"]["artifacts"]) == (0, None, [])
    assert "dev has no needs" in envelope["data"]["package"]["warnings"][0]
    assert any("not recorded" in warning for warning in envelope["warnings"])
    assert run("context", "assemble", "dev", "--store", str(tmp_path / "none.db")).code == 3


@pytest.mark.requirement("H-source")
def test_the_goal_of_a_project_is_an_item(tmp_path: Path) -> None:
    """``--goal`` gives the state of the goal in that project; without one it is an error, and nothing is written there."""
    goals = begun(tmp_path)
    before = contents(tmp_path)
    ran = run("context", "assemble", "data_architect", "--goal", str(tmp_path), "--json")
    item = next(one for one in ran.envelope["data"]["package"]["artifacts"] if one["name"] == "goal_context")

    assert ran.code == 0
    assert YAML(typ="safe").load(item["content"])["goal"] == goals.state().goal.description
    assert contents(tmp_path) == before
    (tmp_path / "empty").mkdir()
    assert run("context", "assemble", "data_architect", "--goal", str(tmp_path / "empty"), "--json").code == 3
    assert not any((tmp_path / "empty").iterdir())


def test_a_store_that_can_only_be_read_still_gives_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be recorded the package is given all the same, and the answer says that it was not recorded."""

    def opened(path: str, *, readonly: bool, **options: Any) -> Any:
        if not readonly:
            raise StorageFailed(f"can't open {path}", "check that you may write it")
        return open_history(path, readonly=True, **options)

    monkeypatch.setattr("ctxmgr.workspace.open_history", opened)

    made = run("context", "assemble", "data_architect", "--json")
    found = run("context", "request", "data_architect", "system_architect/arch.md", "--json")

    assert (made.code, made.envelope["data"]["id"]) == (0, None)
    assert made.envelope["warnings"] == ["the package is not recorded: the store can only be read"]
    assert (found.code, found.envelope["data"][0]["status"]) == (0, "success")
