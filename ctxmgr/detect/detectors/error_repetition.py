"""Detect one error that keeps coming back while the input varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.types.finding import FindingKind

_MAX_STREAKS = 16


class _Streak(NamedTuple):
    """Failures with one error since the world last changed: all of them, and those no success lies between."""

    failures: tuple[Step, ...]
    unbroken: tuple[Step, ...]
    gap: float | None


class ErrorRepetitionDetector(StepDetector):
    """Keeps a streak for each error; the first one has no name yet (None), for most come alone.

    Two rules. One call that fails with one error three times, with nothing between that could have changed it (reading
    does not, editing does). And one *specific* error under varying calls: four times in a row are a suspicion, for whoever
    varies a call tries something; the fifth proves that it does not help. "Exit code 1" is not specific, and what the
    infrastructure does (rate limits, time-outs) is not the agent's doing.
    """

    kind: FindingKind = "errorRepetition"
    wake = Wake.FAILED

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the step's error has come back often enough."""
        if not step.failed:
            if self.state:
                self.state = self._after_success(step)
            return None
        if step.first.finish is not None and step.first.finish.status == "denied":
            return None  # a refusal is an answer by a person or a rule, not a failure of the call
        if not self.state:
            self.state = {None: _Streak((step,), (step,), None)}
            return None
        self._name()
        core = fingerprints.error_core(step.first.error())
        streak = self._extended(core, step, past)
        streaks = {error: self._without_query(other, step) for error, other in self.state.items() if error != core}
        while len(streaks) >= _MAX_STREAKS:
            del streaks[next(iter(streaks))]
        streaks[core] = streak
        self.state = streaks
        return self._sighting(core, streak, past)

    def _name(self) -> None:
        """Find out which error the one failure had that came when no other was remembered; mostly nobody asks."""
        alone = self.state.get(None)
        if alone is not None:
            self.state = {fingerprints.error_core(alone.failures[-1].first.error()): alone}

    def _extended(self, core: str, step: Step, past: Sequence[Step]) -> _Streak:
        old = self.state.get(core)
        if old is None or step.number - old.failures[-1].number > self._settings.error_gap:
            return _Streak((step,), (step,), None)
        last = old.failures[-1]
        gap = polling.gap(last, step)
        if polling.is_patient(past[-1] if past else last, step, self._settings) or polling.backs_off(old.gap, gap, step):
            return _Streak((step,), (step,), gap)
        keep = self._settings.window
        return _Streak((*old.failures, step)[-keep:], (*old.unbroken, step)[-keep:], gap)

    @staticmethod
    def _without_query(streak: _Streak, step: Step) -> _Streak:
        """Return the streak without a call that failed differently now: that is a new answer to it."""
        if any(failure.query == step.query for failure in streak.failures[:-1]):
            failures = tuple(failure for failure in streak.failures if failure.query != step.query)
            return streak._replace(failures=failures or streak.failures[-1:])
        return streak

    def _after_success(self, step: Step) -> dict[str | None, _Streak]:
        meaning = step.meaning(self._settings.pollers)
        if meaning in ("mutation", "other"):
            return {}
        if meaning == "sleep":
            return {error: streak for error, streak in self.state.items() if not streak.failures[-1].transient}
        kept: dict[str | None, _Streak] = {}
        for error, streak in self.state.items():
            failures = tuple(failure for failure in streak.failures if failure.query != step.query)
            if failures:
                tried = {failure.action for failure in streak.unbroken}
                unbroken = () if step.action in tried else streak.unbroken
                kept[error] = streak._replace(failures=failures, unbroken=unbroken)
        return kept

    def _sighting(self, core: str, streak: _Streak, past: Sequence[Step]) -> Sighting | None:
        step = streak.failures[-1]
        settings = self._settings.of(step.action)
        same = tuple(failure for failure in streak.failures if failure.query == step.query)
        transient = step.transient
        untimed = transient and step.started is None
        needed = settings.transient_rounds if untimed else settings.error_same_rounds
        if len(same) >= needed and not _is_round(same, past):
            return Sighting("errorRepetition", core, 1, same[-needed:], needed, 0.9, core)
        tried = len({failure.query for failure in streak.unbroken})
        needed = settings.transient_rounds if transient else settings.error_varied_rounds
        if len(streak.unbroken) < needed or tried < 3 or not fingerprints.is_specific(core):
            return None
        proved = transient or len(streak.unbroken) >= settings.error_varied_loop_rounds
        return Sighting(
            "errorRepetition", core, 1, streak.unbroken[-needed:], needed, 0.8 if proved else 0.6, core,
            severity="loop" if proved else "warn",
        )  # fmt: skip

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often this error came, from this call or from any."""
        settings = self._settings.of(step.action)
        if not step.failed:
            return Opinion(self.kind, excerpt(step), 0, settings.error_same_rounds, "it did not fail")
        self._name()
        core = fingerprints.error_core(step.first.error())
        streak = self.state.get(core)
        if streak is None:
            return Opinion(self.kind, fingerprints.one_line(core), 0, settings.error_same_rounds, "a refusal, not a failure")
        same = sum(failure.query == step.query for failure in streak.failures)
        count, needed, why = same, settings.error_same_rounds, "more failures of this call wanted"
        if len(streak.unbroken) > same:
            count, needed = len(streak.unbroken), settings.error_varied_rounds
            why = "more failures wanted" if fingerprints.is_specific(core) else "the error says too little to be one cause"
        return Opinion(
            self.kind, fingerprints.one_line(core), count, needed, "seen" if self._sighting(core, streak, past) else why
        )

    def reset(self) -> None:
        """Forget all streaks."""
        self.state: dict[str | None, _Streak] = {}


def _is_round(same: tuple[Step, ...], past: Sequence[Step]) -> bool:
    """Whether what lies between the last failures repeats as well: then the round is the pattern, not the error."""
    length = same[-1].number - same[-2].number
    if length < 2 or len(past) < 2 * length - 1:
        return False
    return all(past[-place].query == past[-place - length].query for place in range(1, length))
