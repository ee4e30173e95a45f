"""Detect an agent that does nothing but sleep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind

_SLEEP = lazy_pattern(r"\bsleep\s+([0-9]{1,7}(?:\.[0-9]{1,3})?)\s*([smh]?)\b", re.IGNORECASE)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Slept(NamedTuple):
    steps: tuple[Step, ...]
    seconds: float


class SleepBudgetDetector(StepDetector):
    """Adds up pauses in a row; a look at anything between them is what they were for."""

    kind: FindingKind = "hung"
    wake = Wake.SLEEP

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the agent has slept too often and too long without looking."""
        if step.failed or step.meaning(self._settings.pollers) != "sleep":
            self.state = None
            return None
        old: _Slept = self.state or _Slept((), 0.0)
        self.state = slept = _Slept((*old.steps, step)[-self._settings.window :], old.seconds + _seconds(step))
        rounds = self._settings.sleep_rounds
        if len(slept.steps) < rounds or slept.seconds < self._settings.sleep_seconds:
            return None
        facts = (("sleptSeconds", round(slept.seconds, 3)),)
        return Sighting(self.kind, "sleep", 1, slept.steps, len(slept.steps), 0.7, severity="hung", leave=1, facts=facts)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often and how long it slept without looking."""
        rounds = self._settings.sleep_rounds
        slept: _Slept | None = self.state
        if slept is None:
            return Opinion(self.kind, excerpt(step), 0, rounds, "it is no pause", "pauses")
        enough = len(slept.steps) >= rounds and slept.seconds >= self._settings.sleep_seconds
        why = "seen" if enough else f"{slept.seconds:.0f} of {self._settings.sleep_seconds:.0f} s slept"
        return Opinion(self.kind, excerpt(step), len(slept.steps), rounds, why, "pauses")


def _seconds(step: Step) -> float:
    """Return how long a pause took by the clock, else what it asked for."""
    if step.started is not None and step.ended is not None and step.ended > step.started:
        return step.ended - step.started
    given = step.first.start.input
    fields = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for key in ("seconds", "duration", "secs", "delay"):
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e7:
            return float(value)
    text = next(
        (str(fields[key])[:400] for key in ("command", "cmd", "script") if key in fields),
        str(given)[:400] if isinstance(given, str) else "",
    )
    return sum(float(amount) * _UNITS[unit.lower()] for amount, unit in _SLEEP.findall(text))
