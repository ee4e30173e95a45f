"""What one agent did, put together while its log is read: calls find their results, and nobody else's words begin a turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.base import Log
from ctxmgr.importers.transcript import Transcript
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

FILE = Path("a.jsonl")


@pytest.fixture
def log() -> Log:
    """Return a log of which nothing was read."""
    made = Log("x", FILE, FileCount(FILE))
    made.turn_to(FILE, made.count)
    made.go_to(1)
    return made


def told(log: Log) -> list[Record]:
    """Return all records, each checked."""
    records = log.take(final=True)
    for record in records:
        encode(check(record))
    return records


def of(records: list[Record], kind: str) -> list[Record]:
    """Return the records of a kind."""
    return [record for record in records if record["kind"] == kind]


def test_a_call_that_is_told_again_is_one(log: Log) -> None:
    """While it is open; under an id of its own, or when it was answered, it is another."""
    main = log.session("s")
    main.user("go")
    first = main.call("c1", "Bash", {"command": "ls"})
    assert main.call("c1", "Bash", {"command": "ls"}) == first
    log.go_to(2)
    main.result("c1", "a.txt")
    log.go_to(3)
    assert main.call("c1", "Bash", {"command": "ls"}) != first

    records = told(log)
    assert len(of(records, "entry")) == 2
    assert [record["entry"] for record in of(records, "result")] == [first]
    assert (log.count.open, main.orphans) == (1, 0)


def test_a_result_without_its_call_is_counted(log: Log) -> None:
    """It makes no record, whatever its id is."""
    main = log.session("s")
    main.user("go")
    odd_ids: list[Any] = ["none", None, 7, [], {}]
    for odd in odd_ids:
        main.result(odd, "x")

    assert main.orphans == 5
    assert of(told(log), "result") == []


def test_only_a_person_begins_a_turn(log: Log) -> None:
    """What a program wrote, or another agent's parent said, is a nudge."""
    main = log.session("s")
    main.nudge("reminder", "harness")
    main.user("the task")
    turn = main.turn
    main.nudge("reminder", "harness")
    log.session("s", agent="b", part="s:b", parent="e").user("do this")

    assert main.turn == turn
    kinds = [(record["type"], record["agent"]) for record in of(told(log), "event")]
    assert kinds == [("nudge", "main"), ("user_message", "main"), ("nudge", "main"), ("nudge", "b")]
    assert (log.count.user_messages, log.count.harness_messages) == (1, 3)


@pytest.mark.parametrize("odd", [None, True, -1, 10**400, float("nan"), "", "\ud800\0", [], [[]], {}, {"a": float("inf")}])
def test_odd_values_are_left_out_or_made_storable(odd: Any, log: Log) -> None:
    """Names, inputs, limits, times and headers of any type make records that a store takes."""
    main: Transcript = log.session("s")
    main.user("go")
    main.describe(odd, odd, title=odd, cwd=odd)
    main.call("c", odd, odd, odd, timeout_ms=odd, meta={"m": odd})
    main.result("c", odd, odd)
    main.message("said", odd)

    entry = of(told(log), "entry")[0]
    assert entry["action"]
    assert entry.get("timeoutMs", 1) > 0
