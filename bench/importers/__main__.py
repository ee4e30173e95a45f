"""Measure the importers: ``python -m bench.importers speed|fuzz|outputs|detection``; each has its own ``--help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    """Run what was asked for; the exit code is 1 when it found a fault."""
    parser = argparse.ArgumentParser(prog="python -m bench.importers", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    speed = kinds.add_parser("speed", help="MB/s and memory of each format beside json.loads of the same bytes")
    speed.add_argument("--size", type=float, default=8.0, help="megabytes of each log")
    speed.add_argument("--format", help="only this one")
    speed.add_argument("--padding", type=int, default=0, help="characters by which outputs of tools are longer")
    damage = kinds.add_parser("fuzz", help="read damaged logs: no fault, and no intact entry lost")
    damage.add_argument("--files", type=int, default=10_000)
    damage.add_argument("--seed", type=int, default=1)
    damage.add_argument("--seconds", type=float, help="end after so long")
    damage.add_argument("--format", help="only this one")
    made = kinds.add_parser("outputs", help="a hash of what comes of each log, to compare two versions")
    made.add_argument("--mutants", type=int, default=1_200)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--more", type=Path, help="folder with further logs")
    made.add_argument("--format", help="only this one")
    detection = kinds.add_parser("detection", help="alarms in labelled runs, read by importers and by bench.detection")
    detection.add_argument("runs", type=Path, help="folder with the data sets")
    given = parser.parse_args(words)
    if given.kind == "detection":
        from bench.importers.detection import compare

        compared = compare(given.runs)
        for name, each in compared.items():
            print(
                f"{name}: {each.runs} runs, {each.alarms} with alarms, {len(each.differing)} differ, {len(each.unread)} unread"
            )
            for line in [*(f"  {run}: {own} / {ours}" for run, own, ours in each.differing), *each.unread]:
                print(line)
        return 1 if any(each.differing or each.unread for each in compared.values()) else 0
    if given.kind == "outputs":
        from bench.importers.outputs import outputs

        for line in outputs(given.mutants, given.seed, given.more, given.format):
            print(line)
        return 0
    if given.kind == "fuzz":
        from bench.importers.fuzz import fuzz

        print(f"seed {given.seed}", flush=True)
        tally = fuzz(given.files, given.seed, given.seconds, given.format)
        print(tally.shown())
        return 1 if tally.faults or tally.losses else 0
    from bench.importers.speed import costs

    costs(int(given.size * 1e6), given.format, given.padding)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
