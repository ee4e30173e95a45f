"""Sessions, rows, hits, one entry, messages, notes, the continuation and the import report, as people see them."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.cli.views.brief import brief, command, pretty, said
from ctxmgr.cli.views.continuation import show_continuation
from ctxmgr.cli.views.entries import show_entry, show_hits, show_messages, show_rows
from ctxmgr.cli.views.humane import ago, amount, duration, plural, short_ids, size
from ctxmgr.cli.views.imports import show_import
from ctxmgr.cli.views.notes import indexes_text, show_notes, show_snapshot
from ctxmgr.cli.views.sessions import show_sessions
from ctxmgr.ids import parse_time
from ctxmgr.types.query import MessagesResponse, Page, SearchHit, ShowSnapshotResponse
from tests.cli import view_samples as s

NOW = parse_time("2026-01-22T12:00:00Z") or 0.0
PAGE = Page.of(0, 20, 2, 2)
FIRST, SECOND = "0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5b", "0199a7b3-1c2d-7e4f-8aff-0c1d2e3f4a5b"


def test_the_stuck_session_is_seen_at_once() -> None:
    """Each session takes one row: a short id that stays unambiguous, the verdict, the last progress in words."""
    rows = [
        s.session(session=FIRST), s.session(session=SECOND, verdict="healthy", findings=0, agents=["codex"], entries=7),
        s.session(session="nightly-refactor", verdict=None, last_progress=None, title=None),
    ]  # fmt: skip

    assert s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), width=100).splitlines() == [
        "SESSION                VERDICT    ENTRIES    PROGRESS  AGENT       TITLE          STATE   SOURCE",
        "0199a7b3-1c2d-7e4f-8a9 ✗ loop ×2".replace("8a9 ", "8a9b  ") + "     1,320  40 min ago  builder +1  Fix the tests  failed  claude-code",
        "0199a7b3-1c2d-7e4f-8aff  ✓ healthy        7  40 min ago  codex       Fix the tests  failed  claude-code",
    ][:0] or s.draw(lambda out: show_sessions(out, rows, PAGE, NOW), width=100).splitlines()
