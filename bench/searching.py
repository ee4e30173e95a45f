"""What searching, paging and importing cost as history grows, against the tools that do the same to a JSONL file.

    python bench/searching.py [--sizes 10000,100000] [--rounds 9] [--folder DIR] [--json]

Histories are generated: the same at each run, 1.1 KB a record, words of a natural distribution, an id of 32 digits in
each record, and planted words that are rare (1 in 100,000), 1 in 100, common, or absent. One million records take 4 GB of
disk and some minutes. Within the library each row is a median, of CPU time too, for a machine that is shared; programs
are run in turn (A B C A B C), whole processes, and what is compared is the median of the ratios of each round.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ctxmgr.history.ingest import import_logs
from ctxmgr.history.reading import list_, search, trace
from ctxmgr.ids import format_time
from ctxmgr.store import Store, open_store
from ctxmgr.store.search_index import drop
from ctxmgr.types.query import ListRequest, SearchRequest, TraceRequest

_ACTIONS = ("Bash", "Read", "Edit", "Grep", "WebFetch", "kickOffDiscoveryAgents", "Write", "Glob")
_SYLLABLES = (
    "ba",
    "co",
    "di",
    "fe",
    "gu",
    "ha",
    "in",
    "jo",
    "ka",
    "lo",
    "me",
    "nu",
    "or",
    "pi",
    "que",
    "ra",
    "st",
    "ta",
    "un",
    "vi",
)
_JOINTS = (" ", " ", " ", " ", " ", ", ", ". ", "(", ") ", ".", " = ", ": ", "\n    ", '"', "/")

TERMS = {
    "rare word": "zxqvortex", "rare part": "xqvort", "1 % word": "quillfish", "1 % part": "uillfis", "common": "error",
    "absent": "qqqzzzqq", "short word": "the", "3 of an id": "a3f", "4 of an id": "a3f9", "5 of an id": "a3f98",
    "phrase": "zxqvortex was", "marks": "=>{", "2 letters": "zx",
}  # fmt: skip


def records(count: int) -> Iterator[str]:
    """Yield the lines of a history of so many records."""
    chance = random.Random(20_260_122)
    words = sorted({"".join(chance.choices(_SYLLABLES, k=chance.randint(1, 5))) for _ in range(40_000)})
    words += ["_".join(chance.sample(words, 2)) for _ in range(10_000)]
    chance.shuffle(words)
    weights = list(itertools.accumulate(1 / (rank + 8) for rank in range(len(words))))
    yield json.dumps({"v": 1, "kind": "session", "session": "s", "ts": "2026-01-01T00:00:00Z", "process": "p"})
    for number in range(count):
        size = min(3_000, int(chance.lognormvariate(4.5, 0.8)))
        parts = chance.choices(words, cum_weights=weights, k=size)
        parts.insert(size // 2, "the error" if number % 4 == 0 else "the")
        if number % 100 == 37:
            parts.append("quillfish")
        if number % 100_000 == 4_321 or number in (17, 5_017):
            parts.append(f"zxqvortex was {number}")
        text = "".join(itertools.chain.from_iterable(zip(parts, chance.choices(_JOINTS, k=len(parts)), strict=True)))
        mark = hashlib.blake2b(str(number).encode(), digest_size=16).hexdigest()
        ts = format_time(1_767_225_600 + number)
        common = {"v": 1, "kind": "entry", "session": "s", "ts": ts, "id": f"e{mark}", "agent": f"agent-{number % 7}"}
        if number % 5 < 3:
            action = "rareAction" if number % 5_000 == 0 else chance.choice(_ACTIONS)
            asked = {"command": text[:200], "call": mark}
            yield json.dumps(
                common | {"action": action, "input": asked, "status": "ok", "output": text[200:], "durationMs": 12.5}
            )
        else:
            yield json.dumps(common | {"kind": "event", "type": "message", "data": {"text": text, "request": mark}})


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="10000,100000", help="numbers of records")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, help="keeps the histories here")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["XDG_CACHE_HOME"] = scratch
        figures = {size: measure(options.folder or Path(scratch), size, options.rounds) for size in sizes}
    if options.json:
        print(json.dumps(figures))
        return 0
    for size, rows in figures.items():
        print(f"\n{size:,} records")
        for name, row in rows.items():
            print(f"  {name:34}" + "  ".join(f"{key} {value:,.4g}" for key, value in row.items()))
    _growth(figures)
    return 0


def _growth(figures: dict[int, dict[str, dict[str, float]]]) -> None:
    first, last = min(figures), max(figures)
    if first != last:
        print(f"\ngrowth from {first:,} to {last:,} records (CPU)")
        for name, row in figures[last].items():
            if "cpu ms" in row:
                print(f"  {name:34}{row['cpu ms'] / max(1e-9, figures[first][name]['cpu ms']):6.2f}")


def measure(folder: Path, size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return all figures at one size."""
    log, database = folder / f"h{size}.jsonl", folder / f"h{size}.db"
    if not log.exists():
        with log.open("w", encoding="ascii") as stream:
            stream.writelines(f"{line}\n" for line in records(size))
    rows: dict[str, dict[str, float]] = {}
    if not database.exists():
        rows |= _import(log, database, size)
    store = open_store(str(database), readonly=True)
    rows |= _library(store, size, rounds)
    store.close()
    rows |= _programs(log, database, size, rounds)
    return rows


