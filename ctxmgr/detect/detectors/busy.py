"""Detect activity without progress: many calls, hardly anything new."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.types.finding import FindingKind


class BusyDetector(StepDetector):
    """Keeps the steps of the last while that asked what was asked before and were answered as before.

    Only a warning: runs that end well hold long grinds too, so the share of news alone proves nothing. An answer that
    differs from the last one to the same question is news, and polls and waits are not counted as work.
    """

    kind: FindingKind = "hung"
    wake = Wake.REPEATED
    watchful = False

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when nearly all of the last steps were old."""
        window = self._settings.busy_window
        old: tuple[Step, ...] = self.state or ()
        gone = 0
        while gone < len(old) and old[gone].number <= step.number - window:
            gone += 1
        old = old[gone:] if gone else old
        if not self._is_stale(step, past):
            self.state = old or None
            return None
        self.state = stale = (*old, step)
        if len(stale) < self._needed():
            return None
        facts = (("window", window), ("newSteps", window - len(stale)))
        return Sighting(
            self.kind, "busy", 1, stale[-self._needed() :], self._needed(), 0.5, severity="warn", leave=8, facts=facts
        )

    def _needed(self) -> int:
        window = self._settings.busy_window
        return max(1, round(window * (1 - self._settings.busy_novelty)))

    def _is_stale(self, step: Step, past: Sequence[Step]) -> bool:
        before = next((each for each in reversed(past) if each.query == step.query), None)
        if before is None or not step.same(before):
            return False
        return not polling.waits(step, self._settings) and not polling.is_patient(before, step, self._settings)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many of the last steps were old."""
        count = len(self.state or ())
        why = "seen" if count >= self._needed() else f"of the last {self._settings.busy_window} steps the others were new"
        return Opinion(self.kind, excerpt(step), count, self._needed(), why, "novelty")
