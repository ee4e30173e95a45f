"""Recall on the corpus, false maskings on ordinary lines, growth on hostile text."""

from __future__ import annotations

import json
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from bench.masking.corpus import cases
from ctxmgr.log.codec import encode

Mask = Callable[[bytes], bytes]


def masked(mask: Mask, text: str) -> str:
    """Return a text as it stands in a record after masking."""
    return str(json.loads(mask(encode({"v": 1, "kind": "entry", "input": text})))["input"])


def recall(mask: Mask, half: str, seed: int, draws: int = 10) -> tuple[float, dict[str, float]]:
    """Return the share of shapes masked in nine of ten draws or more, and the share of each that is not."""
    told: dict[str, list[bool]] = {}
    for name, text, secrets in cases(half, seed, draws):
        hidden = masked(mask, text)
        told.setdefault(name, []).append(not any(secret in hidden for secret in secrets) and hidden != text)
    shares = {name: sum(each) / len(each) for name, each in told.items()}
    missed = {name: share for name, share in shares.items() if share < 0.9}
    return 1 - len(missed) / len(shares), missed


def ordinary(folders: list[Path], count: int) -> Iterator[str]:
    """Yield lines of files that stand on every machine: programs, documentation, data."""
    endings = (
        ".py",
        ".md",
        ".txt",
        ".json",
        ".yaml",
        ".yml",
        ".toml",
        ".c",
        ".h",
        ".js",
        ".ts",
        ".sh",
        ".pl",
        ".pm",
        ".cfg",
        ".rst",
        ".jsonl",
        ".log",
        ".diff",
    )
    files = [
        p for folder in folders for p in sorted(folder.rglob("*")) if p.suffix in endings and p.is_file() and not p.is_symlink()
    ]
    step = max(1, len(files) // 2_000)
    rows = (row for path in files[::step] for row in islice(_lines(path), 60))
    return islice(rows, count)


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for row in file:
            if len(row) > 1 and len(row) < 20_000:
                yield row.rstrip("\n")


def false_maskings(mask: Mask, count: int, folders: list[Path] | None = None) -> tuple[int, list[tuple[str, str]]]:
    """Return how many ordinary lines were looked at, and those that were changed, before and after."""
    places = folders or [Path(sysconfig.get_paths()["stdlib"]), Path(sysconfig.get_paths()["purelib"])]
    rows = list(ordinary(places, count))
    return len(rows), [(row, hidden) for row in rows if (hidden := masked(mask, row)) != row]


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest of some rounds, in processor time: what else runs on the machine does not count."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    from ctxmgr.log.masking import mask as now

    for half in sys.argv[1:]:
        share, missed = recall(now, half, 1)
        print(half, f"{share:.3f}")
        for name in missed:
            print("   ", name)
