"""Score the detectors on labelled scenarios.

usage: python -m bench.detect_cases LOG.jsonl LABELS.json [--all]

LOG.jsonl holds the scenarios as one log of format 1, one session each. LABELS.json is a list of {session, loop,
pattern, period, thirdIteration, eval, now}: ``loop`` null is not scored; ``now`` are seconds after the scenario's
first record. A healthy ``streaming`` scenario must never raise a finding, a healthy ``final`` one must have none
unresolved at its end.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.ids import parse_time
from ctxmgr.types.finding import Finding

_Records = list[dict[str, Any]]


def judge(records: _Records, now: float | None) -> tuple[list[Finding], list[Finding], str | None]:
    """Return the findings ever raised, those unresolved at the end, and the id of the record of the first raise."""
    monitor = Monitor()
    raised_at: str | None = None
    ever: dict[str, Finding] = {}
    for observation in observations_of(records):
        for finding in monitor.observe(observation):
            ever.setdefault(finding.id, finding)
            raised_at = raised_at or finding.raised_at
    final = monitor.findings(None if now is None else (parse_time(records[0]["ts"]) or 0.0) + now)
    ever.update((finding.id, finding) for finding in final)
    return list(ever.values()), [finding for finding in final if finding.resolved is None], raised_at


@dataclass
class Score:
    """Counts over all scenarios, and the names of those that went wrong."""

    hit: Counter[str] = field(default_factory=Counter[str])
    asked: Counter[str] = field(default_factory=Counter[str])
    healthy: int = 0
    with_third: int = 0
    missed: list[str] = field(default_factory=list[str])
    alarms: list[str] = field(default_factory=list[str])
    late: list[str] = field(default_factory=list[str])

    def add(self, label: dict[str, Any], records: _Records) -> list[Finding]:
        """Judge one scenario and count it; return what was found."""
        ever, final, raised_at = judge(records, label["now"])
        name = label["session"]
        if label["loop"] is True:
            self._add_loop(name, label, records, bool(ever), raised_at)
        elif label["loop"] is False:
            self.healthy += 1
            wrong = ever if label["eval"] == "streaming" else final
            if wrong:
                self.alarms.append(f"{name}: {wrong[0].reason}")
        return ever

    def _add_loop(self, name: str, label: dict[str, Any], records: _Records, found: bool, raised_at: str | None) -> None:
        self.asked[label["pattern"]] += 1
        self.hit[label["pattern"]] += found
        if not found:
            self.missed.append(f"{name} ({label['pattern']})")
        elif label["thirdIteration"] is not None:
            self.with_third += 1
            ids = [record.get("id") for record in records]
            if raised_at not in ids or ids.index(raised_at) > ids.index(label["thirdIteration"]):
                self.late.append(name)

    def show(self) -> None:
        """Print the counts and the names."""
        total, hit = sum(self.asked.values()), sum(self.hit.values())
        print(f"recall {hit}/{total} = {hit / max(1, total):.3f}")
        for pattern in sorted(self.asked):
            print(f"  {pattern}: {self.hit[pattern]}/{self.asked[pattern]}")
        print(f"false alarms {len(self.alarms)}/{self.healthy}")
        in_time = self.with_third - len(self.late)
        print(f"at the third iteration or before: {in_time}/{self.with_third} of the detected loops that have one")
        for title, names in (("missed", self.missed), ("false alarm", self.alarms), ("late", self.late)):
            for name in names:
                print(f"{title}: {name}")


def main() -> None:
    """Score the log and print the result."""
    parser = argparse.ArgumentParser(description="score the detectors on labelled scenarios")
    parser.add_argument("log", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--all", action="store_true", help="print every scenario with what was found")
    options = parser.parse_args()
    sessions: defaultdict[str, _Records] = defaultdict(list)
    with options.log.open(encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            sessions[record["session"]].append(record)
    score = Score()
    for label in json.loads(options.labels.read_text(encoding="utf-8")):
        found = score.add(label, sessions[label["session"]])
        if options.all:
            print(label["session"], label["loop"], label["pattern"], [(it.kind, it.count, it.resolved) for it in found])
    score.show()


if __name__ == "__main__":
    main()
