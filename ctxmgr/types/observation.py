"""One observation: what a detector is shown, in log order.

A plain slotted dataclass, because detectors see every record of a history and pydantic would cost more than they do.
Only who makes one changes it, but it is not ``frozen``: to make one would take ten times as long, more than most
detectors take.
"""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.light_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The last entry of a session that had succeeded by some moment; `ctxmgr.detect.monitor.progress_of` says what that means.

    ``id`` and ``index`` are the entry's, ``at`` is the time of its result in seconds since 1970 (None: it has none).
    """

    id: str
    index: int | None
    at: float | None


@dataclass(slots=True)
class Observation:
    """Something that happened in a session.

    ``kind`` is ``start`` (an entry began), ``finish`` (an entry got its result; the entry's own fields are repeated),
    ``event``, or ``end`` (a process ended its session). An entry recorded together with its result is shown as a start
    followed by a finish.

    Attributes:
        seq: place in the log, growing, not dense.
        id: id of the entry or event ("" for ``end``).
        index: the entry's dense 0-based place in its session, None for events.
        at: seconds since 1970, or None when the record has no usable timestamp.
        turn: one human turn; step: entries with the same step were issued together in one model response.
        status: of a finish: ok, error, denied or interrupted.
        error: the ``error`` object of the result (``type``, ``message``) or None.
        type: of an event: its type; ``data`` its payload.
        meta: the entry's ``meta`` object or None.
        task: the entry's ``task``: what it was an attempt at.
        progress: what the session had last achieved when this happened; the monitor notes it.
    """

    kind: Literal["start", "finish", "event", "end"]
    seq: int
    id: str
    session: str
    index: int | None = None
    process: str | None = None
    agent: str | None = None
    at: float | None = None
    turn: str | int | None = None
    step: str | int | None = None
    parent: str | None = None
    action: str = ""
    input_type: str | None = None
    input: Any = None
    status: str | None = None
    output: Any = None
    error: dict[str, Any] | None = None
    duration_ms: float | None = None
    timeout_ms: float | None = None
    type: str | None = None
    data: Any = None
    meta: Any = None
    task: str | None = None
    progress: Progress | None = None
