"""The fast path answers every command line as typer does, to the byte: output, talk and exit code."""

from __future__ import annotations

import gc
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
from ctxmgr.cli.envelope import slow_search
from ctxmgr.cli.fast import detection, dispatch, generate
from ctxmgr.cli.fast.help_texts import TEXTS
from ctxmgr.cli.fast.rows import WRITES
from ctxmgr.cli.fast.table import TABLE
from ctxmgr.history.query import tools
from tests.cli.console import make_history, process
from tests.cli.paths import Ended, both, make_stores, run_by

REAL_HELP = command_line.print_help


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the stores that command lines name."""
    folder = tmp_path_factory.mktemp("quick")
    make_stores(folder)
    return folder


@pytest.fixture(autouse=True)
def here(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand among the stores, in the whole one unless told otherwise."""
    monkeypatch.chdir(stores)
    monkeypatch.setenv("CTXMGR_STORE", "history.db")


QUICK = [
    "list", "list --limit 1", "list -n 2 --offset 1", "list -r", "list --newest-first --kind all", "list --kind event",
    "list --event-type message", "list --event-type message --kind all --kind event", "list -s healthy", "list -s heal",
    "list --session=looping --agent WORKER", "list --action bash --action Read", "list --status error --status open",
    "list --input-type command", "list --since 2026-01-22T10:00:01Z", "list --since 2h", "list --until yesterday",
    "list --since now --until 1w", "list --offset 9007199254740992", "list --limit 100000", "list -s härte/ö",
    "list -s härte/ö --kind all", "list -s deep", "list --store empty.db", "list --store ./history.db",
    "list --store .//log.jsonl", "list --store log.jsonl -s healthy", "list --store torn.jsonl", "list -- ",
    "list --action ''", "list --action x --action=", "list --kind entry --kind=all", "trace", "trace Bash",
    "trace bash --action Read", "trace ''", "trace -- Bash", "trace --limit 1 Bash", "trace Bash -n 1",
    "trace --agent worker --status ok", "trace --store empty.db", "trace --offset 1", "trace -s hung", "trace --until 1d",
    "search a", "search A --all-sessions", "search -- --json", "search boom --kind entry", "search 'x' --max 1 --offset 1",
    "search STRASSE -s härte/ö", "search key -s härte/ö", "search ss --all-sessions", "search zzz", "search 1e300 -s härte/ö",
    "search same -n 2 -s looping", "search message --event-type message", "search ls --action bash --agent worker",
    "search a --store empty.db", "search a --since 2026-01-01 --until 2027-01-01T00:00:00+02:00",
    "search a --store log.jsonl", "show 0", "show @-1", "show @last", "show healthy@1", "show heal@0", "show looping-e0002",
    "show looping-e0002 -s looping", "show härte/ö@3", "show 2 -s härte/ö", "show -s hung 1", "show --full @0", "show deep@0",
    "show 1 --store log.jsonl -s heal", "messages", "messages @-1", "messages healthy@2", "messages -s härte/ö",
    "messages härte/ö@1", "messages -n 1 --offset 1", "messages --store empty.db", "messages healthy-e0001",
    "messages -s hung --offset 5", "note list", "note list -t DIAGNOSTIC --tag diagnostic", "note list -t none -s healthy",
    "note list --all-sessions -n 1", "note list -s härte/ö --offset 1", "note list --store empty.db", "snapshot list",
    "sessions", "sessions --no-judge", "sessions --judge -n 2 --offset 1", "sessions --agent WORKER",
    "sessions --store empty.db", "sessions --no-judge --judge --store log.jsonl", "detect --exit-zero", "detect -s healthy",
    "detect -s hea --now yesterday", "detect --all-sessions --exit-zero", "detect --ever --exit-zero -s looping",
    "list healthy", "list log.jsonl", "list log.jsonl -s heal", "list -s log.jsonl", "list ./log.jsonl --store ./log.jsonl",
    "list history.db", "list claude.jsonl -n 2", "list --store claude.jsonl -n 2", "list claude.jsonl --kind all -n 3",
    "trace Bash claude.jsonl -n 1", "trace claude.jsonl Bash -n 1", "trace claude.jsonl -n 1", "trace Bash healthy",
    "search test claude.jsonl -n 2", "search a log.jsonl --all-sessions", "search a healthy", "show claude.jsonl@-1",
    "show log.jsonl@last", "show @0 -s claude.jsonl", "messages claude.jsonl@-1", "messages claude.jsonl -n 2",
    "messages -s claude.jsonl -n 2", "sessions log.jsonl", "sessions claude.jsonl", "detect healthy",
    "detect claude.jsonl --exit-zero", "detect log.jsonl --all-sessions --exit-zero", "list own.log -n 2",
    "note list -s claude.jsonl", "snapshot list -s log.jsonl",
    "list claude.jsonl@3 -n 2", "list healthy@1", "list @1", "list log.jsonl@1 -s heal", "list @9",
    "detect --set repeat_rounds=2 --set actions.Bash.repeat_rounds=9 -s looping --exit-zero",
    "search boom --store altered-shape.db",
    "snapshot list -s healthy -n 1 --offset 1", "snapshot list --store empty.db", "snapshot list --store log.jsonl -s heal",
]  # fmt: skip
"""Command lines that the fast path answers itself, well ended ones and refused ones."""

