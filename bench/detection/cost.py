"""What watching costs: entries a second through the whole monitor, and memory over a million entries."""

from __future__ import annotations

import gc
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.detection.tables import table
from ctxmgr.detect.monitor import Monitor
from ctxmgr.types.finding import Observation

ENTRIES = 1_000_000
_CHUNK = 10_000
_TIMED = 30_000
_ROUNDS = 5
_WORKING_SET = 50
_SHAPES = ("every input new", "50 files over and over, new results", "one call, one result")


def entries(shape: str, first: int, count: int) -> Iterator[Observation]:
    """Yield short finished entries two seconds apart: a start and a finish each."""
    for number in range(first, first + count):
        given = {_SHAPES[0]: number, _SHAPES[1]: number % _WORKING_SET, _SHAPES[2]: 0}[shape]
        said = 0 if shape == _SHAPES[2] else number
        common: dict[str, object] = {
            "id": f"e{number}", "session": "s", "index": number, "process": "p1", "agent": "coder", "action": "Read",
            "input_type": "path", "input": {"path": f"src/{given}.py"},
        }  # fmt: skip
        yield Observation(kind="start", seq=2 * number, at=2.0 * number, **common)  # pyright: ignore[reportArgumentType]
        yield Observation(
            kind="finish", seq=2 * number + 1, at=2.0 * number + 1, status="ok", output=f"content {said}",
            **common,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip


def speed(shape: str) -> float:
    """Return entries a second through a monitor; making the entries is not counted."""
    monitor = Monitor()
    spent = 0.0
    for first in range(0, _TIMED, _CHUNK):
        chunk = list(entries(shape, first, _CHUNK))
        began = time.perf_counter()
        for each in chunk:
            monitor.observe(each)
        spent += time.perf_counter() - began
    return _TIMED / spent


def floor() -> float:
    """Return how many such entries a second ``json.loads`` alone reads from their lines."""
    lines = [
        json.dumps({"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "agent": "coder", "action": "Read",
                    "inputType": "path", "input": {"path": f"src/{number}.py"}, "status": "ok", "output": f"content {number}"})
        for number in range(_CHUNK)
    ]  # fmt: skip
    began = time.perf_counter()
    for line in lines:
        json.loads(line)
    return len(lines) / (time.perf_counter() - began)


def curve(shape: str, total: int = ENTRIES) -> list[float]:
    """Return the memory of this process in MB, before and after each tenth of the entries."""
    monitor = Monitor()
    gc.collect()
    found = [_megabytes()]
    for tenth in range(10):
        for each in entries(shape, tenth * total // 10, total // 10):
            monitor.observe(each)
        gc.collect()
        found.append(_megabytes())
    return found


def cost() -> list[str]:
    """Report both; each memory curve is drawn in a process of its own."""
    base, best = 0.0, dict.fromkeys(_SHAPES, 0.0)
    for _ in range(_ROUNDS):  # in turn, so that a busy machine slows all of them
        base = max(base, floor())
        best = {shape: max(fastest, speed(shape)) for shape, fastest in best.items()}
    rows = [[shape, f"{fastest:,.0f}", f"{base / fastest:.1f}"] for shape, fastest in best.items()]
    context = multiprocessing.get_context("spawn")
    memory: list[list[str]] = []
    for shape in _SHAPES:
        with context.Pool(1) as pool:
            found = pool.apply(curve, (shape,))
        memory.append([shape, *(f"{value:.1f}" for value in found)])
    return [
        f"Best of {_ROUNDS} rounds over {_TIMED:,} entries (start and finish), on one core. Seconds depend on the machine; the "
        f"ratio to reading as many such entries with `json.loads` ({base:,.0f} a second in these rounds) does so less.",
        "",
        *table(["entries", "a second", "times the cost of json.loads"], rows),
        "",
        f"Memory of the process in MB over {ENTRIES:,} entries:",
        "",
        *table(["entries", "0", *(f"{tenth}00k" for tenth in range(1, 10)), "1M"], memory),
    ]


def _megabytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
    return pages * resource.getpagesize() / (1 << 20)
