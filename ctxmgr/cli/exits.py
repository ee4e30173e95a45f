"""Exit codes and their meanings (design section 5). The library does not use them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    NOT_FOUND = 3
    DENIED = 4
    STORE = 5
    BUDGET = 6
    BUSY = 7
    PARTIAL = 8
    # Verdicts of detect from 10, outcomes of recover from 20. The gaps leave room for more.
    LOOP = 10
    HUNG = 11
    LOOP_AND_HUNG = 12
    NEEDS_HUMAN = 20
    HEALTHY = 21
    REFUSED = 22
    # 128 plus the number of the signal, as in shells.
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.OK: "done; an empty answer is an answer",
    Exit.INTERNAL: "a fault in ctxmgr itself",
    Exit.USAGE: "the command can't be understood or its input can't be used",
    Exit.NOT_FOUND: "not found, out of bounds, or nothing there",
    Exit.DENIED: "not allowed to write",
    Exit.STORE: "the store is damaged, or can't be read or written",
    Exit.BUDGET: "the token budget can't fit what is required",
    Exit.BUSY: "another process holds it, or has taken it over",
    Exit.PARTIAL: "import, check, detect: a file, a session or a part of a log was not read; sql: the query was stopped",
    Exit.LOOP: "detect: a loop; goal record: the action is refused",
    Exit.HUNG: "detect: hung",
    Exit.LOOP_AND_HUNG: "detect: a loop and hung",
    Exit.NEEDS_HUMAN: "recover: attempts used up, a person is needed; goal start: a plan is to be accepted",
    Exit.HEALTHY: "recover: nothing is wrong, so there is no continuation",
    Exit.REFUSED: "recover: a recovery is already running, or it would recover itself",
    Exit.INTERRUPTED: "interrupted",
    Exit.TERMINATED: "ended by SIGTERM",
}

# Keyed by kind instead of by class, because the kind is public: the JSON of an error shows it.
_BY_KIND = {
    "invalid": Exit.USAGE,
    "conflict": Exit.USAGE,
    "notFound": Exit.NOT_FOUND,
    "outOfBounds": Exit.NOT_FOUND,
    "noHistory": Exit.NOT_FOUND,
    "denied": Exit.DENIED,
    "damaged": Exit.STORE,
    "storage": Exit.STORE,
    "budget": Exit.BUDGET,
    "busy": Exit.BUSY,
    "superseded": Exit.BUSY,
    "needsHuman": Exit.NEEDS_HUMAN,
    "healthy": Exit.HEALTHY,
    "refused": Exit.REFUSED,
}

# A warning is not a loop, so scripts may go on.
VERDICTS = {
    "healthy": Exit.OK,
    "warn": Exit.OK,
    "loop": Exit.LOOP,
    "hung": Exit.HUNG,
    "loop+hung": Exit.LOOP_AND_HUNG,
}


def find_exit(kind: str) -> Exit:
    """Return the exit code for an error's kind."""
    return _BY_KIND.get(kind, Exit.INTERNAL)
