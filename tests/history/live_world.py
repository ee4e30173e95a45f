"""A running workflow under a clock of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.record_sources import Follower, Sight, Source
from ctxmgr.log import ids, reader
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.store import open_store
from tests.builders import START


class Clock:
    """Time as the test tells it, in seconds since 1970; every time that is recorded is a millisecond after the last one."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> float:
        return self.at

    def recorded(self) -> str:
        """Return the time for a record."""
        self.at += 0.001
        return format_time(self.at)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let records be dated by the test."""
    made = Clock()
    monkeypatch.setattr(ids, "now", made.recorded)
    monkeypatch.setattr(ids, "new_id_and_time", lambda: (ids.new_id(), made.recorded()))
    return made


class Tape:
    """A place to record into that keeps records in memory, and fails when told to."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failing: list[Exception] = []

    def append(self, records: Any) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.records += records

    def close(self) -> None:
        pass

    def of(self, kind: str) -> list[Record]:
        """Return the records of a kind."""
        return [record for record in self.records if record["kind"] == kind]


def spin(board: BlackboardHistory, times: int = 3, *, action: str = "Bash", given: Any = "ls", output: Any = "same") -> None:
    """Do the same with the same outcome so many times."""
    for _ in range(times):
        with board.action("coder", action, input=given) as step:
            step.output = output


def recorded(path: Path, session: str | None = None) -> list[Record]:
    """Return what a log or a database holds."""
    if path.suffix == ".jsonl":
        return [line.record for line in reader.read(path)]
    store = open_store(str(path), readonly=True)
    try:
        return list(store.sessions.records(None if session is None else store.sessions.key(session)))
    finally:
        store.close()


def clock_at(seconds: float) -> Clock:
    """Return a clock that stands so many seconds after the start of the built histories."""
    made = Clock()
    made.at += seconds
    return made


def told(sights: Iterable[Sight]) -> list[tuple[str, str]]:
    """Return the sights in short."""
    return [(sight.event, sight.finding.kind if sight.finding else str(sight.outcome)) for sight in sights]


def follower(source: Source, clock: Clock) -> Follower:
    """Return what follows a source under a clock."""
    return Follower(source, {}, clock)
