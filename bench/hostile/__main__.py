"""Recover small sessions with a model that means harm, thousands of times, and report what must not have happened.

    python -m bench.hostile [--runs N] [--each N] [--seed N] [--first N] [--jobs N] [--write FILE]

Run number K of a seed is always the same: ``--first K --runs 1`` repeats it. Exit code 1 when an outcome was invalid.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from bench.hostile.fresh import injections, measure
from bench.hostile.report import invalid, report
from bench.hostile.trial import Outcome, run
from ctxmgr import __version__

RUNS, EACH, SEED = 5_000, 500, 20_260_122
_AT_ONCE = 40
MOODS = ("contradicting", "lying", "repeating", "empty")


def main() -> int:
    """Run the battery, print the report and what is invalid."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--each", type=int, default=EACH, help="answers of each mood that must not count")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work")
    parser.add_argument("--write", type=Path, help="file for the report")
    options = parser.parse_args()
    started = time.monotonic()
    numbers = range(options.first, options.first + options.runs)
    outcomes = list(_told(_outcomes(options.seed, numbers, None, options.jobs), started))
    moody: list[Outcome] = []
    for mood in MOODS:
        tried = at = 0
        while tried < options.each and at < 4 * options.each:
            more = list(_told(_outcomes(options.seed, range(at, at + _AT_ONCE), mood, options.jobs), started))
            tried, at, moody = tried + sum(each.tried.total() for each in more), at + _AT_ONCE, [*moody, *more]
    where = (
        f"Made by `python -m bench.hostile` with ctxmgr {__version__} on {datetime.now(UTC).date().isoformat()}, "
        f"Python {platform.python_version()}, {options.jobs} process(es)."
    )
    text = "\n".join(report(outcomes, moody, measure(injections()), options.seed, time.monotonic() - started, where))
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 1 if invalid([*outcomes, *moody]) else 0


def _told(outcomes: Iterator[Outcome], started: float) -> Iterator[Outcome]:
    """Yield outcomes, and say what is invalid and how far it is."""
    for number, outcome in enumerate(outcomes, start=1):
        for line in invalid([outcome]):
            print(line, file=sys.stderr, flush=True)
        if number % 250 == 0:
            print(f"{number:,} runs, {time.monotonic() - started:,.0f} s", file=sys.stderr, flush=True)
        yield outcome


def _outcomes(seed: int, numbers: range, mood: str | None, jobs: int) -> Iterator[Outcome]:
    one = partial(run, seed, mood=mood)
    if jobs <= 1:
        yield from map(one, numbers)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, numbers, chunksize=20)


if __name__ == "__main__":
    sys.exit(main())
