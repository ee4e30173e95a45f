"""Detect rounds of two or more steps that repeat with the same results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.types.finding import FindingKind


class CycleDetector(StepDetector):
    """Keeps, for each period, how many steps in a row equal the one that many steps before.

    The state is that list of counters; it is empty while the question of the last step was new.
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
        if self.state and self.state[1] >= self._settings.max_period and past[-1].query == query and step.same(past[-1]):
            return None  # still the one step: the counters say so already
        runs = self.state or (0,) * (self._settings.max_period + 1)
        counts = [0] * (self._settings.max_period + 1)
        for period in range(1, longest + 1):
            earlier = past[-period]
            if earlier.query == query and step.same(earlier):
                counts[period] = runs[period] + 1
        self.state = tuple(counts)
        if counts[1] >= self._settings.max_period:
            return None  # one step over and over: no longer round is made of different ones
        rounds = self._settings.cycle_rounds
        for period in range(2, longest + 1):
            if counts[period] >= period * (rounds - 1):
                sighting = self._sighting(period, (*past[len(past) - period * rounds + 1 :], step))
                if sighting is not None:
                    return sighting
        return None

    def _sighting(self, period: int, steps: tuple[Step, ...]) -> Sighting | None:
        round_ = steps[-period:]
        queries = [step.query for step in round_]
        # A round whose questions have a shorter period differs only in its answers, and an answer that changes is
        # news, even when it swings to and fro.
        for shorter in range(1, period):
            if period % shorter == 0 and queries == queries[shorter:] + queries[:shorter]:
                return None
        if polling.is_paced(round_, self._settings) or self._polls(round_):
            return None
        return Sighting("cycle", tuple(sorted(queries)), period, steps, self._settings.cycle_rounds, 0.95)

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
        counts: tuple[int, ...] = self.state or ()
        fits = [(count / period, period) for period, count in enumerate(counts) if period >= 2 and count]
        if not fits:
            return Opinion(self.kind, excerpt(step), 0, rounds, f"no round of 2 to {self._settings.max_period} steps came back")
        seen, period = max(fits, key=lambda fit: (fit[0], -fit[1]))
        count = int(seen) + 1
        why = f"period {period}: " + ("seen" if count >= rounds else f"{rounds - count} more rounds wanted")
        return Opinion(self.kind, excerpt(step), count, rounds, why)

    def reset(self) -> None:
        """Forget all counters."""
        self.state: tuple[int, ...] = ()
