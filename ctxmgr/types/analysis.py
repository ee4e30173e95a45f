"""Requests and responses of ``sql``, ``stats`` and ``backtest``."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Json, Shape, Text
from ctxmgr.types.finding import FindingKind, Severity
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER
from ctxmgr.types.view import EntryStatus

StatsKey = Literal["action", "agent", "model", "day", "session", "status"]


class SqlRequest(Shape):
    """One reading statement over the views; ``values`` stand in the place of its ``?``.

    ``limit`` is the most rows, ``seconds`` the longest that it may take.
    """

    query: Text
    values: list[Json] = []
    limit: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    seconds: Annotated[float, Field(ge=0, le=3_600)] = 30.0


class SqlResponse(Shape):
    """What a query found: the names of the columns, each once, and the rows.

    ``more`` says that there are rows beyond the limit, ``stopped`` why the query was ended before its time.
    """

    columns: list[Text]
    rows: list[list[Json]]
    more: bool = False
    stopped: Text = ""


class SqlView(Shape):
    """A view that a query may name, and its columns."""

    view: Text
    columns: list[Text]


class StatsRequest(Shape):
    """What calls cost, by one thing; ``session`` null means all sessions of the store."""

    by: StatsKey = "action"
    session: Text | None = None
    action: list[Text] = []
    agent: list[Text] = []
    model: list[Text] = []
    status: list[EntryStatus] = []
    since: str | None = None
    until: str | None = None


class StatsRow(Shape):
    """What the calls of one action, agent, model, day, session or status came to.

    Attributes:
        key: the action, agent, or whatever was asked for; null where it is not recorded.
        calls: their number; ``open`` of them have no result.
        failed: calls that ended in an error, were denied or interrupted.
        input_tokens, output_tokens: of the model's answers; those of an answer with several calls are shared equally among
            them. Null where the log tells none.
        seconds: spent in the calls; null where the log tells none.
    """

    key: Text | None
    calls: int
    failed: int
    open: int
    input_tokens: int | None
    output_tokens: int | None
    seconds: float | None


class StatsResponse(Shape):
    """A row for each key, those with the most calls first, days in their order; ``total`` adds all of them up."""

    by: StatsKey
    rows: list[StatsRow]
    total: StatsRow


class Label(Shape):
    """What is known about one session. Members that are not named here are ignored.

    Attributes:
        session: its id in the logs.
        loop: whether it goes in circles or hangs; null is not scored.
        pattern: what kind of loop, in the labeller's words; only for the table by pattern.
        period: steps of one round.
        onset: where the loop begins: a record id, or the index of an entry.
        third_iteration: id of the record that completes the third round; an alarm there is in time.
        eval: of a healthy session, ``streaming``: it must never raise an alarm; ``final``: none may stand at its end.
        now: seconds after the session's first timestamp at which stalls are judged; null: the log is all there is.
    """

    ignores_unknown = True

    session: Text
    loop: bool | None = None
    pattern: Text | None = None
    period: int | None = None
    onset: Text | int | None = None
    third_iteration: Text | None = None
    eval: Literal["streaming", "final"] | None = None
    now: float | None = None


class Score(Shape):
    """A confusion table and what follows from it.

    A measure that would divide by zero is null: precision without any alarm, recall without any loop, MCC when a row or
    column of the table is empty.
    """

    rule: str
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    mcc: float | None = None

    def model_check(self) -> None:
        """Derive the measures.

        Raises:
            ValueError: a number of alarms below 0, or too large to divide by.
        """
        tp, fp, fn, tn = self.true_positives, self.false_positives, self.false_negatives, self.true_negatives
        if not all(0 <= number <= MAX_EXACT_INTEGER for number in (tp, fp, fn, tn)):
            raise ValueError(f"counts of alarms are 0 to {MAX_EXACT_INTEGER:,}")
        product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
        derived = {
            "precision": _ratio(tp, tp + fp),
            "recall": _ratio(tp, tp + fn),
            "f1": _ratio(2 * tp, 2 * tp + fp + fn),
            "mcc": (tp * tn - fp * fn) / product**0.5 if product else None,
        }
        for name, value in derived.items():  # a shape is frozen; this is the one place where it is still being made
            object.__setattr__(self, name, None if value is None else round(value, 4))


class Alarm(Shape):
    """An alarm on a session that is labelled healthy."""

    session: Text
    finding: str
    kind: FindingKind
    severity: Severity
    raised_at: Text
    resolved: str | None
    reason: Text


class MissedLoop(Shape):
    """A loop or stall without an alarm; ``warned`` says whether there was at least a warning."""

    session: Text
    pattern: Text | None
    period: int | None
    warned: bool


class PatternCount(Shape):
    """How many of the loops with one pattern were found."""

    pattern: Text | None
    found: int
    of: int


class Distance(Shape):
    """A labelled place and the place that the detectors gave, ``entries`` later (negative: earlier)."""

    session: Text
    labelled: Text | int
    given: Text
    entries: int


class Distances(Shape):
    """How far the detectors were off.

    Attributes:
        measured: found loops that have this label.
        good: those with no error (of an onset), or in time (of the third iteration).
        median, largest: of the distances in entries; of onsets, regardless of their sign.
        off: those that are not good.
    """

    measured: int
    good: int
    median: float | None
    largest: int | None
    off: list[Distance]


class Backtest(Shape):
    """How well the detectors, and rules that need none, tell the labelled sessions apart.

    Attributes:
        scored: labelled sessions that were judged; loops and healthy: how many of them are labelled so.
        ignored: sessions whose label is null.
        absent: labelled sessions that no log holds.
        unlabelled: sessions of the logs that no label names.
        detectors: the score of the detectors.
        baselines: ``always`` and ``never`` alarm, and alarm on sessions ``longer`` than the median.
        rules: one call or message three times in a row; A-B-A-B; one call or message three times anywhere.
        false_alarms: one for each healthy session that counts as one; missed: loops without an alarm.
        warned: healthy sessions with a finding that does not count as a false alarm: a warning, or, judged at the end, an
            alarm that is resolved.
        patterns: recall by pattern.
        onset: where the loop began; delay: when it was raised, counted from its third iteration.
    """

    scored: int
    loops: int
    healthy: int
    ignored: int
    absent: list[Text]
    unlabelled: int
    detectors: Score
    baselines: list[Score]
    rules: list[Score]
    false_alarms: list[Alarm]
    missed: list[MissedLoop]
    warned: list[Text]
    patterns: list[PatternCount]
    onset: Distances
    delay: Distances


def _ratio(part: int, total: int) -> float | None:
    return part / total if total else None
