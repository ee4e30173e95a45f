"""Answer one event of a client: with nothing, unless the agent goes in circles or repeats a refused call.

After any error here, the client sees a hook that succeeded and printed nothing. Every call of an agent loads this module, so
imports that only some events need are inside the functions.

`Rounds` counts from the fingerprints of the last calls. The count only decides when to load the detectors. It blurs numbers
and ids, so it errs on the side of asking too often. Only the detectors decide what a loop is. Steps that only the blur makes
equal, such as reads of f1, f2 and f3, are told from a loop by comparing them to the letter (`letter_fingerprints`).

An open call that is not in the client's log yet is noted in a file of its own, in the format of that log (`note_calls`).
The file is removed when the call is over, when a person speaks, and when the session ends.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.clients import (
    AFTER,
    BEFORE,
    END,
    MAX_ANSWER_CHARS,
    PERSON,
    QUIET,
    WAIT,
    WATCHER_LOCK,
    SessionFile,
    as_object,
    end_session,
    event_bytes,
    first_text,
    open_to_append,
    parse_event,
    short_digest,
    state_folder,
    state_name,
    state_paths,
)
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.clients import Call, Client, Event

OFF = "CTXMGR_LIVE"
"""The environment variable that switches the hook off for one run: ``CTXMGR_LIVE=off``."""

NO_WATCHER = "CTXMGR_WATCH"
"""The environment variable that keeps the hook from starting the watcher: ``CTXMGR_WATCH=off``."""

TELL, WATCH = "--tell", "--watch"
"""Arguments of `ctxmgr.live.hook`: ask the detectors (`ctxmgr.live.detector_answer`), or watch for hangs (`watcher`)."""

# An answer has a few thousand characters. Longer output is not an answer of ours, and no client would read it.
_MAX_ANSWER_BYTES = 1_048_576
_DETECTOR_SECONDS = 8.0
"""Time limit for the detectors, a little below that of the clients: see `Client.seconds`."""


def run(name: str) -> None:
    """Answer the event of a client on stdin.

    Raises:
        Exception: any error; the caller then answers nothing.
    """
    if os.environ.get(OFF) in ("off", "0"):
        return
    if content := answer_event(name, event_bytes()):
        os.write(1, content)


def answer_event(name: str, content: bytes) -> bytes:
    """Return the answer to a client, empty for none.

    Args:
        name: the name of the client.
        content: the bytes of its event.

    Raises:
        Exception: any error; the caller then answers nothing.
    """
    found = parse_event(name, content)
    if found is None:
        return b""
    client, event = found
    rounds = Rounds(name, event.session, event.agent)
    if event.kind == BEFORE:
        return _refuse_or_note(client, event, rounds)
    _forget_calls(client, event)
    if event.kind == END:
        end_session(name, event.session)
        return b""
    if event.kind == WAIT:
        SessionFile(name, event.session).wait(event.name, event.calls[0].action if event.calls else "")
        return b""
    if event.kind == QUIET:
        return _note_silence(client, event, rounds)
    if event.kind == PERSON:
        # Do not create a file for a session without rounds just because a person spoke.
        if os.path.exists(rounds.path):
            rounds.append(("u",))
        _begin(name, event)
        return _take_word(client, event, rounds) if client.tells_beside_person else b""
    if event.kind != AFTER or not event.calls:
        return b""
    rounds.append(*call_rows(event))
    # A client may send no event when a session starts, so the first call of an agent begins it too.
    if rounds.is_new:
        _begin(name, event)
    if left := _take_word(client, event, rounds):
        return left
    if rounds.worth_asking(len(event.calls)) is None:
        return b""
    return _ask_detectors(name, content)


def _note_silence(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Write the open calls to a file for the watcher. Return the files that the plug-in removes at the next sign of life."""
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
    # `posix_spawn` needs no import. The watcher must outlive the client, so it gets its own session and none of our streams.
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, [sys.executable, "-I", hook, WATCH], os.environ, file_actions=null, setsid=True)


