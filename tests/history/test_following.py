"""Following what is being written: each finding is told once when it is raised, when it escalates, and when it is over."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.errors import Busy, InvalidInput, StorageFailed
from ctxmgr.history import sources
from ctxmgr.history.blackboard import BlackboardHistory
from ctxmgr.history.bus import EventBus
from ctxmgr.history.feed import Feed
from ctxmgr.history.following import Follower, Sight
from ctxmgr.history.sources import Batch, ForeignLog, LogSource, LogTail, Source, StoreTail
from ctxmgr.importers import IMPORTERS
from ctxmgr.journal import Journal
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.wire import Record
from tests import builders as b
from tests.history.live import Clock, spin
from tests.recover import runs

FIXTURES = Path(__file__).parents[2] / "fixtures" / "demo"
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


def clock_at(seconds: float) -> Clock:
    """Return a clock that stands so many seconds after the start of the built histories."""
    made = Clock()
    made.at += seconds
    return made


def told(sights: Iterable[Sight]) -> list[tuple[str, str]]:
    """Return the sights in short."""
    return [(sight.event, sight.finding.kind if sight.finding else str(sight.outcome)) for sight in sights]


def follower(source: Source, clock: Clock) -> Follower:
    return Follower(source, {}, clock)


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
        assert not watched.ended()
    sights = watched.tick()

    assert [(sight.event, sight.session, sight.outcome, sight.lost) for sight in sights] == [("ended", "s", "completed", 0)]
    assert watched.ended()
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
    odd += [{"session": "s", "kind": kind, "id": value, "entry": value, "status": value, "outcome": value, "capture": value}
            for kind in ("session", "entry", "result", "event", "sessionEnd", "note") for value in (None, 1, [], {}, "x")]  # fmt: skip
    source.put(odd)

    assert {sight.event for sight in follower(source, clock_at(0)).tick()} == {"ended"}


def _appended(path: Path, records: Iterable[Record]) -> None:
    with Journal(path) as journal:
        journal.append(list(records))


def test_a_growing_log_is_read_on(tmp_path: Path) -> None:
    """Each look reads only the lines completed since the last one; a line that is still being written waits."""
    log = tmp_path / "run.jsonl"
    tail = LogTail(log)
    assert tail.poll() is None
    _appended(log, b.steps("s", ["Read:a -> text"]))
    got = [len(list(batch.records)) for _ in range(2) if (batch := tail.poll())]
    line = json.dumps(b.entry("s", 1)).encode() + b"\n"
    with log.open("ab") as stream:
        stream.write(line[:40])
        stream.flush()
        assert tail.poll() is None
        stream.write(line[40:])
    batch = tail.poll()

    assert got == [2]
    assert batch is not None
    assert [record["id"] for record in batch.records] == ["s-e0001"]


def test_damage_is_passed_over(tmp_path: Path) -> None:
    """Lines that hold no record cost nothing but themselves."""
    log = tmp_path / "run.jsonl"
    _appended(log, b.steps("s", ["Bash:ls -> same"] * 2))
    watched = follower(LogTail(log), clock_at(3))
    watched.tick()
    with log.open("ab") as stream:
        stream.write(b'\0\0\0\n{"v":1,"kind":"entry",\n[1]\n\xff\xfe\n')
    watched.tick()
    _appended(log, b.steps("s", ["Bash:ls -> same"], start=2))

    assert told(watched.tick()) == [("raised", "repetition")]


@pytest.mark.parametrize("way", ["renamed", "truncated", "removed", "rewritten"])
def test_rotation_is_survived(tmp_path: Path, way: str) -> None:
    """A log that is renamed, cut, removed or written over is followed on: a loop across the cut is found, none told twice."""
    log = tmp_path / "run.jsonl"
    _appended(log, [*b.steps("s", [*["Read:a -> same"] * 3, *["Bash:ls -> same"] * 2])])
    watched = follower(LogTail(log), clock_at(5))
    looks = [told(watched.tick())]
    before = log.read_bytes()
    if way == "renamed":
        log.rename(tmp_path / "run.1.jsonl")
    elif way == "truncated":
        os.truncate(log, 0)
    elif way == "removed":
        log.unlink()
    looks.append(told(watched.tick()))
    if way == "rewritten":
        log.write_bytes(before.replace(b"-e0000", b"-e9000"))
    _appended(log, b.steps("s", ["Bash:ls -> same"] * 2, start=5))
    looks.append(told(watched.tick()))

    assert looks[:2] == [[("raised", "repetition")], []]
    assert ("raised", "repetition") in looks[2]
    assert told(watched.tick()) == []


def test_a_log_may_hold_one_wanted_session(tmp_path: Path) -> None:
    """Named, one session of a log is followed and the others are not."""
    log = tmp_path / "run.jsonl"
    _appended(log, [*b.steps("s", ["Bash:ls -> same"] * 3), *b.steps("other", ["Bash:ls -> same"] * 3)])

    assert [sight.session for sight in follower(LogTail(log, "s"), clock_at(3)).tick()] == ["s"]


def test_a_store_is_read_on(tmp_path: Path) -> None:
    """Each look at a store reads what was appended to the session since; the latest session is followed when none is named."""
    place = tmp_path / "history.db"
    writing = open_store(str(place), create=True)
    writing.append(b.steps("old", ["Bash:ls -> same"] * 3))
    reading = open_store(str(place), readonly=True)
    named, latest = StoreTail(reading, reading.sessions.key("old")), StoreTail(reading)
    watched = follower(latest, clock_at(4))
    first = told(watched.tick())
    writing.append(b.steps("new", ["Read:a -> text"], ts=b.at(100)))

    assert first == [("raised", "repetition")]
    assert [[len(list(batch.records)) for batch in [named.poll()] if batch] for _ in range(2)] == [[6], [0]]
    assert told(watched.tick()) == []
    assert watched.counts() == {"old": 3, "new": 1}
    writing.close()
    reading.close()


def test_a_foreign_log_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A growing log of another agent is read anew when it changed, at most once in the given time; nothing is told twice."""
    lines = CLAUDE.read_bytes().splitlines(keepends=True)
    log, time = tmp_path / CLAUDE.name, [0.0]
    log.write_bytes(b"".join(lines[: len(lines) // 3]))
    source = LogSource(log, every=5, clock=lambda: time[0])
    watched = Follower(source, {}, clock_at(-1e8))
    looks: list[list[tuple[str, str]]] = [told(watched.tick())]
    log.write_bytes(b"".join(lines))
    looks.append(told(watched.tick()))
    time[0] += 5
    looks.append(told(watched.tick()))
    time[0] += 5
    looks.append(told(watched.tick()))

    assert looks == [[], [], [("raised", "cycle")], []]
    assert watched.counts() == {CLAUDE.stem: sum(1 for line in lines if b'"type":"tool_use"' in line)}


def test_reading_a_large_log_leaves_time_for_other_work() -> None:
    """A foreign log that takes ten seconds to read is not read again for forty."""
    time = [0.0]

    class Slow:
        name = title = "slow"

        def companions(self, path: Path) -> list[Path]:
            return []

        def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
            return [list(paths)]

        def read(self, group: Any, counts: Any) -> Iterable[Record]:
            reads.append(time[0])
            time[0] += 10
            return []

    reads: list[float] = []
    source: Any = ForeignLog(Slow(), CLAUDE, 1, lambda: time[0])  # pyright: ignore[reportArgumentType]
    for _ in range(2):
        for batch in [source.poll()]:
            assert list(batch.records) == []
        source._state = []
        time[0] += 39.9
        assert source.poll() is None
        time[0] += 0.2

    assert reads == [0.0, pytest.approx(50.1)]


def test_a_foreign_log_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    """While the file is gone nothing is told, neither that its loop is over nor anew when it comes back."""
    log = tmp_path / CLAUDE.name
    shutil.copy(CLAUDE, log)
    watched = Follower(LogSource(log, every=1e-9), {}, clock_at(-1e8))
    looks = [told(watched.tick())]
    kept = log.rename(tmp_path / "kept")
    looks.append(told(watched.tick()))
    kept.rename(log)
    looks.append(told(watched.tick()))

    assert looks == [[("raised", "cycle")], [], []]


def test_the_format_is_told_by_the_content(tmp_path: Path) -> None:
    """A log that is empty or in its first line waits; one of no known format is refused."""
    log = tmp_path / "run.jsonl"
    source = LogSource(log)
    looks = [source.poll()]
    log.write_bytes(b"")
    looks.append(source.poll())
    log.write_bytes(b'{"foo"')
    looks.append(source.poll())
    assert looks == [None, None, None]
    log.write_bytes(b'{"foo": 1}\n')
    with pytest.raises(InvalidInput, match="not a log of a known format"):
        source.poll()
    log.write_bytes(b"\0\0damage\n")
    _appended(log, b.steps("s", ["Read:a -> text"]))
    batch = source.poll()

    assert batch is not None
    assert len(list(batch.records)) == 2
    assert sources.IMPORTERS is IMPORTERS


HISTORIES = {
    "cycle": runs.looped(),
    "hung": runs.hung(),
    "errors": runs.varied(),
    "pong": runs.ping_pong(),
    "late": [b.result("s", 0), *b.steps("s", ["?Bash:a", "?Bash:b"]), b.result("s", 1), b.result("s", 0), b.result("s", 0)],
    "doubled": [*b.steps("s", ["Bash:a -> b"] * 3), *b.steps("s", ["Bash:a -> b"] * 3)],
    "whole": [b.entry("s", 0, status="ok", output="x"), b.event("s", 0, "usage", {}), b.event("s", 1, "nudge")],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_one_at_a_time_is_the_same_as_all_at_once(name: str) -> None:
    """Records shown one by one give the observations that the whole log gives, in the same order."""
    records, feed = HISTORIES[name], Feed()
    one_by_one = [seen for record in records for seen in feed.take(record)]
    at_once = list(observations_of(records))

    assert [_bare(seen) for seen in one_by_one] == [_bare(seen) for seen in at_once]
    assert [seen.seq for seen in one_by_one] == sorted(seen.seq for seen in one_by_one)


def _bare(seen: Any) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in seen.__slots__ if name != "seq"}


_VALUES = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.fixed_dictionaries({
    "kind": st.sampled_from(["entry", "result", "event", "sessionEnd", "odd"]), "id": st.sampled_from(["a", "b"]) | _VALUES,
    "entry": st.sampled_from(["a", "b"]) | _VALUES, "status": st.sampled_from([None, "ok", "error"]) | _VALUES,
}), max_size=12))  # fmt: skip
def test_any_records_are_shown_alike(records: list[Record]) -> None:
    """Whatever the records hold, showing them one by one never raises and gives what the whole log gives."""
    feed = Feed()
    one_by_one = [seen for record in records for seen in feed.take(record)]

    assert [_bare(seen) for seen in one_by_one] == [_bare(seen) for seen in observations_of(records)]


def test_the_log_of_a_store_is_followed_in_place(store: Store) -> None:
    """Both kinds of store can be followed while they are written to through their own door."""
    is_log = store.location.endswith(".jsonl")
    source: Source = LogTail(Path(store.location)) if is_log else StoreTail(store)
    watched = follower(source, clock_at(3))
    looks: list[list[tuple[str, str]]] = []
    for number in range(3):
        store.append(b.steps("s", ["Bash:ls -> same"], start=number))
        looks.append(told(watched.tick()))

    assert looks == [[], [], [("raised", "repetition")]]
