"""Kill recorders with SIGKILL in the middle of their work and compare the log with a ledger of what was acknowledged.

    python bench/kill.py --store jsonl --cycles 2000

The ledger lies in memory that the recorder shares with this process: an entry is in it as soon as the recorder's call
has returned. Each cycle goes on with the session and the file of the one before. Exit code 1 when anything was lost.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from ctxmgr.log.journal import read
from ctxmgr.recorder import Recorder
from ctxmgr.store import open_store

_ID = 36
_CAPACITY = 20_000
_LARGE = 3_000_000  # characters
_SESSION = "kill"
_BATCH = 40  # cycles on one file before it is compared and removed


@dataclass
class Outcome:
    """What a run found; all but the first four must be 0."""

    kills: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0
    torn: int = 0
    lost: int = 0
    duplicate: int = 0
    disordered: int = 0
    surplus: int = 0
    unsound: int = 0

    @property
    def faults(self) -> int:
        """Number of broken promises."""
        return self.lost + self.duplicate + self.disordered + self.surplus + self.unsound


class _Ledger:
    """Ids that one recorder process acknowledged, in shared memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 + _CAPACITY * _ID)

    @property
    def count(self) -> int:
        return struct.unpack_from("<Q", self._memory)[0]

    def note(self, entry: str) -> None:
        count = self.count
        if count == _CAPACITY:
            signal.pause()
        place = 8 + count * _ID
        self._memory[place : place + _ID] = entry.encode("ascii")
        struct.pack_into("<Q", self._memory, 0, count + 1)

    def take(self) -> list[str]:
        """Return the ids and begin anew."""
        places = range(8, 8 + self.count * _ID, _ID)
        entries = [self._memory[place : place + _ID].decode("ascii") for place in places]
        struct.pack_into("<Q", self._memory, 0, 0)
        return entries


def run(store: str, cycles: int, *, writers: int = 1, folder: Path, seed: int = 1) -> Outcome:
    """Kill ``writers`` recorders ``cycles`` times and return what became of their entries.

    ``store`` is ``jsonl`` or ``sqlite``. Equal seeds make equal choices, not equal moments.
    """
    source = random.Random(seed)
    outcome = Outcome()
    ledgers = [_Ledger() for _ in range(writers)]
    for batch in range(0, cycles, _BATCH):
        path = folder / f"{batch}.{'jsonl' if store == 'jsonl' else 'db'}"
        acknowledged: list[list[str]] = []
        count = min(_BATCH, cycles - batch)
        for _ in range(count):
            _cycle(path, ledgers, source)
            acknowledged += [ledger.take() for ledger in ledgers]
        outcome.kills += count * writers
        _compare(store, path, acknowledged, outcome)
        for left in folder.glob(f"{batch}.*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    return outcome


def _cycle(path: Path, ledgers: list[_Ledger], source: random.Random) -> None:
    children: list[int] = []
    heavy = source.random() < 0.15  # only a write that takes long can be torn by a kill
    for ledger in ledgers:
        seed = source.random()
        child = os.fork()
        if child == 0:
            try:
                _record(path, ledger, random.Random(seed), heavy=heavy, alone=len(ledgers) == 1)
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
        children.append(child)
    for child, ledger in zip(children, ledgers, strict=True):
        target = source.randrange(4) if heavy else source.choice((0, source.randrange(5), source.randrange(80)))
        while ledger.count < target:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                raise RuntimeError(f"a recorder ended by itself: {os.waitstatus_to_exitcode(status)}")
        for _ in range(source.randrange(200_000 if heavy else 5_000)):  # anywhere within the next append
            pass
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)


def _record(path: Path, ledger: _Ledger, source: random.Random, *, heavy: bool, alone: bool) -> None:
    recorder = Recorder(path, session=_SESSION, on_live="refuse" if alone else "join", mask=not heavy)
    number = 0
    while True:
        size = _LARGE if heavy else source.randrange(1_500)
        ledger.note(recorder.entry("agent", "act", {"n": number, "text": "x" * size}))
        number += 1


def _compare(store: str, path: Path, acknowledged: list[list[str]], outcome: Outcome) -> None:
    stored = _read_jsonl(path, outcome) if store == "jsonl" else _read_sqlite(path)
    places = {entry: place for place, entry in enumerate(stored)}
    known = {entry for entries in acknowledged for entry in entries}
    outcome.acknowledged += len(known)
    outcome.lost += len(known - places.keys())
    outcome.duplicate += sum(count - 1 for count in Counter(stored).values())
    extra = len(places.keys() - known)
    outcome.unacknowledged += extra
    outcome.surplus += max(0, extra - len(acknowledged))  # at most the one entry in flight for each kill
    for entries in acknowledged:
        order = [places[entry] for entry in entries if entry in places]
        outcome.disordered += order != sorted(order)


def _read_jsonl(path: Path, outcome: Outcome) -> list[str]:
    def note(offset: int, length: int, reason: str) -> None:
        del offset, length
        if reason.startswith("torn"):
            outcome.torn += 1
        else:
            outcome.unsound += 1

    if not path.exists():
        return []
    return [line.record["id"] for line in read(path, damage=note) if line.record["kind"] == "entry"]


def _read_sqlite(path: Path) -> list[str]:
    if not path.exists():
        return []
    with closing(open_store(str(path), readonly=True)) as store:
        key = store.sessions.key(_SESSION)
        return [] if key is None else [str(record["id"]) for record in store.sessions.records(key, ("entry",))]


def main() -> int:
    """Run from the command line and print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", choices=["jsonl", "sqlite"], default="jsonl")
    parser.add_argument("--cycles", type=int, default=2_000)
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(options.store, options.cycles, writers=options.writers, folder=Path(folder), seed=options.seed)
    figures = {"store": options.store, "writers": options.writers, "seed": options.seed, **asdict(outcome)}
    figures["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(figures) if options.json else ", ".join(f"{name} {value}" for name, value in figures.items()))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