def _is_watched() -> bool:
    """Whether the watcher holds its lock. The test uses a shared lock, so hooks do not take each other for the watcher."""
    import fcntl

    # O_CREAT, so that the watcher and all hooks lock the same file from the first call on.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(os.path.join(state_folder(), WATCHER_LOCK), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _take_word(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Return the watcher's message for the main agent about a call that hung. Each message is returned once."""
    # The watcher looks only at calls of the main agent.
    if event.agent:
        return b""
    try:
        with open(rounds.stall, encoding="utf-8", opener=_open_no_link) as stream:
            text = stream.read(MAX_ANSWER_CHARS)
    except FileNotFoundError:
        return b""
    os.unlink(rounds.stall)  # if two hooks have read it, the second one fails here and answers nothing
    return dumps(client.tell(event, text)).encode("ascii")


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _refuse_or_note(client: Client, event: Event, rounds: Rounds) -> bytes:
    """Refuse a call that the agent was told not to repeat. If the client's log hides open calls, note the call instead."""
    if client.hides_open_calls:
        note_calls(client, event)
        return b""
    rounds.read()
    if not any(row[0] in "ds" for row in rounds.rows):  # the usual case, which needs no fingerprints
        return b""
    for call in event.calls:
        exact = fingerprints(call)[1]
        if rounds.is_refused(exact):
            with open(rounds.reason, encoding="utf-8") as stream:
                reason = stream.read(MAX_ANSWER_CHARS)
            rounds.append(("x", exact))
            return dumps(client.refuse(event, reason)).encode("ascii")
    return b""


def _forget_calls(client: Client, event: Event) -> None:
    """Remove the notes of the calls that this event ends."""
    if client.hides_open_calls and event.kind == AFTER:
        forget_calls(client, event)
    elif client.hides_open_calls and event.kind == PERSON:
        forget_session(client, event.session)


def _ask_detectors(name: str, content: bytes) -> bytes:
    """Return the answer of the detectors, from a process that can be killed if it takes too long.

    That process loads libraries. Unlike the hook itself, it is started with the interpreter's site packages.
    """
    import subprocess

    hook = os.path.join(os.path.dirname(__file__), "hook.py")
    ended = subprocess.run(
        [sys.executable, "-I", hook, TELL, name], input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=_DETECTOR_SECONDS, check=False,
    )  # fmt: skip
    # Pass on JSON objects only. A warning of a library, for example, would reach the client as our answer.
    output = ended.stdout
    return output if ended.returncode == 0 and output[:1] == b"{" and len(output) < _MAX_ANSWER_BYTES else b""


STEPS = 3
"""Number of times that an agent is told before a person has to speak: plainly, again, and to stop."""
ROUNDS = 3
"""Number of identical rounds after which the detectors are asked (design ruling 6)."""

# The last three are the defaults of the detectors: error_varied_loop_rounds, stagnation_rounds, interleaved_loop_rounds.
_MAX_PERIOD, _SAME_ERROR, _SAME_ANSWER, _ANYWHERE = 6, 5, 6, 6
_WINDOW = 64
# The tail has more rows than the window compares. A larger file is cut, so that it does not grow during a session of days.
_TAIL, _MAX_FILE_BYTES = 16_384, 65_536
_MAX_AGE = 14 * 86_400.0  # seconds
_END = 4_000  # characters of a long result that are compared, at its beginning and at its end
_BLURRED = b"0123456789abcdef"  # deleting hex digits removes numbers, hashes and ids in one call in C
_COMMANDS = ("command", "cmd", "script")
# Models reword these for the same command, so they would hide a repetition.
_COSMETIC = frozenset({"description", "explanation", "justification"})
_FAILURES = ("Exit code ", "Error", "error", "<tool_use_error>", "Traceback")

_MAX_LETTERS = 2_000  # characters; hardly any two longer answers differ in numbers alone
FILES = ("file_path", "filePath", "absolute_path", "path")
"""Fields that name a file. Each of them is a path for the detectors too, so another number in it names another file."""
EDITS = ("Edit", "MultiEdit", "Write", "NotebookEdit", "edit", "write", "edit_file", "write_file", "replace", "apply_patch")
"""Actions that change a file. All of them get nearly the same receipt, and only the same change again can be a loop."""
# Parts of words in all texts that the detectors take for an error. A client does not say whether a call failed.
_TROUBLE = tuple(
    b"error,exception,fault,fatal,panic,fail,refused,denied,reject,block,forbidden,allow,declined,veto,permi,approv,polic,not ,"
    b"no ,n't,unknown,unrecogni,unsupported,invalid,context,too long,token,reduce,timed out,timeout,time limit,longer than,"
    b"more than,exit,401,unauth,authenti,expired,login".split(b",")
)
# Parts of all texts that the detectors blur: durations, addresses, temporary files, times, ids and counters. "0" is any digit.
_VOLATILE = tuple(
    b"0n,0m,0s,0u,0\xc2\xb5,0 n,0 m,0 s,0 u,0 \xc2\xb5,0x,/tmp/,/t/,\x1b,duration,elapsed,pid,chunk id,wall time,process id,"
    b"00:00,0000-00-00,req_,request,trace,run_,msg_,uptime,up time,age,correlation,amzn,checked,batt,clock".split(b",")
)
_LONG_HEX = b"0000000"
_ANY_DIGIT, _ANY_HEX = bytes.maketrans(b"123456789", b"0" * 9), bytes.maketrans(b"123456789abcdef", b"0" * 15)


