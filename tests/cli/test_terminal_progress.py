"""Progress is told on a terminal alone: how much is done, how fast, and how long it will take."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from ctxmgr.cli.envelope import say
from ctxmgr.cli.terminal import ProgressMeter


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """Return true."""
        return True


def _told(stream: io.StringIO, moments: list[tuple[float, int]], total: int = 1000) -> str:
    now = [0.0]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    pace = ProgressMeter("importing", "MB", 10, stream=stream, clock=clock)
    for moment, done in moments:
        now[0] = moment
        pace(done, total)
    return stream.getvalue()


def test_rate_and_time_left_are_told() -> None:
    """After a second the share, the rate since the beginning and the time that is left at this rate are shown."""
    assert _told(Terminal(), [(0, 0), (0.5, 50), (2, 200)]) == "\rimporting: 20 %, 10 MB/s, 8 s left"


def test_the_rate_is_of_this_run() -> None:
    """What an earlier run has done already counts as done, not as speed."""
    assert _told(Terminal(), [(0, 900), (5, 950)]).endswith("95 %, 1 MB/s, 5 s left")


def test_short_work_is_not_told_of() -> None:
    """Work that ends within the first second leaves the terminal alone, and longer work leaves no line behind."""
    assert _told(Terminal(), [(0, 0), (0.9, 500), (0.95, 1000)]) == ""
    line = "\rimporting: 50 %, 25 MB/s, 2 s left"
    assert _told(Terminal(), [(0, 0), (2, 500), (4, 1000)]) == line + "\r" + " " * (len(line) - 1) + "\r"


def test_it_is_not_told_too_often() -> None:
    """At most five times a second a line is written."""
    assert _told(Terminal(), [(0, 0), *((2 + number / 100, number + 1) for number in range(100))]).count("\r") == 5


@pytest.mark.parametrize("moments", [[(0.0, 0), (9.0, 500)], [(0.0, 0), (9.0, 1000)]])
def test_nothing_is_told_to_a_pipe(moments: list[tuple[float, int]]) -> None:
    """Where stderr is no terminal nothing is written."""
    assert _told(io.StringIO(), moments) == ""


@pytest.mark.parametrize(("total", "left"), [(100, "98 s"), (102, "1 min 40 s"), (5_002, "83 min 20 s"), (20_000, "5 h")])
def test_long_times_are_told_in_minutes_and_hours(total: int, left: str) -> None:
    """The time that is left is shown in the unit in which people count it."""
    assert _told(Terminal(), [(0, 0), (2, 2)], total).endswith(f", {left} left")


def _pipe(moments: list[tuple[float, int]]) -> str:
    stream, now = io.StringIO(), [0.0]
    pace = ProgressMeter("searching for logs", "files", 1, in_pipe=True, stream=stream, clock=lambda: now[0])
    for moment, done in moments:
        now[0] = moment
        pace(done, None)
    return stream.getvalue()


def test_a_pipe_is_told_once_of_long_work() -> None:
    """A search of seconds says once that it goes on, so that nobody takes it for a hang; a short one says nothing."""
    assert _pipe([(0, 1), (4, 900)]) == ""
    assert _pipe([(0, 1), (6, 12_345), (9, 20_000)]) == "ctxmgr: searching for logs: 12,345 files\n"


def test_a_message_erases_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after the work begins on an empty line."""
    stream, now = Terminal(), [0.0]
    monkeypatch.setattr("sys.stderr", stream)
    pace = ProgressMeter("searching for logs", "files", 1, clock=lambda: now[0])
    pace(1, None)
    now[0] = 2
    pace(5_000, None)
    say("done")
    line = "\rsearching for logs: 5,000 files"
    assert stream.getvalue() == line + "\r" + " " * (len(line) - 1) + "\r" + "done\n"
