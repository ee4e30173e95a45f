"""Count further rounds of an identical loop without running every detector.

Once a repetition or a cycle stands, each further round looks like the last one to every detector. What a detector
remembers of steps that repeat with a period is made of the last ``window`` rounds and of counters that have long passed
their thresholds, so it is enough to show it the last ``window`` rounds when something else happens at last. That is what
makes a step of a standing loop cost a comparison instead of the work of seven detectors, ten times as much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.detect.finding_lifecycle import OpenFinding
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import Observation

_MAX_KEPT = 4096
"""Steps that may have to be shown again. Where a wide window would need more, the loop is watched step by step."""


class FastForward:
    """The steps of a standing loop that the detectors were not shown yet.

    Attributes:
        case: the loop.
        count: how many steps it took.
    """

    def __init__(self, case: OpenFinding, past: Sequence[Step], settings: DetectSettings) -> None:
        self.case = case
        self.count = 0
        self._past = list(past)
        self._round = list(past[-case.period :])
        self._gap = _shortest_gap(settings, self._round)
        self._shown_again = rounds_kept(case, settings)
        self._window = settings.window
        self._kept: deque[tuple[Observation, Observation]] = deque(maxlen=self._shown_again + 2 * self._window)
        self._started, self._ended = past[-1].started, past[-1].ended

    def take(self, start: Observation, finish: Observation | None, world: int) -> bool:
        """Take one more step if it is the next of the round to the letter; return whether it is."""
        case = self.case
        model = self._round[self.count % len(self._round)]
        if finish is None or (case.answered and not case.back) or world != model.world or not repeats(model, start, finish):
            return False
        if not _follows(self._started, self._ended, start.at, finish.at, self._gap):
            return False
        self._started, self._ended = start.at, finish.at
        self._kept.append((start, finish))
        self.count += 1
        case.go_on(start)
        return True

    @property
    def last(self) -> Step:
        """A step like the newest one."""
        return self._round[(self.count - 1) % len(self._round)]

    def unseen(self) -> tuple[list[Step], list[Step]]:
        """Return the steps that the detectors are to be shown now, and those before them, oldest first."""
        steps = self._steps()
        shown = min(self.count, self._shown_again)
        cut = len(steps) - shown
        return steps[cut:], steps[:cut]

    def past(self, steps: Sequence[Step]) -> list[Step]:
        """Return the past as the scope would hold it now, had it taken each step on its own; ``steps`` are the last ones.

        The scope lets it grow to twice the window and cuts it to the window then. Detectors that read all of it find more
        in a longer one, so its length must be the same here.
        """
        width = self._window
        length = len(self._past) + self.count
        if length > 2 * width:
            length = width + (length - 2 * width - 1) % (width + 1)
        return list(steps[-length:])

    def _steps(self) -> list[Step]:
        number = self._past[-1].number + 1 + self.count - len(self._kept)
        first = self.count - len(self._kept)
        made: list[Step] = []
        for place, (start, finish) in enumerate(self._kept):
            model = self._round[(first + place) % len(self._round)]
            made.append(Step((Call(start, finish, model.query),), number + place, model.world))
        return [*self._past, *made] if not first else made


def rounds_kept(case: OpenFinding, settings: DetectSettings) -> int:
    """Return how many steps of a loop must go by before the detectors remember nothing else."""
    return settings.window * case.period


def may_stand(case: OpenFinding, settings: DetectSettings) -> bool:
    """Whether the further steps of a loop are alike for all detectors."""
    return (
        case.kind in ("repetition", "cycle")
        and case.severity == "loop"
        # The busy detector counts over its own window, which the replayed rounds must cover too.
        and settings.busy_window <= settings.window
        and rounds_kept(case, settings) <= _MAX_KEPT
    )


def continues(step: Step, past: Sequence[Step], period: int, settings: DetectSettings) -> bool:
    """Whether a step, the last of ``past``, is to the letter the one a round before it, and as short after the last one."""
    if len(past) <= period or not is_plain(step) or step.calls[0].finish is None:
        return False
    model, last = past[-1 - period], past[-2]
    return (
        is_plain(model)
        and model.world == step.world == last.world
        and repeats(model, step.calls[0].start, step.calls[0].finish)
        and _follows(last.started, last.ended, step.started, step.ended, _shortest_gap(settings, (step,)))
    )


def is_plain(step: Step) -> bool:
    """Whether a step can be compared by its texts alone: no batch, no task, no change, no trouble that may pass."""
    if len(step.calls) != 1 or step.traits or step.transient:
        return False
    start, finish = step.calls[0].start, step.calls[0].finish
    return finish is not None and _is_plain(start.input) and _is_plain(finish.output, 0) and _is_plain(finish.error)


def _is_plain(value: object, depth: int = 1) -> bool:
    """Whether a value is None, a text or (at depth 1) an object of texts: such are equal in JSON if they are in Python."""
    if value is None or type(value) is str:
        return True
    if not depth or type(value) is not dict:
        return False
    return all(type(key) is str and type(item) is str for key, item in cast("dict[Any, Any]", value).items())


def repeats(model: Step, start: Observation, finish: Observation) -> bool:
    """Whether an entry asks and answers what a plain step did."""
    asked, answered = model.calls[0].start, model.calls[0].finish
    return (
        answered is not None
        and start.input == asked.input
        and start.action == asked.action
        and finish.output == answered.output
        and finish.status == answered.status
        and finish.error == answered.error
        and finish.meta is None
        and start.meta is None
        and start.task is None
        and start.step is None
    )


def _follows(started: float | None, ended: float | None, begins: float | None, ends: float | None, gap: float) -> bool:
    """Whether a step follows another so soon that no detector takes that for patience (see `polling.is_patient`)."""
    if started is None or begins is None:
        return True
    idle = begins - (started if ended is None else ended)
    inside = 0.0 if ends is None else ends - begins
    return idle < gap and inside < gap


def _shortest_gap(settings: DetectSettings, steps: Sequence[Step]) -> float:
    return min(settings.poll_gap, *(settings.of(step.action).poll_gap for step in steps))
