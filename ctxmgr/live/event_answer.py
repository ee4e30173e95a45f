"""Answer one event of a client: nothing at all, unless its agent goes in circles or repeats a call that is refused.

Whatever goes wrong here, the client sees a hook that ended well and said nothing.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.clients import event_bytes, parsed
from ctxmgr.clients.interface import AFTER, BEFORE, END, MAX_ANSWER_CHARS, PERSON, QUIET, WAIT
from ctxmgr.clients.session_file import WATCHER, SessionFile, state_folder
from ctxmgr.live.rounds import Rounds, fingerprints, rows_of
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.clients.interface import Client, Event

OFF = "CTXMGR_LIVE"
"""The environment variable that switches the hook off for one run: ``CTXMGR_LIVE=off``."""

NO_WATCHER = "CTXMGR_WATCH"
"""The environment variable that keeps the hook from starting the watcher: ``CTXMGR_WATCH=off``."""

TELL, WATCH = "--tell", "--watch"
"""Have `ctxmgr.hook` ask the detectors (`ctxmgr.live.telling`), and watch for hangs (`ctxmgr.live.watcher`)."""

_MAX_ANSWER_BYTES = 1_048_576
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
    if asked.hides_open_calls:
        _close(asked, event)
    if event.kind in (WAIT, END):
        session = SessionFile(name, event.session)
        session.end() if event.kind == END else session.wait(event.name, event.calls[0].action if event.calls else "")
        return b""
    if event.kind == QUIET:
        return _noted(asked, event, rounds)
    if event.kind == PERSON:
        if os.path.exists(rounds.path):
            rounds.append(("u",))
        _begin(name, event)
        return _left_behind(asked, event, rounds) if asked.tells_beside_person else b""
    if event.kind != AFTER or not event.calls:
        return b""
    rounds.append(*rows_of(event))
    if rounds.is_new:
        _begin(name, event)
    if left := _left_behind(asked, event, rounds):
        return left
    if rounds.worth_asking(len(event.calls)) is None:
        return b""
    return _asked_elsewhere(name, content)


def _noted(asked: Client, event: Event, rounds: Rounds) -> bytes:
    """Keep what has not come back for the watcher; return the files that a sign of life ends and takes away."""
    content = asked.log_content(event)
    if content is None:
        return b""
    rounds.keep_log(content)
    event.transcript = rounds.log
    _begin(asked.name, event)
    files = {"session": SessionFile(asked.name, event.session).path, "log": rounds.log, "stall": rounds.stall}
    return dumps(files).encode("ascii")


def _begin(name: str, event: Event) -> None:
    """Note where the session's log is, and start the watcher unless it runs."""
    if not event.transcript:
        return
    SessionFile(name, event.session).begin(event.transcript, event.folder)
    if os.environ.get(NO_WATCHER) in ("off", "0") or _is_watched():
        return
    hook = os.path.join(os.path.dirname(os.path.dirname(__file__)), "hook.py")
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, [sys.executable, "-I", hook, WATCH], os.environ, file_actions=null, setsid=True)


def _is_watched() -> bool:
    """Whether the watcher holds its file; a shared lock is asked for, so that hooks beside one another see no watcher in it."""
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(os.path.join(state_folder(), WATCHER), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _left_behind(asked: Client, event: Event, rounds: Rounds) -> bytes:
    """Return what the watcher left for the main agent about a call that hung, once."""
    if event.agent:
        return b""
    try:
        with open(rounds.stall, encoding="utf-8", opener=_unlinked) as stream:
            text = stream.read(MAX_ANSWER_CHARS)
    except FileNotFoundError:
        return b""
    os.unlink(rounds.stall)
    return dumps(asked.tell(event, text)).encode("ascii")


def _unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _before(asked: Client, event: Event, rounds: Rounds) -> bytes:
    """Refuse a call that the agent was told not to make again, and goes on making."""
    if asked.hides_open_calls:
        from ctxmgr.live.rounds import note

        note(asked, event)
        return b""
    rounds.read()
    if not any(row[0] in "ds" for row in rounds.rows):
        return b""
    for call in event.calls:
        exact = fingerprints(call)[1]
        if rounds.refused(exact):
            with open(rounds.reason, encoding="utf-8") as stream:
                reason = stream.read(MAX_ANSWER_CHARS)
            rounds.append(("x", exact))
            return dumps(asked.refuse(event, reason)).encode("ascii")
    return b""


def _close(asked: Client, event: Event) -> None:
    """Forget the calls that are over by this event."""
    if event.kind == AFTER:
        from ctxmgr.live.rounds import settle

        settle(asked, event)
    elif event.kind in (PERSON, END):
        from ctxmgr.live.rounds import forget

        forget(asked, event.session)


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
    return said if ended.returncode == 0 and said[:1] == b"{" and len(said) < _MAX_ANSWER_BYTES else b""
