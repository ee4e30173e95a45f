"""Measure assembling a package of 200 items under a budget of 100,000 tokens, with a cold and a warm cache of summaries.

    python bench/packages.py --rounds 7

The artifacts are files of this project and of the packages it stands on: Markdown, Python, YAML and JSON, half of them needed
in full as far as there is room, half as references; altogether several times the budget. Each round runs in a process of
its own: its wall time, its processor time and its most memory, of the assembly alone and of the whole process.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import ruamel.yaml

from ctxmgr.access.guard import AccessGuard
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.context.packages import whole_cost
from ctxmgr.context.service import ContextPackages
from ctxmgr.store import open_store
from ctxmgr.text.tokens import ESTIMATE
from ctxmgr.types.artifact import NewArtifact, PutRequest
from ctxmgr.types.context_package import AssembleRequest
from ctxmgr.types.project_state import AgentNeed, ChangeNeedsRequest

ITEMS, BUDGET = 200, 100_000
_SMALLEST, _LARGEST = 1_500, 40_000  # bytes
_SUFFIXES = (".md", ".py", ".yaml", ".yml", ".json", ".txt", ".rst")


def _files() -> Iterator[Path]:
    """Yield real files of the kinds that are summarised, in a fixed order, taking turns between the kinds."""
    here = Path(__file__).parents[1]
    roots = [here / "ctxmgr", here / "fixtures", Path(ruamel.yaml.__file__).parents[2]]
    by_suffix: dict[str, list[Path]] = {suffix: [] for suffix in _SUFFIXES}
    for root in roots:
        for path in sorted(root.rglob("*")) if root.is_dir() else ():
            if path.suffix in by_suffix and path.is_file() and _SMALLEST <= path.stat().st_size <= _LARGEST:
                by_suffix[path.suffix].append(path)
    piles = [pile for pile in by_suffix.values() if pile]
    place = 0
    while any(place < len(pile) for pile in piles):
        yield from (pile[place] for pile in piles if place < len(pile))
        place += 1


def _lay_out(place: Path) -> tuple[int, int]:
    """Put 200 artifacts of 20 owners, and say that an agent needs them; return how many there are, and their tokens."""
    found: list[NewArtifact] = []
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found.append(NewArtifact(name=f"{len(found):03}-{path.name}", content=text))
        if len(found) == ITEMS:
            break
    with closing(open_store(str(place), create=True)) as store:
        artifacts = ArtifactStore(store)
        for owner in range(20):
            artifacts.put(PutRequest(agent=f"agent{owner:02}", artifacts=found[owner::20]))
        needs = [
            AgentNeed(agent="dev", pattern=f"agent{owner:02}/*", need="optional" if owner % 2 else "reference", priority=owner)
            for owner in range(20)
        ]
        ContextPackages(store, store, AccessGuard(store)).change_needs(ChangeNeedsRequest(add=needs))
        rows = store.artifacts.state(store.artifacts.current() or 0)
        return len(rows), sum(row.tokens for row in rows)


def _assemble(place: str) -> None:
    """Assemble once, in this process, and print what it took."""
    with closing(open_store(place)) as store:
        supply = ContextPackages(store, store, AccessGuard(store))
        began, used = time.perf_counter(), time.process_time()
        made = supply.assemble(AssembleRequest(agent="dev", max_tokens=BUDGET))
        wall, cpu = time.perf_counter() - began, time.process_time() - used
        cached = store.engine.query("SELECT count(*) FROM summary")[0][0]
    print(
        json.dumps(
            {
                "wall": wall, "cpu": cpu, "process": time.process_time(),
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "items": len(made.package.artifacts), "decisions": len(made.decisions), "cached": cached,
                "tokens": made.package.metadata.total_tokens, "counted": whole_cost(made.package, ESTIMATE),
            }
        )
    )  # fmt: skip


def _round(place: Path) -> dict[str, float]:
    ran = subprocess.run([sys.executable, __file__, "--assemble", str(place)], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def _told(name: str, rounds: list[dict[str, float]]) -> None:
    median = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    spread = f"{min(one['wall'] for one in rounds):.2f} to {max(one['wall'] for one in rounds):.2f}"
    took = f"{median['wall']:.2f} s ({spread}), {median['cpu']:.2f} s of processor"
    whole = f"whole process {median['process']:.2f} s and {median['memory'] / 1024:.0f} MB"
    given = f"{median['items']:.0f} of {median['decisions']:.0f} items, {median['tokens']:,.0f} tokens by the package"
    print(f"{name}: {took}; {whole}; {given}, {median['counted']:,.0f} counted in it")


def main() -> None:
    """Lay out the project, then assemble with an emptied and with a full cache in turns."""
    parser = argparse.ArgumentParser(description="Measure assembling a package of 200 items.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--assemble", metavar="STORE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.assemble:
        _assemble(options.assemble)
        return
    with tempfile.TemporaryDirectory(prefix="packages-") as folder:
        place = Path(folder) / "history.db"
        count, tokens = _lay_out(place)
        print(f"{count} artifacts with {tokens:,} tokens, a budget of {BUDGET:,}")
        cold: list[dict[str, float]] = []
        warm: list[dict[str, float]] = []
        for _ in range(options.rounds):
            with closing(open_store(str(place))) as store:
                store.engine.execute("DELETE FROM summary")
            cold.append(_round(place))
            warm.append(_round(place))
        _told("cold cache", cold)
        _told("warm cache", warm)


if __name__ == "__main__":
    main()
