"""How long a command takes to start and to list twenty of 100,000 entries, beside Python's and sqlite-utils' own start.

Rounds are interleaved, so that a busy moment of the machine hits every command alike; the ratio of two medians of one
run is the figure, not the milliseconds. ``python bench/startup.py [ROUNDS]``, 21 rounds unless told.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ctxmgr.ids import format_time
from ctxmgr.store import open_store
from ctxmgr.types.record import build
from ctxmgr.wire import Record

OUT = Path(__file__).parent / "out"
ENTRIES = 100_000
PER_APPEND = 5_000
START = 1_769_076_000.0


def records(first: int, count: int) -> Iterator[Record]:
    """Yield finished entries of one long session: four agents, eight actions, inputs and outputs of some 200 bytes."""
    for number in range(first, first + count):
        action = ("Read", "Grep", "Edit", "Bash", "Glob", "Write", "WebFetch", "Task")[number % 8]
        yield build(
            "entry",
            "long",
            format_time(START + number),
            id=f"long-{number:06}",
            agent=f"agent-{number % 4}",
            action=action,
            inputType="ToolInput",
            input={"path": f"src/module_{number % 977}.py", "pattern": f"symbol_{number % 4001}"},
            status="error" if number % 50 == 0 else "ok",
            output=f"{action} {number}: " + "lorem ipsum dolor sit amet " * 4,
        )


def prepared() -> Path:
    """Return the store of 100,000 entries, made on first use and kept for later runs."""
    location = OUT / f"startup-{ENTRIES}.db"
    if location.exists():
        return location
    OUT.mkdir(exist_ok=True)
    unfinished = location.with_name(f"unfinished-{os.getpid()}.db")
    began = time.perf_counter()
    with closing(open_store(str(unfinished), create=True)) as store:
        for first in range(0, ENTRIES, PER_APPEND):
            store.append(records(first, min(PER_APPEND, ENTRIES - first)))
    unfinished.rename(location)
    print(f"stored {ENTRIES:,} entries in {time.perf_counter() - began:.1f} s")
    return location


def commands(location: Path) -> dict[str, list[str]]:
    """Return what is measured by name, the yardsticks first."""
    binaries = Path(sys.executable).parent
    listing = ["list", "--limit", "20", "--json", "--store", str(location)]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "sqlite-utils --version": [str(binaries / "sqlite-utils"), "--version"],
        "ctxmgr --version": [str(binaries / "ctxmgr"), "--version"],
        f"ctxmgr list --limit 20 --json ({ENTRIES:,} entries)": [str(binaries / "ctxmgr"), *listing],
    }


def measure(measured: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Return each command's times in seconds; a round runs all of them, and one unmeasured round warms the caches."""
    times: dict[str, list[float]] = {name: [] for name in measured}
    for turn in range(rounds + 1):
        for name, command in measured.items():
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if turn:
                times[name].append(time.perf_counter() - began)
    return times


def main() -> None:
    """Measure and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    times = measure(commands(prepared()), rounds)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    python, peer = list(medians.values())[:2]
    width = max(map(len, medians))
    print(f"{'median of ' + str(rounds) + ' rounds':{width}} {'ms':>8} {'× python':>9} {'× sqlite-utils':>15}")
    for name, median in medians.items():
        print(f"{name:{width}} {median * 1000:8.1f} {median / python:9.2f} {median / peer:15.2f}")


if __name__ == "__main__":
    main()
