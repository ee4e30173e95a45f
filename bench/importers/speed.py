"""MB/s and memory of each importer beside ``json.loads`` of the same bytes, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.importers.logs import lengthened, samples
from ctxmgr.importers.base import Importer

ROUNDS = 3

_PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""

_OURS = """
import sys, time
from pathlib import Path
from ctxmgr.history.formats import IMPORTERS
importer = next(each for each in IMPORTERS if each.name == sys.argv[1])
base = peak()
began, counts, made = time.process_time(), [], 0
for _ in importer.read([Path(sys.argv[2])], counts):
    made += 1
print(time.process_time() - began, peak() - base, made)
"""

_LOADS = """
import json, sys, time
base = peak()
began, made = time.process_time(), 0
if sys.argv[1] == "lines":
    with open(sys.argv[2], "rb") as log:
        for line in log:
            json.loads(line)
            made += 1
else:
    made = len(json.loads(Path.read_bytes(Path(sys.argv[2])))) if (Path := __import__("pathlib").Path) else 0
print(time.process_time() - began, peak() - base, made)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading one log took; times are those of the processor, in seconds, memory above that of the start, in KiB."""

    importer: str
    sample: str
    size: int
    records: int
    ours: float
    loads: float
    memory: int
    loads_memory: int

    def shown(self) -> str:
        """Return a line for people."""
        return (
            f"{self.importer:15} {self.sample[-34:]:34} {self.size / 1e6:6.1f} MB {self.size / 1e6 / self.ours:7.1f} MB/s"
            f"  json.loads {self.size / 1e6 / self.loads:7.1f} MB/s  ratio {self.ours / self.loads:5.2f}"
            f"  memory {self.memory / 1024:6.1f} MB, json.loads {self.loads_memory / 1024:6.1f} MB  {self.records:,} records"
        )


def costs(size: int, only: str | None = None, padding: int = 0) -> list[Cost]:
    """Measure every sample that is text, lengthened to about ``size`` bytes."""
    found: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for importer, path in samples():
            if only is not None and importer.name != only:
                continue
            long = lengthened(path, size, padding)
            if long is None:
                continue
            log = Path(folder, path.name)
            log.write_bytes(long)
            found.append(_cost(importer, path, log, "lines" if _is_lines(long) else "document"))
            print(found[-1].shown(), flush=True)
            log.unlink()
    return found


def _is_lines(data: bytes) -> bool:
    try:
        json.loads(data.split(b"\n", 1)[0])
    except ValueError:
        return False
    return data.count(b"\n") > 1


def _cost(importer: Importer, path: Path, log: Path, shape: str) -> Cost:
    ours = [_run(_OURS, importer.name, str(log)) for _ in range(ROUNDS)]
    loads = [_run(_LOADS, shape, str(log)) for _ in range(ROUNDS)]
    return Cost(
        importer.name, f"{path.parent.name}/{path.name}", log.stat().st_size, int(ours[0][2]),
        min(row[0] for row in ours), min(row[0] for row in loads),
        int(min(row[1] for row in ours)), int(min(row[1] for row in loads)),
    )  # fmt: skip


def _run(program: str, *words: str) -> tuple[float, ...]:
    done = subprocess.run([sys.executable, "-c", _PEAK + program, *words], capture_output=True, text=True, check=True)
    return tuple(float(word) for word in done.stdout.split())
