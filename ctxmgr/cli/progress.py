"""Show progress, rate and time left on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_AFTER = 1.0
_INTERVAL = 0.2


class ProgressMeter:
    """A line on stderr that is written again and again; nothing where stderr is no terminal, or the work is short.

    Args:
        doing: what is done, e.g. "indexing the log".
        unit: what is counted, e.g. "MB"; each: how much of what is told makes one.
        stream, clock: stderr and seconds, but for tests.
    """

    def __init__(
        self, doing: str, unit: str, each: int, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._doing = doing
        self._unit = unit
        self._each = each
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._told = 0.0
        self._shown = 0

    def __call__(self, done: int, total: int, *_: object) -> None:
        """Hear of progress."""
        if not self._stream.isatty():
            return
        now = self._clock()
        if self._began is None:
            self._began, self._told = (now, done), now + _AFTER - _INTERVAL
        if done >= total:
            self.end()
        elif now - self._told >= _INTERVAL:
            self._told = now
            self._tell(done, total, now)

    def end(self) -> None:
        """Take the line back: the work is done."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0

    def _tell(self, done: int, total: int, now: float) -> None:
        began, first = self._began or (now, done)
        line = f"{self._doing}: {100 * done // max(1, total)} %"
        if done > first and now > began:
            rate = (done - first) / (now - began)
            line += f", {rate / self._each:,.0f} {self._unit}/s, {_span((total - done) / rate)} left"
        self._stream.write("\r" + line.ljust(self._shown))
        self._stream.flush()
        self._shown = len(line)


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02} s" if whole < 6000 else f"{whole // 3600} h"
