"""Readers of a session's record, shared by all failure classes; begin with `session`, whose `Evidence` the classes judge."""

from __future__ import annotations

from ctxmgr.diagnose.evidence.session import (
    CHECKS,
    MOST_ENTRIES,
    By,
    Evidence,
    Message,
    call_key,
    clock,
    given,
    may_change,
    messages_of,
    program_of,
    started,
)

__all__ = [
    "CHECKS", "MOST_ENTRIES", "By", "Evidence", "Message", "call_key", "clock", "given", "may_change", "messages_of",
    "program_of", "started",
]  # fmt: skip
