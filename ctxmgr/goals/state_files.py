"""Read and write ``state.json`` with its previous generation, and ``loops.json``. Both can be rebuilt.

``state.json`` is written to a temporary file, synced and renamed, and then its folder is synced. It names the part of the
history that it includes, and contains a fingerprint of itself. A file that is damaged, edited by hand, or of another history is
renamed, never deleted.

Ownership of a goal is an epoch in the history. A process that takes the goal over appends a higher epoch, which the former
owner sees before its next write. The lock only orders the writes. A process that was stopped (SIGSTOP) during its write can't
release the lock. Its successor therefore continues with a copy of the history under the same name, and the stopped process can
only write to a file that nobody reads.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Generator
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import make_private_folder, open_regular, read_regular, require_no_link, require_one_name, sync_folder
from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.goals.state import Owner, State
from ctxmgr.log import codec
from ctxmgr.log.ids import new_id, parse_time
from ctxmgr.log.journal import lock_within
from ctxmgr.types.base import StoredShape, Text

HISTORY, STATE, PREVIOUS, LOOPS = "history.jsonl", "state.json", "state.prev.json", "loops.json"

_VERSION = 1
_SUFFIX = ".tmp"
_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_SET_ASIDE = 1_000


class HistoryExtent(StoredShape):
    """The part of the history that a state includes: records, bytes, and the sum of the last record.

    Attributes:
        modified: when the file was written last, in nanoseconds since 1970, as far as it is known; as long as that stays, what
            is included need not be read again.
        broken: offset in the file before which a record was changed, removed or inserted; None if all sums match.
    """

    records: int = 0
    bytes: int = 0
    sum: Text = ""
    # Null in the files of version 0.2.0, which does not read them either.
    modified: int | None = None
    broken: int | None = None


class Header(StoredShape):
    """The fields of a state file before those of the state."""

    v: int
    generation: int
    history: HistoryExtent


@dataclass(slots=True)
class LoadedState:
    """A loaded state and the part of the history that it includes.

    ``damaged`` has (file, reason) of unusable files, ``lost`` the goal of a state that the history does not hold, or "".
    """

    state: State
    included: HistoryExtent
    generation: int
    damaged: list[tuple[str, str]]
    lost: str = ""


def load(folder: str) -> LoadedState:
    """Return the newest intact state of this history, or an empty one for replaying the whole history."""
    damaged: list[tuple[str, str]] = []
    newest_generation, lost = 0, ""
    # The previous generation replaces a state that was torn or edited: a few more records to fold, but nothing is lost.
    for name in (STATE, PREVIOUS):
        path = os.path.join(folder, name)
        try:
            raw = _read(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EINVAL, errno.EFBIG):
                damaged.append((name, "it is no plain file"))
                continue
            raise StorageFailed(f"{path!r} can't be read: {error.strerror}", "fix the permissions") from error
        try:
            state, included, generation = _parse(raw)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            damaged.append((name, str(error) or "unreadable"))
            continue
        # Also for unused states, so that generations only grow.
        newest_generation = max(newest_generation, generation)
        if _is_prefix(os.path.join(folder, HISTORY), included):
            return LoadedState(state, included, newest_generation, damaged)
        lost = lost or state.goal.text
        damaged.append((name, "it includes what the history does not hold"))
    return LoadedState(State(), HistoryExtent(), newest_generation, damaged, lost)


def save(folder: str, state: State, included: HistoryExtent, generation: int, *, loops: bool) -> None:
    """Write the state as this generation, and ``loops`` if they changed.

    Raises:
        StorageFailed: the system refuses; the files are unchanged.
    """
    header = Header(v=_VERSION, generation=generation, history=included)
    text = json.dumps({**header.to_json(), **state.to_json()}, separators=(",", ":"))
    # The last field, so that it can be cut off and the rest be hashed unchanged.
    checked = f'{text[:-1]},"check":"{_checksum(text)}"}}\n'
    path = os.path.join(folder, STATE)
    try:
        if loops:
            _write(os.path.join(folder, LOOPS), json.dumps([each.to_json() for each in state.loops], indent=1) + "\n")
        # Keep the previous generation until the new one is complete, in case the fingerprint finds damage later.
        _keep_previous(path, os.path.join(folder, PREVIOUS))
        _write(path, checked)
        sync_folder(folder)
    except OSError as error:
        raise StorageFailed(
            f"can't write {path!r}: {error.strerror}", "nothing is lost: the history holds it all; free some space"
        ) from error


def modification(status: os.stat_result) -> int:
    """Return when a file was written last, in nanoseconds since 1970."""
    return status.st_mtime_ns


def set_aside_files(folder: str, names: list[str]) -> list[str]:
    """Rename unusable files to ``NAME.damaged-N``, and return the new names."""
    new_names: list[str] = []
    for name in names:
        for number in range(1, _MAX_SET_ASIDE):
            new_name = f"{name}.damaged-{number}"
            # A broken link occupies the name too.
            if os.path.lexists(os.path.join(folder, new_name)):
                continue
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(folder, name), os.path.join(folder, new_name))
                new_names.append(new_name)
            break
    return new_names


def loops_fit(folder: str, state: State) -> bool:
    """Whether ``loops.json`` has the loops of the state."""
    try:
        found: object = json.loads(_read(os.path.join(folder, LOOPS)))
    except (OSError, ValueError, RecursionError):
        return False
    return found == [each.to_json() for each in state.loops]


def _parse(raw: bytes) -> tuple[State, HistoryExtent, int]:
    text = raw.decode("ascii").rstrip("\n")
    body, mark, check = text.rpartition(',"check":"')
    if not mark or check != f'{_checksum(body + "}")}"}}':
        raise ValueError("its fingerprint does not match: damaged, or edited by hand")
    fields = cast("dict[str, object]", json.loads(text))  # an object, because it ends with a field
    if fields.get("v") != _VERSION:
        raise ValueError(f"version {fields.get('v')!r} is not known")
    header = Header.from_json(fields)
    return State.from_json(fields), header.history, header.generation


def _checksum(text: str) -> str:
    return codec.digest(text.encode("ascii"))[:16]


def _is_prefix(history: str, included: HistoryExtent) -> bool:
    """Whether the record at the end of the included part has the sum that the state names."""
    if included.bytes <= 0:
        return included.bytes == included.records == 0
    try:
        with open(open_regular(history), "rb") as stream:
            if os.fstat(stream.fileno()).st_size < included.bytes:
                return False
            # 40 bytes are enough: sums form a chain, so an equal last sum means an equal history before it.
            stream.seek(max(0, included.bytes - 40))
            end = stream.read(min(40, included.bytes))
    except OSError:
        return False
    return not included.sum or f'"sum":"{included.sum}"}}'.encode("ascii", "replace") in end


def _read(path: str) -> bytes:
    return read_regular(path, _MAX_FILE_BYTES, follow=False)


def _write(path: str, text: str) -> None:
    """Replace a file atomically. A reader finds the old or the new file, even after a power failure."""
    temporary = path + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # left by a crash; removed instead of truncated, because it may be a link
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        data = memoryview(text.encode("ascii"))
        while data:
            data = data[os.write(descriptor, data) :]
        # Before the rename, because the name may reach the disk earlier than the content.
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def _keep_previous(path: str, previous: str) -> None:
    """Keep the current generation under a second name. At every moment, at least one of the names exists."""
    temporary = previous + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        os.link(path, temporary)
    except FileNotFoundError:
        return
    except OSError:  # a file system without hard links
        os.replace(path, previous)
        return
    os.replace(temporary, previous)


LOCK, GATE = "lock", "gate"
LEASE = 30.0
"""Seconds after the last record for which an owner on another machine counts as alive."""

GRACE = 0.3
"""Seconds for which the holder of the lock must be stopped before the lock is taken from it.

