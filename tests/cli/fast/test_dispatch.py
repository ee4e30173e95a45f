"""Whatever a command line holds, it is answered or handed on so that it ends as with typer, to the byte.

What is answered from rows stands in `tests.cli.fast.test_rows`, sessions and verdicts in `tests.cli.fast.test_detection`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.cli import command_line
from ctxmgr.cli.fast import dispatch, generate
from ctxmgr.cli.fast.help_texts import TEXTS
from ctxmgr.cli.fast.rows import WRITES
from ctxmgr.history.query import tools
from tests.cli.console import make_history
from tests.cli.paths import Ended, both, run_by

REAL_HELP = command_line.print_help

pytestmark = pytest.mark.usefixtures("here")


HANDED = [
    "", "list --help", "list -h", "list --nosuch", "list --limit x", "list --limit -1", "list -n5", "list -rn 5",
    "list --offset -1", "list a b", "list --limit", "list --json=1", "list -s=x", "list --limi 3", "trace a b c", "search",
    "search a b c", "show", "show 1 2", "messages 1 2", "list --limit ' 5'", "list --limit 1_0", "list --limit ٣", "-x",
    "nosuch", "sessions x y", "sessions --offset -1", "sessions --session s", "detect x y", "detect --judge", "search --",
    "list --limit ''", "note", "note nosuch", "note --json", "note list x y", "snapshot", "snapshot list --limit x",
    "snapshot list --tag x",
]  # fmt: skip
"""Command lines that are typer's."""

CALLED = [
    "list --limit 0", "list --limit 100001", "list --offset 9007199254740993", "list --kind x", "list --kind ''",
    "list --status x", "list --status OK", "list --fields id", "list --jq .data", "list --format json --format table",
    "list --format yaml", "note list", "sessions --limit 0", "detect --explain 1", "detect --backtest .",
    "note list --limit 0", "note search a", "snapshot show p", "list --limit 5", "list healthy --fields id,status",
    "list --format md", "trace Bash", "search a -n 2", "show @-1", "show healthy@1 --full", "messages", "sessions",
    "detect --exit-zero", "detect --all-sessions", "note list --all-sessions", "snapshot list", "memory recall boom",
    "memory recall boom --json", "memory reflect boom", "artifact list", "artifact list --json", "artifact get a/b",
    "artifact log a/b --json", "artifact diff a/b", "version list", "version list --json", "context get",
    "context get x --json", "context why a/b", "context need list coder", "context need list --json", "execution list",
    "execution list --json", "access list", "access list --json", "access check coder read artifact coder/x",
    "access explain coder read artifact coder/x --json", "goal tree", "goal tree --json", "goal brief --dir nowhere",
    "goal probe list",
    "goal record x", "goal compare", "export", "export -s healthy", "verify", "verify --json", "verify log.jsonl",
    "trust --list", "trust --list --json", "prompt agent", "prompt agent --json", "schema exits", "schema list", "schema",
    "request --plan --type x --from a --reason b --goal c", "recover --plan -s none", "recover -s healthy",
    "recover -s healthy --json", "import nothing-here", "import nothing-here --json", "list --as coder",
    "list --as coder --json", "show 0 --as coder", "search a --as coder --json", "list --as ''", "note list --as worker",
    "artifact list --as coder", "snapshot show hp", "snapshot show hp --json", "watch none",
    "index --store none.db", "version create", "access check coder write artifact coder/x --json",
]  # fmt: skip
"""Command lines that are read by the table and answered by the function of the command, which writes nothing."""


@pytest.mark.cases(1)
@pytest.mark.parametrize("text", HANDED)
def test_what_the_quick_path_does_not_know_is_typers(text: str) -> None:
    """Help and faults of usage are handed on before anything is done."""
    words = shlex.split(text)

    assert not both([*words[:1], *(["--json"] if words and "--format" not in words else []), *words[1:]]).was_quick
    assert not both(words).was_quick


@pytest.mark.parametrize("text", CALLED)
def test_a_command_is_the_same_whoever_reads_its_words(text: str) -> None:
    """A function that was called by the table's parser answers as when typer calls it: for people, and for programs."""
    words = shlex.split(text)

    assert both(words).was_quick
    assert both(words, terminal=True).was_quick


