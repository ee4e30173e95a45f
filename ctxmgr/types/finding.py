"""The input of detectors (`Observation`), their output (`Finding`), and the cause of failing calls (`Diagnosis`).

An observation is a plain dataclass with slots, because detectors see every record of a history and pydantic would cost more
than they do. It is not ``frozen``, because that would make it ten times as slow to build. Only its maker changes it.
"""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.types.base import Shape, Text

# Part of the JSON and of what is stored, so the names only ever gain members.
FindingKind = Literal[
    "repetition", "cycle", "errorRepetition", "interleaved", "stagnation", "nearDuplicate", "trivialChange",
    "unknownTool", "denied", "monologue", "chanting", "contextLoop", "escalatingFailure", "editRevert",
    "recoveryLoop", "pingPong", "hung",
]  # fmt: skip
Severity = Literal["warn", "loop", "hung"]
# A session may go in circles in one agent and hang in another: neither hides the other.
Verdict = Literal["healthy", "warn", "loop", "hung", "loop+hung"]


class Scope(Shape):
    """Whose actions were compared: loops are sought per agent and process (a null names all of them)."""

    agent: Text | None
    process: Text | None


class Finding(Shape):
    """One loop or stall with its evidence.

    Attributes:
        id: the same for the same finding in every replay of the same log.
        period: number of different steps in one round (1 for a repetition, 0 for a stall).
        count: number of rounds seen so far (of a stall: 1).
        first, last: record ids of the first and the last member.
        raised_at: id of the record at which the finding was raised (of a stall: the last record seen).
        resolved: what ended it (``progress``, ``user``, ``interrupt``, ``answered``: it stopped after a continuation about
            it, ``process``, ``end``: the run was passed to a person or, for a suspicion, ended with a farewell, ``retry``: a
            suspicion about an attempt that was made once more), or null while it lasts.
        members: ids of all entries of the loop in order (of more than 15,000 the first and the last 5,000 or more; ``count``
            still counts all); of a stall: the open calls.
        last_progress: id of the last successful entry before the loop began (of a stall: of the last successful
            result), or null.
        confidence: 0 to 1.
        reason: one sentence for a person.
        evidence: facts the reason rests on. Always ``identity`` (equal for the same loop in whatever rotation, the key of
            the attempt cap) and ``indexes`` {first, last, raisedAt, lastProgress, members}, the entries' places in the
            session; further keys per kind: of a loop ``steps`` [{action, inputType, input}] of one round and ``result``
            or ``error`` (excerpts of at most 300 characters), of an error repetition ``distinctInputs`` too, of a stall
            ``stalledSeconds``, ``limitSeconds``, ``ended`` (the log ends inside a call), ``openCalls``, and ``processGone``
            where a lock shows that its process was killed or crashed. Of anything but a
            stall also ``raised`` [{severity, id, index}]: the record that raised it, for each severity it reached. A
            warning that turns out to be a loop keeps its id and ``raisedAt`` and gets a second item there. Members that
            were said, not done, are events: they have no index and no ``steps``; ``said`` quotes them.
        diagnosis: why the calls fail and what to do next, where the record shows it; null where it does not, and of what is
            over. Only ``detect`` looks for it.
    """

    id: str
    kind: FindingKind
    severity: Severity
    period: int
    count: int
    first: Text
    last: Text
    raised_at: Text
    resolved: str | None
    members: list[Text]
    last_progress: Text | None
    scope: Scope
    confidence: float
    reason: Text
    # A table and no shape: each detector has facts of its own, and adds them without a change here.
    evidence: dict[str, Any]
    diagnosis: Diagnosis | None = None


class SessionVerdict(Shape):
    """The findings of one session; the verdict is about the unresolved ones.

    Attributes:
        notes: what is wrong though it is no finding, e.g. "12 failures in a row", "no action recorded".
        summary: the verdict in words: "healthy" only where there are no notes either.
        title, project: what the session calls itself, and the folder in which it worked; null where it does not tell.
    """

    session: Text
    verdict: Verdict
    findings: list[Finding]
    notes: list[Text] = []
    summary: Text = ""
    title: Text | None = None
    project: Text | None = None


def verdict_summary(verdict: Verdict, notes: list[str]) -> str:
    """Return a verdict in words."""
    # Healthy is said only where nothing is wrong (ruling 28).
    return ", ".join(["no loop found" if verdict == "healthy" and notes else verdict, *notes])


def find_verdict(findings: list[Finding], *, ever: bool = False) -> Verdict:
    """Return the verdict for the unresolved findings; with ``ever`` for all findings."""
    severities = {finding.severity for finding in findings if ever or finding.resolved is None}
    if {"loop", "hung"} <= severities:
        return "loop+hung"
    for severity in ("loop", "hung", "warn"):  # the most severe first
        if severity in severities:
            return severity
    return "healthy"


@dataclass(frozen=True, slots=True)
class Progress:
    """The last entry of a session that had succeeded by some moment; `ctxmgr.detect.monitor.read_progress` defines that.

    ``id`` and ``index`` are the entry's, ``at`` is the time of its result in seconds since 1970 (None: it has none).
    """

    id: str
    index: int | None
    at: float | None


# The order of the fields is part of the contract: `ctxmgr.detect.replay` gives them by place, which is much faster.
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
    # Noted as it happens: what detectors still remember is emptied by a message of a person, and this must outlast it.
    progress: Progress | None = None


Confidence = Literal["high", "medium", "low"]


class Quote(Shape):
    """Recorded text that a diagnosis rests on.

    Attributes:
        entry: id of the entry, or null where the text is a message.
        source: where the text is from, in words for a reader: "your Read of app.py at 12:03". No id, no index.
        text: what was recorded, cut to 300 characters, without control characters; lines are kept.
    """

    entry: Text | None
    source: Text
    text: Text

    @property
    def key(self) -> str:
        """What tells its record from others: the id of the entry; for a message its source."""
        return self.entry or self.source


class Diagnosis(Shape):
    """One cause that the record supports.

    Attributes:
        kind: the failure class, see ``ctxmgr.diagnose.CLASSES``; ``unknown`` for the contrast.
        cause: one or two sentences in the second person that quote the record.
        evidence: what the cause rests on.
        next_step: one action that was not tried yet. What only recorded output says is never an order here: it is
            named as what the output says.
        check: what to look at after the next step, or null.
        confidence: ``high`` where the record shows the cause itself, ``medium`` where it is concluded from several records,
            ``low`` where it is the best guess.
    """

    kind: str
    cause: Text
    # A cause is stated only where the record shows it, so each comes with what it rests on.
    evidence: tuple[Quote, ...]
    next_step: Text
    check: Text | None
    confidence: Confidence
