"""``completion``: what a shell is offered, through the scripts themselves where the shell is at hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxmgr.cli import COMMANDS
from ctxmgr.cli.completion import FILES, SCRIPTS, completions
from ctxmgr.cli.fast.table import TABLE
from tests.cli.console import make_history, process, run

pytestmark = pytest.mark.usefixtures("history")


OFFERED: list[tuple[str, list[str]]] = [
    ("de", ["detect", "demo"]),
    ("note ", ["add", "list", "search"]),
    ("goal pr", ["probe"]),
    ("goal probe ", ["add", "list", "check"]),
    ("--no", ["--no-color", "--no-pager"]),
    ("-q -C . li", ["list"]),
    ("help comp", ["completion"]),
    ("list --newest", ["--newest-first"]),
    ("list --format c", ["csv"]),
    ("list --status e", ["error"]),
    ("detect h", ["healthy\tShip it", "hung", FILES]),
    ("show -s l", ["looping", FILES]),
    ("config get live.m", ["live.mode"]),
    ("completion z", ["zsh"]),
    ("install co", ["codex", "copilot"]),
    ("import x", [FILES]),
    ("list --limit ", [FILES]),
    ("nosuch ", []),
]


@pytest.mark.parametrize(("line", "expected"), OFFERED, ids=lambda each: str(each))
def test_what_could_come_next(line: str, expected: list[str]) -> None:
    """Commands, options, values, sessions and settings are offered where they can stand."""
    found = [each.rstrip("\t") for each in completions(line.split(" "))]

    assert found == expected


def test_every_command_and_option_is_offered() -> None:
    """Nothing that the command line knows is left out."""
    assert {*completions([""])} == {*COMMANDS, "help"}
    for name in TABLE:
        assert "--help" in completions([*name.split(), "--h"])


def test_a_store_that_can_not_be_read_offers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no store, or a broken one, files are offered alone; nothing is told on stderr."""
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 500)
    for store in (tmp_path / "none.db", tmp_path / "broken.db"):
        monkeypatch.setenv("CTXMGR_STORE", str(store))
        ran = process("completion", "--words", "detect", "")
        assert (ran.code, ran.out, ran.err) == (0, f"{FILES}\n", "")


def test_hostile_titles_stay_on_their_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A title is filtered, and an id that a shell could take for more than a word is not offered."""
    from tests import builders as b

    place = make_history(
        tmp_path / "hostile.db",
        b.build("session", "fine", b.at(0), meta={"title": "a\n\x1b[31mb\t$(rm)"}),
        b.build("session", "$(touch owned)", b.at(0)),
    )
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    offered = completions(["list", "fi"])

    assert offered == ["fine\ta⏎\\x1b[31mb $(rm)", FILES]
    assert not [each for each in completions(["list", ""]) if "touch" in each]


def test_bash_completes(history: Path) -> None:
    """The script is understood by bash, and what it is told reaches the words that bash offers."""
    folder = Path(sys.executable).parent
    script = (
        f"source <('{folder}/ctxmgr' completion bash)\n"
        't() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ctxmgr 2>/dev/null; echo "${COMPREPLY[*]}"; }\n'
        "t ctxmgr de; t ctxmgr note ''; t ctxmgr detect he; t ctxmgr list --newest\n"
    )
    told = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )  # fmt: skip

    assert told.stdout.splitlines() == ["detect demo", "add list search", "healthy", "--newest-first"]


def test_there_is_a_script_for_each_shell() -> None:
    """A shell gets its script; another name is a fault of usage."""
    for shell, script in SCRIPTS.items():
        assert run("completion", shell).out == script
    assert process("completion", "tcsh").code == 2
    assert process("completion").code == 2
