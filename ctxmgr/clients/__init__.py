"""The clients that can call the hook of ctxmgr: their events, the answers to them, and their settings.

`Client` is the interface of all clients. Each client has its own module; those in `plugin` load JavaScript of ctxmgr instead of
starting hooks. To add a client, write a module and list it in `CLIENTS`. `SessionFile` stores what hooks record beside the
client's log.

This package imports only `ctxmgr.log`, `ctxmgr.base` and little of the standard library, because a client starts a hook at
every call of its agent.
"""

from __future__ import annotations

import os

from ctxmgr.base.paths import user_folder
from ctxmgr.log.fast_json import cast, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

BEFORE, AFTER, PERSON, WAIT, END, QUIET = "before", "after", "person", "wait", "end", "quiet"
"""Kinds of events: before a call, after calls, a message of a person, waiting for a person, end of a session, and silence of a
client whose log is not read."""

MAX_ANSWER_CHARS = 8_900
"""Maximum characters of an answer. Claude Code writes more than 10,000 into a file that the model does not read."""


class Call:
    """A call of a tool. ``result`` is None before the call."""

    __slots__ = ("action", "given", "id", "result")

    def __init__(self, action: str, given: Any, call_id: str, result: Any = None) -> None:
        self.action = action
        self.given = given
        self.id = call_id
        self.result = result


class Event:
    """An event of a client.

    Attributes:
        kind: `BEFORE`, `AFTER`, `PERSON`, `WAIT`, `END` or `QUIET`.
        name: the client's own name for the event.
        session: the client's id for the session.
        agent: id of the sub-agent that acts; empty for the main agent.
        transcript: path of the session's log as the client gives it, so untrusted.
        folder: working folder of the agent.
        calls: the calls in order; several if they were issued together.
        raw: the original fields, for clients that need more of them.
    """

    __slots__ = ("agent", "calls", "folder", "kind", "name", "raw", "session", "transcript")

    def __init__(
        self,
        kind: str,
        name: str,
        session: str,
        calls: Sequence[Call] = (),
        agent: str = "",
        transcript: str = "",
        folder: str = "",
    ) -> None:
        self.kind = kind
        self.name = name
        self.session = session
        self.calls = calls
        self.agent = agent
        self.transcript = transcript
        self.folder = folder
        self.raw: Mapping[str, Any] = {}


class Client:
    """The interface of a client.

    Attributes:
        name: its name in ``ctxmgr install NAME``.
        title: its name for people.
        program: the command that starts it, and that is asked for its version.
        least: the oldest version that supports all our events and settings; an older one may disable all its hooks.
        comments: its settings file may hold comments.
        seconds: the time limit for a hook.
        asks_trust: the user must trust the installed hooks before the client runs them.
        counts_rounds: the installed plug-in counts rounds itself, and starts us only at a third identical round.
        tells_beside_person: the answer to a message of a person reaches the agent too.
        writes_late: it writes the result of a call into its log only after the hooks.
        hides_open_calls: its log does not show a call before the call is over.
    """

    name = ""
    title = ""
    program = ""
    least: tuple[int, ...] = ()
    comments = False
    seconds = 10
    asks_trust = False
    counts_rounds = False
    tells_beside_person = False
    writes_late = False
    hides_open_calls = False

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event with these fields, or None if we do not use it."""
        raise NotImplementedError

    def tell(self, event: Event, text: str) -> Any:
        """Return the answer that gives a text to the agent. By default, the text is additional context of the event."""
        return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}

    def refuse(self, event: Event, text: str) -> Any:
        """Return the answer that denies a call with a reason, or None if the client does not support it."""
        return None

    def show(self, text: str) -> Any:
        """Return the answer that shows a text to the user alone, or None if the client does not support it."""
        return None

    def unwritten(self, event: Event) -> list[tuple[str, str]]:
        """Return (id, record) of each result that the client may write into its log only after the hook."""
        return []

    def open_records(self, event: Event) -> list[str]:
        """Return the log records of calls that are about to begin, for a client whose log omits open calls."""
        return []

    def log_path(self, event: Event) -> str:
        """Return the path of the log with the agent's calls."""
        return event.transcript

    def log_content(self, event: Event) -> str | None:
        """Return the content of the event as a log of format 1, or None if the client's own log is to be read."""
        return None

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the settings file for a scope (``user`` or ``project``), or None if the client has none."""
        raise NotImplementedError

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return additions to the settings: (keys that lead to a list, item for that list)."""
        return []

    def whole_file(self, command: Sequence[str]) -> str | None:
        """Return the content of a file that only we write, or None if we add to the client's own settings."""
        return None

    def has_plugin(self, environment: Mapping[str, str]) -> bool:
        """Whether a plugin of ctxmgr is enabled in the client, which calls us like its settings would."""
        return False

    def trust(self, path: str, folder: str) -> bool | None:
        """Make the client trust the installed hooks, as the user asked. Return whether it does; None if it needs no trust.

        Raises:
            StorageFailed: the client can't be asked.
        """
        return None

    def left_to_do(self, path: str, environment: Mapping[str, str]) -> str | None:
        """Return what the user must still do before the client runs the hooks, or None."""
        return None


