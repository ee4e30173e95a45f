"""What becomes of an event, by its type: a person steps in, an attempt begins or ends, somebody speaks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Detector
from ctxmgr.detect.speech import MESSAGES, THOUGHTS
from ctxmgr.types.observation import Observation

RESETS = {"user_message": "user", "user_message_chunk": "user", "interrupt": "interrupt"}
"""Events by which a person steps in (design ruling 8). A nudge, a compaction and a continuation are none."""

BOUNDARIES = frozenset({"message", "turn_end", "round_end", "nudge", "compaction", "continuation"})
REPLAYS = frozenset({"retry"})
_SPOKEN = MESSAGES | THOUGHTS
_MAX_TYPES = 1000


class Heed(NamedTuple):
    """What becomes of the events of one type.

    Attributes:
        resets: why evidence is forgotten, None where it is not.
        bounds, replays: whether an attempt may begin there, and whether one is made once more.
        converses: whether an agent that is named by it says something to others.
        speaks: whether it is said or thought.
        is_wide, is_heard: whether detectors of all agents, and of single ones, listen to it.
    """

    resets: str | None
    bounds: bool
    replays: bool
    converses: bool
    speaks: bool
    is_wide: bool
    is_heard: bool


class Heeds:
    """Works that out once for each type: most events are of few types."""

    def __init__(self, detectors: Iterable[type[Detector]], wide: Iterable[type[Detector]]) -> None:
        self._heard = frozenset(kind for each in detectors for kind in each.hears)
        self._wide = frozenset(kind for each in wide for kind in each.hears)
        self._known: dict[str, Heed] = {}

    def of(self, kind: str) -> Heed:
        """Return what becomes of the events of this type."""
        heed = self._known.get(kind)
        if heed is not None:
            return heed
        if len(self._known) >= _MAX_TYPES:
            self._known.clear()
        heed = self._known[kind] = Heed(
            RESETS.get(kind), kind in BOUNDARIES, kind in REPLAYS, kind in MESSAGES or kind == "nudge", kind in _SPOKEN,
            kind in self._wide, kind in self._heard,
        )  # fmt: skip
        return heed


def is_synthetic(event: Observation) -> bool:
    """Whether a user message was put there by a program, as its own data says."""
    if not isinstance(event.data, dict):
        return False
    return cast("dict[str, object]", event.data).get("synthetic") is True
