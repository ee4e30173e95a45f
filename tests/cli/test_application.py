"""The command line as typer runs it: what is said of a command that is misused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.console import run


@pytest.mark.parametrize("words", [["list"], ["note", "add"]])
def test_the_hint_names_the_command_alone(words: list[str], tmp_path: Path) -> None:
    """However the program was started."""
    hint = f"  see 'ctxmgr {' '.join(words)} --help'"
    assert run(*words, "--nonsense").err.splitlines()[-1] == hint
    started = [sys.executable, "-m", "ctxmgr", *words, "--nonsense"]
    ran = subprocess.run(started, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.stderr.splitlines()[-1] == hint