def test_a_format_from_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """``CTXMGR_FORMAT`` decides where no option does; a table is typer's."""
    was_quick: dict[str, bool] = {}
    for form in ("json", "ndjson", "md", "table", "odd", ""):
        monkeypatch.setenv("CTXMGR_FORMAT", form)
        was_quick[form] = both(["list"]).was_quick
        assert both(["list", "--format", "table"]).was_quick
        assert both(["list", "--json"]).was_quick

    assert all(was_quick.values())


def test_a_shell_that_completes_is_typers(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a shell asks what could come next nothing is answered by the fast path."""
    monkeypatch.setenv("_OTHER_COMPLETE", "bash_complete")

    assert not both(["list", "--json"]).was_quick


def test_the_store_is_found_as_typer_finds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The option, the environment, the settings, the nearest folder upwards and none at all mean the same store to both."""
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert json.loads(both(["list", "--json"]).out)["error"]["kind"] == "notFound"
    monkeypatch.setenv("CTXMGR_STORE", "")
    assert json.loads(both(["list", "--json"]).out)["warnings"]
    assert both(["list", "--format", "ndjson"]).err.startswith(b"ctxmgr: no history here yet")
    assert both(["show", "@0", "--json"]).code == 3
    make_history(tmp_path / ".ctxmgr" / "history.db")
    assert json.loads(both(["list", "--json"]).out)["data"]
    (tmp_path / "a" / "ctxmgr.toml").write_text('store = "other.db"', "utf-8")
    assert json.loads(both(["list", "--json"]).out)["error"]["kind"] == "notFound"
    (deep / "pyproject.toml").write_text('[tool.ctxmgr]\nstore = "../../.ctxmgr/history.db"', "utf-8")
    assert json.loads(both(["list", "--json"]).out)["data"]
    (deep / "ctxmgr.toml").write_text("nonsense = 1", "utf-8")
    refused = both(["list", "--json", "--store", str(tmp_path / ".ctxmgr" / "history.db")])
    assert (refused.code, refused.was_quick) == (2, True)


@pytest.mark.parametrize("words", [["list"], ["search", "a"], ["show", "@0"], ["messages"], ["list", "-s", "heal"]])
def test_a_watched_answer_is_the_same(words: list[str]) -> None:
    """On a terminal the envelope is laid out and the session that was meant is told, by both alike."""
    ended = both([*words, "--json"], terminal=True)

    assert ended.out.startswith(b'{\n  "schema"')
    assert (b"the latest of" in ended.err) == ("-s" not in words)


def test_a_fault_in_the_quick_path_shows_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the code that both share ends as one of kind ``internal``."""

    def broken(*_: object) -> None:
        raise RuntimeError("recorded text")

    monkeypatch.setattr(tools, "list_", broken)
    ended = both(["list", "--json"])

    assert (ended.code, json.loads(ended.out)["error"]["kind"], ended.was_quick) == (1, "internal", False)
    assert b"recorded text" not in ended.out + ended.err


def test_a_folder_that_is_locked_is_told(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system refuses is told by the path that it refuses, by both alike."""
    real = os.stat

    def locked(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("locked.db"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "stat", locked)
    ended = both(["list", "--json", "--store", "locked.db"])

    assert (ended.code, ended.was_quick) == (5, True)
    assert json.loads(ended.out)["error"]["message"] == "locked.db: Permission denied"


_VALUES: dict[str, st.SearchStrategy[str]] = {
    "session": st.sampled_from([
        "log.jsonl", "claude.jsonl", "healthy", "heal", "h", "", "none", "härte/ö", "looping", "p1", "\udcff", "-x",
    ]),
    "since": st.sampled_from(["2h", "2026-01-22T10:00:01Z", "yesterday", "x", "", "99999999d", "2026-01-22"]),
    "kind": st.sampled_from(["entry", "event", "all", "x", ""]),
    "status": st.sampled_from(["ok", "error", "open", "denied", "OK", ""]),
    "store": st.sampled_from([
        "history.db", "empty.db", "log.jsonl", "torn.jsonl", "none.db", "damaged.db", "foreign.db", "folder.db", "", "a://b",
        "altered-shape.db", "./log.jsonl", "\udcff.db",
    ]),
    "format_": st.sampled_from(["json", "ndjson", "table", "md", "x"]),
    "event_type": st.sampled_from(["message", "user_message", "", "x"]),
    "number": st.one_of(
        st.integers(0, 6).map(str), st.sampled_from(["-1", "x", "", " 1", "1_0", "٣", "9" * 17, "100001", "9007199254740993"])
    ),
    "name": st.sampled_from(["Bash", "bash", "worker", "coder", "command", "", "Read", "STRASSE", "\ud800", "Ed it"]),
    "argument": st.sampled_from(["Bash", "a", "@0", "@-1", "@last", "healthy@1", "1", "heal@0", "", "-", "@9", "--", "e", "é",
                                 "log.jsonl", "claude.jsonl@1", "claude.jsonl", "none.jsonl", "garbage.txt", "healthy", "./"]),
}  # fmt: skip
_NOISE = st.sampled_from(
    ["--help", "-h", "--nosuch", "-x", "--", "-", "--limit", "-n5", "-rn5", "--json=1", "--jq", ".", "-s=h"]
)


@st.composite
def _lines(draw: st.DrawFn) -> list[str]:
    """Draw a command line of the fast path's commands, mostly one that the table knows every word of."""
    name = draw(st.sampled_from(sorted(set(generate.QUICK) - WRITES - {"recover"})))  # which writes where it is not told again
    words: list[str] = []
    command = dispatch.command_by_name(name)
    assert command is not None
    for option in draw(st.lists(st.sampled_from(sorted(command["options"])), max_size=5)):
        dest, kind = command["options"][option]
        if kind in ("flag", "no flag"):
            words.append(option)
            continue
        kind = "number" if kind == "number" else {"until": "since"}.get(dest, dest if dest in _VALUES else "name")
        value = draw(_VALUES[kind])
        words += [f"{option}={value}"] if option.startswith("--") and draw(st.booleans()) else [option, value]
    if draw(st.integers(0, 3)):
        words.insert(0, "--json")
    if draw(st.integers(0, 9)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(_NOISE))
    for _ in command["arguments"]:
        if draw(st.integers(0, 5)):
            words.insert(draw(st.sampled_from([0, len(words)])), draw(_VALUES["argument"]))
    return [*name.split(), *words]


@pytest.mark.slow
@settings(max_examples=150)
@given(_lines())
def test_any_command_line_is_answered_as_typer_answers_it(words: list[str]) -> None:
    """Whatever options, values and stray words a command line is made of, both ways end alike."""
    both(words)


def _helped(words: list[str], *, laid_out: bool) -> tuple[Ended, bool]:
    used: list[bool] = []

    def asked(command: list[str]) -> bool:
        used.append(laid_out and REAL_HELP(command))
        return used[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_line, "print_help", asked)
        patch.setattr(sys.modules["__main__"], "__package__", None)
        return run_by(words, dispatch.answer_command), used == [True]


@pytest.mark.slow
@pytest.mark.parametrize("width", [None, "80", "200", "79", "40", "", "x", "0"])
def test_help_is_typers_to_the_byte(width: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Help that was laid out beforehand is what typer would lay out, and shown only where it is."""
    if width is not None:
        monkeypatch.setenv("COLUMNS", width)
    for words in sorted(TEXTS) if width in (None, "200") else ["", "list"]:
        for flag in ("--help", "-h"):
            quick, used = _helped([*words.split(), flag], laid_out=True)
            assert used == (width not in ("79", "40", "", "x"))
            assert quick[:3] == _helped([*words.split(), flag], laid_out=False)[0][:3], words


@pytest.mark.parametrize(
    "words", [["list", "--json", "--help"], ["nosuch", "-h"], ["list", "x", "--help"], ["--nosuch", "-h"], []]
)
def test_other_help_is_typers(words: list[str]) -> None:
    """A command line with more than a command and the wish for help is handed on."""
    assert not _helped(words, laid_out=True)[1]
