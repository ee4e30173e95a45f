"""What is said beside an answer, on the stream for talk."""

from __future__ import annotations

import io
import sys

import pytest

from ctxmgr.cli.envelope import group_notes, say, slow_search
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.safe_text import cells
from tests.cli.test_terminal import Terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_talk_is_broken_at_words_where_a_terminal_is_narrow(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal no line of a hint is wider than it, no word is cut and all stand as far in; elsewhere it is one line."""
    monkeypatch.setenv("COLUMNS", "30")
    hint = "  ctxmgr reads: its own, Claude Code, Codex, Gemini CLI, message lists of 短い名前 and more"
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    say(f"ctxmgr: short\n{hint}", always=True)
    Printer(io.StringIO(), stream, terminal=terminal, width=30).hint(hint)

    lines = stream.getvalue().splitlines()
    if not terminal:
        assert lines == ["ctxmgr: short", hint, hint]
        return
    assert lines[0] == "ctxmgr: short"
    assert all(line.startswith("  ") and cells(line) <= 30 for line in lines[1:])
    assert [word for line in lines[1:] for word in line.split()] == hint.split() * 2


def test_a_search_that_reads_much_says_what_would_help() -> None:
    """Few records that are not indexed are nobody's concern; many are told, with the command that indexes them."""
    assert slow_search(32_767) == ([], [])
    warnings, following = slow_search(40_000)
    assert warnings[0].startswith("40,000 records are not indexed")
    assert following == ["ctxmgr index"]


def test_a_note_that_many_sessions_share_is_given_once() -> None:
    """Two hundred equal lines bury the answer; two do not, and other notes stay."""
    few, many = (group_notes([*(f"s{number}: no times: none" for number in range(count)), "z: odd"]) for count in (2, 200))
    assert few == ["s0: no times: none", "s1: no times: none", "z: odd"]
    assert many == ["200 sessions: no times: none", "z: odd"]
