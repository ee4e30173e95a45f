"""Ask the detectors about a session that seems to go in circles, and write the text for its agent.

This is the slow part of a hook. It loads the libraries, reads the end of the client's log and uses the same workspace as
``ctxmgr detect`` and ``ctxmgr recover --prompt``. It records nothing beside the log.

From a long log `excerpt` keeps the first lines (who and where), the words of people in between, and the end, which is all that
the detectors need. If the client writes a call's result only after its hooks, the result is added. `notify_person` notifies a
person through the system's own notifier, or by the command that the user configured.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ctxmgr.base.paths import open_regular, replace_file
from ctxmgr.clients import MAX_ANSWER_CHARS, Call, Client, Event, as_object, event_bytes, parse_event
from ctxmgr.config import Config, load_config
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.text.fingerprints import (
    canonical,
    error_core,
    error_text,
    mask_volatile,
    one_line,
    plain_text,
    says_anything,
)
from ctxmgr.errors import InvalidInput
from ctxmgr.history.detection import judge
from ctxmgr.history.query.address import session_key
from ctxmgr.live.event_answer import STEPS, Rounds, fingerprints, modification_time, open_calls
from ctxmgr.log.fast_json import dumps
from ctxmgr.log.ids import format_time, new_id, now
from ctxmgr.recover.stuck_request import worst_finding
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import ModelRequest, RecoverRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

AGAIN = "You were told this before, and it goes on."
REFUSED = "The same call is refused until you have done something else."
REFUSED_FOR_GOOD = "The same call is refused until that person says something."
STOP = (
    "Stop here. You were told twice and it goes on. Make no further call for this: say in one paragraph what you tried and "
    "what is missing, and ask the person who gave you the task. The rest of this text is for that paragraph: propose its next "
    "step, do not take it."
)
SILENCED = "ctxmgr tells the agent nothing about a loop:"
WAITED = "This was noted while nothing came back:"
_PREFIX = "[ctxmgr] "


def run(name: str) -> None:
    """Answer the event of a client on stdin.

    Raises:
        Exception: any error; the caller then answers nothing.
    """
    if content := answer_event(name, event_bytes()):
        os.write(1, content)


def answer_event(name: str, content: bytes) -> bytes:
    """Return the answer to a client after a call that seems to complete a loop; empty if the detectors see no loop.

    Raises:
        Exception: any error; the caller then answers nothing.
    """
    gc.disable()  # the process ends before garbage collection could pay
    found = parse_event(name, content)
    if found is None:
        return b""
    client, event = found
    rounds = Rounds(name, event.session, event.agent)
    with _lock_session(rounds.path) as alone:
        if not alone:  # another hook of the same session is asking already
            return b""
        # Count again under the lock, because an answer of another hook meanwhile has reset the count.
        rounds.read()
        row = rounds.worth_asking(len(event.calls))
        if row is None:
            return b""
        # An event may name no folder, or a deleted one. Then the user's own settings apply.
        folder = Path(event.folder) if os.path.isdir(event.folder) else Path.home()
        try:
            config = load_config(folder)
            DetectSettings.from_table(config.detect)
        except InvalidInput as error:
            return _show_once(client, rounds, row, error)
        prompt = None if config.live_mode == "watch" else confirmed_prompt(client, event, config, folder)
        if prompt is None:
            rounds.append(("n", row[1], row[3]))
            return b""
        return _answer(client, event, rounds, row[2], config, prompt)


def _show_once(client: Client, rounds: Rounds, row: Sequence[str], error: InvalidInput) -> bytes:
    """Return the answer that shows wrong settings to the user; empty if they were shown since the user last spoke."""
    shown = any(each[0] == "w" for each in rounds.rows)
    rounds.append(("n", row[1], row[3]), ("w",))
    answer = None if shown else client.show(one_line(f"{SILENCED} {error.message} ({error.hint})", 500))
    return b"" if answer is None else dumps(answer).encode("ascii")


def confirmed_prompt(client: Client, event: Event, config: Config, folder: Path, hung_at: float | None = None) -> str | None:
    """Return the prompt about the loop that the detectors see at the end of the client's log; None if they see none.

    With ``hung_at``, a time in seconds since 1970, the prompt is about a call that hangs at that time instead.

    Raises:
        CtxmgrError: the log can't be read, or has no known format.
    """
    with tempfile.TemporaryDirectory(prefix="ctxmgr-") as place:
        own = client.log_content(event)
        if own is None:
            log = client.log_path(event)
            begun = [] if hung_at is None else open_calls(client, event.session, modification_time(log))
            log = excerpt(log, place, client.unwritten(event), begun)
        else:
            log = os.path.join(place, "calls.jsonl")
            Path(log).write_text(own, "ascii")
        with Workspace.open(log, create=True, scratch=True, folder=folder) as workspace:
            if client.writes_late:
                add_late_results(workspace, event)
            now = None if hung_at is None else format_time(hung_at)
            findings = _findings(workspace, now)
            meant = worst_finding(
                [each for each in findings if _should_tell(each, config, "loop" if hung_at is None else "hung")]
            )
            if meant is None:
                return None
            # Without an id the recovery answers the worst finding, and saves judging the session again.
            named = None if meant is worst_finding(findings, warned=True) else meant.id
            request = RecoverRequest(finding=named, now=now, diff=False, model=ModelRequest(off=True))
            return workspace.recover(request).continuation.prompt


def _findings(workspace: Workspace, now: str | None) -> list[Finding]:
    """Return the findings in the latest session, without causes, because the recovery finds the cause that it needs."""
    key = session_key(workspace.store, None)
    return [] if key is None else judge(workspace.store, key, workspace.config.detect, now)[0].findings


def _should_tell(finding: Finding, config: Config, severity: str) -> bool:
    """Whether to tell an agent of a finding: it is unresolved, and no setting silences its kind or its actions."""
    unresolved = finding.resolved is None and finding.severity == severity
    return unresolved and not config.is_quiet(finding.kind, finding.evidence)


def _answer(client: Client, event: Event, rounds: Rounds, exact: str, config: Config, prompt: str) -> bytes:
    """Return the answer of the next step: tell the agent, tell it again (or refuse the call), stop it and notify a person."""
    step = 1 + sum(row[0] == "t" for row in rounds.rows)
    text = step_text(prompt, step, refusing=config.live_mode == "deny")
    # Write the reason before the rows, because a hook that finds the refusal in the rows then reads the reason.
    replace_file(rounds.reason, text.encode("utf-8", "replace"))
    rows: list[Sequence[str]] = [("t", str(step), exact)]
    if config.live_mode == "deny" and step > 1:
        # In a round of several calls each of them goes in circles. Other calls may still be made.
        exact_calls = (fingerprints(call)[1] for call in event.calls)
        rows += [("s" if step == STEPS else "d", each) for each in dict.fromkeys([exact, *exact_calls])]
    rounds.append(*rows)
    if step == STEPS:
        what = "an agent goes in circles after it was told twice; now it was told to stop and to ask you"
        line = headline(client, event.folder, what)
        notify_person(config, event.session, line, f"{line}\n\nIt was told:\n{text}\n")
    return dumps(client.tell(event, text)).encode("ascii")


def step_text(prompt: str, step: int, *, refusing: bool) -> str:
    """Return the text for a step of escalation, from 1 on. The cause and the next step stay near its beginning."""
    text = prompt.removeprefix(_PREFIX)
    if step == 2:
        text = f"{AGAIN}{' ' + REFUSED if refusing else ''} {text}"
    elif step > 2:
        text = f"{STOP}{' ' + REFUSED_FOR_GOOD if refusing else ''}\n\n{text}"
    return (_PREFIX + text)[:MAX_ANSWER_CHARS]


def headline(client: Client, folder: str, what: str) -> str:
    """Return one line for a person: which client, in which folder, and what happens there."""
    place = os.path.basename(folder.rstrip("/"))
    return f"{client.title}{f' in {place}' if place else ''}: {what}"


def hang_text(prompt: str) -> str:
    """Return the text for an agent whose call hung. The agent reads it when the call returns after all, or a person speaks."""
    return f"{_PREFIX}{WAITED} {prompt.removeprefix(_PREFIX)}"[:MAX_ANSWER_CHARS]


@contextlib.contextmanager
def _lock_session(path: str) -> Generator[bool]:
    """Take the session's lock without waiting; yield whether it was free."""
    # The file exists, because the hook has just appended to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


