"""The command line as a whole: help, usage faults, faults as text and as JSON, settings."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxmgr import cli
from ctxmgr.cli.fast.help_texts import TEXTS
from ctxmgr.workspace import Workspace
from tests.cli.console import run

pytestmark = pytest.mark.usefixtures("history")

PARTS = {
    "note": ("add", "list", "search"),
    "snapshot": ("create", "list", "show"),
    "memory": ("retain", "recall", "reflect"),
}
COMMANDS = [(name, *part) for name in cli.COMMANDS for part in ([(p,) for p in PARTS[name]] if name in PARTS else [()])]

ROWS = [
    ("sessions",), ("sessions", "--no-judge"), ("list",), ("trace",), ("search", "a"), ("messages",), ("note", "list"),
    ("note", "search", "flaky"), ("snapshot", "list"), ("detect",),
]  # fmt: skip
"""Commands whose answer is a list."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_examples(command: tuple[str, ...]) -> None:
    """Every command's help says what it does and shows examples that begin with that very command."""
    ran = run(*command, "--help")
    shown = re.findall(r"^ +(?:.*\| )?(ctxmgr .*)$", ran.out.partition("Examples:")[2], re.MULTILINE)

    assert ran.code == 0
    assert [line for line in shown if line.startswith("ctxmgr " + " ".join(command))]


@pytest.mark.parametrize("command", [(), ("note",), ("snapshot",)])
def test_without_a_command_there_is_help(command: tuple[str, ...]) -> None:
    """A command line that names no command shows the help, on stderr, and counts as a fault of usage."""
    ran = run(*command)

    assert (ran.code, ran.out) == (2, "")
    assert ("Commands:" if command else "See what happened:") in ran.err


def test_examples_of_the_help_are_understood() -> None:
    """Every option that an example uses is one that its command has, and most commands have an example."""
    shown: set[str] = set()
    groups = [text for text in TEXTS.values() if "\nCommands:" in text]
    for command, text in TEXTS.items():
        if text in groups:  # the examples of a group are of its commands
            continue
        known = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-z])\b", text.partition("Options:")[2] + " -- "))
        examples = "".join(each.partition("Examples:")[2] for each in (text, *groups))
        for example in re.findall(rf"ctxmgr {command}(?=\s)([^|\n]*)", examples):
            used = re.findall(r"(?<=\s)(--[a-z][a-z-]*|-[a-z])\b", re.sub(r'"[^"]*"', "", example.partition(" -- ")[0]))
            assert set(used) <= known, (command, example)
            shown.add(command)

    assert len(shown) > len(TEXTS) / 2


