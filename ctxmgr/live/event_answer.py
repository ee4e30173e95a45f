"""Answer one event of a client: nothing, unless the agent goes in circles or repeats a call that is refused.

Whatever goes wrong here, the client sees a hook that ended well and printed nothing. This is loaded at every call of an agent,
so imports that only some events need stand in the functions.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.clients import AFTER, BEFORE, END, MAX_ANSWER_CHARS, PERSON, QUIET, WAIT, event_bytes, parsed
from ctxmgr.clients.session_file import WATCHER, SessionFile, state_folder
from ctxmgr.live.rounds import Rounds, fingerprints, rows_of
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.clients import Client, Event

OFF = "CTXMGR_LIVE"
"""The environment variable that switches the hook off for one run: ``CTXMGR_LIVE=off``."""

NO_WATCHER = "CTXMGR_WATCH"
"""The environment variable that keeps the hook from starting the watcher: ``CTXMGR_WATCH=off``."""

TELL, WATCH = "--tell", "--watch"
"""Arguments of `ctxmgr.live.hook`: ask the detectors (`ctxmgr.live.detector_answer`), or watch for hangs (`watcher`)."""

_MAX_ANSWER_BYTES = 1_048_576
_DETECTOR_SECONDS = 8.0
"""Time limit for the detectors, a little below that of the clients: see `Client.seconds`."""


def run(name: str) -> None:
    """Answer the event of a client on stdin.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    if os.environ.get(OFF) in ("off", "0"):
        return
    if content := answer_event(name, event_bytes()):
        os.write(1, content)


def answer_event(name: str, content: bytes) -> bytes:
    """Return the answer to a client, empty for none.

    Args:
        name: name of the client.
        content: the bytes of its event.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    found = parsed(name, content)
    if found is None:
        return b""
    client, event = found
    rounds = Rounds(name, event.session, event.agent)
    if event.kind == BEFORE:
        return _refuse_or_note(client, event, rounds)
    if client.hides_open_calls:
        _forget_calls(client, event)
    if event.kind in (WAIT, END):
        session = SessionFile(name, event.session)
        session.end() if event.kind == END else session.wait(event.name, event.calls[0].action if event.calls else "")
        return b""
    if event.kind == QUIET:
        return _note_silence(client, event, rounds)
    if event.kind == PERSON:
        # A session without rounds has no file; it gets none for words alone.
        if os.path.exists(rounds.path):
            rounds.append(("u",))
        _begin(name, event)
        return _take_word(client, event, rounds) if client.tells_beside_person else b""
    if event.kind != AFTER or not event.calls:
        return b""
    rounds.append(*rows_of(event))
    # A client may send no event when a session starts, so the first call of an agent begins it too.
    if rounds.is_new:
        _begin(name, event)
    if left := _take_word(client, event, rounds):
        return left
    if rounds.worth_asking(len(event.calls)) is None:
        return b""
    return _ask_detectors(name, content)


def _note_silence(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Keep the calls that have not come back for the watcher; return the files that the plug-in removes at a sign of life."""
    content = client.log_content(event)
    if content is None:
        return b""
    rounds.keep_log(content)
    event.transcript = rounds.log
    _begin(client.name, event)
    files = {"session": SessionFile(client.name, event.session).path, "log": rounds.log, "stall": rounds.stall}
    return dumps(files).encode("ascii")


def _begin(name: str, event: Event) -> None:
    """Note where the session's log is, and start the watcher unless it runs."""
    if not event.transcript:
        return
    SessionFile(name, event.session).begin(event.transcript, event.folder)
    if os.environ.get(NO_WATCHER) in ("off", "0") or _is_watched():
        return
    hook = os.path.join(os.path.dirname(__file__), "hook.py")
    # `posix_spawn` needs no import, and the watcher must outlive the client: a session of its own, and none of our streams.
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, [sys.executable, "-I", hook, WATCH], os.environ, file_actions=null, setsid=True)


def _is_watched() -> bool:
    """Whether the watcher holds its lock; the probe's own is shared, so that hooks don't take each other for the watcher."""
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


def _take_word(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Return the word that the watcher left for the main agent about a call that hung; each is returned once."""
    if event.agent:
        return b""
    try:
        with open(rounds.stall, encoding="utf-8", opener=_open_no_link) as stream:
            text = stream.read(MAX_ANSWER_CHARS)
    except FileNotFoundError:
        return b""
    os.unlink(rounds.stall)  # of two hooks that read it, the second fails here and answers nothing
    return dumps(client.tell(event, text)).encode("ascii")


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _refuse_or_note(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Refuse a call that the agent was told not to repeat, or note it where the client's log hides open calls."""
    if client.hides_open_calls:
        from ctxmgr.live.rounds import note_calls

        note_calls(client, event)
        return b""
    rounds.read()
    if not any(row[0] in "ds" for row in rounds.rows):  # the usual case: no fingerprints are needed
        return b""
    for call in event.calls:
        exact = fingerprints(call)[1]
        if rounds.refused(exact):
            with open(rounds.reason, encoding="utf-8") as stream:
                reason = stream.read(MAX_ANSWER_CHARS)
            rounds.append(("x", exact))
            return dumps(client.refuse(event, reason)).encode("ascii")
    return b""


def _forget_calls(client: Client, event: Event) -> None:
    """Forget the calls that are over by this event."""
    if event.kind == AFTER:
        from ctxmgr.live.rounds import forget_calls

        forget_calls(client, event)
    elif event.kind in (PERSON, END):
        from ctxmgr.live.rounds import forget_session

        forget_session(client, event.session)


def _ask_detectors(name: str, content: bytes) -> bytes:
    """Return the answer of the detectors, from a process that can be killed when it takes too long.

    It loads the libraries, so unlike the hook itself it is started with the interpreter's site packages.
    """
    import subprocess

    hook = os.path.join(os.path.dirname(__file__), "hook.py")
    ended = subprocess.run(
        [sys.executable, "-I", hook, TELL, name], input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=_DETECTOR_SECONDS, check=False,
    )  # fmt: skip
    # Anything but a JSON object, such as a warning of a library, would reach the client as an answer of ours.
    output = ended.stdout
    return output if ended.returncode == 0 and output[:1] == b"{" and len(output) < _MAX_ANSWER_BYTES else b""
