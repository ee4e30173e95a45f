"""Read and write ``state.json`` with its previous generation, and ``loops.json``; both can be rebuilt.

``state.json`` is written to a temporary file, synced, renamed, and the folder synced; it names the part of the history
that it includes and carries a fingerprint of itself. What is damaged, edited by hand, or not about this history is set
aside under another name, never deleted.

One owner holds the lock of a goal. Ownership is an epoch in the history: who takes a goal over appends a higher one, and its
former owner finds that out before the next write. The lock only orders the writes. A process that was stopped inside its
write can't be asked to let go; its successor goes on with a copy of the history under the same name, so that what the
stopped one still writes lands in a file that nobody reads.
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

from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.goals.state import Owner, State
from ctxmgr.light_dataclass import dataclass
from ctxmgr.log import codec
from ctxmgr.log.ids import new_id, parse_time
from ctxmgr.log.journal import lock_within, make_private_folder
from ctxmgr.paths import open_regular, read_regular, require_no_link, require_one_name
from ctxmgr.types.base import Stored, Text

HISTORY, STATE, PREVIOUS, LOOPS = "history.jsonl", "state.json", "state.prev.json", "loops.json"

_VERSION = 1
_SUFFIX = ".tmp"
_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_SET_ASIDE = 1_000


class Included(Stored):
    """The part of the history that a state includes: records, bytes, and the sum of the last record."""

    records: int = 0
    bytes: int = 0
    sum: Text = ""


class Header(Stored):
    """What a state file holds before the state."""

    v: int
    generation: int
    history: Included


@dataclass(slots=True)
class Loaded:
    """A state with what it includes; ``damaged`` names files that could not be used, and why."""

    state: State
    included: Included
    generation: int
    damaged: list[tuple[str, str]]


def load(folder: str) -> Loaded:
    """Return the newest state that is whole and about this history, else an empty one to replay the history into."""
    damaged: list[tuple[str, str]] = []
    newest = 0
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
        newest = max(newest, generation)
        if _is_prefix(os.path.join(folder, HISTORY), included):
            return Loaded(state, included, newest, damaged)
        damaged.append((name, "it includes what the history does not hold"))
    return Loaded(State(), Included(), newest, damaged)


def save(folder: str, state: State, included: Included, generation: int, *, loops: bool) -> None:
    """Write the state as this generation, and ``loops`` where they changed.

    Raises:
        StorageFailed: the system refused; the files are as they were.
    """
    header = Header(v=_VERSION, generation=generation, history=included)
    text = json.dumps({**header.to_json(), **state.to_json()}, separators=(",", ":"))
    whole = f'{text[:-1]},"check":"{_check(text)}"}}\n'
    path = os.path.join(folder, STATE)
    try:
        if loops:
            _write(os.path.join(folder, LOOPS), json.dumps([each.to_json() for each in state.loops], indent=1) + "\n")
        _keep(path, os.path.join(folder, PREVIOUS))
        _write(path, whole)
        sync_folder(folder)
    except OSError as error:
        raise StorageFailed(
            f"can't write {path!r}: {error.strerror}", "nothing is lost: the history holds it all; free some space"
        ) from error


def set_aside(folder: str, names: list[str]) -> list[str]:
    """Give files names under which nobody looks for them, and return these."""
    given: list[str] = []
    for name in names:
        for number in range(1, _MAX_SET_ASIDE):
            other = f"{name}.damaged-{number}"
            if os.path.lexists(os.path.join(folder, other)):
                continue
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(folder, name), os.path.join(folder, other))
                given.append(other)
            break
    return given


def loops_fit(folder: str, state: State) -> bool:
    """Whether ``loops.json`` says what the state says."""
    try:
        found: object = json.loads(_read(os.path.join(folder, LOOPS)))
    except (OSError, ValueError, RecursionError):
        return False
    return found == [each.to_json() for each in state.loops]


def sync_folder(folder: str) -> None:
    """Sync the names in a folder.

    Raises:
        OSError: the system refused.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parse(raw: bytes) -> tuple[State, Included, int]:
    text = raw.decode("ascii").rstrip("\n")
    body, mark, check = text.rpartition(',"check":"')
    if not mark or check != f'{_check(body + "}")}"}}':
        raise ValueError("its fingerprint does not match: damaged, or edited by hand")
    fields = cast("dict[str, object]", json.loads(text))  # an object, since it ends in a member
    if fields.get("v") != _VERSION:
        raise ValueError(f"version {fields.get('v')!r} is not known")
    header = Header.from_json(fields)
    return State.from_json(fields), header.history, header.generation


def _check(text: str) -> str:
    return codec.digest(text.encode("ascii"))[:16]


def _is_prefix(history: str, included: Included) -> bool:
    """Whether the history, at the place a state names, holds the record whose sum it names."""
    if included.bytes == 0:
        return included.records == 0
    try:
        with open(open_regular(history), "rb") as stream:
            if os.fstat(stream.fileno()).st_size < included.bytes:
                return False
            stream.seek(max(0, included.bytes - 40))
            end = stream.read(min(40, included.bytes))
    except OSError:
        return False
    return not included.sum or f'"sum":"{included.sum}"}}'.encode("ascii", "replace") in end


def _read(path: str) -> bytes:
    return read_regular(path, _MAX_FILE_BYTES, follow=False)


