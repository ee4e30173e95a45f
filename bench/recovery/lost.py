"""Measure whether a value is found again that a real run held long before it was needed.

    python -m bench.recovery.lost DATASETS [--queries N] [--seed N]

DATASETS is the folder in which the data sets of the detection bench lie unpacked. A query is made of each successful call
with an argument value that stands in the result of an earlier entry, not in the task, and in nothing of the last four
entries: the run is cut before that call, and the agent asks for the argument by its name. Nobody wrote these questions to
fit the rules, and the noise is that of real runs. Figures stand beside those of rankings that never read the question. The
tasks are split in two by their names: on the first half rules may be tuned, the second only judges them. Beside each ranking
stands the processor's time for 1,000 entries, as a multiple of that of BM25; of the product it is that of the whole request,
whose part that does not grow weighs most in runs of this length.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from bench.detection.runs import Run
from bench.detection.tau import agentrx, tau2, tau_bench
from bench.recovery.rankings import BLIND, RANKINGS, chance, rows_of
from ctxmgr.log.codec import Record
from ctxmgr.types.operations import AgentRequest
from ctxmgr.workspace import Workspace

FIRST = 5
_PRODUCT = "ctxmgr, facts in their order"
_LAST, _LEAST_ROWS = 4, 12
VALUE = re.compile(r"(?=.*\d)[\w@.#-]{5,60}")
"""Values that are looked for: with a digit, for words prove nothing."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question: the run up to the call, its task, who asks, what for, and the entries that hold the value."""

    run: str
    task: str
    records: list[Record]
    agent: str
    reason: str
    goal: str
    holding: frozenset[str]


def queries(run: Run) -> Iterator[Query]:
    """Yield the questions that a run gives, one for each value."""
    results = {record["entry"]: record for record in run.records if record["kind"] == "result"}
    entries = [record for record in run.records if record["kind"] == "entry"]
    answers = {name: result.get("output") for name, result in results.items()}
    told = {str(entry["id"]): json.dumps(answers.get(entry["id"])) for entry in entries}
    texts = {str(entry["id"]): json.dumps(entry.get("input")) + told[str(entry["id"])] for entry in entries}
    seen: set[str] = set()
    for place, entry in enumerate(entries):
        if results.get(entry["id"], {}).get("status") != "ok" or place < _LEAST_ROWS or not isinstance(entry["input"], dict):
            continue
        cut = run.records.index(entry)
        said = " ".join(json.dumps(record.get("data")) for record in run.records[:cut] if record["kind"] == "event")
        before = [str(each["id"]) for each in entries[:place]]
        for name, value in cast("dict[str, Any]", entry["input"]).items():
            if not isinstance(value, str) or not VALUE.fullmatch(value) or value in seen or value in said:
                continue
            seen.add(value)
            holding = frozenset(each for each in before if value in told[each])
            if not holding or any(value in texts[each] for each in before[-_LAST:]):
                continue
            label = str(name).replace("_", " ")
            reason = f"Which {label} is needed for {str(entry['action']).replace('_', ' ')}?"
            yield Query(run.name, run.task, run.records[:cut], str(entry["agent"]), reason, f"call {entry['action']}", holding)


@contextmanager
def workspace_of(records: Sequence[Record]) -> Generator[Workspace]:
    """Open a store of these records alone."""
    with (
        tempfile.TemporaryDirectory(prefix="ctxmgr-bench-") as folder,
        Workspace.open(str(Path(folder) / "h.db"), create=True, folder=Path(folder), environment={}) as workspace,
    ):
        workspace.store.append(records)
        yield workspace


def cited(query: Query) -> tuple[list[str], float]:
    """Return the entries that the product's answer cites, in the order of its facts, and the processor's seconds for it."""
    asked = AgentRequest(
        session=str(query.records[0]["session"]), type="INTROSPECT_AGENT_CONTEXT", requester=query.agent,
        reason=query.reason, goal=query.goal, plan=True,
    )  # fmt: skip
    with workspace_of(query.records) as workspace:
        began = time.process_time()
        found = workspace.request(asked).continuation
        took = time.process_time() - began
    return list(dict.fromkeys(name for fact in found.context.facts for name in fact.entries if name.startswith("r"))), took


def is_judge(query: Query) -> bool:
    """Whether the query's task is of the half that only judges; all runs of a task are in the same half."""
    return sha256(query.task.encode()).digest()[0] % 2 == 1


@dataclass(slots=True)
class Figure:
    """Of a ranking: queries with a holding entry within the first five, and the processor's milliseconds for 1,000 entries."""

    good: float = 0.0
    milliseconds: float = 0.0


def measured(chosen: Sequence[Query]) -> dict[str, Figure]:
    """Return the figures of each ranking."""
    found: dict[str, Figure] = defaultdict(Figure)
    entries = 0
    for query in chosen:
        began = time.process_time()
        rows = rows_of(query.records)
        reading = time.process_time() - began
        ids = {row.id for row in rows}
        entries += len(rows)
        names, took = cited(query)
        found[_PRODUCT].good += bool(query.holding & set([name for name in names if name in ids][:FIRST]))
        found[_PRODUCT].milliseconds += 1e6 * took
        for name, ranking in RANKINGS.items():
            began = time.process_time()
            found[name].good += bool(query.holding & set(ranking(rows, f"{query.reason} {query.goal}")[:FIRST]))
            found[name].milliseconds += 1e6 * (time.process_time() - began + reading)
        found["chance"].good += chance(len(rows), len(query.holding & ids), FIRST, every=False)
    for figure in found.values():
        figure.milliseconds /= max(1, entries)
    return found


def report(half: str, chosen: Sequence[Query]) -> list[str]:
    """Return the lines about one half of the tasks."""
    table, of = measured(chosen), max(1, len(chosen))
    lines = [f"{len({query.task for query in chosen})} tasks, {len(chosen)} queries ({half})"]
    lines += [
        f"  within {FIRST}: {100 * figure.good / of:5.1f} %  {figure.milliseconds:7.1f} ms for 1,000 entries, "
        f"{figure.milliseconds / table['BM25'].milliseconds:5.1f} times BM25  {name}"
        for name, figure in table.items()
    ]
    if table and max(table[name].good for name in BLIND) >= table[_PRODUCT].good:
        lines.append("  This half counts for nothing: a ranking that never reads the question finds as much.")
    return lines


def main() -> int:
    """Print the figures of a sample of the queries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--queries", type=int, default=200, help="how many are drawn")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found: list[Query] = []
    for source in (tau2, tau_bench, agentrx):
        found += [query for run in source(options.datasets) for query in queries(run)]
    chosen = random.Random(options.seed).sample(found, min(options.queries, len(found)))
    lines = [f"{len(found):,} queries of {len({query.run for query in found}):,} real runs; {len(chosen)} of them drawn."]
    for half, judges in (("rules may be tuned on it", False), ("it only judges", True)):
        lines += report(half, [query for query in chosen if is_judge(query) == judges])
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
