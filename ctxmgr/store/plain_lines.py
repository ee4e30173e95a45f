"""Decode ordinary lines by msgspec, into a shape whose types are the check of `ctxmgr.types.checking.is_plain`.

What it takes is JSON as `ctxmgr.wire` reads it, and a plain record: it refuses all that they refuse, and of what they take
lone surrogates, unknown members, and whatever is beside the plain shape.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

_Optional = str | None
_Filled = Annotated[str, msgspec.Meta(min_length=1)]
_Number = Annotated[float, msgspec.Meta(gt=-(2.0**53), lt=2.0**53)] | None


class Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An entry, a result or an event.

    Members of free form are decoded too: only so their JSON is looked at. One shape for all three, for of a kind that comes
    twice the last counts.
    """

    v: Literal[1]
    kind: Literal["entry", "result", "event"]
    session: _Filled
    ts: _Optional = None
    id: _Optional = None
    agent: _Optional = None
    action: _Optional = None
    inputType: _Optional = None  # noqa: N815  # as on the wire
    input: Any = None
    process: _Optional = None
    turn: str | int | None = None
    step: str | int | None = None
    parent: _Optional = None
    task: _Optional = None
    timeoutMs: _Number = None  # noqa: N815
    durationMs: _Number = None  # noqa: N815
    status: Literal["ok", "error", "denied", "interrupted"] | None = None
    output: Any = None
    error: Any = None
    usage: Any = None
    meta: Any = None
    entry: _Optional = None
    type: _Optional = None
    data: Any = None
    sum: str = ""


_decode = msgspec.json.Decoder(Plain).decode


def decoded(line: bytes) -> Plain | None:
    """Return the record of an ASCII line, or None, which says nothing; what its kind needs is still to be looked at."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
