"""Find a call that keeps coming back with one result, other steps between, while nothing moves."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.detect import patience
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.vocabulary import is_lookout
from ctxmgr.types.finding import FindingKind

_LEAVE = 8
"""Steps without the call after which the agent has left it: other steps lie between by nature."""


class InterleavedDetector(StepDetector):
    """Looks back for steps that asked the same and were answered the same.

    It looks no further than to the last sign that the world moved: a change made by the agent, a new answer to this
    question or to any other that was asked twice. Polls, waits and looks at shared state (a board, an inbox, a status)
    between other work are routine.
    """

    kind: FindingKind = "interleaved"
    wake = Wake.AGAIN

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the call came back often enough."""
        if past and past[-1].query == step.query:
            return None  # neighbours are a repetition, or another answer
        seen = self._seen(step, past)
        settings = self._settings.of(step.action)
        needed = settings.interleaved_rounds
        if len(seen) < needed:
            return None
        proved = step.failed or len(seen) >= settings.interleaved_loop_rounds
        return Sighting(
            self.kind, step.query, 1, tuple(seen[-needed:]), needed, 0.8 if proved else 0.6,
            severity="loop" if proved else "warn", leave=_LEAVE,
        )  # fmt: skip

    def _seen(self, step: Step, past: Sequence[Step]) -> list[Step]:
        """Return the steps like this one since anything moved, oldest first, this one included."""
        settings = self._settings.of(step.action)
        if self._is_routine(step):
            return [step]
        seen = [step]
        answers: dict[int, Step] = {step.query: step}
        for earlier in reversed(past[-settings.window :]):
            known = answers.setdefault(earlier.query, earlier)
            if earlier.query == step.query:
                if not earlier.same(step) or patience.is_patient(earlier, seen[-1], settings):
                    break
                seen.append(earlier)
            elif known is not earlier and not known.same(earlier):
                break
            elif not earlier.failed and earlier.meaning(settings.pollers) == "mutation":
                break
        return seen[::-1]

    def _is_routine(self, step: Step) -> bool:
        settings = self._settings.of(step.action)
        if step.meaning(settings.pollers) in ("sleep", "paced", "poll", "gesture", "mutation"):
            return True
        return not step.failed and (step.waiting or is_lookout(step.first.start))

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the call brought this result since anything moved."""
        needed = self._settings.of(step.action).interleaved_rounds
        if past and past[-1].query == step.query:
            return Opinion(self.kind, excerpt(step), 0, needed, "the step before it was the same call: nothing lies between")
        if self._is_routine(step):
            return Opinion(self.kind, excerpt(step), 0, needed, "a wait, a change or a look at shared state")
        count = len(self._seen(step, past))
        return Opinion(self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted since anything moved")
