"""What a command costs from start to end, in units of Python's own start and of sqlite-utils for the same query.

Whole processes: the launcher as an installer writes it, the imports, the query, the output, the end. Rounds are interleaved,
so that a busy moment of the machine hits every command alike; a figure is the median of the ratios of each round. Time of
the processor counts beside time of the clock, for other programs of the machine lengthen the latter alone.
``python bench/startup.py [ROUNDS]``, 21 rounds unless told.
"""

from __future__ import annotations

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import ctxmgr
from ctxmgr.ids import format_time
from ctxmgr.store import open_store
from ctxmgr.types.record import build
from ctxmgr.wire import Record

OUT = Path(__file__).parent / "out"
ENTRIES = 100_000
PER_APPEND = 5_000
START = 1_769_076_000.0


def records(first: int, count: int) -> Iterator[Record]:
    """Yield finished entries of one long session: four agents, eight actions, inputs and outputs of some 200 bytes."""
    for number in range(first, first + count):
        action = ("Read", "Grep", "Edit", "Bash", "Glob", "Write", "WebFetch", "Task")[number % 8]
        yield build(
            "entry",
            "long",
            format_time(START + number),
            id=f"long-{number:06}",
            agent=f"agent-{number % 4}",
            action=action,
            inputType="ToolInput",
            input={"path": f"src/module_{number % 977}.py", "pattern": f"symbol_{number % 4001}"},
            status="error" if number % 50 == 0 else "ok",
            output=f"{action} {number}: " + "lorem ipsum dolor sit amet " * 4,
        )


def prepared() -> Path:
    """Return the store of 100,000 entries, made on first use and kept for later runs."""
    location = OUT / f"startup-{ENTRIES}.db"
    if location.exists():
        return location
    OUT.mkdir(exist_ok=True)
    unfinished = location.with_name(f"unfinished-{os.getpid()}.db")
    began = time.perf_counter()
    with closing(open_store(str(unfinished), create=True)) as store:
        for first in range(0, ENTRIES, PER_APPEND):
            store.append(records(first, min(PER_APPEND, ENTRIES - first)))
    unfinished.rename(location)
    print(f"stored {ENTRIES:,} entries in {time.perf_counter() - began:.1f} s")
    return location


class Measured(NamedTuple):
    """One command, the peer that answers the same, and what the ratios to Python and to the peer shall not exceed."""

    command: list[str]
    peer: str | None = None
    python_goal: float | None = None
    peer_goal: float | None = None


class Taken(NamedTuple):
    """Seconds of the processor and of the clock that one run took."""

    processor: float
    clock: float


PYTHON = "python -c pass"

_ENTRY = "SELECT entry.idx, entry.status, record.body FROM entry JOIN record ON record.seq = entry.seq WHERE entry.session = 1 "
_PEERS = {
    "list": _ENTRY + "ORDER BY entry.idx LIMIT 20",
    "show": _ENTRY + "AND entry.idx = 70000",
    "trace": _ENTRY + "AND entry.action = 'webfetch' ORDER BY entry.idx LIMIT 20",
    "search": "SELECT entry.idx, record.body FROM folded JOIN entry USING (seq) JOIN record USING (seq) "
    "WHERE folded.text LIKE '%symbol_3999%' LIMIT 50",
}


def launcher() -> Path:
    """Write the script that an installer makes of the entry point, and return its path."""
    script = OUT / "ctxmgr"
    lines = [f"#!{sys.executable}", "import sys", "from ctxmgr.__main__ import start", "sys.exit(start())", ""]
    script.write_text("\n".join(lines), "utf-8")
    script.chmod(0o755)
    return script


def commands(location: Path) -> dict[str, Measured]:
    """Return what is measured by name, the yardsticks first."""
    ours, store = str(launcher()), ["--store", str(location)]
    measured = {PYTHON: Measured([sys.executable, "-c", "pass"])}
    for name, sql in _PEERS.items():
        peer = [str(Path(sys.executable).parent / "sqlite-utils"), "query", str(location), sql]
        measured[f"sqlite-utils, as {name}"] = Measured(peer)

    def add(words: str, peer: str | None = None, goal: float | None = None, *, reads: bool = True) -> None:
        measured[f"ctxmgr {words}"] = Measured(
            [ours, *words.split(), *(store if reads else [])], peer and f"sqlite-utils, as {peer}", goal, 0.2 if peer else None
        )

    add("--version", goal=1.2, reads=False)
    measured["python -m ctxmgr --version"] = Measured([sys.executable, "-m", "ctxmgr", "--version"])
    add("list --limit 20 --json", "list", 1.8)
    add("show @70000 --json", "show", 1.8)
    add("trace WebFetch --limit 20 --json", "trace", 1.8)
    add("messages --limit 20 --json")
    add("search symbol_3999 --json", "search")
    add("show @999999 --json")
    for words in ("list --limit 20", "note list --json", "snapshot list --json", "export --help"):
        add(words, reads="--help" not in words)
    add("--help", reads=False)
    return measured


def run(command: list[str], environment: dict[str, str], folder: str) -> Taken:
    """Run a command to its end in a folder and return what it took."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=folder)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return Taken(used.ru_utime + used.ru_stime, time.perf_counter() - began)


def measure(measured: dict[str, Measured], rounds: int) -> dict[str, list[Taken]]:
    """Return what each command took; a round runs all of them, and one unmeasured round warms the caches."""
    times: dict[str, list[Taken]] = {name: [] for name in measured}
    environment = {**os.environ, "PYTHONPATH": str(Path(ctxmgr.__file__).parents[1])}
    with tempfile.TemporaryDirectory() as folder:  # no settings hold there
        for turn in range(rounds + 1):
            for name, entry in measured.items():
                taken = run(entry.command, environment, folder)
                if turn:
                    times[name].append(taken)
    return times


def ratio(own: list[Taken], other: list[Taken], part: int) -> float:
    """Return the median of the ratios of each round: part 0 of the processor's time, part 1 of the clock's."""
    return statistics.median(mine[part] / theirs[part] for mine, theirs in zip(own, other, strict=True))


def told(value: float, goal: float | None) -> str:
    """Return a ratio, and how it stands to its goal."""
    return f"{value:6.2f}" + ("" if goal is None else f" {'<=' if value <= goal else '>'} {goal:g}")


def main() -> None:
    """Measure and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    compileall.compile_dir(Path(ctxmgr.__file__).parent, quiet=1)  # as an installer does
    measured = commands(prepared())
    times = measure(measured, rounds)
    width = max(map(len, times))
    titles = f"{'CPU ms':>7} {'ms':>7} {'x py, CPU':>14} {'x py':>7} {'x peer, CPU':>14} {'x peer':>7}"
    print(f"{f'medians of {rounds} rounds':{width}} {titles}")
    for name, taken in times.items():
        entry = measured[name]
        used = [statistics.median(item[part] for item in taken) * 1000 for part in (0, 1)]
        line = f"{name:{width}} {used[0]:7.1f} {used[1]:7.1f}"
        line += f" {told(ratio(taken, times[PYTHON], 0), entry.python_goal):>14} {ratio(taken, times[PYTHON], 1):7.2f}"
        if entry.peer is not None:
            peer = times[entry.peer]
            line += f" {told(ratio(taken, peer, 0), entry.peer_goal):>14} {ratio(taken, peer, 1):7.2f}"
        print(line)


if __name__ == "__main__":
    main()
