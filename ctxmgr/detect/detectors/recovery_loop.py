"""Detect a loop that comes back after its continuation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import FindingKind, Observation

LOOP_SEEN = "loop_seen"
"""Type of the event by which the monitor says that a loop was raised, or went on after it was answered."""
_MAX_LOOPS = 32


class _Answered(NamedTuple):
    """The continuations given for one loop; ``back`` times it came back after one."""

    continuations: tuple[Step, ...]
    back: int
    waiting: bool


class RecoveryLoopDetector:
    """Counts, for each loop by its identity, after how many continuations it came back."""

    kind: FindingKind = "recoveryLoop"
    wake: int = Wake.NEVER
    hears = frozenset({"continuation", LOOP_SEEN})
    watchful = False
    session_wide = True

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Answered] = {}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Pass: steps are for the detectors of loops."""
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when a loop is back, or is to be answered again, after enough continuations."""
        found: Sighting | None = None
        if _is_question(event.data):
            return None
        for identity in _identities(event.data):
            old = self.state.get(identity)
            if event.type == LOOP_SEEN:
                if old is None or not old.waiting:
                    continue
                new = old._replace(back=old.back + 1, waiting=False)
            else:
                step = Step((Call.said(event, identity),))
                given = old or _Answered((), 0, False)
                back = given.back + given.waiting
                new = _Answered((*given.continuations, step)[-self._settings.window :], back, True)
            kept = {name: answered for name, answered in self.state.items() if name != identity}
            while len(kept) >= _MAX_LOOPS:
                del kept[next(iter(kept))]
            self.state = {**kept, identity: new}
            if new.back >= self._settings.recovery_rounds:
                steps = new.continuations[-self._settings.recovery_rounds - 1 :]
                facts = (("loopIdentity", identity), ("cameBack", new.back))
                found = Sighting(self.kind, identity, 1, steps, len(steps), 0.9, facts=facts, everyone=True, at=event)
        return found

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often any loop came back."""
        back = max((answered.back for answered in self.state.values()), default=0)
        return Opinion(self.kind, "", back, self._settings.recovery_rounds, "it rests on continuations, not on single steps")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}


def _is_question(data: object) -> bool:
    """Whether an agent asked something: the answer is no attempt at ending its loop."""
    return isinstance(data, dict) and cast("dict[str, object]", data).get("asked") is True


def _identities(data: object) -> list[str]:
    if not isinstance(data, dict):
        return []
    answers = cast("dict[str, object]", data).get("answers")
    return [each for each in cast("list[object]", answers)[:64] if isinstance(each, str)] if isinstance(answers, list) else []
