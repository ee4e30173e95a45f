"""Cut real runs that failed at their decisive step, and measure how much of what the right way needs an agent is given there.

    python -m bench.recovery.replay DATASETS [--runs N] [--seed N]

DATASETS is the folder in which the data sets of the detection bench lie unpacked. Of a task that one run failed and another
one solved, the decisive step of the failed run is its first change that no run made which solved the task; without one it is
the end, where a change is missing. Needed are the argument values of the changes that a successful run makes from there on,
as far as they stand in the failed run's history: what nobody had found yet can't be given. The agent is sent the prompt of
``recover --force``; beside it stands as much text of the history's end, of its beginning, and of its rarest rows.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bench.detection.runs import Run
from bench.detection.tau import agentrx, tau2, tau_bench
from bench.recovery.lost import VALUE, workspace_of
from bench.recovery.rankings import novelty, rows_of
from ctxmgr.log.codec import Record
from ctxmgr.types.operations import RecoverRequest

_LOOKS = re.compile(r"(?:get|find|search|list|calculate|think|check|view|show|read|look|transfer_to_human)(?:_|$)")
"""Actions that change nothing, and the one that gives up."""
_LEAST_ROWS = 4
"""Entries before the cut: of a shorter history everything fits into the prompt."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A failed run up to its decisive step, and the values that the right way needs."""

    task: str
    records: list[Record]
    needed: frozenset[str]


def cuts(runs: Sequence[Run]) -> Iterator[Cut]:
    """Yield the failed runs of tasks that another run solved, each cut where it leaves the right way."""
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    for task, tried in by_task.items():
        solved = [run for run in tried if run.success]
        right = {_call(change) for run in solved for change in _changes(run)}
        for run in [each for each in tried if each.success is False]:
            decisive = next((change for change in _changes(run) if _call(change) not in right), None)
            records = run.records[: run.records.index(decisive)] if decisive is not None else run.records
            made = {_call(change) for change in _changes(run, records)}
            best = max(solved, key=lambda each: len(made & {_call(change) for change in _changes(each)}), default=None)
            if best is None or sum(record["kind"] == "entry" for record in records) < _LEAST_ROWS:
                continue
            ahead = [change for change in _changes(best) if _call(change) not in made]
            history = _text(records)
            needed = frozenset(value for change in ahead for value in _values(change.get("input")) if value in history)
            if needed:
                yield Cut(task, records, needed)


def _changes(run: Run, records: Sequence[Record] | None = None) -> list[Record]:
    """Return the calls of a run that change something and were not refused."""
    refused = {record["entry"] for record in run.records if record["kind"] == "result" and record.get("status") != "ok"}
    return [
        record for record in (run.records if records is None else records)
        if record["kind"] == "entry" and record["agent"] == "assistant" and record["id"] not in refused
        and not _LOOKS.match(str(record["action"]))
    ]  # fmt: skip


def _call(entry: Record) -> str:
    return json.dumps([entry["action"], entry.get("input")], sort_keys=True)


def _values(given: object) -> Iterator[str]:
    """Yield the values in arguments that are looked for."""
    if isinstance(given, dict):
        for value in cast("dict[str, Any]", given).values():
            yield from _values(value)
    elif isinstance(given, list):
        for value in cast("list[object]", given):
            yield from _values(value)
    elif isinstance(given, str) and VALUE.fullmatch(given):
        yield given


def _text(records: Sequence[Record]) -> str:
    """Return a history as a transcript."""
    told = ("action", "input", "output", "error", "data")
    return "\n".join(json.dumps(record[name]) for record in records for name in told if record.get(name) is not None)


def prompt_at(cut: Cut) -> str:
    """Return what an agent is sent at a cut."""
    with workspace_of(cut.records) as workspace:
        return workspace.recover(RecoverRequest(plan=True, force=True)).continuation.prompt


def rarest(cut: Cut, size: int) -> str:
    """Return the rows with the rarest words, as many as fit: what a ranking gives that never reads a question."""
    texts: dict[str, str] = defaultdict(str)
    for record in cut.records:
        texts[str(record.get("entry", record.get("id")))] += f"{_text([record])}\n"
    return "".join(texts[name] for name in novelty(rows_of(cut.records), ""))[:size]


def main() -> int:
    """Print the share of needed values in what is sent, and per 1,000 characters, by domain."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--runs", type=int, default=200, help="how many cut runs are drawn")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = [cut for source in (tau2, tau_bench, agentrx) for cut in cuts(list(source(options.datasets)))]
    chosen = random.Random(options.seed).sample(found, min(options.runs, len(found)))
    figures: dict[str, dict[str, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for cut in chosen:
        prompt, history = prompt_at(cut), _text(cut.records)
        size = len(prompt)
        sent = {
            "ctxmgr, prompt": prompt, "end of the history": history[-size:], "beginning": history[:size],
            "rarest rows": rarest(cut, size), "whole history": history,
        }  # fmt: skip
        for name, text in sent.items():
            share = sum(value in text for value in cut.needed) / len(cut.needed)
            for domain in (cut.task.split()[0], "all"):
                figures[domain][name].append((share, len(text)))
    lines = [f"{len(found):,} cut runs of {len({cut.task for cut in found}):,} tasks; {len(chosen)} of them drawn."]
    for domain, table in sorted(figures.items(), key=lambda each: each[0] == "all"):
        lines.append(f"{domain}: {len(next(iter(table.values())))} runs")
        for name, got in table.items():
            share, size = sum(part for part, _ in got) / len(got), sum(length for _, length in got) / len(got)
            of_thousand = 1e5 * share / size
            lines.append(
                f"  {100 * share:5.1f} % of the values, {size:7,.0f} characters, {of_thousand:5.1f} % per 1,000  {name}"
            )
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