_MAX_WHOLE, _HEAD, _END = 600_000, 65_536, 400_000
"""Largest size in bytes of a log that is read whole, and the sizes of the beginning and the end of a longer one."""
_MAX_SPOKEN = 200_000
_MAX_SCANNED = 64_000_000
"""Largest size in bytes of a log whose middle is searched for people's words. In a longer one that would take seconds."""
_MAX_LINE_BYTES = 20_000
# Parts of lines in all clients' logs, with and without a blank. Parsing megabytes of JSON would exceed the hook's time limit.
_PERSON = (b'"type":"user"', b'"type": "user"', b'"role":"user"', b'"role": "user"', b"user_message")
_RESULT = (b"tool_result", b"function_call_output")

_RECENT_ENTRIES = 40
_MIN_SAME_SHARE = 0.8
"""Smallest share of a logged result that must be the result itself. The rest counts as the client's wrapping."""


def excerpt(log: str, folder: str, unwritten: Sequence[tuple[str, str]], begun: Sequence[str] = ()) -> str:
    """Write the excerpt of a log into a folder, under the log's own name, and return its path.

    Args:
        log: the path of the client's log. It comes from an event, so only a regular file is opened.
        folder: the folder to write into.
        unwritten: (id, record) of results that the client has not written yet. They are added if the log has the call
            but not its result.
        begun: records of open calls, which the client writes only when they are over. They are added unchanged.

    Raises:
        OSError: the log does not exist, or is not a regular file.
    """
    with open(open_regular(log), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(_MAX_WHOLE) if size <= _MAX_WHOLE else b"".join(_parts(stream, size))
    content = content[: content.rfind(b"\n") + 1]  # the client may be in the middle of a line
    for call, record in unwritten:
        # An empty id would match every line.
        found = [line for line in content[-_MAX_WHOLE:].split(b"\n") if call and call.encode() in line]
        if found and not any(result in line for line in found for result in _RESULT):
            content += record.encode("ascii") + b"\n"
    content += b"".join(record.encode("ascii", "replace") + b"\n" for record in begun)
    place = os.path.join(folder, os.path.basename(log) or "log.jsonl")
    with open(place, "xb") as target:
        target.write(content)
    return place


def _parts(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the lines at the beginning, short lines with people's words in the middle, and the lines at the end."""
    place, kept, end = 0, 0, size - _END
    for line in source:
        start, place = place, place + len(line)
        if start < _HEAD or start >= end:
            yield line
        elif size > _MAX_SCANNED:
            source.seek(end)
            # The offset is within a line. Skip its rest, which is not JSON.
            source.readline()
            yield from source
            return
        elif kept < _MAX_SPOKEN and len(line) < _MAX_LINE_BYTES and _rests_on_events(line):
            kept += len(line)
            yield line


def _rests_on_events(line: bytes) -> bool:
    if not (b'user"' in line or b"user_message" in line):  # a fast test, since most lines contain neither
        return False
    # Claude Code logs the result of a call as a message of the user.
    return not any(each in line for each in _RESULT) and any(each in line for each in _PERSON)


def add_late_results(workspace: Workspace, event: Event) -> None:
    """Add the results of an event's calls to the scratch store over the log, which is discarded afterwards.

    A call that is not in the log at all is added too, in the form of an earlier identical call.

    Raises:
        CtxmgrError: the store refused a record.
    """
    entries = workspace.list(ListRequest(newest_first=True, limit=_RECENT_ENTRIES)).entries
    for call in event.calls:
        same = [each for each in entries if _is_same(each, call)]
        if same:
            _add(workspace.store, call, same)


def _is_same(entry: EntryView, call: Call) -> bool:
    if call.id:
        return call.id in entry.id
    return canonical(entry.input) == canonical(call.given)


def _add(store: Store, call: Call, same: list[EntryView]) -> None:
    latest = same[0]
    records: list[dict[str, Any]] = []
    shared = {"v": 1, "session": latest.session, "ts": now()}
    entry = latest.id
    if latest.status != "open":
        if call.id:  # this call is in the log already, with its result
            return
        entry = new_id()
        call_fields = {"kind": "entry", "id": entry, "agent": latest.agent, "action": latest.action, "input": latest.input}
        records.append(
            {**shared, **call_fields, "inputType": latest.input_type, "process": latest.process, "turn": latest.turn}
        )
    # The event does not say whether the call failed. If the result equals an earlier one, take that one's status.
    closed = next((each for each in same if each.status != "open"), None)
    result: dict[str, Any] = {"kind": "result", "entry": entry, "status": "ok", "output": call.result}
    if closed is not None and _says_the_same(call.result, closed):
        result |= {"status": closed.status, "output": closed.output, "error": closed.error}
    elif closed is not None and closed.status == "error" and _fails_the_same(call.result, closed):
        kind = (as_object(closed.error) or {}).get("type")
        result |= {"status": "error", "error": {"type": kind or "error", "message": plain_text(call.result)}}
    records.append({**shared, **result})
    store.append([{key: value for key, value in record.items() if value is not None} for record in records])


def _says_the_same(result: Any, before: EntryView) -> bool:
    """Whether a result equals the earlier one, except for times, ids and the client's wrapping in its log."""
    mine = _blur_text(result)
    error = as_object(before.error) or {}
    for each in (before.output, error.get("message")):
        theirs = _blur_text(each)
        short, long = sorted((mine, theirs), key=len)
        if mine == theirs or (short in long and len(short) >= _MIN_SAME_SHARE * len(long)):
            return True
    return False


def _fails_the_same(result: Any, before: EntryView) -> bool:
    """Whether a result has the same error core as the earlier failure. The detectors compare failures in the same way."""
    core = error_core(plain_text(result) or "")
    return says_anything(core) and core == error_core(error_text(before.error, before.output))


def _blur_text(value: Any) -> str:
    return mask_volatile((plain_text(value) or "").strip(), ids=True)


_TITLE = "ctxmgr"
# Desktops show a few lines of a notice and cut the rest.
_MAX_NOTICE_CHARS = 300
_SCRIPT = ("on run argv", "display notification (item 1 of argv) with title (item 2 of argv)", "end run")
_DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")


def notify_person(config: Config, session: str, headline: str, text: str) -> None:
    """Notify a person about a session, without waiting. Skip a notifier that can't be started.

    Args:
        config: the settings of the session's folder. The command can only come from the user's own settings (ruling 29).
        session: the session's name, for the command's environment.
        headline: one line for the desktop. Recorded text in it is made harmless.
        text: the full text, for the command's stdin.
    """
    if config.live_desktop and (notifier := notifier_command(headline, os.environ, sys.platform)):
        _start(notifier, b"", {})
    if config.live_exec:
        # An environment variable can't contain NUL and has a limited length, but a session's name can be any text.
        name = session.replace("\0", "").encode("utf-8", "replace").decode()[:1000]
        _start(config.live_exec, text.encode("utf-8", "replace"), {"CTXMGR_SESSION": name})


def notifier_command(headline: str, environment: Mapping[str, str], platform: str) -> list[str] | None:
    """Return the command that shows a line on the desktop; None if there is no desktop or no notifier.

    The line is passed as an argument, never as part of a script, and its markup is escaped.
    """
    plain = "".join(letter for letter in headline if letter.isprintable())[:_MAX_NOTICE_CHARS]
    if platform == "darwin" and (program := shutil.which("osascript")):
        return [program, *(word for line in _SCRIPT for word in ("-e", line)), plain, _TITLE]
    if not any(environment.get(name) for name in _DESKTOPS) or (program := shutil.which("notify-send")) is None:
        return None
    # Notification servers may render the body as markup. Replace "&" first, or the other escapes would be escaped again.
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        plain = plain.replace(sign, name)
    return [program, "--app-name=ctxmgr", "--", _TITLE, plain]


def _start(command: Sequence[str], given: bytes, more: Mapping[str, str]) -> None:
    with contextlib.suppress(OSError, ValueError):
        started = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **more},
        )  # fmt: skip
        assert started.stdin is not None
        threading.Thread(target=started.wait, daemon=True).start()  # reap it, so that a long watch leaves no zombies
        with started.stdin as stream:
            stream.write(given)
