"""Find the sessions that have a live process: each open recorder holds one locked file.

While a recorder is open it holds a ``flock`` on ``<target>.live/<session>+<process>``. The system releases the lock of a killed
process. This module never writes to the log. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import weakref
from typing import NamedTuple

from ctxmgr.base.paths import make_private_folder, require_no_link
from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.log.fast_json import json_object, text_or_empty
from ctxmgr.log.journal import lock_within

_SAFE = re.compile(rb"[^A-Za-z0-9_-]")
# File systems allow names of 255 bytes, and a name consists of a session and a process.
_MAX_NAME = 100
# A note contains names of any length, and anybody may have written the file.
_MAX_NOTE = 1 << 20
_LOCK_TIMEOUT = 10.0  # seconds; the gate is held for microseconds, unless its holder was suspended
# A try fails only if another process removes the folder within microseconds. The number is limited because some file systems,
# such as /proc, refuse a new folder with the same error as for a removed one.
_MAX_TRIES = 1000


class Holder(NamedTuple):
    """A live process.

    Attributes:
        session: the session to which it writes.
        process: its process id in the log.
        pid: its id in the operating system, 0 if unknown.
    """

    session: str
    process: str
    pid: int


class SessionLock:
    """The lock of an open recorder on its session; it ends with `release` or with the process."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _open_locks.add(self)

    def release(self) -> None:
        """Release the session. Further calls do nothing."""
        if self._descriptor >= 0:
            # Remove the file while it is locked, so that nobody finds it unlocked and assumes a crash.
            with contextlib.suppress(OSError):
                os.unlink(self._path)
                _remove_if_empty(os.path.dirname(self._path))
            self.leave_parent()

    def leave_parent(self) -> None:
        """Close the descriptor, which does not release the lock of a parent process that shares it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.leave_parent()


_open_locks: weakref.WeakSet[SessionLock] = weakref.WeakSet()


def _leave_parent() -> None:
    for lock in list(_open_locks):
        lock.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)


def lock_session(target: str, session: str, process: str, *, join: bool = False) -> SessionLock:
    """Mark the session as live and return its lock.

    Args:
        target: the path of the log or database.
        session: the id of the session.
        process: the id of this execution.
        join: whether other live processes of the session are accepted.

    Raises:
        Busy: another live process holds the session and ``join`` is false; the hint names its pid.
        StorageFailed: the folder beside the target can't be written.
    """
    folder = _folder(target)
    try:
        # Check for others and add this process under one lock. Otherwise two processes could both see nobody.
        gate = _enter(folder)
        try:
            if not join:
                _refuse_second(folder, session)
            _remove_dead(folder)
            return _lock_file(os.path.join(folder, f"{_escape(session)}+{_escape(process)}"), session, process)
        finally:
            os.close(gate)
    except OSError as error:
        raise StorageFailed(
            f"can't mark session as live in {folder!r}: {error.strerror}", "free some space or fix the permissions"
        ) from error


def _enter(folder: str) -> int:
    """Return a descriptor of the folder with its lock held. While it is held, nobody removes the folder."""
    tries = 0
    while True:
        tries += 1
        try:
            require_no_link(folder, writing=True)
            make_private_folder(folder)
            gate = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:  # the last holder removed it meanwhile
            if tries >= _MAX_TRIES:
                raise
            continue
        if not lock_within(gate, _LOCK_TIMEOUT):
            os.close(gate)
            raise Busy(f"{folder!r} stayed locked by another process", "look for a stopped process")
        # If the folder was removed during the wait, the lock is useless: a file created by path would be in another folder.
        if os.fstat(gate).st_nlink > 0:
            return gate
        os.close(gate)


def _remove_if_empty(folder: str) -> None:
    """Remove the folder if nobody is live and nobody is about to lock a session."""
    gate = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # If this folder was removed already, another one may have its name now, in which somebody is about to lock a session.
        if lock_within(gate, 0.0) and os.fstat(gate).st_nlink > 0:
            os.rmdir(folder)
    finally:
        os.close(gate)


def _remove_dead(folder: str) -> None:
    """Remove the files of killed processes. The caller holds the folder's lock, so nobody is about to lock a file."""
    for name in os.listdir(folder):
        # The name of a lock file has a plus in it. Other files in the folder are not ours.
        if "+" not in name:
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # e.g. not a file, or removed meanwhile
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode) and lock_within(descriptor, 0.0):
                    os.unlink(path)
            finally:
                os.close(descriptor)


