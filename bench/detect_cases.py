"""Score the detectors on labelled scenarios.

usage: python bench/detect_cases.py LOG.jsonl LABELS.json [--all]

LOG.jsonl holds the scenarios as one log of format 1, one session each. LABELS.json is a list of {session, loop, pattern,
period, thirdIteration, eval, now}: ``loop`` null is not scored; ``now`` are seconds after the scenario's first record.
A healthy ``streaming`` scenario must never raise a finding, a healthy ``final`` one must have none unresolved at its end.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.ids import parse_time
from ctxmgr.types.finding import Finding


def judge(records: list[dict[str, Any]], label: dict[str, Any]) -> tuple[list[Finding], list[Finding], int | None]:
    """Return the findings ever raised, those unresolved at the end, and the place of the record of the first raise."""
    monitor = Monitor()
    place = {str(record.get("id") or record.get("entry")): number for number, record in enumerate(records)}
    first: int | None = None
    ever: dict[str, Finding] = {}
    for observation in observations_of(records):
        for finding in monitor.observe(observation):
            ever.setdefault(finding.id, finding)
            if first is None:
                first = place.get(finding.raised_at)
    now = None
    if label["now"] is not None:
        now = (parse_time(records[0]["ts"]) or 0.0) + float(label["now"])
    final = monitor.findings(now)
    ever.update((finding.id, finding) for finding in final)
    return list(ever.values()), [finding for finding in final if finding.resolved is None], first


def main() -> None:
    """Print the score."""
    parser = argparse.ArgumentParser(description="score the detectors on labelled scenarios")
    parser.add_argument("log", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--all", action="store_true", help="print every scenario with what was found")
    options = parser.parse_args()
    sessions: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    with options.log.open(encoding="utf-8") as lines:
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            sessions[record["session"]].append(record)
    hit: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    misses: list[str] = []
    alarms: list[str] = []
    late: list[str] = []
    healthy = thirds = in_time = 0
    for label in json.loads(options.labels.read_text(encoding="utf-8")):
        name = label["session"]
        records = sessions[name]
        ever, final, first = judge(records, label)
        if options.all:
            print(label["loop"], label["pattern"], name, [(each.kind, each.count, each.resolved) for each in ever])
        if label["loop"] is True:
            asked[label["pattern"]] += 1
            hit[label["pattern"]] += bool(ever)
            if not ever:
                misses.append(f"{name} ({label['pattern']})")
            elif label["thirdIteration"] is not None:
                thirds += 1
                limit = next((n for n, each in enumerate(records) if each.get("id") == label["thirdIteration"]), None)
                on_time = first is not None and limit is not None and first <= limit
                in_time += on_time
                if not on_time:
                    late.append(name)
        elif label["loop"] is False:
            healthy += 1
            wrong = ever if label["eval"] == "streaming" else final
            if wrong:
                alarms.append(f"{name}: {wrong[0].reason}")
    total = sum(asked.values())
    print(f"recall {sum(hit.values())}/{total} = {sum(hit.values()) / max(1, total):.3f}")
    for pattern in sorted(asked):
        print(f"  {pattern}: {hit[pattern]}/{asked[pattern]}")
    print(f"false alarms {len(alarms)}/{healthy}")
    print(f"at the third iteration or before: {in_time}/{thirds} of the detected loops that have one")
    for title, names in (("missed", misses), ("false alarm", alarms), ("late", late)):
        for name in names:
            print(f"{title}: {name}")


if __name__ == "__main__":
    main()
