"""The seam of a detector: steps in, sightings out, one instance for each agent and process of a session."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Step
from ctxmgr.types.finding import FindingKind
from ctxmgr.types.observation import Observation


@dataclass(frozen=True, slots=True)
class Sighting:
    """A pattern holds, as of the step just shown.

    Attributes:
        kind: what kind of loop.
        key: equal for the same loop within one process, in whatever rotation.
        period: steps of one round.
        steps: the steps that prove it, oldest first; the last is the step just shown.
        rounds: how many rounds ``steps`` are.
        confidence: 0 to 1.
        error: the shared error, of kinds that rest on one.
    """

    kind: FindingKind
    key: Hashable
    period: int
    steps: tuple[Step, ...]
    rounds: int
    confidence: float
    error: str | None = None


class Detector(Protocol):
    """One pattern.

    Rules that hold for every detector (the contract battery in the tests):

    * the cost of a step does not grow with the history: ``past`` reaches back ``settings.window`` steps;
    * everything it remembers is ``state``, a value that is replaced and never changed, so that keeping a reference to
      it is enough to take steps back (a replay after a broken stream, a late member of a parallel batch);
    * it returns a sighting for every step that continues the pattern, from the threshold on;
    * it never raises on recorded content.
    """

    kind: FindingKind
    state: Any

    def __init__(self, settings: DetectSettings) -> None: ...

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Take one more step; ``past`` holds those before it, newest last."""
        ...

    def hear(self, event: Observation) -> Sighting | None:
        """Take an event that is no reset (a message, a thought, a compaction)."""
        ...

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        ...
