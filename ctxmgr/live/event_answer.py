"""Answer one event of a client: nothing at all, unless its agent goes in circles or repeats a call that is refused.

Whatever goes wrong here, the client sees a hook that ended well and said nothing.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.clients import client
from ctxmgr.clients.interface import AFTER, BEFORE, PERSON
from ctxmgr.live.rounds import Rounds, fingerprints, rows_of
from ctxmgr.log.fast_json import dumps, loads

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole hook
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.clients.interface import Client, Event

OFF = "CTXMGR_LIVE"
"""The environment variable that switches the hook off for one run: ``CTXMGR_LIVE=off``."""

TELL = "--tell"
LONGEST = 8_900
"""Characters of an answer. Claude Code puts longer ones into a file that the model does not read."""

_MOST = 32_000_000
_CHUNK = 1_048_576
_PATIENCE = 8.0
"""Seconds until the detectors are given up; the clients' own limit is a little longer."""


def run(arguments: Sequence[str]) -> None:
    """Answer the event on stdin: ``CLIENT``, or ``--tell CLIENT`` where the detectors shall be asked."""
    if os.environ.get(OFF) in ("off", "0"):
        return
    if arguments[:1] == [TELL]:
        from ctxmgr.live.telling import told_again_or_not

        said = told_again_or_not(arguments[1], _event_bytes())
    else:
        said = answered(arguments[0], _event_bytes())
    if said:
        os.write(1, said)


def _event_bytes() -> bytes:
    """Return all of stdin, which is read to its end whatever its size: a client that writes must not fail at it."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, _CHUNK):
        size += len(part)
        if size <= _MOST:
            parts.append(part)
    return b"".join(parts) if size <= _MOST else b""


def parsed(name: str, content: bytes) -> tuple[Client, Event] | None:
    """Return the client and its event; None when this is not for us."""
    asked = client(name)
    fields: Any = loads(content.decode("utf-8", "replace")) if content else None
    event = asked.event(fields) if asked is not None and isinstance(fields, dict) else None
    return None if asked is None or event is None or not event.session else (asked, event)


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
            with open(reason_file(rounds), encoding="utf-8") as stream:
                reason = stream.read(LONGEST)
            rounds.append(("x", exact))
            return dumps(asked.refuse(event, reason)).encode("ascii")
    return b""


def reason_file(rounds: Rounds) -> str:
    """Return the file with what the agent was told last."""
    return rounds.path + ".told"


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
    return said if ended.returncode == 0 and said[:1] == b"{" and len(said) < _CHUNK else b""
