"""Run a change in a child process that dies at the n-th call that changes a file, as a kill there would have it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

CALLS = ("open", "write", "pwrite", "replace", "rename", "link", "unlink", "mkdir", "chmod", "fchmod", "fsync", "fdatasync",
         "ftruncate")  # fmt: skip
"""What of ``os`` the product changes files with; opening counts because it may make one."""

DIED, ENDED = 77, 0


def run_until(change: Callable[[], object], number: int, *, halves: bool = False) -> int:
    """Run ``change`` in a child that dies just before its ``number``-th call, with ``halves`` in the middle of a write.

    Returns `DIED`, or `ENDED` when it made fewer calls and came to its end.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _wrap(number, halves)
            change()
            code = ENDED
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (DIED, ENDED):
        raise AssertionError(f"the child ended with {code}")
    return code


def _wrap(number: int, halves: bool) -> None:
    left = [number]

    def dying(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if halves and name in ("write", "pwrite"):
                    call(given[0], bytes(given[1])[: len(given[1]) // 2], *given[2:])
                os._exit(DIED)
            return call(*given, **named)

        return called

    for name in CALLS:
        setattr(os, name, dying(getattr(os, name), name))
