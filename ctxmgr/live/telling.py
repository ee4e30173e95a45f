"""Ask the detectors about a session that seems to go in circles, and write what its agent is told.

This is the slow half of a hook: it loads the libraries, reads the end of the client's log and asks the same workspace that
``ctxmgr detect`` and ``ctxmgr recover --prompt`` ask. Nothing is recorded beside the log.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

from ctxmgr.clients import event_bytes, parsed
from ctxmgr.clients.interface import LONGEST, Client, Event
from ctxmgr.config import Config, load_config
from ctxmgr.history.detection import judge
from ctxmgr.history.query.address import session_key
from ctxmgr.live.excerpt import add_late_results, excerpt
from ctxmgr.live.notice import call_person
from ctxmgr.live.open_calls import modified, open_calls
from ctxmgr.live.rounds import Rounds, fingerprints
from ctxmgr.log.fast_json import dumps
from ctxmgr.log.ids import format_time
from ctxmgr.paths import replace_file
from ctxmgr.recover.stuck_request import worst
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import ModelRequest, RecoverRequest
from ctxmgr.workspace import Workspace

AGAIN = "You were told this before, and it goes on."
REFUSED = "The same call is refused until you have done something else."
STOP = (
    "Stop here. You were told {count} times and it goes on: make no further call for this, say in one paragraph what you "
    "tried and what is missing, and ask the person who gave you the task."
)
WAITED = "This was noted while nothing came back:"
_PREFIX = "[ctxmgr] "
_STEPS = 3


def run(name: str) -> None:
    """Answer the event of a client on stdin.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    if said := answered(name, event_bytes()):
        os.write(1, said)


def answered(name: str, content: bytes) -> bytes:
    """Return what a client is answered after a call that seems to complete a loop; empty where the detectors see none.

    Raises:
        Exception: anything; the caller says nothing then.
    """
    gc.disable()  # the process is over before there is garbage worth looking for
    found = parsed(name, content)
    if found is None:
        return b""
    asked, event = found
    rounds = Rounds(name, event.session, event.agent)
    with _alone(rounds.path) as alone:
        if not alone:  # another hook of the same session is at it
            return b""
        rounds.read()
        row = rounds.worth_asking(len(event.calls))
        if row is None:
            return b""
        folder = Path(event.folder) if os.path.isdir(event.folder) else Path.home()
        config = load_config(folder)
        if config.live_mode == "watch":
            return b""
        prompt = confirmed(asked, event, config, folder)
        if prompt is None:
            rounds.append(("n", row[1], row[3]))
            return b""
        return _answer(asked, event, rounds, row[2], config, prompt)


def confirmed(asked: Client, event: Event, config: Config, folder: Path, hung_at: float | None = None) -> str | None:
    """Return the prompt about the loop that the detectors see at the end of the client's log; None when they see none.

    ``hung_at``: the prompt is about a call that hangs as of this time, in seconds since 1970, instead.

    Raises:
        CtxmgrError: the log can't be read, or holds nothing of a known format.
    """
    with tempfile.TemporaryDirectory(prefix="ctxmgr-") as place:
        own = asked.log_content(event)
        if own is None:
            log = asked.log_of(event)
            begun = [] if hung_at is None else open_calls(asked, event.session, modified(log))
            log = excerpt(log, place, asked.unwritten(event), begun)
        else:
            log = os.path.join(place, "calls.jsonl")
            Path(log).write_text(own, "ascii")
        with Workspace.open(log, create=True, scratch=True, folder=folder) as workspace:
            if asked.writes_late:
                add_late_results(workspace, event)
            now = None if hung_at is None else format_time(hung_at)
            findings = _findings(workspace, now)
            meant = worst([each for each in findings if _is_meant(each, config, "loop" if hung_at is None else "hung")])
            if meant is None:
                return None
            # Without an id the worst one is answered, and the session is judged once less.
            named = None if meant is worst(findings, warned=True) else meant.id
            request = RecoverRequest(finding=named, now=now, diff=False, model=ModelRequest(off=True))
            return workspace.recover(request).continuation.prompt


def _findings(workspace: Workspace, now: str | None) -> list[Finding]:
    """Return what the detectors find in the latest session, without the causes: the recovery looks for that of its own."""
    key = session_key(workspace.store, None)
    return [] if key is None else judge(workspace.store, key, workspace.config.detect, now)[0].findings


def _is_meant(finding: Finding, config: Config, severity: str) -> bool:
    """Whether an agent shall be told of a finding: one that lasts, not of a kind or of actions that are left alone."""
    if finding.resolved is not None or finding.severity != severity:
        return False
    kinds, actions = config.live_quiet
    steps: Any = finding.evidence.get("steps")
    named = {str(each.get("action")) for each in cast("list[dict[str, Any]]", steps or [])}
    return finding.kind not in kinds and not (named and named <= actions)


def _answer(asked: Client, event: Event, rounds: Rounds, exact: str, config: Config, prompt: str) -> bytes:
    """Return the answer of the next step of the ladder: told, told again or refused, and then a person is called."""
    steps = [row for row in rounds.rows if row[0] == "t"]
    step = len(steps) + 1
    if step > _STEPS:
        return b""
    text = worded(prompt, step, refusing=config.live_mode == "deny")
    replace_file(rounds.reason, text.encode("utf-8", "replace"))
    rows: list[Sequence[str]] = [("t", str(step), exact)]
    if config.live_mode == "deny" and step > 1:
        # In a round of several calls each of them is one that goes in circles; the others may be made meanwhile.
        rows += [("s" if step == _STEPS else "d", each) for each in dict.fromkeys([exact, *_exact(event)])]
    rounds.append(*rows)
    if step == _STEPS:
        call_person(config, event.session, f"{asked.title}: an agent goes in circles after it was told twice", text)
    return dumps(asked.tell(event, text)).encode("ascii")


def _exact(event: Event) -> list[str]:
    return [fingerprints(call)[1] for call in event.calls]


def worded(prompt: str, step: int, *, refusing: bool) -> str:
    """Return the text for a step of the ladder, from 1 up; the cause and the next step stay at its beginning."""
    text = prompt.removeprefix(_PREFIX)
    if step == 2:
        text = f"{AGAIN}{' ' + REFUSED if refusing else ''} {text}"
    elif step > 2:
        text = f"{STOP.format(count=step - 1)}\n\n{text}"
    return (_PREFIX + text)[:LONGEST]


def waited(prompt: str) -> str:
    """Return the text for an agent whose call hung; it is read when something came back after all, or a person spoke."""
    return f"{_PREFIX}{WAITED} {prompt.removeprefix(_PREFIX)}"[:LONGEST]


@contextlib.contextmanager
def _alone(path: str) -> Generator[bool]:
    """Say whether nobody else asks the detectors about the same session now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)