Debuggers and job control may stop a process for a moment, which is no reason to take its lock.
"""
# States in /proc/PID/stat: stopped, traced, zombie, dead (proc(5)).
_STOPPED = frozenset("TtZXx")
# `_signature` writes 32 bytes.
_HOLDER_BYTES = 64


def identity() -> dict[str, Any]:
    """Return the identity of this process, by which another process can check whether it still runs."""
    pid = os.getpid()
    return {"owner": new_id(), "pid": pid, "host": _host_name(), "boot": _boot_id(), "start": process_start(pid)}


def is_alive(owner: Owner, last_ts: str | None, now: float) -> bool:
    """Whether an owner may still work: its process runs or, on another machine, has written recently.

    ``last_ts`` is the time of its last record, ``now`` the present in seconds since 1970.

    A stopped process does not count: its goal can be taken over, and it is refused when it continues. This process does not
    count either, because it has released what it held before.
    """
    pid = owner.pid
    # The folder may be shared by machines. Process ids of another machine mean nothing here, so the
    # time of its last record decides.
    if owner.host != _host_name() or not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 1 << 31:
        written = parse_time(last_ts)
        return written is not None and 0 <= now - written < LEASE
    # After a reboot, the same id belongs to another process.
    return owner.boot == _boot_id() and pid != os.getpid() and _is_running(pid, owner.start)


class Lock:
    """The lock of a goal's folder, held by this process."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def is_held(self) -> bool:
        """Whether the lock is still ours. False if another process broke it while this one was stopped."""
        return os.fstat(self._descriptor).st_ino == inode(self._path)


@contextlib.contextmanager
def hold_lock(folder: str, timeout: float) -> Generator[Lock]:
    """Hold the folder's lock.

    Raises:
        Busy: another running process held the lock for ``timeout`` seconds.
        StorageFailed: the system refuses.
    """
    try:
        require_no_link(folder, writing=False)
        make_private_folder(folder)
        descriptor = _lock(folder, timeout)
    except OSError as error:
        raise StorageFailed(f"can't lock {folder!r}: {error.strerror}", "free some space or fix the permissions") from error
    try:
        yield Lock(os.path.join(folder, LOCK), descriptor)
    finally:
        os.close(descriptor)


