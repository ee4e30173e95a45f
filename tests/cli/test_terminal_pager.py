"""What is longer than the screen goes to a pager, where a person watches and can type; nothing else ever does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.console import command, make_history, watched


@pytest.fixture
def pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set up a pager that keeps what it is given, and a small history; return the file that it keeps."""
    monkeypatch.setenv("CTXMGR_STORE", str(make_history(tmp_path / "history.db")))
    kept = tmp_path / "kept"
    script = tmp_path / "pager"
    script.write_text(f"#!/bin/sh\ncat > {kept}\n", "utf-8")
    script.chmod(0o755)
    for name in ("CTXMGR_PAGER", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAGER", str(script))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "80")
    return kept


def test_a_long_answer_goes_to_the_pager(pager: Path) -> None:
    """The pager gets what the terminal would have got, colours included, and the terminal nothing; the exit code stays."""
    code, shown = watched("list", "-s", "looping")
    plain = watched("list", "-s", "looping", "--no-pager")

    assert (code, shown) == (0, "")
    assert pager.read_text("utf-8") == plain[1]
    assert "\x1b[" in plain[1]
    assert watched("detect", "looping")[0] == 10


def test_what_fits_is_shown_at_once(pager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short answer, one for a program, one in a pipe or without a keyboard is never paged; nor where no pager is wanted."""
    assert watched("config", "get", "live.mode")[1] == "advise\n"
    assert "looping" in watched("list", "-s", "looping", "--json")[1]
    assert "Bash" in watched("list", "-s", "looping", typed=False)[1]
    assert subprocess.run(command("list", "-s", "looping"), capture_output=True, check=True).stdout
    for name, value in (("CTXMGR_PAGER", "cat"), ("CTXMGR_PAGER", ""), ("CTXMGR_PAGER", "no-such-pager -x"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        assert "Bash" in watched("list", "-s", "looping")[1]
    assert not pager.exists()


def test_a_pager_that_is_left_early_is_no_fault(pager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pager that reads nothing, or fails, changes neither the exit code nor what is told."""
    for words in ("true", "false"):
        monkeypatch.setenv("CTXMGR_PAGER", words)
        assert watched("list", "-s", "looping", "--kind", "all") == (0, "")


@pytest.mark.cases(1)
@pytest.mark.parametrize("lines", ["4", "100"])
def test_hints_stand_behind_the_answer(pager: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """What to do next is read last, also where the answer was held back to see whether it fits the screen."""
    monkeypatch.setenv("LINES", lines)
    monkeypatch.setenv("CTXMGR_PAGER", "sh -c cat")
    log = pager.parent / "run.jsonl"
    assert watched("export", "looping", "-o", str(log))[0] == 0
    monkeypatch.setenv("CTXMGR_STORE", str(pager.parent / "new.db"))

    code, shown = watched("import", str(log), talk=True)

    assert code == 0, shown
    assert shown.index("added ") < shown.index("See them: ctxmgr sessions")