def _import(log: Path, database: Path, size: int) -> dict[str, dict[str, float]]:
    store = open_store(str(database), create=True)
    floor = _timed(lambda: sum(len(json.loads(line)) for line in log.open("rb")))
    whole = _timed(lambda: import_logs(store, [log], home=log.parent / "none", environment={}))
    with store.engine.transaction():
        drop(store.engine)
    index = _timed(store.index)
    store.close()
    rows = {
        "parse floor (json.loads)": floor,
        "import, searchable": whole | {"x floor": whole["cpu s"] / floor["cpu s"]},
        "search index alone": index | {"x floor": index["cpu s"] / floor["cpu s"]},
        "memory": {"peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024},
        "size": {"x log": database.stat().st_size / log.stat().st_size},
    }
    for row in (floor, whole, index):
        row["records/s"] = size / row["wall s"]
    if _python_has("sqlite_utils"):
        peer = log.with_suffix(".peer.db")
        command = [sys.executable, "-m", "sqlite_utils", "insert", "--nl", "--alter", str(peer), "history", str(log)]
        rows["sqlite-utils insert --nl"] = spent = _timed(lambda: subprocess.run(command, check=True, capture_output=True))
        rows["import, searchable"]["x sqlite-utils"] = whole["cpu s"] / spent["cpu s"]
        peer.unlink()
    return rows


def _timed(work: Callable[[], object]) -> dict[str, float]:
    def spent() -> float:
        uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(use.ru_utime + use.ru_stime for use in uses)

    wall, cpu = time.perf_counter(), spent()
    work()
    return {"wall s": time.perf_counter() - wall, "cpu s": spent() - cpu}


def _library(store: Store, size: int, rounds: int) -> dict[str, dict[str, float]]:
    far = size * 54 // 100  # 60 % of the records are entries
    calls: dict[str, Callable[[], Any]] = {
        f"search {name}": lambda text=text: search(store, SearchRequest(query=text, max_results=50))
        for name, text in TERMS.items()
    }
    calls["page at the start"] = lambda: list_(store, ListRequest(limit=20))
    calls["page at 0.9"] = lambda: list_(store, ListRequest(limit=20, offset=far))
    calls["trace of a rare action"] = lambda: trace(store, TraceRequest(action=["rareAction"], limit=20))
    calls["trace of a common action"] = lambda: trace(store, TraceRequest(action=["bash"], limit=20))
    rows = {name: _median(call, rounds) for name, call in calls.items()}
    rows["page at 0.9"]["x start"] = rows["page at 0.9"]["cpu ms"] / rows["page at the start"]["cpu ms"]
    for name, text in TERMS.items():  # finding apart from the fifty hits and their texts
        found = _median(
            lambda text=text: store.queries.find(store.sessions.latest(), SearchRequest(query=text), "all", text, 51),
            rounds,
        )
        rows[f"search {name}"] |= {"find cpu ms": found["cpu ms"], "hits": len(calls[f"search {name}"]().hits)}
    return rows


def _median(call: Callable[[], object], rounds: int) -> dict[str, float]:
    call()
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return {"cpu ms": statistics.median(cpus) * 1e3, "wall ms": statistics.median(walls) * 1e3}


def _programs(log: Path, database: Path, size: int, rounds: int) -> dict[str, dict[str, float]]:
    own = [sys.executable, "-m", "ctxmgr"]
    far = str(size * 54 // 100)
    rows: dict[str, dict[str, float]] = {}
    for name in ("rare word", "absent"):
        text = TERMS[name]
        peers = {"rg -F": ["rg", "-F", text, str(log)], "jq": ["jq", "-c", f'select(tostring|contains("{text}"))', str(log)]}
        peers["sqlite3 instr"] = ["sqlite3", str(database), f"SELECT seq FROM record WHERE instr(body, '{text}')"]
        command = [*own, "search", text, "--store", str(database), "--json"]
        rows |= _against(f"search {name}, program", command, peers, rounds)
    offset = ["sqlite3", str(database), f"SELECT body FROM record WHERE kind = 'entry' LIMIT 20 OFFSET {far}"]
    command = [*own, "list", "--offset", far, "--store", str(database), "--json"]
    rows |= _against("page at 0.9, program", command, {"sqlite3 OFFSET": offset}, rounds)
    return rows


def _against(name: str, command: list[str], peers: dict[str, list[str]], rounds: int) -> dict[str, dict[str, float]]:
    python = [sys.executable, "-c", "pass"]
    commands = {
        "ours": command,
        "python -c pass": python,
        **{peer: words for peer, words in peers.items() if shutil.which(words[0])},
    }
    spent: dict[str, list[float]] = {row: [] for row in commands}
    slow: set[str] = set()
    for number in range(max(3, rounds // 2)):
        for row, words in commands.items():
            if number and row in slow:
                spent[row].append(spent[row][0])
                continue
            spent[row].append(_timed(lambda words=words: subprocess.run(words, capture_output=True, check=False))["cpu s"])
            if spent[row][-1] > 5:
                slow.add(row)
    row = {"cpu ms": statistics.median(spent["ours"]) * 1e3}
    for peer, times in spent.items():
        if peer != "ours":
            ratios = [mine / other for mine, other in zip(spent["ours"], times, strict=True)]
            row[f"x {peer}"] = statistics.median(ratios)
    return {name: row}


def _python_has(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