def _write(path: str, text: str) -> None:
    """Replace a file whole: a reader finds the old one or the new one, after a power loss too."""
    temporary = path + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # a crash left it; it may be a link to somewhere else by now
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        data = memoryview(text.encode("ascii"))
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def _keep(path: str, previous: str) -> None:
    """Give the present generation its second name; at no moment are both names gone."""
    temporary = previous + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        os.link(path, temporary)
    except FileNotFoundError:
        return
    except OSError:  # no hard links here
        os.replace(path, previous)
        return
    os.replace(temporary, previous)


LOCK, GATE = "lock", "gate"
LEASE = 30.0
"""Seconds after its last record in which an owner counts as alive that this machine can't look at."""

GRACE = 0.3
"""Seconds for which the holder of the lock must be seen stopped before the lock is taken from it."""
_STOPPED = frozenset("TtZXx")
_HOLDER_BYTES = 64


def identity() -> dict[str, Any]:
    """Return who this process is, so that another can see whether it still runs."""
    pid = os.getpid()
    return {"owner": new_id(), "pid": pid, "host": _host(), "boot": _boot(), "start": started(pid)}


def is_alive(owner: Owner, last_ts: str | None, now: float) -> bool:
    """Whether an owner may still be at work: its process runs, or nothing is known but that it wrote a moment ago.

    A stopped process is not at work: it can be taken over from, and is refused when it goes on. Neither is this process
    itself: what it held before, it has let go of.
    """
    pid = owner.pid
    if owner.host != _host() or not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid < 1 << 31:
        written = parse_time(last_ts)
        return written is not None and 0 <= now - written < LEASE
    return owner.boot == _boot() and pid != os.getpid() and _runs(pid, owner.start)


class Lock:
    """The folder's lock, held."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def is_held(self) -> bool:
        """Whether nobody took it from this process while it was frozen."""
        return os.fstat(self._descriptor).st_ino == inode(self._path)


@contextlib.contextmanager
def locked(folder: str, timeout: float) -> Generator[Lock]:
    """Hold the folder's lock.

    Raises:
        Busy: another process held it for ``timeout`` seconds, and runs.
        StorageFailed: the system refused.
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
    """Return the inode of a file, 0 when there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return 0


def _lock(folder: str, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    frozen_since: float | None = None
    path = os.path.join(folder, LOCK)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if lock_within(descriptor, 0.05):
            if os.fstat(descriptor).st_ino == inode(path):
                try:
                    require_one_name(descriptor)
                except OSError:
                    os.close(descriptor)
                    raise
                os.pwrite(descriptor, _signature(), 0)
                return descriptor
            os.close(descriptor)  # somebody else's by now
            continue
        holder = os.pread(descriptor, _HOLDER_BYTES, 0).split()
        os.close(descriptor)
        now = time.monotonic()
        frozen_since = (frozen_since or now) if _is_frozen(holder) else None
        if frozen_since is not None and now - frozen_since >= GRACE:
            return _break(folder, path, max(0.0, deadline - now))
        if now >= deadline:
            pid = holder[0].decode("ascii", "replace") if holder else "unknown"
            raise Busy(f"{folder!r} stayed locked for {timeout:g} s", f"process {pid} holds the lock; look whether it hangs")


def _is_frozen(holder: list[bytes]) -> bool:
    if len(holder) != 2 or not holder[0].isdigit() or len(holder[0]) > 9:
        return False
    pid = int(holder[0])
    return pid != os.getpid() and not _runs(pid, holder[1].decode("ascii", "replace"))


def _break(folder: str, path: str, timeout: float) -> int:
    """Take the lock from a frozen process: a lock file of our own, and a history that it has not open."""
    gate = os.open(os.path.join(folder, GATE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if not lock_within(gate, timeout):
            raise Busy(f"{folder!r} is being taken over by another process", "try again")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if lock_within(descriptor, 0.0) or not _is_frozen(os.pread(descriptor, _HOLDER_BYTES, 0).split()):
            os.close(descriptor)  # it went on, or another one broke in first
            return _lock(folder, timeout)
        os.close(descriptor)
        own = f"{path}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(own)
        descriptor = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.pwrite(descriptor, _signature(), 0)
        os.replace(own, path)  # before the copy: what is written after it was begun is known to be too late
        _copy(os.path.join(folder, HISTORY))
        sync_folder(folder)
        return descriptor
    finally:
        os.close(gate)


def _copy(history: str) -> None:
    if not os.path.exists(history):
        return
    import shutil  # which loads what packs files

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


def _runs(pid: int, start: object) -> bool:
    """Whether the process that began at ``start`` exists and is not stopped."""
    fields = _stat(pid)
    if fields is not None:
        return fields[0] not in _STOPPED and (not start or start == fields[1])
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
    """Return what is written into the lock: whose it is."""
    pid = os.getpid()
    if pid not in _own:
        _own.clear()  # of the parent
        _own[pid] = f"{pid:<10} {started(pid):<20}\n".encode("ascii")
    return _own[pid]


def started(pid: int) -> str:
    """Return when a process began, in ticks since boot; "0" where that is not known."""
    fields = _stat(pid)
    return fields[1] if fields else "0"


def _stat(pid: int) -> tuple[str, str] | None:
    """Return the state letter of a process and when it began, in ticks since boot; None where that is not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read(4096).rpartition(b")")[2].split()
        return fields[0].decode("ascii"), fields[19].decode("ascii")
    except (OSError, IndexError, UnicodeDecodeError):
        return None


def _host() -> str:
    return os.uname().nodename[:200]


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return stream.read(64).strip()
    except (OSError, UnicodeDecodeError):
        return ""
