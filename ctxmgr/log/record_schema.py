"""The records of log format 1: every kind, its fields, and their types (design section 4).

This is the only table of the format. `ctxmgr.types.record` checks records by it, `ctxmgr.types.record_models` builds the models
of ``ctxmgr schema record`` from it, and tests compare the rows of the store and the entry view with it. Unknown kinds and
fields are kept unchanged.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    FieldType = Literal["text", "texts", "count", "number", "json", "status", "outcome", "error"]

STATUSES = ("ok", "error", "denied", "interrupted")
OUTCOMES = ("completed", "failed", "cancelled")


class Field:
    """The type of one field.

    Attributes:
        holds: ``text``; ``texts``, a list of texts; ``count``, a text or a whole number; ``number``; ``json``, any value;
            ``status`` and ``outcome``, one of `STATUSES` or `OUTCOMES`; ``error``, an object with ``type`` and ``message``.
        required: whether a record without the field is invalid.
        filled: whether the text must not be empty. Such a field is required too.
    """

    __slots__ = ("filled", "holds", "required")

    def __init__(self, holds: FieldType = "text", *, required: bool = False, filled: bool = False) -> None:
        self.holds, self.required, self.filled = holds, required or filled, filled


def _required_field(holds: FieldType = "text") -> Field:
    return Field(holds, required=True)


_TEXT, _ID = Field(), Field(filled=True)

COMMON = {"kind": _ID, "session": _ID, "ts": _TEXT}
"""Fields of every kind, after the version ``v``, which is 1."""

RECORDS: dict[str, dict[str, Field]] = {
    "session": {"process": _TEXT, "workflow": _TEXT, "source": Field("json"), "meta": Field("json")},
    "entry": {
        "id": _ID,
        "agent": _required_field(),
        "action": _required_field(),
        "inputType": _TEXT,
        "input": Field("json"),
        "process": _TEXT,
        "turn": Field("count"),
        "step": Field("count"),
        "parent": _TEXT,
        "task": _TEXT,
        "timeoutMs": Field("number"),
        "status": Field("status"),
        "output": Field("json"),
        "error": Field("error"),
        "durationMs": Field("number"),
        "usage": Field("json"),
        "meta": Field("json"),
    },
    "result": {
        "entry": _ID,
        "status": _required_field("status"),
        "output": Field("json"),
        "error": Field("error"),
        "durationMs": Field("number"),
        "usage": Field("json"),
        "meta": Field("json"),
    },
    "event": {"id": _ID, "type": _ID, "entry": _TEXT, "agent": _TEXT, "data": Field("json")},
    "note": {
        "id": _ID,
        "entries": _required_field("texts"),
        "content": _ID,
        "tags": Field("texts"),
        "links": Field("json"),
        "author": _TEXT,
        "supersedes": _TEXT,
    },
    "snapshot": {
        "id": _ID,
        "entries": _required_field("texts"),
        "summary": _required_field(),
        "reasoning": _required_field(),
        "hash": _required_field(),
    },
    "continuation": {"id": _ID},
    "sessionEnd": {"outcome": _required_field("outcome"), "process": _TEXT},
}
"""The fields of each kind in addition to `COMMON`, in the order in which they are written."""
