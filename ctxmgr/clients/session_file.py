"""The file in which hooks keep what a client's log lacks: where the log is, waits for a person, the end of the session.

It lies beside the other state of the hooks, readable by its user alone, one record of our own format a line. The watcher finds
the living sessions by it, and reading a session's log adds the waits from it. Standard library only, as all that a hook loads.
"""

from __future__ import annotations

import os

from ctxmgr.base.paths import user_folder
from ctxmgr.log.fast_json import cast, dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

SUFFIX = ".session"
WATCHER = "watcher.lock"
"""Held by the one watcher of this user; hooks look at it before they start another."""

_TAIL = 65_536
_MAX_TEXT = 4_096


def state_folder() -> str:
    """Return where the hooks keep their state (XDG Base Directory Specification)."""
    return os.path.join(user_folder(os.environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "ctxmgr", "live")


def digest_of(data: bytes) -> str:
    """Return a short digest of bytes."""
    # Not `hashlib`, which loads OpenSSL: a hook would take noticeably longer at every call.
    from _blake2 import blake2b

    return blake2b(data, digest_size=6).hexdigest()


def state_name(client: str, session: str, agent: str = "") -> str:
    """Return the name of a session's state file; it holds a digest, whatever the client calls the session."""
    return f"{client}-{digest_of(chr(0).join((client, session, agent)).encode('utf-8', 'surrogatepass'))}"


class SessionFile:
    """The file of one session of a client."""

    def __init__(self, client: str, session: str) -> None:
        self.client = client
        self.session = session
        self.path = os.path.join(state_folder(), state_name(client, session) + SUFFIX)

    def begin(self, log: str, folder: str) -> None:
        """Note where the session's log is, and which process started the hook.

        Raises:
            OSError: it can't be written.
        """
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


def rows_in(path: str) -> list[dict[str, Any]]:
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
        while waits and isinstance(moment, str) and waits[0]["ts"] < moment:
            yield waits.pop(0)
        yield record
    yield from waits or ()


def _waits(client: str, session: object) -> list[dict[str, Any]]:
    if not isinstance(session, str):
        return []
    rows = rows_in(SessionFile(client, session).path)
    return [
        row for row in rows
        if row.get("kind") == "event" and row.get("session") == session and row.get("type") == "waiting"
        and isinstance(row.get("ts"), str) and isinstance(row.get("id"), str)
    ]  # fmt: skip