def inode(path: str) -> int:
    """Return the inode of a file, or 0 if it does not exist."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


def _lock(folder: str, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    stopped_since: float | None = None
    path = os.path.join(folder, LOCK)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        # In short steps, with a check between them whether the holder was stopped.
        if lock_within(descriptor, 0.05):
            if os.fstat(descriptor).st_ino == inode(path):
                try:
                    require_one_name(descriptor)
                except OSError:
                    os.close(descriptor)
                    raise
                # All signatures have the same length, so nothing remains of the former one.
                os.pwrite(descriptor, _signature(), 0)
                return descriptor
            os.close(descriptor)  # we locked a file that has been replaced: open the new one
            continue
        holder = os.pread(descriptor, _HOLDER_BYTES, 0).split()
        os.close(descriptor)
        now = time.monotonic()
        stopped_since = (stopped_since or now) if _is_stopped(holder) else None
        if stopped_since is not None and now - stopped_since >= GRACE:
            return _break_lock(folder, path, max(0.0, deadline - now))
        if now >= deadline:
            pid = holder[0].decode("ascii", "replace") if holder else "unknown"
            raise Busy(f"{folder!r} stayed locked for {timeout:g} s", f"process {pid} holds the lock; look whether it hangs")


def _is_stopped(holder: list[bytes]) -> bool:
    # A process id has at most seven digits (PID_MAX_LIMIT is 2**22), but the file may contain anything.
    if len(holder) != 2 or not holder[0].isdigit() or len(holder[0]) > 9:
        return False
    pid = int(holder[0])
    return pid != os.getpid() and not _is_running(pid, holder[1].decode("ascii", "replace"))


def _break_lock(folder: str, path: str, timeout: float) -> int:
    """Take the lock from a stopped process, with a new lock file and a copy of the history that it has not opened."""
    # The gate lets in one process at a time. The lock can't do that, because the stopped process holds it.
    gate = os.open(os.path.join(folder, GATE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not lock_within(gate, timeout):
            raise Busy(f"{folder!r} is being taken over by another process", "try again")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if lock_within(descriptor, 0.0) or not _is_stopped(os.pread(descriptor, _HOLDER_BYTES, 0).split()):
            os.close(descriptor)  # the holder has continued, or another process broke the lock first
            return _lock(folder, timeout)
        os.close(descriptor)
        own = f"{path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(own)
        descriptor = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        # No other process knows this file yet, so its lock is free.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.pwrite(descriptor, _signature(), 0)
        os.replace(own, path)  # before the copy, so that a holder that continues during it sees the loss
        _copy_history(os.path.join(folder, HISTORY))
        sync_folder(folder)
        return descriptor
    finally:
        os.close(gate)


def _copy_history(history: str) -> None:
    if not os.path.exists(history):
        return
    import shutil  # it loads compression modules

    copy = history + ".copy"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(copy)
    with (
        open(open_regular(history, follow=False), "rb") as source,
        open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target,
    ):
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    os.replace(copy, history)


def _is_running(pid: int, start: object) -> bool:
    """Whether the process with this id and start time exists and is not stopped."""
    fields = _process_state(pid)
    if fields is not None:
        # The start time distinguishes the process from a later one with the same id.
        return fields[0] not in _STOPPED and (not start or start == fields[1])
    # /proc exists, but does not list the process. Elsewhere (macOS), signal 0 checks, but without the start time.
    if os.path.isdir("/proc/self"):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_own: dict[int, bytes] = {}


def _signature() -> bytes:
    """Return the content of the lock file: the holder's process id and start time."""
    pid = os.getpid()
    if pid not in _own:
        _own.clear()  # after a fork it holds the parent's signature
        _own[pid] = f"{pid:<10} {process_start(pid):<20}\n".encode("ascii")
    return _own[pid]


def process_start(pid: int) -> str:
    """Return the start time of a process in ticks since boot, or "0" if it is unknown."""
    fields = _process_state(pid)
    return fields[1] if fields else "0"


def _process_state(pid: int) -> tuple[str, str] | None:
    """Return the state letter and the start time (ticks since boot) of a process, or None if they are unknown."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # Split after the last ")": the command's name before it may contain blanks and brackets.
            fields = stream.read(4096).rpartition(b")")[2].split()
        # The third and the 22nd field of proc(5), because the split part begins after the second.
        return fields[0].decode("ascii"), fields[19].decode("ascii")
    except (OSError, IndexError, UnicodeDecodeError):
        return None


def _host_name() -> str:
    return os.uname().nodename[:200]


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read(64).strip()
    except (OSError, UnicodeDecodeError):
        return ""
