"""What appending costs a database, and what several processes get done that write into one log at once.

    python bench/writing.py [--json] [--seconds N]

A store's append (one entry, one transaction, all that search and filters need) stands against a bare insert of the same
text in one transaction, in turn. Each writer of the log checks nothing; afterwards every line is read back, and lines
that are missing, torn or out of the chain of sums are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxmgr.journal import read
from ctxmgr.recorder import Recorder
from ctxmgr.store.sqlite import SqliteEngine
from ctxmgr.wire import encode

_BATCH = 50
_ROUNDS = 20
_INPUT = {"path": "src/main.py", "text": Path(json.decoder.__file__).read_text(encoding="utf-8")[3_000:3_700]}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each number of processes writes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {"database": _database(Path(folder)), "processes": _processes(Path(folder), options.seconds)}
    if options.json:
        print(json.dumps(figures))
        return 0
    print(f"{'one commit each':28}{'p50 µs':>9}{'p99 µs':>9}{'mean µs':>9}{'x bare':>8}")
    for name, row in figures["database"].items():
        print(f"{name:28}{row['p50']:>9.1f}{row['p99']:>9.1f}{row['mean']:>9.1f}{row['ratio']:>8.2f}")
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'processes on one log':28}{'appends/s':>10}{'of one':>8}{'CPU µs':>8}{'lost':>6}{'torn':>6}{'unchained':>10}")
    for name, row in figures["processes"].items():
        print(
            f"{name:28}{row['rate']:>10,.0f}{row['share']:>8.2f}{row['cpu']:>8.1f}{row['lost']:>6}{row['torn']:>6}{row['unchained']:>10}"
        )
    return 0


def _database(folder: Path) -> dict[str, Any]:
    recorder = Recorder(folder / "history.db")
    body = encode({"v": 1, "kind": "entry", "session": "s", "agent": "coder", "action": "edit", "input": _INPUT}).decode()
    bare = SqliteEngine(str(folder / "bare.db"))
    bare.execute("CREATE TABLE record (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def insert() -> None:
        with bare.transaction():
            bare.execute("INSERT INTO record (body) VALUES (:body)", {"body": body})

    calls: dict[str, Callable[[], object]] = {
        "bare insert": insert,
        "Recorder.entry, database": lambda: recorder.entry("coder", "edit", _INPUT),
    }
    times: dict[str, list[int]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            for _ in range(_BATCH):
                began = time.perf_counter_ns()
                call()
                times[name].append(time.perf_counter_ns() - began)
    recorder.end()
    bare.close()
    floor = statistics.median(times["bare insert"])
    return {
        name: {
            "p50": statistics.median(row) / 1e3,
            "p99": sorted(row)[len(row) * 99 // 100] / 1e3,
            "mean": statistics.fmean(row) / 1e3,
            "ratio": round(statistics.median(row) / floor, 2),
        }
        for name, row in times.items()
    }


def _processes(folder: Path, seconds: float) -> dict[str, Any]:
    """Return the rates of one, two and four writers; the single one comes first and last, and the faster run counts."""
    runs = [(count, _writers(folder / f"{number}.jsonl", count, seconds)) for number, count in enumerate((1, 2, 4, 1))]
    alone = max(row["rate"] for count, row in runs if count == 1)
    return {str(count): {**row, "share": round(row["rate"] / alone, 2)} for count, row in runs[:3]}


def _writers(path: Path, count: int, seconds: float) -> dict[str, Any]:
    reading, writing = os.pipe()
    ready, go = os.pipe()
    children: list[int] = []
    for _ in range(count):
        child = os.fork()
        if child:
            children.append(child)
            continue
        os.close(go)
        with Recorder(path, session="bench", on_live="join") as recorder:
            os.read(ready, 1)  # returns when the parent closes its end
            end = time.monotonic() + seconds
            written, began = 0, time.process_time_ns()
            while time.monotonic() < end:
                recorder.entry("coder", "edit", _INPUT)
                written += 1
            os.write(writing, f"{written} {time.process_time_ns() - began}\n".encode())
        os._exit(0)
    time.sleep(0.3)  # until all stand ready
    os.close(go)
    for child in children:
        os.waitpid(child, 0)
    os.close(writing)
    told = list(map(int, os.read(reading, 1_000).split()))
    acknowledged = sum(told[::2])
    os.close(reading)
    os.close(ready)
    torn: list[int] = []
    lines = list(read(path, 0, lambda offset, length, reason: torn.append(offset)))
    kept = sum(line.record["kind"] == "entry" for line in lines)
    return {
        "rate": acknowledged / seconds,
        "cpu": sum(told[1::2]) / acknowledged / 1e3,
        "lost": acknowledged - kept,
        "torn": len(torn),
        "unchained": sum(not line.sum_ok for line in lines),
    }


if __name__ == "__main__":
    sys.exit(main())
