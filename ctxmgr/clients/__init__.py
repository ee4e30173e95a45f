"""The clients that can call our hook: the form of their events, of the answer to them, and of their settings.

Here is the interface of all, `Client`; the module of each says how it does it, `plugin` those that load JavaScript of ours in
the place of hooks. To add one, write a module and name it in `CLIENTS`. `SessionFile` keeps what hooks note beside the client's
log.

Imports `ctxmgr.log`, `ctxmgr.base` and little of the standard library: a client starts a hook at every call of its agent.
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
"""Kinds of events: calls about to be made, calls that have ended, a person's words, a wait for a person, a session's end, and a
silence of a client whose log is not read."""

MAX_ANSWER_CHARS = 8_900
"""Limit in characters of an answer. Claude Code puts one above 10,000 into a file that the model does not read."""


class Call:
    """One call of a tool; ``result`` is None before it was made."""

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
        session: its id for the session.
        agent: id of the sub-agent that acts; empty for the main agent.
        transcript: path of the session's log, as the client names it: not to be trusted.
        folder: where the agent works.
        calls: what is called, in order; several when they were issued together.
        raw: the event as it came, where a client needs more of it.
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
    """One client.

    Attributes:
        name: what ``ctxmgr install NAME`` calls it.
        title: what people call it.
        program: the command that starts it, asked for its version.
        least: the oldest version that knows every event and setting that we use; an older one may disable all its hooks.
        comments: whether its settings file may hold comments.
        seconds: the time limit that the client gives a hook.
        asks_trust: whether the user must trust what is installed before the client runs it.
        counts_rounds: whether what is installed counts by itself, and starts us only at a third identical round.
        tells_beside_person: whether the answer to a person's words reaches the agent too.
        writes_late: whether it writes the result of a call into its log only after the hooks.
        hides_open_calls: whether its log holds nothing of a call before the call is over.
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
        """Return the event that these fields are; None for one that does not concern us."""
        raise NotImplementedError

    def tell(self, event: Event, text: str) -> Any:
        """Return the answer that brings a text to the agent, as most clients take it: as additional context of the event."""
        return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}

    def refuse(self, event: Event, text: str) -> Any:
        """Return the answer that prevents a call and says why; None where the client knows none."""
        return None

    def unwritten(self, event: Event) -> list[tuple[str, str]]:
        """Return the id and the record of each result that the client may write into its log only after the hook."""
        return []

    def open_records(self, event: Event) -> list[str]:
        """Return what the client's log would hold of each call that is about to be made, if it held open calls."""
        return []

    def log_path(self, event: Event) -> str:
        """Return the path of the log that holds the agent's calls."""
        return event.transcript

    def log_content(self, event: Event) -> str | None:
        """Return a log of our own format that the event itself makes up; None where the client's own log is read."""
        return None

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the settings file; None when the client has none of this scope (``user``, ``project``)."""
        raise NotImplementedError

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return what is added to the settings: the keys that lead to a list, and the item for it."""
        return []

    def whole_file(self, command: Sequence[str]) -> str | None:
        """Return the content of a file that is ours alone; None when we share the client's own."""
        return None

    def has_plugin(self, environment: Mapping[str, str]) -> bool:
        """Whether the client has a plugin of ours enabled, which calls us as its settings would."""
        return False

    def trust(self, path: str, folder: str) -> bool | None:
        """Have the client trust what was installed, as the user wants; None where it asks for no trust.

        Raises:
            StorageFailed: the client can't be asked.
        """
        return None

    def left_to_do(self, path: str, environment: Mapping[str, str]) -> str | None:
        """Return what the user must still do so that what is installed is run; None when nothing is missing."""
        return None


def as_object(value: Any) -> dict[str, Any] | None:
    """Return a JSON object, None of any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def first_text(fields: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a text; empty when none is."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            return value
    return ""


def client_home(environment: Mapping[str, str], variable: str, default: str) -> str:
    """Return a client's own folder: the one that a variable names, else ``default`` in the user's home."""
    # A relative one would lead into the folder that the agent works in, where anybody may have put files.
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
"""Client -> its module in this folder and its name there. A hook loads no other than the one that calls it."""


def client(name: str) -> Client | None:
    """Return the client of this name, None when there is none."""
    if name not in CLIENTS:
        return None
    module, attribute = CLIENTS[name]
    # Not `importlib.import_module`, which a hook would have to load first.
    found: Client = getattr(__import__(f"ctxmgr.clients.{module}", fromlist=[attribute]), attribute)
    return found


# An event carries the whole result of a call; a longer one is read, and passed over.
_MAX_EVENT_BYTES, _CHUNK = 32_000_000, 1_048_576


def event_bytes() -> bytes:
    """Return the event on stdin; it is read to its end whatever its size, so that the client's write never fails."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, _CHUNK):
        size += len(part)
        if size <= _MAX_EVENT_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= _MAX_EVENT_BYTES else b""


