"""The steps of one agent in one process, its detectors and its cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxmgr.detect.casebook import Case
from ctxmgr.detect.interface import Detector, Sighting
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.observation import Observation


@dataclass(slots=True)
class _Batch:
    """The calls that share one ``step`` value; ``taken`` once they were shown to the detectors."""

    calls: list[Call]
    open: int
    taken: Step | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    number: int
    states: tuple[Any, ...]
    cases: tuple[tuple[Case, tuple[Any, ...]], ...]


class AgentScope:
    """Turns calls into steps, shows each to every detector and lets the tightest description speak.

    A step enters when its result is known: in the order of the results, so a call that stays open holds nothing up and
    counts for nothing. A parallel batch enters when all its calls so far are answered; a later member of it takes the
    step back and enters it again, complete.
    """

    def __init__(self, session: str, settings: DetectSettings, detectors: Sequence[Detector], doubt: float = 1.0) -> None:
        self._session = session
        self._settings = settings
        self._detectors = detectors
        self._doubt = doubt
        self._steps: list[Step] = []
        self._number = 0
        self._batches: dict[str | int, _Batch] = {}
        self._boundary = 0
        self._replay: list[Step] = []
        self._turn: str | int | None = None
        self.active: list[Case] = []
        self.cases: list[Case] = []
        self._before_last = self._mark()

    def begin(self, start: Observation) -> None:
        """Take the start of an entry."""
        if start.turn is not None:
            if self._turn is not None and self._turn != start.turn:
                self.reset("user")
            self._turn = start.turn
        if start.step is None:
            return
        batch = self._batches.get(start.step)
        if batch is None:
            done = [key for key, old in self._batches.items() if not old.open]
            for key in done:
                del self._batches[key]
            batch = self._batches[start.step] = _Batch([], 0)
            self.set_boundary()
        batch.open += 1

    def end(self, start: Observation, finish: Observation | None) -> list[Case]:
        """Take the result of an entry (None: the log records none); return the cases raised by that."""
        call = Call.of(start, finish)
        batch = None if start.step is None else self._batches.get(start.step)
        if batch is None:
            return self._enter((call,), amend=False)
        batch.calls.append(call)
        batch.open -= 1
        if batch.open > 0:
            return []
        amend = batch.taken is not None and bool(self._steps) and self._steps[-1] is batch.taken
        calls = tuple(batch.calls) if amend or batch.taken is None else (call,)
        raised = self._enter(calls, amend=amend)
        batch.taken = self._steps[-1] if self._steps and self._steps[-1].calls is calls else None
        return raised

    def _enter(self, calls: tuple[Call, ...], *, amend: bool) -> list[Case]:
        if self._settings.exempt_actions and any(call.start.action in self._settings.exempt_actions for call in calls):
            return []
        withdrawn: list[Case] = []
        if amend:
            withdrawn = [case for case in self.active if case.raised[0] == self._steps[-1].calls[-1].start.id]
            self._restore(self._before_last)
            self.active = [case for case in self.active if case not in withdrawn]
        if calls[0].start.step is not None:
            self._before_last = self._mark()
        raised = self._take(Step(calls, self._number))
        for old in withdrawn:
            again = next((case for case in raised if case.key == old.key), None)
            if again is None:
                old.resolved = "progress"
                continue
            old.adopt(again)
            raised.remove(again)
            self.cases.remove(again)
            self.active[self.active.index(again)] = old
        return raised

    def _take(self, step: Step) -> list[Case]:
        if self._replay:
            if step.same(self._replay[0]):
                del self._replay[0]
                return []
            self._replay = []
        past = self._steps
        sighting: Sighting | None = None
        for detector in self._detectors:
            seen = detector.take(step, past)
            if sighting is None:
                sighting = seen
        raised = self._judge(step, sighting) if self.active or sighting else []
        past.append(step)
        self._number += 1
        if len(past) > 2 * self._settings.window:
            del past[: len(past) - self._settings.window]
        return raised

    def _judge(self, step: Step, sighting: Sighting | None) -> list[Case]:
        owned = False
        for case in self.active:
            if sighting is not None and case.key == sighting.key and case.kind == sighting.kind:
                case.extend(step)
                owned = True
            else:
                owned = case.note(step, step.meaning(self._settings.pollers)) or owned
        if any(case.resolved for case in self.active):
            self.active = [case for case in self.active if case.resolved is None]
        if sighting is None or owned or any(case.overlaps(sighting) for case in self.cases[-4:]):
            return []
        case = Case(sighting, self._session, self._steps, self._settings.left_after)
        case.confidence = round(case.confidence * self._doubt, 2)
        self.active.append(case)
        self.cases.append(case)
        return [case]

    def hear(self, event: Observation) -> list[Case]:
        """Show an event to the detectors; return the cases raised by it."""
        raised: list[Case] = []
        for detector in self._detectors:
            sighting = detector.hear(event)
            if sighting is not None:
                raised += self._judge(sighting.steps[-1], sighting)
        return raised

    def set_boundary(self) -> None:
        """Remember this place as the one that a replay after a broken stream starts from."""
        self._boundary = self._number

    def replay(self) -> None:
        """Expect the steps of this attempt again, not to be counted twice: the stream broke.

        What was counted stays counted, so a real loop whose stream breaks now and then is found all the same.
        """
        self._replay = [step for step in self._steps if step.number >= self._boundary]

    def reset(self, why: str) -> None:
        """Forget all evidence and close the cases: a person spoke."""
        for case in self.active:
            case.resolved = why
        self.active = []
        self._steps.clear()
        self._replay = []
        for detector in self._detectors:
            detector.reset()
        self._boundary = self._number
        self._before_last = self._mark()

    def _mark(self) -> _Mark:
        return _Mark(
            self._number,
            tuple(detector.state for detector in self._detectors),
            tuple((case, case.mark()) for case in self.active),
        )

    def _restore(self, mark: _Mark) -> None:
        while self._steps and self._steps[-1].number >= mark.number:
            self._steps.pop()
        self._number = mark.number
        for detector, state in zip(self._detectors, mark.states, strict=True):
            detector.state = state
        for case, case_mark in mark.cases:
            case.restore(case_mark)
        resumed = [case for case, _ in mark.cases if case.resolved is None and case not in self.active]
        self.active = resumed + self.active
