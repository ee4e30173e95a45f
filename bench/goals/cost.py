"""Measure what recording one action costs behind 10, 1,000 and 100,000 others.

    python -m bench.goals.cost [--actions 10 1000 100000] [--rounds 300] [--durability os]

Prints one JSON object a line. ``held`` is a process that holds the goal and records new actions, ``repeated`` one whose
actions come back in the same order; ``fresh`` opens the goal anew for each action, as a command does (without starting an
interpreter).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ctxmgr.goals import Goals
from ctxmgr.log.journal import Durability, Journal
from ctxmgr.types.goal import RecordRequest, StartRequest, SubtaskDraft, TaskDraft
from ctxmgr.types.plain_records import build

_TASKS = [
    TaskDraft(description=f"task {n}", subtasks=[SubtaskDraft(description=f"step {m}") for m in range(5)]) for n in range(6)
]


def _record(goals: Goals, number: int, same: bool = False) -> None:
    part = number % 7 if same else number
    goals.record(
        RecordRequest(action="edit_file", args={"path": f"src/module_{part}.py", "old": "a" * 80}, result=f"{number} lines")
    )


def _grow(folder: Path, actions: int) -> None:
    """Write a goal with so many actions, in batches, as its own requests would have."""
    goals = Goals(folder, durability="process")
    goals.start(StartRequest(goal="measure", tasks=_TASKS))
    session = goals.state().goal.session
    journal = Journal(folder / "history.jsonl", durability="process", mask=False)
    for first in range(0, actions, 1000):
        journal.append([
            build(
                "entry", session, "2026-01-01T00:00:00Z", id=f"{number:08}", agent="agent", action="edit_file", task="t1.1/1",
                input={"path": f"src/module_{number}.py", "old": "a" * 80}, status="ok", output=f"{number} lines",
            )
            for number in range(first, min(actions, first + 1000))
        ])  # fmt: skip
    journal.close()
    _record(goals, actions)  # saves the state, so that what is measured does not replay the growth
    goals.close()


def _percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": round(1e3 * ordered[len(ordered) // 2], 3), "p99": round(1e3 * ordered[len(ordered) * 99 // 100], 3)}


def _timed(rounds: int, work: Callable[[int], Any]) -> dict[str, float]:
    times: list[float] = []
    for number in range(rounds):
        start = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - start)
    return _percentiles(times)


def measure(folder: Path, actions: int, rounds: int, durability: Durability) -> dict[str, Any]:
    """Return milliseconds per action, and the size of the files, behind so many actions."""
    _grow(folder, actions)
    start = time.perf_counter()
    Goals(folder).state()
    loading = time.perf_counter() - start

    def fresh(number: int) -> None:
        _record(Goals(folder, durability=durability), 10**7 + number)

    once = _timed(rounds, fresh)
    with Goals(folder, hold=True, durability=durability) as goals:
        held = _timed(rounds, lambda number: _record(goals, 10**8 + number))
        repeated = _timed(rounds, lambda number: _record(goals, 10**9 + number, same=True))
    return {
        "actions": actions, "durability": durability, "heldMs": held, "repeatedMs": repeated, "freshMs": once,
        "loadMs": round(1e3 * loading, 3), "stateBytes": os.path.getsize(folder / "state.json"),
        "historyBytes": os.path.getsize(folder / "history.jsonl"),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, nargs="+", default=[10, 1_000, 100_000])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--durability", choices=["os", "process"], default="os")
    given = parser.parse_args()
    for actions in cast("list[int]", given.actions):
        with tempfile.TemporaryDirectory() as name:
            figures = measure(Path(name) / "goal", actions, cast("int", given.rounds), cast("Durability", given.durability))
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