def parse_event(name: str, content: bytes) -> tuple[Client, Event] | None:
    """Return the client of this name and its event; None when it is not for us.

    Raises:
        ValueError: the content is no JSON.
    """
    found = client(name)
    if found is None or not content:
        return None
    fields: Any = loads(content.decode("utf-8", "replace"))
    event = found.event(cast("dict[str, Any]", fields)) if isinstance(fields, dict) else None
    # Rounds are counted by session: an event that names none can't be counted.
    return None if event is None or not event.session else (found, event)


SESSION_SUFFIX = ".session"
WATCHER_LOCK = "watcher.lock"
"""Held by the one watcher of this user; hooks look at it before they start another."""

# Hundreds of rows: older ones are not needed to know whether a session waits or has ended.
_TAIL = 65_536
# A row must stay small enough to be written at once, and paths are no longer on any system.
_MAX_TEXT = 4_096


def state_folder() -> str:
    """Return where the hooks keep their state (XDG Base Directory Specification)."""
    return os.path.join(user_folder(os.environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "ctxmgr", "live")


def short_digest(data: bytes) -> str:
    """Return a short digest of bytes."""
    # Not `hashlib`, which loads OpenSSL: a hook would take noticeably longer at every call.
    from _blake2 import blake2b

    return blake2b(data, digest_size=6).hexdigest()


def state_name(client: str, session: str, agent: str = "") -> str:
    """Return the name of a session's state file; it holds a digest, whatever the client calls the session."""
    return f"{client}-{short_digest(chr(0).join((client, session, agent)).encode('utf-8', 'surrogatepass'))}"


class SessionFile:
    """The file in which hooks keep what a client's log lacks: where it is, waits for a person, the end of the session.

    It lies beside the other state of the hooks, readable by its user alone, one record of our own format a line. The watcher
    finds the living sessions by it, and reading a session's log adds the waits from it.
    """

    def __init__(self, client: str, session: str) -> None:
        self.client = client
        self.session = session
        self.path = os.path.join(state_folder(), state_name(client, session) + SESSION_SUFFIX)

    def begin(self, log: str, folder: str) -> None:
        """Note where the session's log is, and which process started the hook.

        Raises:
            OSError: it can't be written.
        """
        # The watcher lets go of a session whose process it saw alive and then gone. A shell that only starts hooks is never
        # seen.
        row = {"client": self.client, "log": log[:_MAX_TEXT], "folder": folder[:_MAX_TEXT], "pid": os.getppid()}
        self._append("session", row, os.O_CREAT)

    def wait(self, reason: str, action: str) -> None:
        """Note that a person is waited for; nothing where the session never began.

        Raises:
            OSError: it can't be written.
        """
        from ctxmgr.log.ids import new_id

        data = {"reason": reason[:_MAX_TEXT], "action": action[:_MAX_TEXT]}
        self._append("event", {"id": new_id(), "type": "waiting", "data": data})

    def end(self) -> None:
        """Note that the client ended the session; nothing where it never began.

        Raises:
            OSError: it can't be written.
        """
        self._append("sessionEnd", {"outcome": "completed"})

    def _append(self, kind: str, row: dict[str, Any], create: int = 0) -> None:
        from ctxmgr.log.ids import now

        record = {"v": 1, "kind": kind, "session": self.session, "ts": now(), **row}
        # One small append in one write: hooks that run side by side can't mix their lines.
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | create
        try:
            descriptor = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            if not create:
                return
            from ctxmgr.base.paths import make_private_folder

            make_private_folder(os.path.dirname(self.path))
            descriptor = os.open(self.path, flags, 0o600)
        try:
            os.write(descriptor, (dumps(record) + "\n").encode("ascii"))
        finally:
            os.close(descriptor)


def read_rows(path: str) -> list[dict[str, Any]]:
    """Return the last records in the file of a session; none when it can't be read, and no lines that are no records."""
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
    for line in lines[1:] if size > _TAIL else lines:  # the first may have lost its beginning
        try:
            row: Any = loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        # No more is asked of a row: the end that a plug-in appends has neither a session nor a time.
        if isinstance(row, dict) and row.get("v") == 1:
            rows.append(cast("dict[str, Any]", row))
    return rows


def with_waits(client: str, records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a session's records with the waits for a person that hooks noted, each before the first record that is later."""
    waits: list[dict[str, Any]] | None = None
    for record in records:
        if waits is None:
            waits = _waits(client, record.get("session"))
        moment = record.get("ts")
        # In its place among the records: the silence behind a wait for a person is no hang (ruling 9).
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