def fingerprints(call: Call) -> tuple[str, str]:
    """Return two fingerprints of a call's action and input: blurred, exact."""
    given = as_object(call.given)
    if given is not None:
        bare = any(name in given for name in _COMMANDS)
        parts = [key + dumps(given[key]) for key in sorted(given) if not (bare and key in _COSMETIC)]
        text = "\n".join(parts)
    else:
        text = dumps(call.given)
    data = f"{call.action}\n{text}".encode("utf-8", "surrogatepass")
    return short_digest(data.translate(None, _BLURRED)), short_digest(data)


def letter_fingerprints(call: Call, exact: str) -> tuple[str, ...]:
    """Return fingerprints of the file or the command of a call and of its answer, both to the letter.

    Nothing is returned for an answer that the detectors may compare in another way: a failure, JSON, a long one, or one with
    times or ids in it. A change of a file gets its exact fingerprint twice.
    """
    given, result = as_object(call.given), call.result
    if given is None or not isinstance(result, str) or len(result) > _MAX_LETTERS:
        return ()
    data = result.strip().lower().encode("utf-8", "surrogatepass")
    if data[:1] in (b"{", b"[") or any(part in data for part in _TROUBLE):
        return ()
    if call.action in EDITS:
        return exact, exact
    place, digits = first_text(given, *FILES, *_COMMANDS), data.translate(_ANY_DIGIT)
    # A command may read lines of a file, and the detectors know which were read before.
    if not place or "sed -n" in place or _LONG_HEX in data.translate(_ANY_HEX) or any(part in digits for part in _VOLATILE):
        return ()
    return short_digest(place.encode("utf-8", "surrogatepass")), short_digest(b" ".join(data.split()))


def result_fingerprint(result: Any) -> tuple[str, bool]:
    """Return the blurred fingerprint of a result, and whether it looks like a failure."""
    text = result if isinstance(result, str) else dumps(result)
    if len(text) > 2 * _END:
        text = text[:_END] + text[-_END:]
    # "rror: " is the end of "ValueError: ..." as well as of "error: ...".
    failed = text.startswith(_FAILURES) or "Traceback (most" in text or "rror: " in text
    return short_digest(text.encode("utf-8", "surrogatepass").translate(None, _BLURRED)), failed