def _refuse_second(folder: str, session: str) -> None:
    for holder in _holders(folder, f"{_escape(session)}+"):
        raise Busy(
            f"session {session!r} is already written by a live process",
            f"process {holder.pid or 'unknown'} holds it; end it, or open the recorder with on_live='join' or 'fork'",
        )


def _lock_file(path: str, session: str, process: str) -> SessionLock:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        if not lock_within(descriptor, 1.0):  # a process that only looks releases its lock at once
            raise Busy(f"process {process!r} of session {session!r} is already live", "choose another process id")
        note = json.dumps({"session": session, "process": process, "pid": os.getpid()})
        # The note of a killed process of this name may be longer.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, note.encode("ascii"), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return SessionLock(path, descriptor)


def live_sessions(target: str | os.PathLike[str]) -> set[str]:
    """Return the sessions of the target that a live process on this machine has open. Changes nothing on the disk."""
    return {holder.session for holder in _holders(_folder(os.fspath(target)), "") if holder.session}


def live_processes(target: str | os.PathLike[str]) -> set[tuple[str, str]]:
    """Return (session, process) of the live processes on this machine that have the target open; see `live_sessions`."""
    return {(holder.session, holder.process) for holder in _holders(_folder(os.fspath(target)), "") if holder.session}


def is_live(target: str | os.PathLike[str], session: str) -> bool:
    """Return whether a live process on this machine has the session open. Changes nothing on the disk."""
    return any(_holders(_folder(os.fspath(target)), f"{_escape(session)}+"))


def is_gone(target: str | os.PathLike[str], session: str, process: str) -> bool:
    """Return whether a process on this machine left its lock file behind, which only one does that is killed or crashes."""
    path = os.path.join(_folder(os.fspath(target)), f"{_escape(session)}+{_escape(process)}")
    try:
        return stat.S_ISREG(os.lstat(path).st_mode) and _holder(path) is None
    except OSError:
        return False


def _holders(folder: str, prefix: str) -> list[Holder]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = (_holder(os.path.join(folder, name)) for name in names if name.startswith(prefix) and "+" in name)
    return [holder for holder in found if holder is not None]


def _holder(path: str) -> Holder | None:
    try:
        # A link in place of the file must not mislead this process, and a pipe must not block it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        # A shared lock, so that two processes that look at once do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        # The lock is held, so its holder is alive.
        return _read_note(os.pread(descriptor, _MAX_NOTE, 0))
    finally:
        os.close(descriptor)


def _read_note(raw: bytes) -> Holder:
    try:
        note: object = json.loads(raw)
    except (ValueError, RecursionError):  # anybody may have written the file
        note = None
    fields = json_object(note)
    pid = fields.get("pid")
    return Holder(
        text_or_empty(fields.get("session")), text_or_empty(fields.get("process")), pid if isinstance(pid, int) else 0
    )


def _folder(target: str) -> str:
    return os.path.abspath(target) + ".live"


def _escape(name: str) -> str:
    """Return a unique file name for a name: unsafe bytes as ``~XX``, long names as a hash after ``~~``."""
    raw = name.encode("utf-8", "surrogatepass")
    text = _SAFE.sub(lambda match: b"~%02X" % match[0][0], raw).decode("ascii")
    return text if len(text) <= _MAX_NAME else "~~" + hashlib.sha256(raw).hexdigest()
