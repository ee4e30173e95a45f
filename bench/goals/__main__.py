"""Measure the brief of a goal on recorded runs: how much shorter it is, and whether it holds what the next step needs.

    python -m bench.goals RUNS [LOG ...] [--max-chars N] [--counter NAME] [--write FILE]

RUNS is a folder with the data sets that ``bench.detection`` reads. A LOG is a file or folder with logs of coding agents.
FILE gets the report as Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench.detection import tau
from bench.detection.hyper_agent import hyper_agent
from bench.detection.runs import Run
from bench.detection.swe_agent import swe_agent
from bench.detection.tables import table
from bench.goals.logs import logs
from bench.goals.replay import Point, Replayed, replay
from ctxmgr import __version__
from ctxmgr.text.tokens import Counter, counter_by_name
from ctxmgr.types.goal import DEFAULT_CHARS

_HEADS = [
    "points", "history, chars", "last ten, chars", "brief, chars", "brief, most", "chars saved", "tokens saved",
    "chars saved of last ten", "tokens saved of last ten", "facts held", "next values in last ten", "in brief",
]  # fmt: skip


def main() -> int:
    """Measure everything; print it, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", type=Path, help="folder with the data sets")
    parser.add_argument("logs", type=Path, nargs="*", help="logs of coding agents")
    parser.add_argument("--max-chars", type=int, default=DEFAULT_CHARS, help="of the brief")
    parser.add_argument("--counter", default="estimate", help="of tokens")
    parser.add_argument("--most", type=int, help="runs of each data set")
    parser.add_argument("--write", type=Path, help="file for the report")
    options = parser.parse_args()
    counter = counter_by_name(options.counter)
    measured: dict[str, list[Replayed]] = {}
    for name, runs in (*_sets(options.runs), *((f"log {path.name}", logs(path)) for path in options.logs)):
        measured[name] = _measured(runs, counter, options.max_chars, options.most)
    text = "\n".join(_report(measured, counter.name, options.max_chars)) + "\n"
    sys.stdout.write(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")
    return 0


def _sets(folder: Path) -> Iterator[tuple[str, Iterable[Run]]]:
    yield "tau2", tau.tau2(folder)
    yield "tau-bench", tau.tau_bench(folder)
    yield "AgentRx", tau.agentrx(folder)
    yield "SWE-agent", swe_agent(folder)
    yield "HyperAgent", (run for log in hyper_agent(folder) for run in log.parts)


def _measured(runs: Iterable[Run], counter: Counter, most_chars: int, most: int | None) -> list[Replayed]:
    found: list[Replayed] = []
    for run in runs:
        if most is not None and len(found) >= most:
            break
        with tempfile.TemporaryDirectory(prefix="bench-goals-") as folder:
            done = replay(run, Path(folder), counter, most_chars)
        if done.points:
            found.append(done)
    return found


def _report(measured: dict[str, list[Replayed]], counter: str, most: int) -> list[str]:
    lines = [
        "# How much shorter the brief of a goal is",
        "",
        f"Made by `python -m bench.goals RUNS LOG... --write bench/goals/RESULTS.md` with ctxmgr {__version__}, "
        f"{datetime.now(UTC).date().isoformat()}; briefs of at most {most:,} characters, tokens by `{counter}`.",
        "",
        "Each run is replayed action by action as an agent's loop would record it: what a person asks for is a subtask, "
        "each call with its result an action. Before each call but the first (of long runs at 100 points) the brief is "
        "compared with what the loop would send without it: all messages so far (calls and results as JSON, what was said "
        "as text), or the last ten of them. Sizes are the mean over the points of all runs; savings are of the sums, as a "
        "bill would count them. The facts are the current task, the active subtask, the last three actions with how they "
        "ended, and the blocked actions; `held` is the share of them that stand in the brief. Where the guard refuses an "
        "action the replay goes on without it.",
        "",
        "`next values` looks at it from the other side, by what the run did then: of the texts and numbers in the "
        "arguments of the next call that the history held already, how many stand in the last ten messages, and how many "
        "in the brief. An agent that has the brief alone must look the others up again. The data is not part of this "
        "repository.",
        "",
        *table(["runs", "of", *_HEADS], [_row(name, found) for name, found in measured.items() if found]),
        "",
        "By how long the history is, all runs together:",
        "",
        *table(["runs", *_HEADS], _by_length(measured)),
        "",
        "What the guard refused, and how many of the runs that it stopped had solved their task all the same:",
        "",
        *table(["runs", "refused actions", "in runs", "of", "of them solved"], _refusals(measured)),
        "",
        "The claim to compare with: 92 % fewer characters and 87 % fewer tokens, for histories of 8,000 to 12,000 characters.",
    ]
    missing: dict[str, int] = {}
    for each in (each for found in measured.values() for each in found):
        for kind, count in each.missing.items():
            missing[kind] = missing.get(kind, 0) + count
    lines += ["", f"Facts not held, by kind: {', '.join(f'{kind} {count:,}' for kind, count in missing.items()) or 'none'}."]
    return lines


def _row(name: str, found: list[Replayed]) -> list[str]:
    points = [point for each in found for point in each.points]
    return [name, str(len(found)), *_figures(points)]


def _refusals(measured: dict[str, list[Replayed]]) -> list[list[str]]:
    rows: list[list[str]] = []
    for name, found in measured.items():
        stopped = [each for each in found if each.refused]
        judged = str(sum(each.success is True for each in stopped)) if any(each.success is not None for each in found) else ""
        rows.append([name, f"{sum(each.refused for each in found):,}", str(len(stopped)), str(len(found)), judged])
    return rows


def _by_length(measured: dict[str, list[Replayed]]) -> list[list[str]]:
    points = [point for found in measured.values() for each in found for point in each.points]
    rows: list[list[str]] = []
    bounds = (0, 2_000, 8_000, 12_000, 50_000, 200_000, 1 << 62)
    for least, most in pairwise(bounds):
        within = [point for point in points if least <= point.history.chars < most]
        if within:
            name = f"{least:,} chars and more" if most == bounds[-1] else f"{least:,} to {most:,} chars"
            rows.append([name, *_figures(within)])
    return rows


def _figures(points: list[Point]) -> list[str]:
    count = len(points)
    chars, ten, brief = (sum(getattr(point, name).chars for point in points) for name in ("history", "last_ten", "brief"))
    tokens, ten_tokens, brief_tokens = (
        sum(getattr(point, name).tokens for point in points) for name in ("history", "last_ten", "brief")
    )
    values, in_ten, in_brief = (sum(getattr(point, name) for point in points) for name in ("values", "in_ten", "in_brief"))
    facts, held = sum(point.facts for point in points), sum(point.held for point in points)
    return [
        f"{count:,}", f"{chars / count:,.0f}", f"{ten / count:,.0f}", f"{brief / count:,.0f}",
        f"{max(point.brief.chars for point in points):,}", _saved(brief, chars), _saved(brief_tokens, tokens),
        _saved(brief, ten), _saved(brief_tokens, ten_tokens), _share(held, facts),
        _share(in_ten, values), _share(in_brief, values),
    ]  # fmt: skip


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _saved(part: int, whole: int) -> str:
    return f"{100 * (1 - part / whole):.1f} %" if whole else ""


if __name__ == "__main__":
    sys.exit(main())