def as_object(value: Any) -> dict[str, Any] | None:
    """Return the value if it is a JSON object, else None."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def first_text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields whose value is a text, or ""."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            return value
    return ""


def client_home(environment: Mapping[str, str], variable: str, default: str) -> str:
    """Return a client's own folder: the value of a variable, else ``default`` in the user's home."""
    # Relative values are ignored. They would lead into the agent's working folder, where anybody may have put files.
    named = environment.get(variable) or ""
    if named.startswith("/"):
        return named
    return os.path.join(os.path.expanduser("~"), default)


CLIENTS = {
    "claude-code": ("claude_code", "CLIENT"),
    "codex": ("codex", "CLIENT"),
    "gemini": ("gemini", "CLIENT"),
    "copilot": ("copilot", "CLIENT"),
    "opencode": ("plugin", "OPENCODE"),
    "pi": ("plugin", "PI"),
}
"""Client -> (module in this package, name in it). A hook imports only the module of the client that calls it."""


def client(name: str) -> Client | None:
    """Return the client of this name, or None."""
    if name not in CLIENTS:
        return None
    module, attribute = CLIENTS[name]
    # Not `importlib.import_module`, which a hook would have to load first.
    found: Client = getattr(__import__(f"ctxmgr.clients.{module}", fromlist=[attribute]), attribute)
    return found


# An event holds the whole result of a call. A longer event is read to its end and ignored.
_MAX_EVENT_BYTES, _CHUNK = 32_000_000, 1_048_576


def event_bytes() -> bytes:
    """Return the event on stdin, or nothing if it is too long. Read it to the end, so that the client's write never fails."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, _CHUNK):
        size += len(part)
        if size <= _MAX_EVENT_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= _MAX_EVENT_BYTES else b""


def parse_event(name: str, content: bytes) -> tuple[Client, Event] | None:
    """Return the client of this name and its event, or None if we do not use the event.

    Raises:
        ValueError: the content is not JSON.
    """
    found = client(name)
    if found is None or not content:
        return None
    fields: Any = loads(content.decode("utf-8", "replace"))
    event = found.event(cast("dict[str, Any]", fields)) if isinstance(fields, dict) else None
    # Rounds are counted per session, so an event without a session can't be counted.
    return None if event is None or not event.session else (found, event)


SESSION_SUFFIX = ".session"
WATCHER_LOCK = "watcher.lock"
"""Lock of the one watcher per user. Hooks check it before they start another watcher."""

ENDED = "ended"
"""End of the name of a client's file about its ended sessions."""

# Enough for hundreds of rows. Older rows do not matter for whether a session waits or has ended.
_TAIL = 65_536
# A row must be small enough for one write. No system has longer paths.
_MAX_TEXT = 4_096


