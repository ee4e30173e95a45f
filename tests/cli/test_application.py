"""The command line as typer runs it: what is said of a command that is misused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.console import run


@pytest.mark.cases(1)
@pytest.mark.parametrize("words", [["list"], ["note", "add"]])
def test_the_hint_names_the_command_alone(words: list[str], tmp_path: Path) -> None:
    """However the program was started."""
    hint = f"  see 'ctxmgr {' '.join(words)} --help'"
    assert run(*words, "--nonsense").err.splitlines()[-1] == hint
    started = [sys.executable, "-m", "ctxmgr", *words, "--nonsense"]
    ran = subprocess.run(started, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.stderr.splitlines()[-1] == hint


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["artifact", "show", "x"], "artifact get"),
        (["snapshot", "get"], "snapshot show"),
        (["backtest"], "detect --backtest"),
        (["artifacts", "get"], "artifact"),
    ],
)
def test_an_unknown_command_comes_with_the_one_that_may_be_meant(words: list[str], meant: str) -> None:
    """Groups use one verb or another for the same thing, and some commands are options."""
    ran = run(*words)

    assert ran.code == 2
    assert f"Did you mean '{meant}'" in ran.err


def test_an_argument_is_named_as_in_the_help() -> None:
    """In capitals, whether or not it has a name of its own for people."""
    assert "Missing argument 'ADDRESS'" in run("show").err
