"""Find a call that is repeated: same action, same input, same result, nothing else between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect import patience
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.types.finding import FindingKind


class _Run(NamedTuple):
    length: int
    gap: float | None


class RepetitionDetector(StepDetector):
    """Counts how often the last step came back unchanged; patience and back-off start the count again."""

    kind: FindingKind = "repetition"
    wake = Wake.AGAIN

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when this is the third identical step in a row or a later one."""
        last = past[-1] if past else None
        if last is None or last.query != step.query or not step.same(last):
            self.state = None
            return None
        run: _Run = self.state or _Run(1, None)
        settings = self._settings.of(step.action)
        gap = patience.gap(last, step)
        if patience.is_patient(last, step, settings) or patience.backs_off(run.gap, gap, step):
            self.state = _Run(1, gap)
            return None
        self.state = run = _Run(run.length + 1, gap)
        if run.length < settings.repeat_rounds:
            return None
        needed = patience.rounds_needed(step, settings)
        if run.length < needed:
            return None
        return Sighting("repetition", step.query, 1, (*past[len(past) - needed + 1 :], step), needed, 0.95)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often this step came in a row, and what it was told apart by."""
        settings = self._settings.of(step.action)
        needed = patience.rounds_needed(step, settings)
        run: _Run = self.state or _Run(1, None)
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