class Rounds:
    """The rows of one session's agent, in a small file that only grows until it is cut.

    The rows of the file::

        c CALL EXACT RESULT FAILED   a call and its result, and two more fingerprints if `letter_fingerprints` has them
        u                            a person spoke: earlier rows no longer count
        n CALL RESULT                the detectors saw no loop here
        t STEP EXACT...              the agent was told: the count starts again
        d EXACT                      this call is refused once, as long as nothing new was done
        s EXACT                      this call is refused until a person speaks
        x EXACT                      the call was refused
        w                            the user was shown that the settings are wrong

    Attributes:
        path: the path of the file. Its name is a digest, so any session id is safe.
        reason: the path of the file with the last message to the agent.
        stall: the path of the file with the watcher's message about a call that hung.
        log: the path of the file with the open calls, for a client without a readable log.
        is_new: whether the rows just appended are the first of the file.
        rows: the last rows since a person spoke, including those just appended.
    """

    def __init__(self, client: str, session: str, agent: str) -> None:
        self.path = os.path.join(state_folder(), state_name(client, session, agent))
        self.reason = self.path + ".told"
        self.stall = self.path + ".stall"
        self.log = self.path + ".jsonl"
        self.is_new = False
        self.rows: list[list[str]] = []

    def read(self) -> None:
        """Read the last rows; none if there is no file.

        Raises:
            OSError: the file can't be read, or is not ours.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            self._load(descriptor)
        finally:
            os.close(descriptor)

    def append(self, *rows: Sequence[str]) -> None:
        """Append rows in one write, so that concurrent hooks lose none. Then read the last rows.

        Raises:
            OSError: the disk is full, or the file can't be written.
        """
        descriptor = open_to_append(self.path, os.O_RDWR | os.O_CREAT)
        try:
            content = "".join(" ".join(row) + "\n" for row in rows).encode("ascii")
            os.write(descriptor, content)
            size = self._load(descriptor)
            self.is_new = size == len(content)
        finally:
            os.close(descriptor)
        if self.is_new:
            self._remove_old_files()
        if size > _MAX_FILE_BYTES:
            self._cut()

    def keep_log(self, content: str) -> None:
        """Write the file with the open calls.

        Raises:
            OSError: the disk is full, or the file can't be written.
        """
        from ctxmgr.base.paths import make_private_folder, replace_file

        make_private_folder(os.path.dirname(self.log))
        replace_file(self.log, content.encode("ascii"))

    def _load(self, descriptor: int) -> int:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        os.lseek(descriptor, max(0, size - _TAIL), os.SEEK_SET)
        lines = os.read(descriptor, _TAIL).decode("ascii", "replace").split("\n")
        # If only the tail was read, its first line may be incomplete.
        rows = [line.split(" ") for line in (lines[1:] if size > _TAIL else lines) if line]
        spoken = max((place for place, row in enumerate(rows) if row[0] == "u"), default=-1)
        self.rows = rows[spoken + 1 :]
        return size

    def _remove_old_files(self) -> None:
        """Remove the files of sessions that ended long ago. Called once per session, because it reads the whole folder."""
        from time import time

        limit = time() - _MAX_AGE
        try:
            found = os.scandir(os.path.dirname(self.path))
        except OSError:
            return
        with found:
            for entry in found:
                try:
                    # Never remove the lock, or a second watcher could start beside one that has run for weeks.
                    if (
                        entry.name != WATCHER_LOCK
                        and entry.is_file(follow_symlinks=False)
                        and entry.stat(follow_symlinks=False).st_mtime < limit
                    ):
                        os.unlink(entry.path)
                except OSError:
                    continue

    def _cut(self) -> None:
        """Keep the last whole rows."""
        from ctxmgr.base.paths import replace_file

        with open(self.path, "rb") as stream:
            stream.seek(-_TAIL, os.SEEK_END)
            # A row that another hook appends right now is lost with the old file. The count is then one too low.
            rest = stream.read().partition(b"\n")[2]
        replace_file(self.path, rest)

    def calls_since_told(self) -> list[list[str]]:
        """Return the rows of the last calls since the agent was told."""
        last_told = max((place for place, row in enumerate(self.rows) if row[0] == "t"), default=-1)
        return [row for row in self.rows[last_told + 1 :] if row[0] == "c" and len(row) in (5, 7)][-_WINDOW:]

    def worth_asking(self, new: int) -> list[str] | None:
        """Return the first of the last ``new`` calls that goes in circles by this count, or None; so after the last telling."""
        if sum(row[0] == "t" for row in self.rows) >= STEPS:
            return None
        calls = self.calls_since_told()
        # Judge each new call as if it were the last, because a loop completed inside a batch may not be visible at its end.
        for place in range(max(0, len(calls) - new), len(calls)):
            if is_circling(calls[: place + 1]) and self._due(calls[: place + 1]):
                if not self._brings_news(calls[place]):
                    return calls[place]
                self.append(("n", calls[place][1], calls[place][3]))
        return None

    def _due(self, calls: list[list[str]]) -> bool:
        """Whether the call was repeated often enough since the detectors last saw no loop: once more after each look."""
        last = calls[-1]
        denied = [place for place, row in enumerate(self.rows) if row[0] == "n" and row[1:] == [last[1], last[3]]]
        if not denied:
            return True
        later = sum(row[0] == "c" and row[1:4:2] == [last[1], last[3]] for row in self.rows[denied[-1] + 1 :])
        return later > len(denied)

    def _brings_news(self, call: list[str]) -> bool:
        """Whether all calls with an answer like this one name different files or commands, and have different answers.

        Both are compared to the letter. Then no detector sees a loop in them.
        """
        alike = [row for row in self.rows if row[0] == "c" and row[3:4] == call[3:4]]
        if any(len(row) != 7 for row in alike):
            return False
        return len({row[5] for row in alike}) == len({row[6] for row in alike}) == len(alike)

    def is_refused(self, exact: str) -> bool:
        """Whether a call that is about to be made is refused."""
        # Search from the last row back, because the latest row about this call counts.
        for place in range(len(self.rows) - 1, -1, -1):
            row = self.rows[place]
            if row[0] == "s" and row[1:] == [exact]:
                return True
            if row[0] == "x" and row[1:] == [exact]:
                return any(each[0] == "s" and each[1:] == [exact] for each in self.rows)
            if row[0] == "d" and row[1:] == [exact]:
                # Refuse it only while each later call repeated a known call and result. Anything new may change its outcome.
                known = {tuple(each[1:4:2]) for each in self.rows[:place] if each[0] == "c"}
                return all(tuple(each[1:4:2]) in known for each in self.rows[place:] if each[0] == "c")
        return False


def is_circling(calls: Sequence[Sequence[str]]) -> bool:
    """Whether the last of these calls completes a third identical round, or keeps recurring between others."""
    pairs = [(row[1], row[3]) for row in calls]
    last, failed = pairs[-1], calls[-1][4] == "1"
    for period in range(1, _MAX_PERIOD + 1):
        block = pairs[-period:]
        if len(pairs) >= ROUNDS * period and pairs[-ROUNDS * period :] == block * ROUNDS:
            return True
    # Between other calls, a recurring failure means more than a recurring success, such as a status query.
    if pairs.count(last) >= (ROUNDS if failed else _ANYWHERE):
        return True
    same = [row[3] == last[1] for row in calls]
    if failed:
        return sum(same) >= _SAME_ERROR
    # The same answer to different calls counts only in a row, because much useful work is answered by "ok".
    return len(same) >= _SAME_ANSWER and all(same[-_SAME_ANSWER:])


def call_rows(event: Event) -> list[tuple[str, ...]]:
    """Return the rows for the calls of an event."""
    rows: list[tuple[str, ...]] = []
    for call in event.calls:
        blurred, exact = fingerprints(call)
        result, failed = result_fingerprint(call.result)
        letters = () if failed else letter_fingerprints(call, exact)
        rows.append(("c", blurred, exact, result, "1" if failed else "0", *letters))
    return rows


_SUFFIX = ".open"
_MAX_CALL_BYTES = 65_536
"""Largest size of a noted call. A longer one writes a file, which does not hang."""
_WRITE_DELAY = 5.0
"""Seconds by which a log may be newer than a noted call, because the client may write the model's answer after the note."""


