"""Whom a client's hook would have told: each run call by call, counted as the hook counts, judged only where it would ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.detection.runs import Run
from bench.detection.tables import table
from ctxmgr.clients import AFTER, Call, Event
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.live.monitor import RecordStream
from ctxmgr.live.event_answer import Rounds, call_rows


class CountedRounds(Rounds):
    """The rows of one agent, kept in memory."""

    def append(self, *rows: Sequence[str]) -> None:
        """Add rows as the file would hold them."""
        for row in rows:
            self.rows = [] if row[0] == "u" else [*self.rows, list(row)]


def told(run: Run) -> tuple[int, int]:
    """Return how often the detectors were asked about a run, and how often its agent would have been told."""
    monitor, stream = Monitor(DetectSettings()), RecordStream()
    begun: dict[str, dict[str, Any]] = {}
    rounds: dict[str, CountedRounds] = {}
    asked = answers = 0
    for record in run.records:
        for seen in stream.take(record):
            monitor.observe(seen)
        kind = record.get("kind")
        if kind == "entry":
            begun[str(record["id"])] = record
        elif kind == "event" and record.get("type") == "user_message":
            for each in rounds.values():
                each.append(("u",))
        entry = begun.get(str(record.get("entry"))) if kind == "result" else record if kind == "entry" else None
        if entry is None or "status" not in record:
            continue
        agent = str(entry.get("agent"))
        own = rounds.setdefault(agent, CountedRounds("bench", run.name, agent))
        error: Any = record.get("error")
        result: Any = record.get("output") if record.get("status") == "ok" else error and error.get("message")
        call = Call(str(entry["action"]), entry.get("input"), str(entry["id"]), result)
        own.append(*call_rows(Event(AFTER, "", run.name, [call], agent)))
        row = own.worth_asking(1)
        if row is None:
            continue
        asked += 1
        if any(each.severity == "loop" and each.resolved is None for each in monitor.findings(live=True)):
            answers += 1
            own.append(("t", "1", row[2]))
        else:
            own.append(("n", row[1], row[3]))
    return asked, answers


def live(runs: Iterable[Run]) -> list[str]:
    """Return what came of runs that were solved and of those that were not, by data set."""
    counts: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        if run.success is None:
            continue
        asked, answers = told(run)
        row = counts.setdefault((run.dataset, "solved" if run.success else "not solved"), [0, 0, 0])
        for place, value in enumerate((1, asked > 0, answers > 0)):
            row[place] += value
    rows = [[*key, *row, f"{100 * row[2] / row[0]:.2f}"] for key, row in sorted(counts.items())]
    solved = [row for key, row in counts.items() if key[1] == "solved"]
    whole = [sum(column) for column in zip(*solved, strict=True)] if solved else [0, 0, 0]
    rows.append(["all", "solved", *whole, f"{100 * whole[2] / max(1, whole[0]):.2f}"])
    head = ["data set", "runs that were", "runs", "detectors asked in", "agent told in", "told per 100"]
    return table(head, [[str(cell) for cell in row] for row in rows])