def state_folder() -> str:
    """Return the folder in which hooks keep their state (XDG Base Directory Specification)."""
    return os.path.join(user_folder(os.environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "ctxmgr", "live")


def short_digest(data: bytes) -> str:
    """Return a short digest of bytes."""
    # Not with `hashlib`, which loads OpenSSL: that would slow down a hook noticeably at every call.
    from _blake2 import blake2b

    return blake2b(data, digest_size=6).hexdigest()


def state_name(client: str, session: str, agent: str = "") -> str:
    """Return the name of a session's state file, with which the names of all its other files begin.

    It contains digests, because the client chooses the names of sessions and agents.
    """
    digests = [short_digest(text.encode("utf-8", "surrogatepass")) for text in (f"{client}\0{session}\0", agent) if text]
    return "-".join([client, *digests])


def state_paths(client: str, session: str | None = None) -> list[str]:
    """Return the paths of the state files of a client, or of one of its sessions.

    Raises:
        OSError: the folder can't be read.
    """
    beginning = f"{client}-" if session is None else state_name(client, session)
    try:
        with os.scandir(state_folder()) as entries:
            return [each.path for each in entries if each.name.startswith(beginning) and each.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def end_session(client: str, session: str) -> None:
    """Remove the files of a session that its client ended.

    The file with its waits for a person stays, because importers add them to its log. The number of tellings is added to a file
    of the client, for ``ctxmgr doctor``.

    Raises:
        OSError: a file can't be read, written or removed.
    """
    kept, told = SessionFile(client, session), 0
    paths = state_paths(client, session)
    for path in paths:
        if path == kept.path and any(row.get("type") == "waiting" for row in read_rows(path)):
            kept.end()
            continue
        if "." not in os.path.basename(path):
            told += count_tellings(path)
        os.unlink(path)
    if paths:
        descriptor = open_to_append(os.path.join(state_folder(), f"{client}-{ENDED}"), os.O_WRONLY | os.O_CREAT)
        try:
            os.write(descriptor, b"t \n" * told)
            os.utime(descriptor)
        finally:
            os.close(descriptor)


def count_tellings(path: str) -> int:
    """Return how often the agent of a state file was told.

    Raises:
        OSError: the file can't be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        return sum(line.startswith(b"t ") for line in stream)


def open_to_append(path: str, flags: int) -> int:
    """Return a descriptor of a state file. Its folder is made if the file may be created."""
    # A link in place of the file must not mislead the hook, and a pipe must not block it.
    flags |= os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    from ctxmgr.base.paths import make_private_folder

    make_private_folder(os.path.dirname(path))
    return os.open(path, flags, 0o600)


class SessionFile:
    """File in which hooks record what a client's log lacks: the path of the log, waits for a person, the end of the session.

    It lies with the other state of the hooks and only its user can read it. Each line is a record of format 1. The watcher
    finds active sessions by these files, and readers of a session's log add the waits.
    """

    def __init__(self, client: str, session: str) -> None:
        self.client = client
        self.session = session
        self.path = os.path.join(state_folder(), state_name(client, session) + SESSION_SUFFIX)

    def begin(self, log: str, folder: str) -> None:
        """Record the path of the session's log, and the process that started the hook.

        Raises:
            OSError: the file can't be written.
        """
        # The watcher drops a session if it has seen its process alive and then gone. It never sees a
        # shell that only starts hooks.
        row = {"client": self.client, "log": log[:_MAX_TEXT], "folder": folder[:_MAX_TEXT], "pid": os.getppid()}
        self._append("session", row, os.O_CREAT)

    def wait(self, reason: str, action: str) -> None:
        """Record that the agent waits for a person. Does nothing if `begin` was never called.

        Raises:
            OSError: the file can't be written.
        """
        from ctxmgr.log.ids import new_id

        data = {"reason": reason[:_MAX_TEXT], "action": action[:_MAX_TEXT]}
        self._append("event", {"id": new_id(), "type": "waiting", "data": data})

    def end(self) -> None:
        """Record that the client ended the session. Does nothing if `begin` was never called.

        Raises:
            OSError: the file can't be written.
        """
        self._append("sessionEnd", {"outcome": "completed"})

    def _append(self, kind: str, row: dict[str, Any], create: int = 0) -> None:
        from ctxmgr.log.ids import now

        record = {"v": 1, "kind": kind, "session": self.session, "ts": now(), **row}
        try:
            descriptor = open_to_append(self.path, os.O_WRONLY | create)
        except FileNotFoundError:
            if create:
                raise
            return
        try:
            # One small append in one write, so that concurrent hooks can't mix their lines.
            os.write(descriptor, (dumps(record) + "\n").encode("ascii"))
        finally:
            os.close(descriptor)


def read_rows(path: str) -> list[dict[str, Any]]:
    """Return the last records in a session's file. Skip lines that are not records; return nothing if it can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        os.lseek(descriptor, max(0, size - _TAIL), os.SEEK_SET)
        lines = os.read(descriptor, _TAIL).split(b"\n")
    except OSError:
        return []
    finally:
        os.close(descriptor)
    rows: list[dict[str, Any]] = []
    for line in lines[1:] if size > _TAIL else lines:  # the first line may be cut off at its beginning
        try:
            row: Any = loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        # Check no more fields: the end that a plug-in appends has neither a session nor a time.
        if isinstance(row, dict) and row.get("v") == 1:
            rows.append(cast("dict[str, Any]", row))
    return rows


def with_waits(client: str, records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a session's records together with the waits that hooks recorded, each before the first later record."""
    waits: list[dict[str, Any]] | None = None
    for record in records:
        if waits is None:
            waits = _waits(client, record.get("session"))
        moment = record.get("ts")
        # The position matters: silence after a wait for a person is not a hang (ruling 9).
        while waits and isinstance(moment, str) and waits[0]["ts"] < moment:
            yield waits.pop(0)
        yield record
    yield from waits or ()


def _waits(client: str, session: object) -> list[dict[str, Any]]:
    if not isinstance(session, str):
        return []
    rows = read_rows(SessionFile(client, session).path)
    return [
        row for row in rows
        if row.get("kind") == "event" and row.get("session") == session and row.get("type") == "waiting"
        and isinstance(row.get("ts"), str) and isinstance(row.get("id"), str)
    ]  # fmt: skip
