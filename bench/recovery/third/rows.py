"""Calls of real runs with what came back, each once: the background of the third set, and its facts.

    python -m bench.recovery.third.rows DATASETS

writes ``rows.json.xz`` anew. DATASETS is the folder in which the data sets of the detection bench lie unpacked. The rows are
the successful calls by which the agents of tau2, tau-bench and AgentRx (MIT) served invented customers of a shop and an
airline. What a model or a customer said is not among them.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.detection.tau import agentrx, tau2, tau_bench

_FILE = Path(__file__).with_name("rows.json.xz")
_TRADES = {"retail": "shop", "agentrx": "shop", "airline": "airline", "taubench": "airline"}
_SAYS = re.compile(r"think|transfer|send_|list_all")
"""Actions whose input a model wrote as prose, or whose answer is always the same."""
_LONGEST = 3_500


class Row(NamedTuple):
    """A call: the trade of its run, the action, its input, and the text that came back."""

    trade: str
    action: str
    given: dict[str, Any]
    came: str

    @property
    def found(self) -> dict[str, Any]:
        """The input and what came back, read as JSON: not every result repeats the key."""
        return {**self.given, **json.loads(self.came)}

    def holds(self, value: str) -> bool:
        """Whether a value stands in the input or in what came back."""
        return value in self.came or value in json.dumps(self.given)


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows, in a fixed order."""
    return tuple(Row(*each) for each in json.loads(lzma.decompress(_FILE.read_bytes())))


def of(*actions: str) -> list[Row]:
    """Return the rows of some actions."""
    return [row for row in rows() if row.action in actions]


def collected(datasets: Path) -> list[Row]:
    """Return the rows of the data sets, sorted; of equal calls the first."""
    found: dict[str, Row] = {}
    for source in (tau2, tau_bench, agentrx):
        for run in source(datasets):
            results = {record["entry"]: record for record in run.records if record["kind"] == "result"}
            for entry in run.records:
                result = results.get(entry.get("id"), {})
                came = result.get("output") or ""
                trade = _TRADES.get(run.task.split()[0])
                if (
                    trade is None
                    or result.get("status") != "ok"
                    or _SAYS.match(entry["action"])
                    or not 2 < len(came) < _LONGEST
                ):
                    continue
                name = json.dumps([trade, entry["action"], entry["input"]], sort_keys=True)
                found.setdefault(name, Row(trade, entry["action"], entry["input"], came))
    return [found[name] for name in sorted(found)]


def main() -> int:
    """Write the archive."""
    all_ = collected(Path(sys.argv[1]))
    _FILE.write_bytes(lzma.compress(json.dumps(all_, ensure_ascii=False).encode(), preset=9 | lzma.PRESET_EXTREME))
    sys.stdout.write(f"{len(all_)} rows, {_FILE.stat().st_size:,} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
