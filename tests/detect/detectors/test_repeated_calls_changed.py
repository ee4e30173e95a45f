"""The same call with an answer that differs in trifles, and answers whose difference is the news."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from tests.detect.scenario import Scenario

Once = Callable[[Scenario, int], object]


def _hash(number: int, width: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:width]


TRIFLES: dict[str, Once] = {
    "the seconds of the clock": lambda s, n: s.call("Bash", {"command": "date +%S"}, f"{2 * n % 60:02d}"),
    "the date": lambda s, n: s.call("Bash", {"command": "date"}, f"Sun Nov 22 17:{n:02d}:03 UTC 2026"),
    "seconds since 1970": lambda s, n: s.call("Bash", {"command": "date +%s"}, f"{1760000000 + 2 * n}"),
    "a tool that tells the time": lambda s, n: s.call("get_current_time", {}, {"hour": 10, "minute": n}),
    "a clock beside a constant": lambda s, n: s.call("get_status", {"n": 1}, f"10:00:{n:02d} idle, all quiet"),
    "a stamp on every answer": lambda s, n: s.call(
        "get_status", {"n": 1}, {"state": "idle", "serverTime": n * n, "requestId": n}
    ),
    "a fresh code for one upload": lambda s, n: s.call("upload_file", {"path": "a"}, f"Stored as f-{_hash(n, 5)}x1"),
    "a fresh id for one upload": lambda s, n: s.call("upload_file", {"path": "a"}, {"fileId": f"f{_hash(n, 4)}", "ok": True}),
    "a poll whose figure stands still": lambda s, n: s.call(
        "get_export_status", {"job": 1}, {"state": "RUNNING", "percent": 37, "checkedAt": f"10:00:{n:02d}"}
    ),
    "counters that run by themselves": lambda s, n: s.call(
        "http_get", {"url": "http://a/healthz"}, f"request #{40412 + n}\nuptime {88114 + 2 * n}s\nupstream fra: DOWN"
    ),
    "a growing id for one upload": lambda s, n: s.call("upload_file", {"path": "a"}, f"Uploaded a (id {100 + n})"),
}

NEWS: dict[str, Once] = {
    "progress": lambda s, n: s.call("get_job", {"job": 1}, f"progress {3 * n}%"),
    "a growing count": lambda s, n: s.call("Bash", {"command": "wc -l out.log"}, f"{31 * n} out.log"),
    "what is done": lambda s, n: s.call("run_next", {}, f"{n} of 40 done"),
    "pages": lambda s, n: s.call("next_page", {}, f"page {n}: item{3 * n} item{3 * n + 1}"),
    "messages": lambda s, n: s.call("message", {"action": "read"}, {"messageId": f"m_{n}", "ts": n * 1000}),
    "a price": lambda s, n: s.call("get_price", {"of": "X"}, f"price 43.{n * 37 % 100}"),
    "training": lambda s, n: s.call("Bash", {"command": "python train.py --resume"}, f"epoch {n} loss {1 / (n + 1):.3f}"),
    "a state that moves": lambda s, n: s.call("get_state", {"of": "X"}, f"phase {'abcdefgh'[n % 8]} since 10:00:0{n % 10}"),
    "the clock with pauses": lambda s, n: (
        s.call("Bash", {"command": "date +%S"}, f"{5 * n % 60:02d}"),
        s.call("Bash", {"command": f"sleep {n % 3 + 5}"}, ""),
    ),
    "a poll that says how far it is": lambda s, n: s.call("get_build", {"n": 1}, f"10:00:{n:02d} still running, {n} %"),
    "a poll that says it is running": lambda s, n: s.call("get_build", {"n": 1}, f"10:00:{n:02d} still running"),
}


def _severities(once: Once, times: int) -> list[str]:
    story = Scenario()
    for number in range(times):
        once(story, number)
    return [finding.severity for finding in story.found()]


@pytest.mark.parametrize("name", TRIFLES)
def test_only_trifles_change(name: str) -> None:
    """Nine answers that differ in trifles are nothing, the tenth warns, the twentieth is a loop and stays one."""
    counts: list[tuple[int, list[str]]] = [(9, []), (10, ["warn"]), (19, ["warn"]), (20, ["loop"]), (40, ["loop"])]
    assert [(times, _severities(TRIFLES[name], times)) for times, _ in counts] == counts


@pytest.mark.parametrize("name", NEWS)
def test_news_is_no_trifle(name: str) -> None:
    """Forty answers of which each says something else are no loop."""
    assert _severities(NEWS[name], 40) == []
