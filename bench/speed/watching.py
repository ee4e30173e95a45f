"""A program between the bench and a program: it starts the other, ends with its code, and writes down the most memory.

    python watching.py FILE PROGRAM [ARGUMENT...]

Linux counts the memory of whoever starts a program as that program's own, so something small has to start it. What it
starts in its turn counts too: all of them together, as often as it can be looked at without getting in the way.
"""

import os
import sys
import time

_EVERY = 0.02  # seconds
_PAGE = os.sysconf("SC_PAGE_SIZE")


def held(process: int) -> int:
    """Return the bytes that a process and all below it hold now; what those below share with others counts in part."""
    try:
        with open(f"/proc/{process}/statm", encoding="ascii") as stream:
            own = int(stream.read().split()[1]) * _PAGE
    except OSError:  # it ended meanwhile, or this is no Linux
        return 0
    return own + sum(map(_shared_by_all, _below(process)))


def _below(process: int) -> list[int]:
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as stream:
            found = [int(child) for child in stream.read().split()]
    except OSError:
        return []
    return [*found, *(each for child in found for each in _below(child))]


def _shared_by_all(process: int) -> int:
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as stream:
            return next(int(line.split()[1]) * 1024 for line in stream if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def main(place: str, words: list[str]) -> int:
    """Run a program and return its exit code; negative, the signal that ended it."""
    process, most = os.posix_spawnp(words[0], words, os.environ), 0
    while True:
        ended, status, used = os.wait4(process, os.WNOHANG)
        if ended:
            break
        most = max(most, held(process))
        time.sleep(_EVERY)
    with open(place, "w", encoding="ascii") as stream:
        stream.write(str(max(most, used.ru_maxrss * 1024)))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
