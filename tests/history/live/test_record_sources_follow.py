"""Following what is being written: each finding is told once when it is raised, when it escalates, and when it is over."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.detect.monitor import Monitor
from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.bus import EventBus
from ctxmgr.history.live.record_sources import Batch, LogTail
from ctxmgr.log.codec import Record
from ctxmgr.types.finding import Finding
from tests import builders as b
from tests.history.live_world import clock_at, follower, spin, told

FIXTURES = Path(__file__).parents[3] / "fixtures" / "demo"
CLAUDE = FIXTURES / "claude-code/projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"


class Given:
    """A source that gives what the test puts into it."""

    def __init__(self) -> None:
        self.batches: list[Batch | Exception] = []

    def put(self, records: Iterable[Record], *, fresh: bool = False) -> None:
        self.batches.append(Batch(list(records), fresh))

    def poll(self) -> Batch | None:
        batch = self.batches.pop(0) if self.batches else None
        if isinstance(batch, Exception):
            raise batch
        return batch


def test_a_finding_is_told_once_and_when_it_is_over() -> None:
    """A loop is told at the look after its third round, not again while it grows, and once more when it is left."""
    source, clock = Given(), clock_at(1)
    watched = follower(source, clock)
    source.put(b.steps("s", ["Bash:ls -> same"] * 2))
    looks = [told(watched.tick())]
    for number in range(2, 6):
        clock.at += 1
        source.put(b.steps("s", ["Bash:ls -> same"], start=number))
        looks.append(told(watched.tick()))
    looks.append(told(watched.tick()))
    source.put(b.steps("s", ["Bash:ls -> new"], start=6))
    clock.at += 2
    sights = watched.tick()

    assert looks == [[], [("raised", "repetition")], [], [], [], []]
    assert told(sights) == [("over", "repetition")]
    assert sights[0].finding is not None
    assert (sights[0].finding.resolved, sights[0].finding.count) == ("progress", 6)


def test_what_was_over_before_is_not_told() -> None:
    """The first look tells what still lasts, and keeps silent about what was over before anyone watched."""
    source = Given()
    source.put(b.steps("s", [*["Bash:ls -> same"] * 4, "Bash:ls -> new", *["Read:a -> same"] * 3]))
    sights = follower(source, clock_at(8)).tick()

    assert [(sight.event, sight.finding and sight.finding.evidence["steps"][0]["action"]) for sight in sights] == [
        ("raised", "Read")
    ]


def test_what_comes_and_goes_between_two_looks_is_told() -> None:
    """A loop that was raised and left since the last look is told with both."""
    source = Given()
    watched = follower(source, clock_at(9))
    source.put(b.steps("s", ["> go"]))
    watched.tick()
    source.put(b.steps("s", [*["Bash:ls -> same"] * 4, "Bash:ls -> new"]))

    assert told(watched.tick()) == [("raised", "repetition"), ("over", "repetition")]


@pytest.mark.requirement("SC-003")
def test_stalls_are_told_by_the_clock() -> None:
    """A stall is told when its time has come though nothing is written, once, and is over with the next progress."""
    source, clock = Given(), clock_at(1)
    watched = follower(source, clock)
    source.put(b.steps("s", ["Read:a -> text"]))
    looks: list[list[tuple[str, str]]] = []
    for seconds in (0, 119, 2, 50, 1_000):
        clock.at += seconds
        looks.append(told(watched.tick()))
    source.put([b.entry("s", 1, "Read", "b", ts=b.at(clock.at - b.START))])

    assert looks == [[], [], [("raised", "hung")], [], []]
    assert told(watched.tick()) == [("over", "hung")]


def test_an_overdue_call_that_returns_is_over_once() -> None:
    """A call beyond its limit is one finding, also when its result comes in the end."""
    source, clock = Given(), clock_at(1)
    watched = follower(source, clock)
    source.put([b.entry("s", 0, "Bash", "make", timeoutMs=10_000)])
    looks = [told(watched.tick())]
    clock.at += 60
    looks.append(told(watched.tick()))
    source.put([b.result("s", 0, "done", ts=b.at(70))])
    looks.append(told(watched.tick()))
    looks.append(told(watched.tick()))

    assert looks == [[], [("raised", "hung")], [("over", "hung")], []]


def test_a_warning_that_becomes_a_loop_escalates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding whose severity grows is told again, with the new severity; nothing else about it is."""
    source = Given()
    watched = follower(source, clock_at(4))
    severities = iter(["warn", "warn", "loop", "loop"])
    findings = Monitor.findings

    def staged(self: Monitor, now: float | None = None, live: bool = False) -> list[Finding]:
        severity = next(severities, "loop")
        return [each.model_copy(update={"severity": severity}) for each in findings(self, now, live)]

    source.put(b.steps("s", ["Bash:ls -> same"] * 3))
    monkeypatch.setattr(Monitor, "findings", staged)

    assert [told(watched.tick()) for _ in range(3)] == [[("raised", "repetition")], [("escalated", "repetition")], []]


