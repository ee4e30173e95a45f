"""Detect rounds of two or more steps that repeat with the same results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text.fingerprints import blur, blur_numbers
from ctxmgr.detect.text.vocabulary import tells_trouble
from ctxmgr.types.finding import FindingKind

_SLACK, _MOST = 24, 4_000
"""Characters by which answers that are alike may differ in length, and characters of each that are compared."""


class _Counts(NamedTuple):
    """For each period, how many steps in a row equal the one that many steps before, and how many are like it."""

    same: tuple[int, ...]
    alike: tuple[int, ...]


class CycleDetector(StepDetector):
    """Keeps, for each period, how many steps in a row equal the one that many steps before; nothing while a question is new.

    Answers that differ in times, ids and numbers alone are alike. Numbers may be progress, so twice as many rounds are
    wanted of these, in which one act is done over and over with one outcome, and the trouble is still told.
    """

    kind: FindingKind = "cycle"
    wake = Wake.NEAR

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when a round has just been completed or continued after its last needed repeat."""
        longest = min(self._settings.max_period, len(past))
        query = step.query
        for earlier in past[len(past) - longest :]:
            if earlier.query == query:
                break
        else:
            self.state = ()
            return None
        if polling.is_patient(past[-1], step, self._settings) and not polling.is_poll_only(past[-1], step, self._settings):
            self.state = ()
            return None
        if self.state and self.state.same[1] >= self._settings.max_period and past[-1].query == query and step.same(past[-1]):
            return None  # still the one step: the counters say so already
        counts = self._count(step, past[len(past) - longest :])
        if counts.same[1] >= self._settings.max_period:
            return None  # one step over and over: no longer round is made of different ones
        rounds = self._settings.cycle_rounds
        for period in range(2, longest + 1):
            for count, needed in ((counts.same[period], rounds), (counts.alike[period], 2 * rounds)):
                if count >= period * (needed - 1):
                    sighting = self._sighting(period, (*past[len(past) - period * needed + 1 :], step), needed)
                    if sighting is not None:
                        return sighting
        return None

    def _count(self, step: Step, past: Sequence[Step]) -> _Counts:
        size = self._settings.max_period + 1
        old: _Counts = self.state or _Counts((0,) * size, (0,) * size)
        same: list[int] = [0] * size
        alike: list[int] = [0] * size
        for period in range(1, len(past) + 1):
            earlier = past[-period]
            if earlier.query != step.query:
                continue
            if step.same(earlier):
                same[period] = old.same[period] + 1
            if same[period] or _is_alike(step, earlier):
                alike[period] = old.alike[period] + 1
        self.state = _Counts(tuple(same), tuple(alike))
        return self.state

    def _sighting(self, period: int, steps: tuple[Step, ...], rounds: int) -> Sighting | None:
        round_ = steps[-period:]
        queries = [step.query for step in round_]
        # A round whose questions have a shorter period differs only in its answers, and an answer that changes is
        # news, even when it swings to and fro.
        for shorter in range(1, period):
            if period % shorter == 0 and queries == queries[shorter:] + queries[:shorter]:
                return None
        if polling.is_paced(round_, self._settings) or self._polls(round_):
            return None
        if rounds > self._settings.cycle_rounds and not self._is_futile(round_, steps):
            return None
        sure = 0.95 if rounds == self._settings.cycle_rounds else 0.75
        return Sighting("cycle", tuple(sorted(queries)), period, steps, rounds, sure)

    def _is_futile(self, round_: Sequence[Step], steps: Sequence[Step]) -> bool:
        """Whether one act of the round had the same outcome each time, and an answer tells of trouble in the last round."""
        acts = [step for step in round_ if step.meaning(self._settings.pollers) in ("mutation", "other")]
        constant = any(all(step.same(other) for other in steps if other.query == step.query) for step in acts)
        return constant and any(step.failed or tells_trouble(step.answer()) for step in round_)

    def _polls(self, round_: Sequence[Step]) -> bool:
        """Whether at least half of a round asks after something under way, and time is given for it to change.

        One look at a thing that is pending, in a round of other questions, does not make the round a poll.
        """
        waiting = [step for step in round_ if polling.waits(step, self._settings)]
        if 2 * len(waiting) < len(round_):
            return False
        return any(polling.is_poll_only(before, step, self._settings) for before, step in pairwise(round_) if step in waiting)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say which period fits best, and how many rounds of it were seen."""
        rounds = self._settings.cycle_rounds
        counts: tuple[int, ...] = self.state.same if self.state else ()
        fits = [(count / period, period) for period, count in enumerate(counts) if period >= 2 and count]
        if not fits:
            return Opinion(self.kind, excerpt(step), 0, rounds, f"no round of 2 to {self._settings.max_period} steps came back")
        seen, period = max(fits, key=lambda fit: (fit[0], -fit[1]))
        count = int(seen) + 1
        why = f"period {period}: " + ("seen" if count >= rounds else f"{rounds - count} more rounds wanted")
        return Opinion(self.kind, excerpt(step), count, rounds, why)

    def reset(self) -> None:
        """Forget all counters."""
        self.state: _Counts | tuple[()] = ()


def _is_alike(step: Step, other: Step) -> bool:
    """Whether two answers to one question differ in times, ids and numbers alone."""
    if step.failed != other.failed or len(step.calls) > 1 or len(other.calls) > 1 or step.first.finish is None:
        return False
    one, two = step.answer(), other.answer()
    return -_SLACK <= len(one) - len(two) <= _SLACK and _plain(one) == _plain(two)


def _plain(text: str) -> str:
    return blur_numbers(blur(text[:_MOST], ids=True))
