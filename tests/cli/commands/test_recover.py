"""The options of ``recover`` and ``request``: the routing table, drafts, diffs, plans, and what a person is told."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli.exits import Exit
from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.goals import Goals
from ctxmgr.log.journal import Journal
from ctxmgr.store import open_store
from ctxmgr.types.operations import RecoverRequest
from ctxmgr.workspace import Workspace
from tests.cli.console import run
from tests.goals.scene import act, begun
from tests.recover.runs import chain, looped, went_on

DEMO = next((Path(__file__).parents[3] / "fixtures" / "demo" / "claude-code").glob("projects/*/7e999fd2*.jsonl"))
FLOW = ("planner", "coder", "reviewer", "coder", "reviewer", "deployer", "coder", "reviewer")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the history of a healthy run of four agents."""
    monkeypatch.chdir(tmp_path)
    opened = open_store(str(tmp_path / "history.db"), create=True)
    opened.append(chain(agents=FLOW))
    opened.close()
    return tmp_path


def request(*options: str, type_: str = "introspect", requester: str = "coder") -> tuple[int, dict[str, Any]]:
    """Ask as an agent; return exit code and envelope."""
    asked = ("--type", type_, "--from", requester, "--reason", "lost the plan", "--goal", "go on")
    ran = run("request", *asked, "--store", "history.db", "--json", *options)
    return ran.code, ran.envelope


