"""Measure a new version of a large tree against a plain copy and a commit of the same tree, and a put of a huge file.

    python bench/artifacts.py --rounds 5

A tree of 10,000 artifacts (100 owners of 100) in which one file changes: how long until the new version is durable and
listed, against ``cp -r`` of the tree and ``git add -A`` with ``git commit`` of it. The three take turns, and what counts is
the median of the quotients within a round. Then a sparse file of 5 GB is put, and the most memory that this took.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import Store, open_store
from ctxmgr.types.artifact import NewArtifact, PutRequest

OWNERS, EACH, SIZE = 100, 100, 2_000
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0", "-c", "commit.gpgsign=false")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _lay_out(tree: Path, source: random.Random) -> None:
    for owner in range(OWNERS):
        folder = tree / f"agent{owner:03}"
        folder.mkdir(parents=True)
        for number in range(EACH):
            text = "".join(f"key{line}: {source.getrandbits(64)}\n" for line in range(SIZE // 28))
            (folder / f"artifact{number:03}.yaml").write_text(text, encoding="ascii")


def _git(tree: Path, *words: str) -> None:
    subprocess.run([*_GIT, *words], cwd=tree, check=True, stdout=subprocess.DEVNULL)


def _commit(tree: Path, message: str) -> None:
    _git(tree, "add", "-A")
    _git(tree, "commit", "-q", "-m", message)


def _put_all(store: Store, tree: Path) -> None:
    for owner in sorted(tree.iterdir()):
        if owner.is_dir() and owner.name != ".git":
            items = [NewArtifact(name=file.name, path=str(file)) for file in sorted(owner.iterdir())]
            ArtifactStore(store).put(PutRequest(agent=owner.name, artifacts=items))


def _put_one(location: str, file: Path) -> None:
    store = open_store(location)
    try:
        answer = ArtifactStore(store).put(
            PutRequest(agent=file.parent.name, artifacts=[NewArtifact(name=file.name, path=str(file))])
        )
        assert answer.changed
    finally:
        store.close()


def measure(folder: Path, rounds: int, seed: int) -> dict[str, float]:
    """Return medians in seconds, and the medians of the quotients within each round."""
    source = random.Random(seed)
    tree = folder / "tree"
    _lay_out(tree, source)
    _git(tree, "init", "-q")
    _commit(tree, "all")
    location = str(folder / "history.db")
    store = open_store(location, create=True)
    _put_all(store, tree)
    store.close()
    times: dict[str, list[float]] = {"ctxmgr": [], "cp": [], "git": []}
    for number in range(rounds):
        changed = tree / f"agent{source.randrange(OWNERS):03}" / f"artifact{source.randrange(EACH):03}.yaml"
        changed.write_text(f"round: {number}\n" + changed.read_text("ascii"), encoding="ascii")
        copy = folder / f"copy{number}"
        turns: list[tuple[str, Callable[[], object]]] = [
            ("ctxmgr", lambda file=changed: _put_one(location, file)),
            ("cp", lambda target=copy: subprocess.run(["cp", "-r", *_owners(tree), _made(target)], check=True)),
            ("git", lambda said=f"round {number}": _commit(tree, said)),
        ]
        for name, turn in (*turns[number % 3 :], *turns[: number % 3]):
            times[name].append(_seconds(turn))
        shutil.rmtree(copy)
    medians = {f"{name}_seconds": statistics.median(took) for name, took in times.items()}
    for other in ("cp", "git"):
        pairs = zip(times["ctxmgr"], times[other], strict=True)
        medians[f"ctxmgr_by_{other}"] = statistics.median(ours / theirs for ours, theirs in pairs)
    return medians


def _owners(tree: Path) -> list[str]:
    return [str(path) for path in sorted(tree.iterdir()) if path.name != ".git"]


def _made(folder: Path) -> str:
    folder.mkdir()
    return str(folder)


def huge(folder: Path, size: int) -> dict[str, float]:
    """Put a sparse file in a process of its own; return its seconds and the most memory it had, in MB."""
    file = folder / "huge.bin"
    with file.open("wb") as stream:
        stream.truncate(size)
    child = os.fork()
    if child == 0:
        store = open_store(str(folder / "huge.db"), create=True)
        began = time.perf_counter()
        ArtifactStore(store).put(PutRequest(agent="big", artifacts=[NewArtifact(name="huge.bin", path=str(file))]))
        took = time.perf_counter() - began
        (folder / "took").write_text(json.dumps([took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    took, memory = json.loads((folder / "took").read_text())
    return {"huge_gb": size / 1e9, "huge_seconds": took, "huge_peak_mb": memory}


def main() -> int:
    """Run from the command line and print one line for each figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", type=int, default=5 * 10**9, help="of the huge file, in bytes; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, float] = {"seed": options.seed, "artifacts": OWNERS * EACH}
    with tempfile.TemporaryDirectory(prefix="bench-artifacts-") as folder:
        if options.rounds:
            figures |= measure(Path(folder), options.rounds, options.seed)
        if options.size:
            figures |= huge(Path(folder), options.size)
    print(json.dumps(figures) if options.json else "\n".join(f"{name} {value:,.4g}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
