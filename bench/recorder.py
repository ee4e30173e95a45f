"""What recording costs: one append at level `process` against one bare write of the same bytes, and masking at its worst.

    python bench/recorder.py [--json]

The parts are measured in turn within one run, so that a busy machine slows all of them. Times are of one call.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxmgr import ids
from ctxmgr.journal import Journal
from ctxmgr.masking import mask
from ctxmgr.recorder import Recorder
from ctxmgr.wire import Record, chain, encode, seal

_ROUNDS = 4_000
_HOSTILE = 2_000_000  # bytes
_UNITS = (
    "_", "-", ".", "A", "AIza", "eyJ", "eyJ-", "eyJaaaaaa.", "sk-", "ghp_", "xoxb-", "token=", "api_key", "password=", "://a:",
    "bearer ", "authorization: ", "-----BEGIN PRIVATE KEY-----", "\\\\", "\\n", "@",
)  # fmt: skip


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {**_appends(Path(folder)), "hostileMask": _hostile()}
    if options.json:
        print(json.dumps(figures))
        return 0
    print(f"one entry of {figures['bytes']:,} bytes, {_ROUNDS:,} rounds\n")
    print(f"{'':24}{'median µs':>10}{'p99 µs':>10}{'x write':>9}")
    for name, row in figures["calls"].items():
        print(f"{name:24}{row['median']:>10.2f}{row['p99']:>10.2f}{row['ratio']:>9.1f}")
    worst = figures["hostileMask"]
    print(
        f"\nmasking {_HOSTILE // 1_000_000} MB of {worst['unit']!r}: {worst['ms']:.0f} ms, {worst['ratio']:.0f} x a plain scan"
    )
    return 0


def _appends(folder: Path) -> dict[str, Any]:
    source = random.Random(1)
    text = "".join(source.choice("    abcdefghijklmnopqrstuvwxyz(.,):=\n") for _ in range(700))
    record: Record = {
        "v": 1, "kind": "entry", "session": ids.new_id(), "ts": ids.now(), "id": ids.new_id(), "agent": "coder",
        "action": "edit", "inputType": "object", "input": {"path": "src/main.py", "text": text}, "process": ids.new_id(),
    }  # fmt: skip
    body = encode(record)
    line = seal(body, chain("", body)) + b"\n"
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    journal, unmasked = Journal(folder / "a.jsonl"), Journal(folder / "b.jsonl", mask=False)
    recorder = Recorder(folder / "c.jsonl")
    calls: dict[str, Callable[[], object]] = {
        "bare write": lambda: os.write(bare, line),
        "encode": lambda: encode(record),
        "mask": lambda: mask(body),
        "chain and seal": lambda: seal(body, chain("0123456789abcdef", body)),
        "Journal.append": lambda: journal.append((record,)),
        "the same, not masked": lambda: unmasked.append((record,)),
        "Recorder.entry": lambda: recorder.entry("coder", "edit", record["input"]),
    }
    times: dict[str, list[int]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter_ns()
            call()
            times[name].append(time.perf_counter_ns() - began)
    recorder.end()
    journal.close()
    unmasked.close()
    os.close(bare)
    medians = {name: sorted(row)[len(row) // 2] for name, row in times.items()}
    rows = {
        name: {
            "median": medians[name] / 1e3,
            "p99": sorted(row)[len(row) * 99 // 100] / 1e3,
            "ratio": round(medians[name] / medians["bare write"], 2),
        }
        for name, row in times.items()
    }
    return {"bytes": len(line), "calls": rows}


def _hostile() -> dict[str, Any]:
    """Return the slowest of many texts made to slow the masker down, against a plain scan of the same bytes."""
    worst: dict[str, Any] = {"ms": 0.0}
    for unit in _UNITS:
        line = b'{"a":"' + unit.encode() * (_HOSTILE // len(unit)) + b'"}'
        began = time.process_time()
        line.lower().count(b"no such text")
        scan = time.process_time() - began
        began = time.process_time()
        mask(line)
        took = time.process_time() - began
        if took * 1e3 > worst["ms"]:
            worst = {"unit": unit, "ms": round(took * 1e3, 1), "ratio": round(took / scan, 1)}
    return worst


if __name__ == "__main__":
    sys.exit(main())
