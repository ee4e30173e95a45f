"""Whose decision is missing, and whose is not."""

from __future__ import annotations

from ctxmgr.diagnose import contrast, diagnose
from tests.diagnose.build import Call, evidence


def test_whoever_a_ticket_is_assigned_to_decides_nothing() -> None:
    """An open ticket that a rule opens again waits for nobody's decision; the rule is named."""
    history = {"items": [{"by": "rule-bot", "change": "Closed -> Open", "rule": "R-14 parent follows children"}]}
    look = Call("ticket.get", {"key": "HELP-2080"}, {"key": "HELP-2080", "status": "Open", "assignee": "deskbot"})
    close = Call("ticket.close", {"key": "HELP-2080"}, {"ok": True})
    known = evidence(look, close, look, Call("ticket.history", {"key": "HELP-2080"}, history), close, look, found=False)
    told = contrast(known)

    assert diagnose(known) is None
    assert told is not None
    assert "`R-14`" in told.next_step
    assert "ask that one" not in told.next_step
