"""Helpers of the contract tests: build a session from calls, events and waits; compare records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import pytest

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.finding import Finding, Observation

START = 1_760_000_000.0  # seconds since 1970; any fixed time

_CONTEXT_CHARS = 60


def assert_same_records(found: Iterable[Record], wanted: Iterable[Record]) -> None:
    """Fail at the first record whose JSON differs, and show the place.

    A plain ``assert`` of two lists makes pytest diff all their text, which takes hours for long values.
    """
    for number, pair in enumerate(zip_longest(found, wanted)):
        one, two = ("nothing" if record is None else encode(record).decode() for record in pair)
        if one != two:
            begin = max(next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 0) - _CONTEXT_CHARS, 0)
            found_part, wanted_part = (text[begin : begin + 2 * _CONTEXT_CHARS] for text in (one, two))
            pytest.fail(f"record {number}, from character {begin}: {found_part!r} in place of {wanted_part!r}", pytrace=False)


class Scenario:
    """A session under construction; time advances by ``pace`` seconds before each call unless ``wait`` is given."""

    def __init__(self, *, agent: str = "main", process: str | None = "p1", pace: float = 2.0, timed: bool = True) -> None:
        self.agent, self.process, self.pace = agent, process, pace
        self.clock = START
        self.observations: list[Observation] = []
        self._timed = timed
        self._starts: dict[str, Observation] = {}

    def _add(self, **fields: Any) -> Observation:
        observation = Observation(seq=2 * len(self.observations), session="s", at=self.clock if self._timed else None, **fields)
        self.observations.append(observation)
        return observation

    def open(self, action: str, given: Any = None, *, wait: float | None = None, **fields: Any) -> str:
        """Begin a call and leave it open; return its id."""
        self.clock += self.pace if wait is None else wait
        index = len(self._starts)
        fields = {"agent": self.agent, "process": self.process, **fields}
        entry = fields.pop("id", f"e{index}")
        self._starts[entry] = self._add(
            kind="start", id=entry, index=index, action=action, input=given, input_type="shape", **fields
        )
        return entry

    def close(self, entry: str, output: Any = "", *, status: str = "ok", took: float = 0.0, error: Any = None) -> None:
        """Add the result of a call, ``took`` seconds later."""
        self.clock += took
        start = self._starts[entry]
        self._add(
            kind="finish", id=entry, index=start.index, agent=start.agent, process=start.process, action=start.action,
            input=start.input, input_type=start.input_type, step=start.step, turn=start.turn, meta=start.meta,
            parent=start.parent, timeout_ms=start.timeout_ms, status=status, output=output, error=error,
        )  # fmt: skip

    def call(
        self, action: str, given: Any = None, output: Any = "", *, status: str = "ok", took: float = 0.0, **fields: Any
    ) -> str:
        """Add a call with its result; return its id."""
        entry = self.open(action, given, **fields)
        self.close(entry, output, status=status, took=took)
        return entry

    def fail(self, action: str, given: Any, message: str, **fields: Any) -> str:
        """Add a call that ends in an error; return its id."""
        entry = self.open(action, given, **fields)
        self.close(entry, None, status="error", error={"type": "ToolError", "message": message})
        return entry

    def say(
        self, kind: str, data: Any = None, *, agent: str | None = None, wait: float = 1.0, process: str | None = None
    ) -> str:
        """Add an event; return its id."""
        self.clock += wait
        return self._add(kind="event", id=f"v{len(self.observations)}", type=kind, data=data, agent=agent, process=process).id

    def end(self) -> None:
        """End the process."""
        self._add(kind="end", id="", process=self.process)

    def watched(self, settings: DetectSettings | None = None, **options: Any) -> tuple[Monitor, list[tuple[str, Finding]]]:
        """Return a monitor that observed everything, and the (record id, finding) pairs that it raised."""
        monitor = Monitor(settings, **options)
        raised = [(observation.id, finding) for observation in self.observations for finding in monitor.observe(observation)]
        return monitor, raised

    def found(self, settings: DetectSettings | None = None) -> list[Finding]:
        """Return all loops ever raised, in their final state."""
        return [finding for finding in self.watched(settings)[0].findings(live=True) if finding.kind != "hung"]

    def stalls(self, after: float | None = None, settings: DetectSettings | None = None) -> list[Finding]:
        """Return the stalls, judged ``after`` seconds after the last record (None: at the end of the log)."""
        now = None if after is None else self.clock + after
        return [finding for finding in self.watched(settings)[0].findings(now) if finding.kind == "hung"]