REFUSED = [
    "list -s ''", "list -s --json", "show log --store log.jsonl -s x", "show @99", "show @-99", "show nothing", "show ''",
    "show healthy@0 -s looping", "show @0 --store empty.db", "show x --store empty.db", "show @0 -s none", "list -s none",
    "list --since soon", "list --until ''", "search ''", "search ' '", "messages @99", "messages x",
    "messages @0 --store empty.db", "list --store none.db", "list --store none.jsonl", "list --store damaged.db",
    "list --store foreign.db", "list --store folder.db", "list --store folder.db/x.db", "list --store history.db/x",
    "list --store ''", "list --store http://x", "list --store /dev/null", "show h -s healthy", "list --store altered-body.db",
    "list --store altered-list.db", "list --store altered-shape.db", "list --store altered-nan.db",
    "list --store altered-status.db", "search 1, --store altered-body.db", "trace --since x -s none",
    "search x --since x -s none", "note list -s none", "snapshot list -s none", "note list --store altered-note.db",
    "snapshot list --store altered-snapshot.db", "note list --store none.db", "detect -s none", "detect --now soon",
    "detect --set x", "detect --set nosuch=1", "detect --set repeat_rounds=x", "detect --store none.db",
    "sessions --store none.db", "detect --all-sessions --store altered-body.db", "detect -s looping",
    "detect -s hung --now 2026-01-22T12:00:00Z", "detect --all-sessions", "detect -s deep", "detect -s ''",
    "sessions --store damaged.db", "detect --store ''", "detect --store empty.db", "list none", "list none.jsonl",
    "detect claude.jsonl", "detect garbage.txt", "list --store garbage.txt", "show garbage.txt@0", "show claude.jsonl",
    "show claude.jsonl@99", "list ./", "list healthy -s looping", "list log.jsonl --store history.db", "sessions none",
    "search x none.jsonl", "trace a b", "messages none.jsonl@1", "list -", "sessions -", "list -s garbage.txt",
    "note list -s garbage.txt",
]  # fmt: skip
"""Command lines that the fast path itself refuses, or that end with a verdict."""

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


@pytest.mark.parametrize("form", ["--json", "--format=ndjson", "--format json"])
@pytest.mark.parametrize("text", [*QUICK, *REFUSED])
def test_the_quick_path_answers_as_typer_does(text: str, form: str) -> None:
    """What the fast path answers, well or with a refusal, has typer's bytes on both streams and its exit code."""
    words = shlex.split(text)
    name = 2 if words[0] in ("note", "snapshot") else 1
    ended = both([*words[:name], *form.split(), *words[name:]])

    assert ended.was_quick
    assert (ended.code == 0) == (text in QUICK)


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


@pytest.mark.parametrize("words", [("detect", "looping"), ("sessions",), ("list", "looping"), ("list", "nosuch")])
def test_a_setting_that_is_left_out_is_told_once(words: tuple[str, ...], tmp_path: Path) -> None:
    """Where the quick path hands a command on, both read the settings: the warning is told by the one that answers."""
    store = make_history(tmp_path / "history.db")
    (tmp_path / "ctxmgr.toml").write_text('[live]\nexec = ["true"]\n', "utf-8")
    for _ in range(2):  # with a judgement to make, and with one that is kept
        ran = process(*words, "--store", str(store), folder=tmp_path)
        assert ran.err.count("sets live.exec, which only you may") == 1


def test_the_collector_rests_during_a_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is not looked for while the fast path reads; it is while it judges, while typer runs, and afterwards."""
    seen: dict[str, list[bool]] = {"list": [], "sessions": []}
    real_list, real_sessions = tools.list_, detection.HANDLERS["sessions"]

    def listing(*given: Any) -> Any:
        seen["list"].append(gc.isenabled())
        return real_list(*given)

    def sessions(*given: Any) -> Any:
        seen["sessions"].append(gc.isenabled())
        return real_sessions(*given)

    monkeypatch.setattr(tools, "list_", listing)
    monkeypatch.setitem(detection.HANDLERS, "sessions", sessions)
    for words in (["list", "--json"], ["sessions", "--json"]):
        assert both(words).was_quick
        assert gc.isenabled()

    assert seen == {"list": [False, True], "sessions": [True, True]}


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


def test_the_table_follows_from_the_declarations() -> None:
    """The table that is checked in is what the declarations of the commands and their requests give today."""
    assert generate.TABLE_FILE.read_text("utf-8") == generate.render_table()
    assert set(generate.QUICK) < TABLE.keys()


def test_the_help_follows_from_the_declarations() -> None:
    """The helps that are checked in are what typer shows today."""
    assert generate.TEXTS_FILE.read_text("utf-8") == generate.render_texts()


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


def test_the_quick_path_serves_what_it_says() -> None:
    """Every parameter that the fast path says to serve is one of the table's."""
    commands = [command for name in generate.QUICK if (command := dispatch.command_by_name(name))]
    known = {name for command in commands for name in command["defaults"]}

    assert known >= generate.SERVED


def test_a_search_that_reads_much_says_what_would_help() -> None:
    """Few records that are not indexed are nobody's concern; many are told, with the command that indexes them."""
    assert slow_search(32_767) == ([], [])
    warnings, following = slow_search(40_000)
    assert warnings[0].startswith("40,000 records are not indexed")
    assert following == ["ctxmgr index"]
