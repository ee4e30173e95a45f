"""What is read before a command: options before it, global options, ``help``, spellings of earlier versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.command_line import OLD, read
from ctxmgr.cli.invocation import global_options
from ctxmgr.errors import InvalidInput
from tests.cli.console import make_history, process, run

pytestmark = pytest.mark.usefixtures("history")

BEFORE: list[tuple[list[str], list[str]]] = [
    (["--json", "list"], ["list", "--json"]),
    (["--store", "x.db", "--raw", "note", "list", "-t", "a"], ["note", "list", "--store", "x.db", "--raw", "-t", "a"]),
    (["-s", "abc", "show", "3"], ["show", "-s", "abc", "3"]),
    (["--jq", ".", "-r", "goal", "probe", "list"], ["goal", "probe", "list", "--jq", ".", "-r"]),
    (["help"], ["--help"]),
    (["help", "note", "add"], ["note", "add", "--help"]),
    (["-q", "help", "list"], ["list", "--help"]),
    (["list", "-q", "--no-color", "-n", "2"], ["list", "-n", "2"]),
    (["note", "add", "3", "-m", "-q"], ["note", "add", "3", "-m", "-q"]),
    (["note", "add", "3", "-m", "--no-pager", "--no-pager"], ["note", "add", "3", "-m", "--no-pager"]),
    (["record", "--", "make", "-q", "--no-color"], ["record", "--", "make", "-q", "--no-color"]),
    (["search", "--", "-q"], ["search", "--", "-q"]),
    (["nosuch", "-q"], ["nosuch", "-q"]),
    ([], []),
    (["--json"], ["--json"]),
    (["--version"], ["--version"]),
    (["--nosuch", "list"], ["--nosuch", "list"]),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), BEFORE, ids=lambda words: " ".join(words))
def test_what_stands_before_a_command_is_its_own(given: list[str], expected: list[str]) -> None:
    """Options before the command are read as if they stood behind it; a value that looks like a wish is none."""
    assert read(given) == expected


def test_global_options_hold_for_one_command() -> None:
    """What is wished of one command is forgotten by the next."""
    read(["-q", "list", "--no-color", "--no-pager"])
    assert (global_options.quiet, global_options.colour, global_options.pager) == (True, False, False)
    read(["list"])
    assert (global_options.quiet, global_options.colour, global_options.pager) == (False, True, True)


def test_a_command_runs_as_if_started_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``-C`` goes there first, several one after the other; a place that is none is a fault of usage that names it."""
    monkeypatch.delenv("CTXMGR_STORE")
    (tmp_path / "a" / "b").mkdir(parents=True)
    make_history(tmp_path / "a" / "b" / ".ctxmgr" / "history.db")
    ran = process("-C", "a", "-C", "b", "sessions", "--json", folder=tmp_path)
    assert [row["session"] for row in ran.envelope["data"]][:1] == ["healthy"]
    ran = process("-C", "nosuch", "sessions", "--json", folder=tmp_path)
    assert (ran.code, ran.envelope["error"]["message"]) == (2, "-C nosuch: No such file or directory")
    with pytest.raises(InvalidInput):
        read(["-C"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--store",), "--store needs a value, and a command behind it"),
        (("--store", "x.db"), "no command follows --store"),
        (("-s", "one", "--store=x.db"), "no command follows -s"),
    ],
)
def test_an_option_before_the_command_needs_one(words: tuple[str, ...], message: str) -> None:
    """The help says that these options may stand before the command; without one they are not called unknown."""
    ran = process(*words)
    assert (ran.code, ran.err.splitlines()[0]) == (2, f"ctxmgr: {message}")


def test_quiet_says_what_went_wrong_and_nothing_else() -> None:
    """With ``-q`` a warning is left out, and the answer is not; an error is still told."""
    assert process("sql", "SELECT idx FROM entries", "-n", "1").err != ""
    quiet = process("sql", "SELECT idx FROM entries", "-n", "1", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, process("sql", "SELECT idx FROM entries", "-n", "1").out, "")
    # ``-n1`` in one word is read by typer alone.
    assert process("-q", "sql", "SELECT idx FROM entries", "-n1").err == ""
    assert "no session 'nosuch'" in process("-q", "list", "nosuch").err


