"""Which detectors are shown a step, by what about it may interest them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect.interface import Detector, Wake


class Plan(NamedTuple):
    """Detectors that are shown a step, each with whether it is if it remembers nothing; and those of them that are."""

    all: list[tuple[Detector, bool]]
    if_asleep: list[tuple[Detector, bool]]


class Plans:
    """Works out once for each combination of flags (see `Wake`) who is shown such a step."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._detectors = detectors
        self._known: dict[int, Plan] = {}

    def of(self, flags: int) -> Plan:
        """Return which detectors are shown a step with these flags, and whether they are if they remember nothing."""
        plan = self._known.get(flags)
        if plan is not None:
            return plan
        shown: list[tuple[Detector, bool]] = []
        for each in self._detectors:
            heeds = each.wake | Wake.AGAIN if each.wake & Wake.REPEATED else each.wake
            if each.watchful or flags & heeds:
                shown.append((each, bool(flags & each.wake)))
        plan = self._known[flags] = Plan(shown, [(each, woken) for each, woken in shown if woken])
        return plan


def is_any_awake(detectors: Sequence[Detector]) -> bool:
    """Whether any of the detectors remembers something."""
    for detector in detectors:  # noqa: SIM110 - a generator costs more than the whole loop
        if detector.state:
            return True
    return False
