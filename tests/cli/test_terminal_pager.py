"""What is longer than the screen goes to a pager, where a person watches and can type; nothing else ever does."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.console import LIMIT, command, make_history


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


def _watched(*arguments: str, typed: bool = True, talk: bool = False) -> tuple[int, str]:
    """Run a command on a terminal; return its exit code and what the terminal got, with ``talk`` stderr too."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*arguments), stdin=theirs if typed else subprocess.DEVNULL, stdout=theirs,
        stderr=theirs if talk else subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
        code = process.wait(LIMIT)
    os.close(ours)
    return code, shown.decode("utf-8").replace("\r\n", "\n")


def test_a_long_answer_goes_to_the_pager(pager: Path) -> None:
    """The pager gets what the terminal would have got, colours included, and the terminal nothing; the exit code stays."""
    code, shown = _watched("list", "-s", "looping")
    plain = _watched("list", "-s", "looping", "--no-pager")

    assert (code, shown) == (0, "")
    assert pager.read_text("utf-8") == plain[1]
    assert "\x1b[" in plain[1]
    assert _watched("detect", "looping")[0] == 10


def test_what_fits_is_shown_at_once(pager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short answer, one for a program, one in a pipe or without a keyboard is never paged; nor where no pager is wanted."""
    assert _watched("config", "get", "live.mode")[1] == "advise\n"
    assert "looping" in _watched("list", "-s", "looping", "--json")[1]
    assert "Bash" in _watched("list", "-s", "looping", typed=False)[1]
    assert subprocess.run(command("list", "-s", "looping"), capture_output=True, check=True).stdout
    for name, value in (("CTXMGR_PAGER", "cat"), ("CTXMGR_PAGER", ""), ("CTXMGR_PAGER", "no-such-pager -x"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
        assert "Bash" in _watched("list", "-s", "looping")[1]
    assert not pager.exists()


def test_a_pager_that_is_left_early_is_no_fault(pager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pager that reads nothing, or fails, changes neither the exit code nor what is told."""
    for words in ("true", "false"):
        monkeypatch.setenv("CTXMGR_PAGER", words)
        assert _watched("list", "-s", "looping", "--kind", "all") == (0, "")


@pytest.mark.parametrize("lines", ["4", "100"])
def test_hints_stand_behind_the_answer(pager: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """What to do next is read last, also where the answer was held back to see whether it fits the screen."""
    monkeypatch.setenv("LINES", lines)
    monkeypatch.setenv("CTXMGR_PAGER", "sh -c cat")
    log = pager.parent / "run.jsonl"
    assert _watched("export", "looping", "-o", str(log))[0] == 0
    monkeypatch.setenv("CTXMGR_STORE", str(pager.parent / "new.db"))

    code, shown = _watched("import", str(log), talk=True)

    assert code == 0, shown
    assert shown.index("added ") < shown.index("See them: ctxmgr sessions")
