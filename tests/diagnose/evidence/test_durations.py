"""Durations: how long something took, which limit stopped a call, and how long a call waits by its own words."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose.evidence.durations import (
    durations_in,
    end_of_wait,
    find_stop,
    own_limits,
    parse_duration,
    wait_of,
    without_wrappers,
)
from tests.diagnose.build import Call, Said, bash, evidence, view


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("27m41s", 1661), ("1384.20s", 1384.2), ("41 min", 2460), ("2 hours", 7200), ("1h 5m", 3900), ("00:27:41", 1661),
        ("120000 ms", 120), ("600", 600), ("10m", 600), ("soon", None),
    ],
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float | None) -> None:
    """Clocks, units in words and letters, and a number alone in seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("real\t27m41s", [1661]),
        ("Finished in 1384 s", [1384]),
        ("The full build takes about 40 minutes.", [2400]),
        ("elapsed: 00:27:41", [1661]),
        ("ripup 0: 1190 s", []),
        ("takes 3 arguments", []),
        ("took the 12:30 train", []),
    ],
)
def test_lines_that_say_how_long_something_took(line: str, seconds: list[float]) -> None:
    """Only words that tell a duration make a figure one."""
    assert [each for _, each in durations_in(line)] == seconds


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ({"command": "timeout 600 make bit"}, [600]),
        ({"command": "cd a && timeout -k 5 10m make bit"}, [600]),
        ({"command": "timeout --foreground 1h make"}, [3600]),
        ({"command": "make", "timeoutMs": 120_000}, [120]),
        ({"command": "make", "timeout_s": 90}, [90]),
        ({"command": "make", "timeout": 120}, [120, 0.12]),
        ({"command": "make", "timeout": True}, []),
        ({"command": "grep timeout 600 conf"}, []),
    ],
)
def test_limits_that_a_call_sets_itself(given: Any, limits: list[float]) -> None:
    """By `timeout` in front of a program, or by a field of the tool."""
    assert own_limits(view(0, Call("Bash", given))) == pytest.approx(limits)


@pytest.mark.parametrize(
    ("call", "stop"),
    [
        (Call("Bash", {"command": "timeout 600 make"}, "Routing..\nkilled after 600 s", "error"), (600, True)),
        (Call("Bash", {"command": "timeout 600 make"}, "exit code 124", "error"), (600, True)),
        (Call("Bash", {"command": "make", "timeout": 120000}, "no end after 120 s", "interrupted"), (120, True)),
        (Call("Bash", {"command": "make"}, "killed after 300 s", "error"), (300, False)),
        (Call("Bash", {"command": "curl http://a"}, "connect timed out after 30 s", "error"), None),
        (Call("Bash", {"command": "timeout 600 make"}, "connect timed out after 30 s", "error"), None),
        (Call("Bash", {"command": "timeout 600 make"}, "make: *** Error 1", "error"), None),
        (Call("Bash", {"command": "timeout 600 make"}, "killed after 600 s", "ok"), None),
    ],
)
def test_the_limit_that_stopped_a_call(call: Call, stop: tuple[float, bool] | None) -> None:
    """A figure that is no limit of the call may be one of the program."""
    known = evidence(call)

    assert find_stop(known, known.recent[0]) == stop


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        (Call("wait", {"minutes": 10}), 600),
        (Call("task.wait", {"minutes": 60, "task": "t-7"}), 3600),
        (Call("sleep", {"seconds": 30}), 30),
        (bash("sleep 600"), 600),
        (bash("sleep 2m && sleep 30"), 150),
        (bash("cd data; inotifywait -t 3600 -e create ."), 3600),
        (bash("kubectl wait --for=condition=ready pod/a --timeout=300s"), 300),
        (Call("wait", {"count": 10}), None),
        (Call("search", {"minutes": 10}), None),
        (bash("sleep 600 && make bit"), None),
        (bash("until test -e a; do sleep 600; done"), None),
        (bash("inotifywait -e create ."), None),
        (bash("sleep infinity"), None),
    ],
)
def test_how_long_a_call_waits_by_its_own_words(call: Call, seconds: float | None) -> None:
    """Pauses and waits with a limit; what follows a pause may not return by itself."""
    assert wait_of(view(0, call)) == seconds


def test_the_end_of_a_wait_and_whether_it_is_past() -> None:
    """The newest record tells the time."""
    waits = Call("wait", {"minutes": 10}, None, "open")
    soon = evidence(waits, *[bash("ls")] * 3, loop=1)
    late = evidence(waits, *[bash("ls")] * 800, loop=1)

    assert end_of_wait(soon, soon.recent[0]) is not None
    assert [found[1] for known in (soon, late) if (found := end_of_wait(known, known.recent[0])) is not None] == [False, True]
    other = evidence(Said("go"), bash("make", status="open"))
    assert end_of_wait(other, other.recent[0]) is None


def test_what_stands_before_a_program_is_left_out() -> None:
    """`timeout`, `nice` and the like run the program behind them."""
    assert without_wrappers(["timeout", "-s", "KILL", "60", "nice", "-n", "5", "make", "all"]) == ["make", "all"]
    assert without_wrappers(["timeout"]) == ["timeout"]