def told(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the continuation of an envelope."""
    return envelope["data"]["continuation"]


def test_a_derived_routing_is_warned_of(place: Path) -> None:
    """Without a routing table the answer says so, in a field and in a warning; with one there is no warning."""
    (place / "routes.toml").write_text("[planner]\n[coder]\n[reviewer]\n[deployer]\n", encoding="utf-8")
    _, derived = request()
    _, declared = request("--routes", "routes.toml")

    assert told(derived)["routing"] == "history"
    assert any("no routing table" in warning for warning in derived["warnings"])
    assert told(declared)["routing"] == "table"
    assert declared["warnings"] == []


@pytest.mark.requirement("US10-6", "US10-7", "FR-018")
def test_a_routing_table_by_option_and_by_configuration(place: Path) -> None:
    """A table of an option and one of the configuration file allow the same branches."""
    (place / "routes.json").write_text(
        json.dumps({"reviewer": {"role": "review", "next": ["deployer"]}, "deployer": {}, "coder": {}}), encoding="utf-8"
    )
    code, by_option = request("--routes", "routes.json", type_="proceed", requester="reviewer")
    (place / "ctxmgr.toml").write_text('[recover]\nroutes = "routes.json"\n', encoding="utf-8")
    _, by_file = request(type_="proceed", requester="reviewer")

    assert code == Exit.OK
    for found in (told(by_option), told(by_file)):
        assert (found["target"], found["source"], found["routing"]) == ("deployer", "reviewMerge", "table")
        assert list(found["returnTo"]) == ["deployer"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[coder]\nfollow = 1\n", "unknown setting"),
        ('[coder]\nnext = ["ghost"]\n', "'ghost'"),
        ("[coder", "no routing table"),
        ("", "no agents"),
        (None, "routes.toml"),
    ],
)
def test_a_wrong_table_is_a_usage_error(place: Path, text: str | None, said: str) -> None:
    """A table that can't be used ends with exit code 2 and the place of the mistake; nothing is recorded."""
    if text is not None:
        (place / "routes.toml").write_text(text, encoding="utf-8")
    before = (place / "history.db").read_bytes()
    code, envelope = request("--routes", "routes.toml")

    assert (code, envelope["error"]["kind"]) == (Exit.USAGE, "invalid")
    assert said in envelope["error"]["message"]
    assert (place / "history.db").read_bytes() == before


@pytest.mark.requirement("FR-020", "US10-7")
def test_drafts(place: Path) -> None:
    """A draft stands in the branch of its agent, given as JSON or in a file; an equals sign in it does no harm."""
    (place / "draft.json").write_text('{"ticket": "T=2"}', encoding="utf-8")
    _, as_json = request("--draft", 'coder={"ticket": "T=1"}')
    _, as_file = request("--draft", "planner={}", "--draft", "coder=@draft.json")

    assert told(as_json)["returnTo"]["coder"]["request"]["ticket"] == "T=1"
    assert told(as_file)["returnTo"]["coder"]["request"]["ticket"] == "T=2"


@pytest.mark.parametrize("draft", ["coder", "={}", "coder={", "coder=@gone.json", "coder=5", 'coder="text"', "coder=[1]"])
def test_a_draft_of_another_form(place: Path, draft: str) -> None:
    """A draft that is no AGENT=JSON, no JSON, or no object is a usage error with an example."""
    code, envelope = request("--draft", draft)

    assert code == Exit.USAGE
    assert "draft" in envelope["error"]["message"]
    assert envelope["error"]["hint"]


def test_a_draft_that_its_schema_refuses(place: Path) -> None:
    """A draft with a wrong field is refused by the field's name."""
    table = {"coder": {"schema": {"properties": {"ticket": {"type": "integer"}}, "required": ["ticket"]}}}
    (place / "routes.json").write_text(json.dumps(table), encoding="utf-8")
    code, envelope = request("--routes", "routes.json", "--draft", 'coder={"ticket": "x"}')

    assert code == Exit.USAGE
    assert "ticket" in envelope["error"]["message"]


def test_diffs_by_option_and_by_configuration(place: Path) -> None:
    """``--diff`` tells what is new alone, ``--fresh`` and the default everything; the configuration turns the default."""
    first, second, whole = (told(request(*options)[1]) for options in ((), ("--diff",), ("--fresh",)))
    (place / "ctxmgr.toml").write_text("[recover]\ndiff = true\n", encoding="utf-8")
    configured, fresh = told(request()[1]), told(request("--fresh")[1])

    assert second["context"]["diffOf"] == first["id"]
    assert second["context"]["held"]
    assert configured["context"]["diffOf"] == whole["id"]
    for found in (first, whole, fresh):
        assert found["context"].get("diffOf") is None
        assert found["context"]["facts"] == first["context"]["facts"]


def test_a_diff_is_said_to_a_person(place: Path) -> None:
    """The page for a person names what is held already."""
    request()
    page = run(
        "request", "--type", "introspect", "--from", "coder", "--reason", "r", "--goal", "g", "--diff", "--store", "history.db"
    )

    assert page.code == Exit.OK
    assert "Held already" in page.out


@pytest.mark.parametrize("name", ["recover", "request"])
def test_a_plan_writes_nothing(place: Path, name: str) -> None:
    """A plan shows the candidates and that no model would be asked, and leaves the store as it was."""
    asked = ("--type", "introspect", "--from", "coder", "--reason", "r", "--goal", "g") if name == "request" else ("--force",)
    before = (place / "history.db").read_bytes()
    ran = run(name, *asked, "--plan", "--store", "history.db", "--json")
    plan = ran.envelope["data"]["plan"]

    assert ran.code == Exit.OK
    assert (plan["model"], plan["sends"], plan["promptTokens"]) == (None, None, 0)
    assert plan["candidates"]
    assert (place / "history.db").read_bytes() == before


def test_an_environment_without_a_named_model_asks_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that lies in the environment is no reason to send anything; a named model is, unless it is switched off."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    silent = run("recover", "--force", "--plan", "--store", "history.db", "--json").envelope["data"]["plan"]
    monkeypatch.setenv("CTXMGR_MODEL", "ollama:qwen3")
    named = run("recover", "--force", "--plan", "--store", "history.db", "--json").envelope["data"]["plan"]
    off = run("recover", "--force", "--plan", "--no-llm", "--store", "history.db", "--json").envelope["data"]["plan"]

    assert (silent["model"], off["model"]) == (None, None)
    assert named["model"] == "ollama:qwen3"
    assert named["sends"]


@pytest.mark.requirement("US8-5", "SC-012", "R-11")
def test_a_stuck_run_by_a_table(place: Path) -> None:
    """A stuck agent that the table does not list is not continued, and the attempts of the configuration hold."""
    opened = open_store("history.db")
    opened.append(looped())
    opened.close()
    (place / "ctxmgr.toml").write_text("[recover]\nattempts = 1\n[recover.routes.planner]\n", encoding="utf-8")
    asked = ("recover", "--session", "cycle", "--store", "history.db", "--json")
    refused = run(*asked)
    (place / "ctxmgr.toml").write_text("[recover]\nattempts = 1\n[recover.routes.coder]\n", encoding="utf-8")
    first, told_again = run(*asked), run(*asked)
    with closing(open_store("history.db")) as opened:
        went_on(opened, "cycle")
    second = run(*asked)

    assert told(told_again.envelope) == told(first.envelope)
    assert refused.code == Exit.REFUSED
    assert list(told(first.envelope)["returnTo"]) == ["coder"]
    assert (first.code, second.code) == (Exit.OK, Exit.NEEDS_HUMAN)


def test_a_continuation_is_told_again_and_shown(place: Path) -> None:
    """The same history gives the same answer; `--last` and `show` by id or prefix print it again, through both ways in."""
    with closing(open_store("history.db")) as opened:
        opened.append(looped())
    asked = ("recover", "--session", "cycle", "--store", "history.db", "--json")
    first, second = run(*asked), run(*asked)
    last = run(*asked, "--last")
    name = told(first.envelope)["id"]
    shown = [run("show", given, "--store", "history.db", "--json") for given in (name, name[:-3])]
    page = run("show", name, "--store", "history.db")
    missing = run("show", "nothing", "--store", "history.db", "--json")

    assert [each.code for each in (first, second, last, *shown, page)] == [Exit.OK] * 6
    assert [each.envelope["data"]["toldAgain"] for each in (first, second, last, *shown)] == [False, True, True, True, True]
    assert all(told(each.envelope) == told(first.envelope) for each in (second, last, *shown))
    assert "told again" in page.out
    assert missing.code == Exit.NOT_FOUND
    assert run(*asked, "--last", "--to", "planner").code == Exit.USAGE


@pytest.mark.parametrize("type_", ["sideways", ""])
def test_an_unknown_type(place: Path, type_: str) -> None:
    """There are two types of requests."""
    code, envelope = request(type_=type_)

    assert code == Exit.USAGE
    assert "introspect or proceed" in envelope["error"]["hint"]


@pytest.mark.requirement("H-source", "H-lift")
def test_a_goal_is_told_and_takes_the_continuation_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--goal`` tells where the goal stands and lifts what its guard blocked; with --plan nothing changes."""
    with closing(open_store("history.db")) as opened:
        opened.append(looped())
    goals = begun(place)
    for _ in range(4):
        act(goals, "look", {"n": 1})
    asked = ("recover", "--session", looped()[0]["session"], "--store", "history.db", "--json")

    assert run(*asked, "--goal", str(place / "gone")).code == Exit.USAGE
    planned = run(*asked, "--goal", ".", "--plan").envelope
    assert told(planned)["context"]["facts"][0]["text"] == 'The goal that is worked on (in_progress, 0 %): "Create mathx"'
    assert goals.state().blocked_actions

    given = told(run(*asked, "--goal", ".").envelope)
    state = goals.state()
    assert (state.blocked_actions, state.next_step) == ([], given["diagnosis"]["nextStep"])

    def fails(*_: object) -> None:
        raise Busy("it is held", None)

    monkeypatch.setattr(Goals, "apply", fails)
    ran = run(*asked, "--goal", ".")
    assert ran.code == 0
    assert "the goal has not taken the continuation up: it is held" in ran.envelope["warnings"]


def test_the_command_for_the_text_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names session and store; of another agent's log, of which nothing is recorded, it asks for no recorded answer."""
    monkeypatch.chdir(tmp_path)
    with closing(open_store("history.db", create=True)) as store:
        store.append(looped())
    shutil.copy(DEMO, "run.jsonl")
    commands: list[str] = []
    for named in (("--store", "history.db"), ("run.jsonl",)):
        page = run("recover", *named).out
        commands.append(page.partition("Its text: ctxmgr ")[2].partition("  (")[0])

    assert commands == [
        "recover --session cycle --store history.db --last --prompt",
        f"recover --session {DEMO.stem} --store run.jsonl --prompt",
    ]
    assert [run(*command.split()).code for command in commands] == [0, 0]
    assert "kept as        not recorded" in page


def test_shared_words_are_told_whole() -> None:
    """A search goes by stems; who reads why a record is advised reads words."""
    found = told(run("recover", str(DEMO), "--plan", "--json").envelope)
    shared = [option["basis"] for option in found["alternatives"] if "it shares the words" in option["basis"]]

    assert shared
    assert all('"invoic"' not in basis for basis in shared)
    # The failing check says it, and the records that are advised do not.
    assert all('"assertionerror"' not in basis for basis in shared)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "words", [["recover"], ["request", "--type", "introspect", "--from", "coder", "--reason", "why?", "--goal", "go on"]]
)
def test_where_nothing_can_be_stored_the_answer_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """On a full disk or in a read-only folder, the prompt is that of a plan, and stderr says that nothing was stored."""
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(record) + "\n" for record in looped()), encoding="utf-8")
    before = log.read_bytes()
    planned = run(*words, "--plan", "--prompt", "--store", str(log))

    def refuse(*_: object) -> None:
        raise StorageFailed("can't open log 'run.jsonl': Read-only file system", "free some space")

    monkeypatch.setattr(Journal, "append", refuse)
    told = run(*words, "--prompt", "--store", str(log))
    shown = run(*words, "--json", "--store", str(log))

    assert (told.code, told.out) == (planned.code, planned.out)
    assert "nothing was stored, so this counts as no attempt: can't open log 'run.jsonl'" in told.err
    assert shown.envelope["data"]["stored"] is False
    assert "nothing was stored" in shown.envelope["warnings"][0]
    assert log.read_bytes() == before


def test_a_store_that_is_opened_for_reading_is_answered_from(tmp_path: Path) -> None:
    """The library answers too, and its workspace warns."""
    path = str(tmp_path / "s.db")
    with closing(open_store(path, create=True)) as store:
        store.append(looped())
    with Workspace.open(path, readonly=True) as workspace:
        found = workspace.recover(RecoverRequest())

        assert (found.stored, found.plan) == (False, None)
        assert found.continuation.prompt.startswith("[ctxmgr]")
        assert any("nothing was stored" in line for line in workspace.warnings)
