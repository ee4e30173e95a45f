"""Kill, or let fail, every writing command at every system call that changes its files.

    python -m bench.sweep                                  all commands, all stores, all calls
    python -m bench.sweep --only "note add" --store db --most 40
    python -m bench.sweep --crashes                        states that a crash of the system may leave

Each command runs once under strace, which tells its calls; then once for each of them and each fault: SIGKILL before the call,
the call fails with ENOSPC, or with EIO. Afterwards the history must be as before the command or as after it (an import may have
come half way), every listed version of the artifacts whole, ``verify`` must find nothing wrong, a failure must have been told,
and the command, run again, must succeed and leave what it leaves undisturbed. Only the thread that began is swept; a kill
takes all threads.

With ``--crashes`` nothing is killed: the states in which a power cut may leave the files are made from the calls and what was
synced between them (see `bench.sweep.crash_states`), and the program meets each of them. Exit code 1 when anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from bench.sweep.commands import COMMANDS, GOAL, STORES, stores_of
from bench.sweep.injection import FAULTS, available
from bench.sweep.sweeper import crash, sweep

_SHOWN = 12


def main() -> int:
    """Sweep what was asked for and print a line for each command and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(COMMANDS))
    parser.add_argument("--store", action="append", choices=[*STORES, GOAL])
    parser.add_argument("--most", type=int, help="try only about so many faults of each command")
    parser.add_argument("--kind", action="append", choices=sorted(FAULTS))
    parser.add_argument("--verbose", action="store_true", help="show every fault that was found, and what was missed")
    parser.add_argument("--crashes", action="store_true", help="try the states that a crash of the system may leave")
    given = parser.parse_args()
    if reason := available():
        sys.stderr.write(f"nothing can be swept here: {reason}\n")
        return 2
    broken = False
    for command in given.only or COMMANDS:
        for store in stores_of(command):
            if given.store and store not in given.store:
                continue
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                if given.crashes:
                    found = crash(command, store, Path(folder), most=given.most)
                else:
                    found = sweep(command, store, Path(folder), most=given.most, kinds=tuple(given.kind or FAULTS))
            broken |= bool(found.wrong)
            seconds = round(time.monotonic() - began, 1)
            counts = {"missed": len(found.missed), "unsaid": len(found.unsaid), "wrong": len(found.wrong), "seconds": seconds}
            row = {"sweep": command, "store": store, "points": found.points, **found.tried, **counts}
            print(json.dumps(row), flush=True)
            most = None if given.verbose else _SHOWN
            told = [*found.wrong[:most], *(["missed: " + each for each in found.missed] if given.verbose else [])]
            told += ["unsaid: " + each for each in found.unsaid] if given.verbose else []
            sys.stderr.write("".join(f"  {text}\n" for text in told))
            sys.stderr.flush()
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
