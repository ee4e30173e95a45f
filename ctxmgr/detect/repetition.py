"""Find a call that is repeated: same action, same input, same result, nothing else between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect import patience
from ctxmgr.detect.interface import Sighting
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Step
from ctxmgr.types.finding import FindingKind
from ctxmgr.types.observation import Observation


class _Run(NamedTuple):
    last: Step | None
    length: int
    gap: float | None


_NONE = _Run(None, 0, None)


class RepetitionDetector:
    """Counts how often the last step came back unchanged; patience and back-off start the count again."""

    kind: FindingKind = "repetition"

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state = _NONE

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when this is the third identical step in a row or a later one."""
        last, length, last_gap = self.state
        if last is None or last.query != step.query or not step.same(last):
            self.state = _Run(step, 1, None)
            return None
        gap = patience.gap(last, step)
        if patience.is_patient(last, step, self._settings) or patience.backs_off(last_gap, gap, step):
            self.state = _Run(step, 1, gap)
            return None
        length += 1
        self.state = _Run(step, length, gap)
        if length < self._settings.repeat_rounds:
            return None
        needed = patience.rounds_needed(step, self._settings)
        if length < needed:
            return None
        return Sighting("repetition", step.query, 1, (*past[len(past) - needed + 1 :], step), needed, 0.95)

    def hear(self, event: Observation) -> Sighting | None:
        """Events are no steps: what is said between two calls does not make them different."""
        return None

    def reset(self) -> None:
        """Forget the run."""
        self.state = _NONE
