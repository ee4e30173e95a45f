"""Sort runs into groups by rules that share nothing with the detectors: only counting, in the order of the run.

A move is a tool call (agent, action, arguments as JSON with sorted keys) or a text (agent, text). A result is compared
as the source wrote it.

* exact loop: at least three equal moves in a row in one agent's own moves; its onset is the first of them.
* repeated call: one tool call comes at least three times in a run, wherever. Its group says whether its result changed:
  *unchanging* when one of the calls that come so often had one and the same result each time, *changing* when each of
  them had different results.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from bench.detection.runs import Run

TIMES = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Equal moves of one agent in a row, by the ids of their records."""

    names: tuple[str, ...]
    action: str


def exact_loops(run: Run) -> list[Row]:
    """Return the exact loops of a run, in the order of their onset."""
    streams: dict[str, list[tuple[str, str, str]]] = {}
    for record in run.records:
        if record["kind"] == "entry":
            key, action = _key(record), str(record["action"])
        elif record["kind"] == "event" and record["type"] in ("message", "user_message"):
            key, action = json.dumps(record["data"], sort_keys=True), "say"
        else:
            continue
        streams.setdefault(str(record.get("agent")), []).append((key, str(record["id"]), action))
    rows: list[Row] = []
    for moves in streams.values():
        start = 0
        for place in range(1, len(moves) + 1):
            if place == len(moves) or moves[place][0] != moves[start][0]:
                if place - start >= TIMES:
                    rows.append(Row(tuple(name for _, name, _ in moves[start:place]), moves[start][2]))
                start = place
    order = {str(record.get("id")): place for place, record in enumerate(run.records)}
    return sorted(rows, key=lambda row: order[row.names[0]])


def repeated(run: Run) -> Literal["unchanging", "changing"] | None:
    """Return the group of a run that makes one call at least three times, None of any other run."""
    results: dict[str, str] = {}
    for record in run.records:
        if record["kind"] == "result":
            results[str(record["entry"])] = json.dumps([record.get("status"), record.get("output")])
    said: dict[str, list[str]] = {}
    for record in run.records:
        if record["kind"] == "entry":
            said.setdefault(_key(record), []).append(results.get(str(record["id"]), ""))
    often = [answers for answers in said.values() if len(answers) >= TIMES]
    if not often:
        return None
    return "unchanging" if any(len(set(answers)) == 1 for answers in often) else "changing"


def _key(record: dict[str, Any]) -> str:
    return json.dumps([record.get("agent"), record["action"], record["input"]], sort_keys=True)
