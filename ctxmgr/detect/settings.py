"""Thresholds of the detectors: data with defaults, checked when they are made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from ctxmgr.errors import InvalidInput

_ROUNDS = (
    "repeat_rounds", "cycle_rounds", "error_same_rounds", "error_varied_rounds", "poll_rounds", "gesture_rounds",
    "transient_rounds",
)  # fmt: skip
_SECONDS = ("poll_gap", "idle_gap", "stall_seconds", "call_seconds")


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """When a pattern becomes a finding.

    Attributes:
        repeat_rounds: identical calls (action, input, result) in a row; found at this one (design ruling 6).
        cycle_rounds: complete identical rounds of two or more steps.
        max_period: longest round that is sought, in steps.
        window: steps kept for each agent and process; must hold every round that a threshold needs.
        error_same_rounds: times one call fails with one error, other steps that change nothing may lie between.
        error_varied_rounds: times one specific error comes back whatever is tried.
        error_gap: steps after which an error that comes back is a new story.
        poll_rounds: identical answers of a poll when the log has no times that show whether it waited.
        gesture_rounds: identical key presses, scrolls and the like, whose answer does not show what they did.
        transient_rounds: rate limits, time-outs and unreachable servers when the log has no times.
        poll_gap: seconds between two polls that count as patience.
        idle_gap: idle seconds between any two identical queries that count as patience.
        left_after: different steps outside a loop after which the agent has left it.
        stall_seconds: silence with nothing in flight.
        call_seconds: limit of a call that declares none; a declared limit comes first.
        call_grace: seconds granted on top of a limit.
        exempt_actions: actions that no loop detector looks at.
        pollers: further actions that are polls by nature.
        disabled: kinds of findings that are switched off.

    Raises:
        InvalidInput: when a threshold can never fire or is no number.
    """

    repeat_rounds: int = 3
    cycle_rounds: int = 3
    max_period: int = 12
    window: int = 64
    error_same_rounds: int = 3
    error_varied_rounds: int = 4
    error_gap: int = 6
    poll_rounds: int = 10
    gesture_rounds: int = 10
    transient_rounds: int = 8
    poll_gap: float = 5.0
    idle_gap: float = 120.0
    left_after: int = 2
    stall_seconds: float = 120.0
    call_seconds: float = 600.0
    call_grace: float = 5.0
    exempt_actions: frozenset[str] = frozenset()
    pollers: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> DetectSettings:
        """Return settings from a configuration table: numbers as numbers, names as lists of texts.

        Raises:
            InvalidInput: an unknown setting, or a value of the wrong type.
        """
        known = {field.name: field.default for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in table.items():
            if name not in known:
                raise InvalidInput(f"unknown setting {name!r} for detection", f"known: {', '.join(known)}")
            values[name] = _setting(name, known[name], value)
        return cls(**values)

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidInput(f"{field.name} must be a finite number, not {value}")
        for name in _ROUNDS:
            if getattr(self, name) < 2:
                raise InvalidInput(f"{name} must be at least 2: one call is no repetition")
        for name in _SECONDS:
            if getattr(self, name) <= 0:
                raise InvalidInput(f"{name} must be more than 0 seconds")
        if self.max_period < 2:
            raise InvalidInput("max_period must be at least 2: a period of 1 is a repetition")
        if self.left_after < 1 or self.error_gap < 1 or self.call_grace < 0:
            raise InvalidInput("left_after and error_gap must be at least 1, call_grace at least 0")
        needed = max(self.cycle_rounds * self.max_period, *(getattr(self, name) for name in _ROUNDS))
        if self.window < needed:
            raise InvalidInput(
                f"a window of {self.window} steps can never hold what the thresholds need ({needed} steps)",
                "raise window, or lower the rounds or max_period",
            )


def _setting(name: str, default: object, value: object) -> object:
    if isinstance(default, frozenset):
        if isinstance(value, list | tuple | set | frozenset):
            names = list(cast("Iterable[object]", value))
            if all(isinstance(item, str) for item in names):
                return frozenset(names)
        raise InvalidInput(f"{name} must be a list of names", f'e.g. {name} = ["wait_for_build"]')
    if isinstance(value, bool) or not isinstance(value, int if isinstance(default, int) else int | float):
        raise InvalidInput(f"{name} must be a {'whole ' if isinstance(default, int) else ''}number", f"e.g. {name} = {default}")
    return value
