"""One stream of observations: what a running history finds is what a replay of its log finds, in every process of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.history import detection
from ctxmgr.history.ingest import import_logs
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.store import open_store
from ctxmgr.types.finding import Finding
from tests.builders import START, steps
from tests.history.live_world import Clock, Tape
from tests.history.live_world import clock as clock

FIXTURES = Path(__file__).parents[3] / "fixtures"
_DETAILS = {
    "inputType": "input_type", "turn": "turn", "step": "step", "task": "task", "timeoutMs": "timeout_ms", "meta": "meta",
}  # fmt: skip


class Player:
    """Does again, by the calls of a running history, what a log tells; and compares what is found.

    Args:
        path: of the log that it writes.
        clock: the time of what it does.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path, self.clock = path, clock
        self._entries: dict[str, str] = {}
        self._open: set[str] = set()
        self.begin("completed")

    def begin(self, before: str | None) -> None:
        """Begin a process, after the one before ended so, or beside one that just stopped doing anything (None)."""
        if hasattr(self, "board") and before is not None:
            self.board.end(cast("Any", before))
        self.board = BlackboardHistory(
            None, self.path, session="s", on_loop="report", clock=self.clock, on_live="join", durability="process"
        )
        for name in self._open:
            self.board.register_entry(name)

    def play(self, record: Record) -> None:
        """Do what a record tells."""
        self.clock.at = max(self.clock.at, parse_time(record.get("ts")) or 0.0)
        if record["kind"] == "entry":
            details = {ours: record[theirs] for theirs, ours in _DETAILS.items() if theirs in record}
            parent = self._entries.get(record.get("parent") or "")
            name = self.board.entry(record.get("agent"), record["action"], record.get("input"), parent=parent, **details)
            self._entries[record["id"]] = name
            self._open.add(name)
            if "status" in record:
                self._finish(name, record)
        elif record["kind"] == "result" and record["entry"] in self._entries:
            self._finish(self._entries[record["entry"]], record)
        elif record["kind"] == "event":
            self.board.event(record["type"], record.get("data"), agent=record.get("agent"))

    def _finish(self, name: str, record: Record) -> None:
        self._open.discard(name)
        self.board.result(name, record["status"], output=record.get("output"), error=record.get("error"))

    def compare(self, after: float) -> list[Finding]:
        """Ask both so many seconds later; return what both say."""
        now = format_time(self.clock.at + after)
        store = open_store(str(self.path), readonly=True)
        try:
            key = store.sessions.key("s")
            assert key is not None
            told = detection.judge(store, key, {}, now)[0].findings
        finally:
            store.close()
        assert self.board.findings(parse_time(now)) == told
        return told


def _sessions(tmp_path: Path) -> Iterator[list[Record]]:
    store = open_store(str(tmp_path / "imported.db"), create=True)
    import_logs(store, [FIXTURES / "demo", FIXTURES / "logs"], home=tmp_path, environment={})
    for key, _ in store.sessions.page(0, None):
        yield list(store.sessions.records(key))
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["one process", "resumed after its end", "another beside a silent one"])
def test_real_logs_played_live(tmp_path: Path, clock: Clock, way: str) -> None:
    """Every log among the fixtures, asked on its way and long after, as one process and as two."""
    kinds: set[str] = set()
    for number, records in enumerate(_sessions(tmp_path)):
        clock.at = min((moment for each in records if (moment := parse_time(each.get("ts")))), default=START)
        player = Player(tmp_path / f"{number}.jsonl", clock)
        for place, record in enumerate(records):
            if place == 2 * len(records) // 3 and way != "one process":
                player.begin("failed" if way.startswith("resumed") else None)
                player.compare(1)
            player.play(record)
            if place == len(records) // 2:
                player.compare(1)
        kinds |= {finding.kind for finding in player.compare(1)} | {finding.kind for finding in player.compare(4_000)}
        player.board.end()
        player.compare(4_000)
    assert {"repetition", "hung"} <= kinds


WORDS = st.sampled_from([
    "Read:a -> x", "Read:b -> y", "Read:c", "!Bash:make -> broken", "!Bash:test", "?Bash:wait", "> go on", "> thanks, bye",
])  # fmt: skip
TURNS = st.tuples(WORDS, st.integers(1, 4)) | st.sampled_from(["completed", "failed", None])


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(turns=st.lists(TURNS, min_size=1, max_size=10), after=st.sampled_from([1.0, 130.0, 700.0]))
def test_random_histories_played_live(
    tmp_path: Path, clock: Clock, turns: Iterable[tuple[str, int] | str | None], after: float
) -> None:
    """Whatever a run does, and however often it is ended and taken up again."""
    clock.at = START
    player = Player(tmp_path / f"{uuid.uuid4()}.jsonl", clock)
    done = 0
    for turn in turns:
        if isinstance(turn, tuple):
            for record in steps("s", [turn[0]] * turn[1], start=done, events=done):
                player.play(record)
            done += turn[1]
        else:
            player.begin(turn)
            player.compare(after)
    player.compare(after)
    player.board.end()
    player.compare(after)


@pytest.mark.parametrize("outcome", ["completed", None])
def test_a_process_that_never_does_anything_stands_still(tmp_path: Path, clock: Clock, outcome: str | None) -> None:
    """The beginning of the session is part of what is shown: nothing for two minutes after it is a stall, resumed or not."""
    player = Player(tmp_path / "log.jsonl", clock)
    assert player.compare(100) == []
    assert [finding.reason for finding in player.compare(130)] == ["the run began, and nothing was ever done in 2 min"]
    for record in steps("s", ["Read:a", "?Bash:make"]):
        player.play(record)
    clock.at += 1_000
    player.begin(outcome)
    assert player.compare(100) == []
    (finding,) = player.compare(130)
    assert (finding.kind, finding.members) == ("hung", [])


def test_the_beginning_is_shown_where_nothing_can_be_read_back(clock: Clock) -> None:
    """A sink keeps what it is given, and a history in it begins as any other."""
    board = BlackboardHistory(None, Tape(), session="s", clock=clock)
    assert [finding.kind for finding in board.findings(clock.at + 130)] == ["hung"]
