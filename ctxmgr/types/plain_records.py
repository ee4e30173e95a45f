"""Build the records of log format 1, and pages of them, without the model library.

A record travels as a plain dictionary with camelCase keys, so that unknown keys pass through untouched. The fields of each
kind are in `ctxmgr.log.record_schema`. Importers and tools make records with `build` alone.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.log.codec import Record

FORMAT_VERSION = 1

MAX_EXACT_INTEGER = 2**53
"""Whole numbers up to this one are exact in every reader of JSON, also in those whose numbers are floats."""
MAX_STORED_INTEGER = 2**63
"""Whole numbers below this one, either way, fit into an integer of SQLite and of PostgreSQL."""
MAX_TIMEOUT_MS = 1e12
"""Milliseconds of the longest limit of a call, more than 30 years; a larger figure is none, or is in another unit."""

MESSAGE_TYPES = (
    "user_message", "user_message_chunk", "message", "agent_message_chunk", "thought", "agent_thought_chunk",
    "nudge", "interrupt", "compaction", "error",
)  # fmt: skip
"""Event types that carry something said; the messages tool pages through these."""


def make_page(offset: int, limit: int, shown: int, total: int, exact: bool = True) -> dict[str, Any]:
    """Return the page that shows ``shown`` of ``total`` rows from ``offset`` on, as JSON has it."""
    more = offset + shown < total and shown > 0  # an empty page has no next one, even if the total is an estimate
    return {
        "offset": offset, "limit": limit, "hasMore": more, "nextOffset": offset + shown if more else None, "total": total,
        "totalIsExact": exact,
    }  # fmt: skip


def build(kind: str, session: str, ts: str | None, **fields: Any) -> Record:
    """Return a record with ``v`` and ``kind`` first; fields that are None are left out.

    Field names are given as on the wire (camelCase).
    """
    record: Record = {"v": FORMAT_VERSION, "kind": kind, "session": session}
    if ts is not None:
        record["ts"] = ts
    for name, value in fields.items():
        if value is not None:
            record[name] = value
    return record
