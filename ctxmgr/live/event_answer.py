"""Answer one event of a client: nothing at all, unless its agent goes in circles or repeats a call that is refused.

Whatever goes wrong here, the client sees a hook that ended well and said nothing.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.clients import event_bytes, parsed
from ctxmgr.clients.interface import AFTER, BEFORE, LONGEST, PERSON
from ctxmgr.live.rounds import Rounds, fingerprints, rows_of
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole hook
if TYPE_CHECKING:
    from ctxmgr.clients.interface import Client, Event

OFF = "CTXMGR_LIVE"
"""The environment variable that switches the hook off for one run: ``CTXMGR_LIVE=off``."""

TELL = "--tell"
"""Has `ctxmgr.hook` ask the detectors (`ctxmgr.live.telling`)."""

_MOST = 1_048_576
_PATIENCE = 8.0
"""Seconds until the detectors are given up; the clients' own limit is a little longer."""


def run(name: str) -> None:
    """Answer the event of a client on stdin.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    if os.environ.get(OFF) in ("off", "0"):
        return
    if said := answered(name, event_bytes()):
        os.write(1, said)


def answered(name: str, content: bytes) -> bytes:
    """Return what a client is answered, empty for nothing.

    Args:
        name: of the client.
        content: its event, as it came.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    found = parsed(name, content)
    if found is None:
        return b""
    asked, event = found
    rounds = Rounds(name, event.session, event.agent)
    if event.kind == BEFORE:
        return _before(asked, event, rounds)
    if event.kind == PERSON:
        if os.path.exists(rounds.path):
            rounds.append(("u",))
        return b""
    if event.kind != AFTER or not event.calls:
        return b""
    rounds.append(*rows_of(event))
    if rounds.worth_asking(len(event.calls)) is None:
        return b""
    return _asked_elsewhere(name, content)


def _before(asked: Client, event: Event, rounds: Rounds) -> bytes:
    """Refuse a call that the agent was told not to make again, and goes on making."""
    rounds.read()
    if not any(row[0] in "ds" for row in rounds.rows):
        return b""
    for call in event.calls:
        exact = fingerprints(call)[1]
        if rounds.refused(exact):
            with open(rounds.reason, encoding="utf-8") as stream:
                reason = stream.read(LONGEST)
            rounds.append(("x", exact))
            return dumps(asked.refuse(event, reason)).encode("ascii")
    return b""


def _asked_elsewhere(name: str, content: bytes) -> bytes:
    """Return what the detectors answer, in a process that can be ended when it takes too long.

    That one loads the libraries, so it has the interpreter's own site packages, and those beside this package.
    """
    import subprocess

    hook = os.path.join(os.path.dirname(os.path.dirname(__file__)), "hook.py")
    ended = subprocess.run(
        [sys.executable, "-I", hook, TELL, name], input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=_PATIENCE, check=False,
    )  # fmt: skip
    said = ended.stdout
    return said if ended.returncode == 0 and said[:1] == b"{" and len(said) < _MOST else b""