USAGE = [
    (("nosuch",), "No such command 'nosuch'"),
    (("list", "--nosuch"), "No such option: --nosuch"),
    (("list", "--limit", "x"), "Invalid value for '--limit' / '-n': 'x' is not a valid int"),
    (("list", "some", "extra"), "Got unexpected extra argument(s) (extra)"),
    (("search",), "Missing argument 'QUERY'"),
    (("note", "add", "3"), "Missing option '--message' / '-m'"),
    (("note", "qqq"), "No such command 'qqq'"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE, ids=[" ".join(arguments) for arguments, _ in USAGE])
def test_faults_of_usage_are_told_like_all_others(arguments: tuple[str, ...], message: str) -> None:
    """A command line that can't be understood is one line and a hint on stderr, nothing on stdout, exit code 2."""
    ran = run(*arguments)

    assert (ran.code, ran.out) == (2, "")
    first, hint = ran.err.splitlines()
    assert first == f"ctxmgr: {message}"
    assert re.fullmatch(r"  see 'ctxmgr.* --help'", hint)


@pytest.mark.parametrize("wish", [("--json",), ("--format", "json"), ("--format=ndjson",), ("--jq", ".")])
def test_faults_of_usage_are_json_when_json_is_wanted(wish: tuple[str, ...]) -> None:
    """A command line that can't be understood but asks for JSON gets the envelope, with its command's name."""
    ran = run("note", "add", "3", *wish)

    assert (ran.code, ran.err, ran.envelope["command"], ran.envelope["status"]) == (2, "", "note add", "error")
    assert ran.envelope["error"]["kind"] == "invalid"


def test_a_wrapped_commands_options_are_its_own() -> None:
    """What stands behind ``--`` belongs to the wrapped command and never asks for JSON."""
    ran = run("record", "--nosuch", "--", "true", "--json")

    assert (ran.code, ran.out) == (2, "")


FAULTS: list[tuple[tuple[str, ...], int, str, str]] = [
    (("search", ""), 2, "invalid", "Query cannot be empty"),
    (("list", "--limit", "0"), 2, "invalid", "--limit must be at least 1"),
    (("list", "--offset", "-1"), 2, "invalid", "--offset must be at least 0"),
    (("list", "--status", "great"), 2, "invalid", "--status must be 'ok', 'error', 'denied', 'interrupted' or 'open'"),
    (("list", "--kind", "odd"), 2, "invalid", "--kind must be 'entry', 'event' or 'all'"),
    (("list", "--since", "soon"), 2, "invalid", "'soon' is not a time"),
    (("list", "--session", "nosuch"), 3, "notFound", "no session 'nosuch'"),
    (("list", "--session", "h"), 2, "invalid", "several session ids start with 'h'"),
    (("show", "healthy@99"), 3, "outOfBounds", "Index out of bounds"),
    (("show", "nosuch"), 3, "notFound", "no entry 'nosuch' in session healthy"),
    (("note", "add", "0", "-m", " "), 2, "invalid", "Note content cannot be empty"),
    (("note", "add", "50", "-m", "x"), 3, "outOfBounds", "Index out of bounds"),
    (("recover", "-s", "healthy"), 21, "healthy", "no loop and no stall found in session 'healthy'"),
    (("snapshot", "show", "nosuch"), 3, "notFound", "no snapshot 'nosuch'"),
    (("import", "nowhere"), 3, "notFound", "no file or folder at"),
    (("import", "--from", "word", "."), 2, "invalid", "unknown log format 'word'"),
]


@pytest.mark.parametrize(("arguments", "code", "kind", "message"), FAULTS, ids=[" ".join(fault[0]) for fault in FAULTS])
def test_faults_have_one_code_and_two_forms(arguments: tuple[str, ...], code: int, kind: str, message: str) -> None:
    """A fault is a line and a hint on stderr or an envelope on stdout, with the same words and the same exit code."""
    text = run(*arguments)
    forms = [run(*arguments, *wish) for wish in (("--json",), ("--format", "ndjson"))]

    assert (text.code, text.out) == (code, "")
    for form in forms:
        error = form.envelope["error"]
        assert (form.code, form.err, error["kind"]) == (code, "", kind)
        assert error["message"].startswith(message)
        assert text.err == f"ctxmgr: {error['message']}\n" + (f"  {error['hint']}\n" if error["hint"] else "")
        assert form.envelope["data"] is None


@pytest.mark.parametrize("command", ROWS, ids=" ".join)
def test_lists_stay_lists(command: tuple[str, ...], tmp_path: Path) -> None:
    """An answer with rows is an array, whether there are none, one or many, and the envelope has the same keys."""
    if command[0] == "detect":
        assert run(*command, "--json", "--store", str(make_empty(tmp_path))).code == 3  # nothing was judged
        return
    empty = run(*command, "--json", "--store", str(make_empty(tmp_path))).envelope
    some = run(*command, "--json").envelope
    keys = ["schema", "command", "status", "data", "page", "warnings", "next", "error"]

    assert list(empty) == list(some) == keys
    assert (empty["data"], empty["status"], empty["error"]) == ([], "empty", None)
    assert isinstance(some["data"], list)
    assert (some["page"] is None) == (empty["page"] is None)
    if some["page"] is not None and "--limit" not in command and some["data"]:
        assert (
            len(run(*command, "--json", *(("--max", "1") if command[0] == "search" else ("--limit", "1"))).envelope["data"])
            == 1
        )


def make_empty(folder: Path) -> Path:
    """Return the path of a store that holds nothing."""
    place = folder / "empty.db"
    run("record", "--store", str(place), given="")
    return place


def test_the_environment_chooses_format_and_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CTXMGR_FORMAT is the default format and CTXMGR_STORE the default store; options win over both."""
    monkeypatch.setenv("CTXMGR_FORMAT", "ndjson")
    assert json.loads(run("list").out.splitlines()[0])["session"] == "healthy"
    assert run("list", "--format", "md").out.startswith("| session |")
    assert run("list", "--json").envelope["status"] == "ok"
    assert run("search", "").envelope["error"]["message"] == "Query cannot be empty"

    monkeypatch.setenv("CTXMGR_FORMAT", "xml")
    assert run("list").err == "ctxmgr: unknown format 'xml'\n  formats: table, json, ndjson, md, csv, tsv\n"

    monkeypatch.setenv("CTXMGR_STORE", str(tmp_path / "nowhere.db"))
    assert run("list", "--json").envelope["error"]["kind"] == "notFound"
    assert run("list", "--json", "--store", str(tmp_path / "history.db")).envelope["status"] == "ok"


def test_a_settings_file_names_the_store(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an option and a variable, the store is the one the nearest settings file upwards names."""
    below = tmp_path / "project" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    monkeypatch.delenv("CTXMGR_STORE")
    assert run("list", "--json").envelope["warnings"] == ["no history here yet: 'ctxmgr import' reads the logs on this machine"]

    (tmp_path / "project" / "ctxmgr.toml").write_text(f'store = "{history.name}"\n', encoding="utf-8")
    shutil.copy(history, tmp_path / "project" / history.name)
    assert run("list", "--json").envelope["page"]["total"] == 3

    (tmp_path / "project" / "ctxmgr.toml").write_text("stroe = 1\n", encoding="utf-8")
    ran = run("list", "--json")
    assert (ran.code, ran.envelope["error"]["hint"]) == (2, "known: artifacts, detect, goal, live, recover, store")


def test_the_nearest_store_upwards_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading command makes no store; a writing one makes it here, and commands below find it."""
    monkeypatch.delenv("CTXMGR_STORE")
    below = tmp_path / "project" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below.parent)
    run("list")
    assert list(below.parent.iterdir()) == [below]

    run("record", "--session", "s", given='{"kind":"event","type":"message"}\n')
    monkeypatch.chdir(below)
    assert run("list", "--kind", "event", "--json").envelope["page"]["total"] == 1
    assert (below.parent / ".ctxmgr" / "history.db").is_file()


def test_an_internal_fault_shows_no_content(history: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A fault in ctxmgr itself is exit code 1, named by its kind and place, without recorded text or local values."""

    def broken(*_: Any) -> None:
        secret = "recorded text"
        raise RuntimeError(secret)

    monkeypatch.setattr(Workspace, "sessions", broken)
    told: list[str] = []
    for arguments in (["sessions"], ["sessions", "--json"]):
        monkeypatch.setattr(sys, "argv", ["ctxmgr", *arguments])
        assert cli.main() == 1
        told.append("".join(capsys.readouterr()))

    assert told[0].startswith("ctxmgr: internal fault (RuntimeError at test_all_commands.py:")
    assert json.loads(told[1])["error"]["kind"] == "internal"
    assert "recorded text" not in "".join(told)

    monkeypatch.setenv("CTXMGR_DEBUG", "1")
    with pytest.raises(RuntimeError, match="recorded text"):
        cli.main()


def test_a_fault_is_reported_where_the_package_of_reports_is_loaded(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """A fault of ``check`` or ``report``, whose modules lie in a package of that name, is reported as any other."""

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("recorded text")

    monkeypatch.setattr("ctxmgr.cli.report.check.find_logs", broken)
    monkeypatch.setattr(sys, "argv", ["ctxmgr", "check", "."])

    assert cli.main() == 1
    assert "internal fault (RuntimeError" in capsys.readouterr().err


def test_the_recorded_run_can_be_saved(tmp_path: Path) -> None:
    """`demo --save` writes the run that can be tried on, twice if asked, and never over another file."""
    path = tmp_path / "run.jsonl"

    assert run("demo", "--save", str(path)).out == f"{path}\n"
    assert run("demo", "--save", str(path)).code == 0
    assert run("detect", str(path)).code == 10

    path.write_text("mine", "utf-8")
    refused = run("demo", "--save", str(path))
    assert (refused.code, path.read_text("utf-8")) == (2, "mine")
    assert run("demo", "--save", str(tmp_path / "none" / "run.jsonl")).code == 5
