"""Kill processes that work on a goal, at random moments, and compare what is left with a ledger of what they were told.

    python bench/goal_kill.py --cycles 2000
    python bench/goal_kill.py --frozen 100

Each cycle goes on with the goal that the one before left. An action is in the ledger, in memory that the processes share,
as soon as the call has returned. After each kill the goal is resumed twice: every acknowledged action must be there, in
order and once, no file may be unreadable, and the second resume must change nothing. With ``--frozen`` owners are stopped
instead, half of them inside their write; a successor works; the owner goes on and must be refused. Exit code 1 on any fault.
`bench.sweep` kills the commands themselves, at every system call.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ctxmgr.errors import CtxmgrError, Superseded
from ctxmgr.goals import Goals, state_files
from ctxmgr.log.journal import read
from ctxmgr.types.goal import EndRequest, NextRequest, RecordRequest, StartRequest, SubtaskDraft, TaskDraft

_BATCH = 50
_TASKS = [
    TaskDraft(description=f"task {n}", subtasks=[SubtaskDraft(description=f"step {m}") for m in range(40)]) for n in range(40)
]


class _Ledger:
    """How many actions were begun and acknowledged, in shared memory."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    @property
    def counts(self) -> tuple[int, int]:
        return struct.unpack("<QQ", self._memory[:16])

    def begin(self, number: int) -> None:
        struct.pack_into("<Q", self._memory, 0, number)

    def acknowledge(self, number: int) -> None:
        struct.pack_into("<Q", self._memory, 8, number)


def _record(goals: Goals, number: int) -> None:
    goals.record(RecordRequest(action="edit", args={"n": number}, result=f"{number} done"))


def _work(folder: Path, ledger: _Ledger, source: random.Random) -> None:
    """Record actions one after the other, now and then ending the subtask, until killed."""
    hold = source.random() < 0.5
    goals = Goals(folder, hold=hold)
    goals.resume()
    number = ledger.counts[1]
    while True:
        number += 1
        ledger.begin(number)
        if source.random() < 0.15:
            goals.done(EndRequest())
            goals.next(NextRequest())
        _record(goals, number)
        ledger.acknowledge(number)
        if source.random() < 0.1 or not hold:
            goals.close()
            goals = Goals(folder, hold=hold)


def _cycle(folder: Path, ledger: _Ledger, source: random.Random) -> None:
    seed, target = source.random(), ledger.counts[1] + source.randrange(6)
    child = os.fork()
    if child == 0:
        try:
            _work(folder, ledger, random.Random(seed))
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    while ledger.counts[1] < target:
        if os.waitpid(child, os.WNOHANG)[0]:
            raise RuntimeError("a worker ended by itself")
    for _ in range(source.randrange(60_000)):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _check(folder: Path, ledger: _Ledger) -> list[str]:
    """Return the broken promises after a kill; the ledger goes on from what is there."""
    faults: list[str] = []
    for name in ("state.json", "state.prev.json", "loops.json"):
        try:
            json.loads((folder / name).read_text())
        except FileNotFoundError:
            continue
        except ValueError:
            faults.append(f"{name} can't be parsed")
    begun, acknowledged = ledger.counts
    numbers = [line.record["input"]["n"] for line in read(folder / "history.jsonl") if line.record.get("kind") == "entry"]
    if numbers != list(range(1, len(numbers) + 1)):
        faults.append("actions are missing, double or out of order")
    if not acknowledged <= len(numbers) <= max(begun, acknowledged):
        faults.append(f"{acknowledged} acknowledged, {begun} begun, {len(numbers)} there")
    first = Goals(folder).resume()
    if first.state.actions_total != len(numbers):
        faults.append(f"the state knows {first.state.actions_total} of {len(numbers)} actions")
    once = _contents(folder)
    Goals(folder).resume()
    if _contents(folder) != once:
        faults.append("a second resume changed something")
    ledger.begin(len(numbers))
    ledger.acknowledge(len(numbers))
    return faults


def _contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name not in ("lock", "gate")}


def kills(cycles: int, seed: int) -> dict[str, Any]:
    """Kill so many workers and return what was found."""
    source, faults, actions = random.Random(seed), list[str](), 0
    for batch in range(0, cycles, _BATCH):
        with tempfile.TemporaryDirectory() as name:
            folder, ledger = Path(name) / "goal", _Ledger()
            Goals(folder).start(StartRequest(goal="survive", tasks=_TASKS))
            for _ in range(min(_BATCH, cycles - batch)):
                _cycle(folder, ledger, source)
                faults += _check(folder, ledger)
            actions += ledger.counts[1]
    return {"kills": cycles, "seed": seed, "actions": actions, "faults": len(faults), "what": sorted(set(faults))}


def _frozen(folder: Path, *, inside: bool) -> str | None:
    """Freeze an owner, let a successor work, thaw the owner; return what was wrong."""
    hear, tells = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        _be_frozen(folder, told, tells, inside)
    try:
        if inside:
            os.waitpid(child, os.WUNTRACED)
        else:
            os.read(hear, 10)
            os.kill(child, signal.SIGSTOP)
            os.waitpid(child, os.WUNTRACED)
        _record(Goals(folder), 2)
        before = _contents(folder)
        os.kill(child, signal.SIGCONT)
        os.write(tell, b".")
        answer = os.read(hear, 100).decode()
        if answer != "superseded":
            return f"the thawed owner was {answer}"
        return None if _contents(folder) == before else "the thawed owner changed something"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for descriptor in (hear, tells, told, tell):
            os.close(descriptor)


def _be_frozen(folder: Path, told: int, tells: int, inside: bool) -> None:
    goals = Goals(folder, hold=True)
    goals.resume()
    if inside:
        write: Callable[[int, bytes], int] = os.write

        def stopping(descriptor: int, data: bytes) -> int:
            os.write = write
            os.kill(os.getpid(), signal.SIGSTOP)
            return write(descriptor, data)

        os.write = cast("Any", stopping)
    else:
        os.write(tells, b"ready")
        os.read(told, 1)
    try:
        _record(goals, 1)
        os.write(tells, b"allowed")
    except Superseded:
        os.write(tells, b"superseded")
    except CtxmgrError as error:
        os.write(tells, error.kind.encode())
    time.sleep(60)
    os._exit(0)


def frozen(rounds: int) -> dict[str, Any]:
    """Freeze so many owners and return what was found."""
    state_files.GRACE = 0.05
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            folder = Path(name) / str(number)
            Goals(folder).start(StartRequest(goal="survive", tasks=_TASKS[:2]))
            if fault := _frozen(folder, inside=number % 2 == 1):
                faults.append(fault)
    return {"frozen": rounds, "refused": rounds - len(faults), "what": sorted(set(faults))}


def main() -> int:
    """Run what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=0)
    parser.add_argument("--frozen", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    if given.cycles:
        found.append(kills(given.cycles, given.seed))
    if given.frozen:
        found.append(frozen(given.frozen))
    for each in found:
        print(json.dumps(each))
    return int(any(each["what"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