def test_no_colour_is_wished_anywhere() -> None:
    """``--no-color`` before or behind the command wins over a forced colour."""
    forced = {"FORCE_COLOR": "1"}
    assert "\x1b[" in process("sessions", env=forced).out
    assert "\x1b[" not in process("sessions", "--no-color", env=forced).out + process("--no-color", "sessions", env=forced).out


@pytest.mark.slow
def test_help_is_a_command() -> None:
    """``help`` shows the help of the whole, or of a command, as ``--help`` does."""
    for words in ((), ("list",), ("note", "add"), ("goal", "probe", "add")):
        assert process("help", *words).out == process(*words, "--help").out != ""
    assert process("help", "nosuch").code == 2


@pytest.mark.parametrize("name", OLD)
def test_old_spellings_go_on_working(name: str) -> None:
    """Each is read as it is spelled now."""
    for old, new in OLD[name].items():
        words = [*name.split(), old, "x"]
        assert read(words) == [*name.split(), new, "x"]
        if old.startswith("--"):
            assert read([*name.split(), f"{old}=x"]) == [*name.split(), f"{new}=x"]


def test_an_old_spelling_is_hinted_at() -> None:
    """A command line of an earlier version gives the same answer, and a hint on stderr."""
    ran = run("list", "-r", "-n", "1", "--json")

    assert ran.out == run("list", "--newest-first", "-n", "1", "--json").out
    assert ran.err == "ctxmgr: -r of 'list' is spelled --newest-first now\n"
    assert run("search", "boom", "--max", "1", "--json").out == run("search", "boom", "--limit", "1", "--json").out


def test_an_ambiguous_id_names_what_it_may_mean(history: Path) -> None:
    """The candidates are named, of a session, an entry and a note's session alike; a session's id says what to do with it."""
    assert "healthy, hung" in run("list", "h").err
    assert "healthy-e0000, healthy-e0001, healthy-e0002" in run("show", "healthy-e", "-s", "healthy").err
    assert "it is a session: 'ctxmgr list hung'" in run("show", "hung", "-s", "healthy").err


def test_what_is_said_later_makes_no_session_the_latest() -> None:
    """A note and a continuation about an older session leave the latest one where it is."""
    latest = run("list", "--json").envelope["data"][0]["session"]
    assert run("note", "add", "hung@0", "-m", "look").code == 0
    assert run("recover", "looping").code == 0

    assert run("list", "--json").envelope["data"][0]["session"] == latest == "healthy"


def test_sessions_are_chosen() -> None:
    """``--stuck``, ``--since`` and ``--project`` choose among the sessions, and are counted."""

    def chosen(*arguments: str) -> list[str]:
        whole = run("sessions", *arguments, "--json").envelope
        assert whole["page"]["total"] == len(whole["data"])
        return [row["session"] for row in whole["data"]]

    assert set(chosen("--stuck")) == {"looping", "hung"}
    assert chosen("--since", "2026-01-22T10:00:00Z") == ["healthy", "looping"]
    assert chosen("--project", "nosuch") == []
    assert run("sessions", "--stuck", "--limit", "1", "--json").envelope["page"]["total"] == 2


@pytest.mark.parametrize("wanted", ["/home/dev/shop", "/home/dev/shop/", "shop"])
def test_sessions_of_a_project(wanted: str, tmp_path: Path) -> None:
    """A project is named by its folder or by the last part of it, and no other one whose name ends so is meant."""
    from tests import builders as b

    place = make_history(
        tmp_path / "projects.db",
        *(
            b.build("session", name, b.at(0), process="p", meta={"cwd": folder})
            for name, folder in (("one", "/home/dev/shop"), ("two", "/home/dev/workshop"), ("three", "/srv/shop/sub"))
        ),
    )
    rows = run("sessions", "--project", wanted, "--store", str(place), "--json").envelope["data"]

    assert [(row["session"], row["project"]) for row in rows] == [("one", "/home/dev/shop")]
