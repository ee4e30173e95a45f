"""Detect a call that keeps returning one result, with other steps between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text.vocabulary import is_lookout, writes
from ctxmgr.types.finding import FindingKind

_LEAVE = 8
"""Steps without the call after which the agent has left it: other steps lie between by nature."""


class _Seen(NamedTuple):
    """Steps like the last one, newest last; ``edited`` says whether new content was written between."""

    steps: tuple[Step, ...]
    edited: bool


class InterleavedDetector(StepDetector):
    """Looks back for steps that asked the same and were answered the same.

    It looks no further than to the last sign that the world moved: a change made by the agent, a new answer to this
    question or to any other that was asked twice. Polls, waits and looks at shared state (a board, an inbox, a status)
    between other work are routine.

    An answer that says that it does not work is another matter: there the changes between are the attempts, and none of
    them helped. After three of those a warning is due. Only who writes new content between, as in fixing and testing, may
    need more tries.
    """

    kind: FindingKind = "interleaved"
    wake = Wake.REPEATED

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the call came back often enough."""
        if past and past[-1].query == step.query:
            return None  # neighbours are a repetition, or another answer
        seen = self._seen(step, past)
        warned, proved = self._needed(step, seen)
        count = len(seen.steps)
        if count < warned or self._is_round(step, past):
            return None
        facts = (("changedBetween", seen.edited),)
        return Sighting(
            self.kind, step.query, 1, seen.steps[-warned:], warned, 0.8 if count >= proved else 0.6,
            severity="loop" if count >= proved else "warn", leave=_LEAVE, facts=facts,
        )  # fmt: skip

    def _is_round(self, step: Step, past: Sequence[Step]) -> bool:
        """Whether the last steps ask what as many steps before them asked: then the round is the pattern, if any is."""
        asked = [each.query for each in past[-2 * self._settings.max_period :]] + [step.query]
        return any(asked[-period:] == asked[-2 * period : -period] for period in range(2, len(asked) // 2 + 1))

    def _needed(self, step: Step, seen: _Seen) -> tuple[int, int]:
        """Return how many steps make a warning, and how many a loop."""
        settings = self._settings.of(step.action)
        if step.falls_short and not seen.edited:
            return settings.futile_rounds, settings.futile_loop_rounds
        if step.failed:
            return settings.interleaved_loop_rounds, settings.interleaved_loop_rounds
        if step.falls_short:
            return settings.interleaved_loop_rounds, 2 * settings.interleaved_loop_rounds
        return settings.interleaved_rounds, settings.interleaved_loop_rounds

    def _seen(self, step: Step, past: Sequence[Step]) -> _Seen:
        """Return the steps like this one since anything moved, this one included."""
        settings = self._settings.of(step.action)
        if self._is_routine(step):
            return _Seen((step,), False)
        futile = step.falls_short
        seen, edited, pending = [step], False, False
        answers: dict[int, Step] = {step.query: step}
        for earlier in reversed(past[-settings.window :]):
            known = answers.setdefault(earlier.query, earlier)
            if earlier.query == step.query:
                if not earlier.same(step) or polling.is_patient(earlier, seen[-1], settings):
                    break
                seen.append(earlier)
                edited = edited or pending
            elif known is not earlier and (step.failed or not futile) and not known.same(earlier):
                break
            elif futile:
                # Writing counts only when it lies between two of the steps.
                pending = pending or (not earlier.failed and writes(earlier.first.start))
            elif not earlier.failed and earlier.meaning(settings.pollers) == "mutation":
                break
        return _Seen(tuple(seen[::-1]), edited)

    def _is_routine(self, step: Step) -> bool:
        settings = self._settings.of(step.action)
        if step.meaning(settings.pollers) in ("sleep", "paced", "poll", "gesture"):
            return True
        if step.transient or (not step.failed and step.meaning(settings.pollers) == "mutation"):
            return True
        return not step.failed and (step.waiting or is_lookout(step.first.start))

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the call brought this result since anything moved."""
        seen = self._seen(step, past)
        needed, count = self._needed(step, seen)[0], len(seen.steps)
        if past and past[-1].query == step.query:
            return Opinion(self.kind, excerpt(step), 0, needed, "the step before it was the same call: nothing lies between")
        if self._is_routine(step):
            return Opinion(self.kind, excerpt(step), 0, needed, "a wait, a change or a look at shared state")
        return Opinion(
            self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted since anything moved"
        )