def note_calls(client: Client, event: Event) -> None:
    """Note the calls that are about to be made.

    Raises:
        OSError: the disk is full, or a file can't be written.
    """
    from ctxmgr.base.paths import make_private_folder, replace_file

    # A call is noted before any row is written, so the folder may not exist yet.
    make_private_folder(state_folder())
    for call, record in zip(event.calls, client.open_records(event), strict=True):
        content = record.encode("ascii")
        if len(content) < _MAX_CALL_BYTES:
            replace_file(_path(client, event, call), content)


def forget_calls(client: Client, event: Event) -> None:
    """Remove the notes of an event's calls.

    Raises:
        OSError: a file can't be removed.
    """
    for call in event.calls:
        _remove(_path(client, event, call))


def forget_session(client: Client, session: str) -> None:
    """Remove the notes of all calls of a session.

    Raises:
        OSError: a file can't be removed.
    """
    for path in _note_paths(client.name, session):
        _remove(path)


def open_calls(client: Client, session: str, log_time: float) -> list[str]:
    """Return the noted calls of a session, oldest first, in the format of its client's log.

    Calls made before the log last grew, at ``log_time`` in seconds since 1970, are left out, because they were given up.

    Raises:
        OSError: a file can't be read.
    """
    from ctxmgr.base.paths import read_regular

    found = [(os.stat(path).st_mtime, path) for path in _note_paths(client.name, session)]
    return [
        read_regular(path, _MAX_CALL_BYTES).decode("ascii", "replace")
        for at, path in sorted(found)
        if at + _WRITE_DELAY >= log_time
    ]


def modification_time(path: str) -> float:
    """Return the time at which a file was last changed, in seconds since 1970; 0 if it can't be read."""
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _path(client: Client, event: Event, call: Call) -> str:
    name = state_name(client.name, event.session)
    return os.path.join(state_folder(), f"{name}-{fingerprints(call)[1]}{_SUFFIX}")


def _note_paths(client: str, session: str) -> list[str]:
    return [path for path in state_paths(client, session) if path.endswith(_SUFFIX)]


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