@pytest.mark.requirement("R-21")
def test_the_end_of_a_session_is_told_with_its_losses(tmp_path: Path) -> None:
    """When the followed session ends, its outcome and its loss counter are told, once."""
    log, bus = tmp_path / "run.jsonl", EventBus()
    clock = clock_at(0)
    watched = follower(LogTail(log), clock)
    with BlackboardHistory(bus, log, session="s", on_loop="report") as board:
        bus.publish("a")
        spin(board, 1)
        watched.tick()
        assert not watched.has_ended()
    sights = watched.tick()

    assert [(sight.event, sight.session, sight.outcome, sight.lost) for sight in sights] == [("ended", "s", "completed", 0)]
    assert watched.has_ended()
    assert watched.tick() == []


def test_only_the_latest_session_of_the_past_is_followed() -> None:
    """Loops in older sessions are not told, until these sessions go on."""
    source = Given()
    watched = follower(source, clock_at(4))
    source.put([*b.steps("old", ["Bash:ls -> same"] * 3), *b.steps("new", ["Read:a -> text"])])
    first = watched.tick()
    source.put(b.steps("old", [*["Bash:ls -> same"], "Bash:ls -> new"], start=3))

    assert first == []
    assert watched.counts() == {"new": 1}
    assert [(sight.session, sight.event) for sight in watched.tick()] == [("old", "over")]
    assert watched.counts() == {"new": 1, "old": 5}


def test_memory_is_bounded_by_the_latest_sessions() -> None:
    """Of many sessions those that went on last are kept in mind."""
    source = Given()
    watched = follower(source, clock_at(0))
    for number in range(200):
        source.put(b.steps(f"s{number}", ["Read:a -> text"]))
        watched.tick()

    assert list(watched.counts()) == [f"s{number}" for number in range(136, 200)]


@pytest.mark.parametrize("fault", [Busy("locked"), StorageFailed("gone"), FileNotFoundError("gone")])
def test_what_cannot_be_read_now_is_read_later(fault: Exception) -> None:
    """A source that fails for a while ends nothing; stalls are judged all the same."""
    source, clock = Given(), clock_at(1)
    watched = follower(source, clock)
    source.put(b.steps("s", ["Read:a -> text"]))
    watched.tick()
    source.batches = [fault]
    clock.at += 121

    assert told(watched.tick()) == [("raised", "hung")]


def test_odd_records_are_passed_over() -> None:
    """Records without a session, of unknown kinds and with fields of any type do no harm."""
    source = Given()
    odd: list[Any] = [{}, {"session": 3}, {"session": "s"}, {"session": "s", "kind": ["x"]}]
    names = ("id", "entry", "status", "outcome", "capture")
    values: list[Any] = [None, 1, [1], {"a": 1}, "x"]
    for kind in ("session", "entry", "result", "event", "sessionEnd", "note"):
        odd += [{"session": "s", "kind": kind, **dict.fromkeys(names, value)} for value in values]
    source.put(odd)

    assert {sight.event for sight in follower(source, clock_at(0)).tick()} == {"ended"}
