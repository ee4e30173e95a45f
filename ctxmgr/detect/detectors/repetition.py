"""Detect a call that is repeated with the same input and result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.types.finding import FindingKind


class _Run(NamedTuple):
    """``first`` is set when the first was part of a parallel batch, ``foreseen`` when the answers of all others are."""

    length: int
    gap: float | None
    first: Step | None = None
    foreseen: bool = True


class RepetitionDetector(StepDetector):
    """Counts how often the last step came back unchanged; patience and back-off start the count again."""

    kind: FindingKind = "repetition"
    wake = Wake.NEXT | Wake.IN_BATCH

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when this is the third identical step in a row or a later one."""
        last = _before(step, past, alone=self.state is None)
        if last is None:
            self.state = None
            return None
        run: _Run = self.state or _Run(1, None, last if last is not past[-1] else None)
        settings = self._settings.of(step.action)
        gap = polling.gap(last, step)
        if polling.is_patient(last, step, settings) or polling.backs_off(run.gap, gap, step):
            self.state = _Run(1, gap)
            return None
        self.state = run = _Run(run.length + 1, gap, run.first, run.foreseen and step.foreseen)
        if run.length < settings.repeat_rounds:
            return None
        needed = polling.rounds_needed(step, settings, run.foreseen)
        if run.length < needed:
            return None
        steps = (*past[len(past) - needed + 1 :], step)
        if run.first is not None and run.length == needed:
            steps = (run.first, *steps[1:])
        return Sighting("repetition", step.query, 1, steps, needed, 0.95)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often this step came in a row, and what it was told apart by."""
        settings = self._settings.of(step.action)
        run: _Run = self.state or _Run(1, None)
        needed = polling.rounds_needed(step, settings, run.foreseen)
        last = past[-1] if past else None
        if run.length >= needed:
            why = "seen"
        elif last is None or last.query != step.query:
            why = "the step before it asked something else"
        elif not step.same(last):
            why = "the result is a new one"
        elif run.length == 1:
            why = "it waited since the step before: patience, not repetition"
        else:
            why = f"{needed - run.length} more wanted"
        return Opinion(self.kind, excerpt(step), run.length, needed, why)


def _before(step: Step, past: Sequence[Step], *, alone: bool) -> Step | None:
    """Return the step just before when it is the same: a whole step or, where a run begins, one call of a batch."""
    last = past[-1] if past else None
    if last is None:
        return None
    if last.query == step.query:
        return last if step.same(last) else None
    if not alone or len(last.calls) == 1 or len(step.calls) > 1:
        return None
    for call in last.calls:
        if call.query == step.query:
            one = Step((call,), last.number)
            return one if step.same(one) else None
    return None
