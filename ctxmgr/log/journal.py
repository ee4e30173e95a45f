"""Append records to a JSONL log durably, and read them back.

One append is one ``write(2)`` of whole lines on an O_APPEND descriptor under ``flock``. The sum chain runs over the
masked bytes. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from typing import Literal

from ctxmgr.base.paths import make_private_folder, require_no_link, sync_folder
from ctxmgr.errors import Busy, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import anchor
from ctxmgr.log.codec import MAX_LINE, Record, chain, encode, seal, use_loaded_encoder
from ctxmgr.log.reader import Line, read, tail
from ctxmgr.log.sync_thread import Syncer

__all__ = ["Durability", "Journal", "Line", "lock_within", "make_private_folder", "read"]

Durability = Literal["process", "os"]
"""``process``: handed to the kernel, synced within a second. ``os``: on the disk before the call returns."""

_MAX_BODY = MAX_LINE - 27  # bytes that a sum adds to a line
_LOCK_NOW = LOCK_EX | LOCK_NB
# Readable too, for the last sum. A pipe or a terminal in the place of the log is opened without waiting, and then refused.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW


class Journal:
    """An open JSONL log.

    Any number of journals, threads and processes may append to one file. After a fork the child goes on with a
    descriptor of its own.

    Args:
        path: of the file; missing folders are made, with mode 0700, the file with mode 0600.
        durability: what an append waits for.
        create: whether a missing file is made.
        mask: whether secrets of known shapes are masked before they are written.
        timeout: seconds that an append waits for the lock.

    Attributes:
        masked: returns encoded text as it is written here.

    Raises:
        NotFound: when the file is missing and ``create`` is false.
        InvalidInput: when the path is no regular file.
        StorageFailed: when it can't be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "process",
        create: bool = True,
        mask: bool = True,
        timeout: float = 10.0,
    ) -> None:
        try:
            require_no_link(os.fspath(path), writing=True)
        except OSError as error:
            raise StorageFailed(f"can't open log {os.fspath(path)!r}: {error.strerror}", _hint(error)) from error
        self.path = os.path.abspath(path)  # the working directory may change before a fork opens it again
        self.durability = durability
        self._create = create
        self.masked: Callable[[bytes], bytes] = bytes
        if mask:
            from ctxmgr.log.mask_prefilter import mask as mask_secrets  # loads the patterns when they pay

            self.masked = mask_secrets
        use_loaded_encoder()
        self._timeout = timeout
        self._descriptor = self._size = -1
        self._last = ""
        self._torn = False
        self._failure: OSError | None = None
        self._lock = threading.Lock()
        self._owner = 0  # the thread that appends
        self._syncer: Syncer | None = None
        self._empty = 0  # inode of the file that was empty when it was opened
        with self._lock:
            self._open()
        _open_journals.add(self)

    def leave_parent(self) -> None:
        """Let go, in a forked child, of what belongs to the parent: the next append opens the file anew.

        An inherited descriptor shares its flock with the parent's. Closing it is safe; unlocking it would not be, and
        keeping it would hold the lock of a parent that dies in the middle of an append.
        """
        self._lock = threading.Lock()
        self._owner = 0
        self._syncer = None
        self._failure = None
        self._close_descriptor()

    def append(self, records: Sequence[Record]) -> int:
        """Append the records in one write and return the file's length after it.

        A ``sum`` that a record brings along is left out: the chain is this file's own.

        Raises:
            InvalidInput: when a record is not JSON or too long; nothing was written.
            Busy: when the lock was not free within the timeout, or a signal handler appends while the append that it
                interrupted is under way; nothing was written.
            StorageFailed: when the records are not durable at this journal's level; what was written of them has been
                cut off again where the system allowed it.
        """
        bodies = [self._encode(record) for record in records]
        for body in bodies:
            if len(body) > _MAX_BODY:
                raise _too_long(body)
        return self._append(bodies)

    def append_made(self, head: bytes, value: bytes, tail: bytes) -> None:
        """Append one record that is encoded already, exactly as `ctxmgr.log.codec.encode` would have done it.

        Args:
            head: its line up to the value of one of its members, masked; the name of that member is none of a secret.
            value: masked here.
            tail: the rest of it, masked, without line end and sum.

        Raises:
            InvalidInput, Busy, StorageFailed: as `append`.
        """
        body = head + self.masked(value) + tail
        if len(body) > _MAX_BODY:
            raise _too_long(body)
        self._append((body,))

    def _encode(self, record: Record) -> bytes:
        if "sum" in record:
            record = {key: value for key, value in record.items() if key != "sum"}
        return self.masked(encode(record))

    def _append(self, bodies: Sequence[bytes]) -> int:
        thread = threading.get_ident()
        # The lock can't be taken twice: a handler that interrupts this thread's append would wait for it without end.
        if self._owner == thread:
            raise Busy("an append is already under way in this thread", "do not record from within a signal handler")
        with self._lock:
            self._owner = thread
            try:
                if self._failure is not None:
                    self._raise_late_failure()
                if self._descriptor < 0:
                    self._open()
                return self._append_locked(bodies) if bodies else os.lseek(self._descriptor, 0, os.SEEK_END)
            finally:
                self._owner = 0

    def _append_locked(self, bodies: Sequence[bytes]) -> int:
        descriptor = self._descriptor
        try:
            try:
                flock(descriptor, _LOCK_NOW)
            except BlockingIOError:
                if not lock_within(descriptor, self._timeout):
                    raise Busy(
                        f"log {self.path!r} stayed locked by another process for {self._timeout:g} s",
                        "look for a stopped or hanging process that writes to it",
                    ) from None
            # Cheaper than fstat, and without effect on where O_APPEND writes.
            size = os.lseek(descriptor, 0, os.SEEK_END)
            if size != self._size:  # another process appended, so the chain goes on from its last sum
                self._torn, self._last = tail(descriptor, size)
            last = self._last
            # A torn line keeps its bytes and gets an end, so that it can't take the next record with it.
            lines = [b"\n"] if self._torn else []
            for body in bodies:
                last = chain(last, body)
                lines.append(seal(body, last, b"\n"))
            data = lines[0] if len(lines) == 1 else b"".join(lines)
            # One write on an O_APPEND descriptor: a reader without a lock sees complete lines, or at worst one torn tail.
            written = os.write(descriptor, data)
            if written < len(data) or self.durability == "os":
                self._finish(descriptor, data, size, written)
            # Only now: an append that was interrupted behind the write leaves the old size, so the next one reads the sum anew.
            self._size = size = size + len(data)
            self._last, self._torn = last, False
            syncer = self._syncer
            if syncer is None or not syncer.dirty:
                self._sync_soon(descriptor)
            return size
        except OSError as error:
            flock(descriptor, LOCK_UN)
            self._close_descriptor()
            raise StorageFailed(f"can't append to {self.path!r}: {error.strerror}", _hint(error)) from error
        finally:
            if self._descriptor >= 0:
                flock(descriptor, LOCK_UN)

    def _finish(self, descriptor: int, data: bytes, size: int, written: int) -> None:
        """Write what is left of the data and, at level ``os``, sync; on failure cut the file back to ``size``.

        Raises:
            OSError: what the system answered.
        """
        try:
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if self.durability == "os":
                # Without the times of the file; its new length is synced with the data all the same.
                os.fdatasync(descriptor)
        except OSError:
            # Where this fails too, the next append finds the torn line and puts an end to it. Bytes that someone
            # appended without the lock are not ours to cut off.
            with contextlib.suppress(OSError):
                if os.lseek(descriptor, 0, os.SEEK_END) == size + written:
                    os.ftruncate(descriptor, size)
            raise

    def _sync_soon(self, descriptor: int) -> None:
        if self._syncer is None:
            try:
                self._syncer = Syncer(self)
            except RuntimeError:  # no new threads: the interpreter ends, or the system has no more
                os.fdatasync(descriptor)
                return
        self._syncer.note()

    def _open(self) -> None:
        created: list[str] = []
        try:
            require_no_link(self.path, writing=True)
            try:
                self._descriptor = os.open(self.path, _FLAGS)
            except FileNotFoundError:
                if not self._create:
                    raise NotFound(f"log {self.path!r} does not exist") from None
                created = make_private_folder(os.path.dirname(os.path.abspath(self.path)))
                self._descriptor = os.open(self.path, _FLAGS | os.O_CREAT, 0o600)
                os.fchmod(self._descriptor, 0o600)
                anchor.begin(self.path)
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._close_descriptor()
                raise InvalidInput(f"{self.path!r} is not a regular file")
            if status.st_size == 0:
                self._empty = status.st_ino
            if self.durability == "os":
                # Whoever made the file may not have synced its name.
                for name in (*created, self.path):
                    sync_folder(os.path.dirname(os.path.abspath(name)))
        except OSError as error:
            self._close_descriptor()
            raise StorageFailed(f"can't open log {self.path!r}: {error.strerror}", _hint(error)) from error
        self._size, self._last, self._torn = 0, "", False

    def sync(self) -> None:
        """Return when everything appended so far is on the disk.

        Raises:
            StorageFailed: when the system refused; what was appended may not survive a power loss.
        """
        with self._lock:
            if self._descriptor < 0:
                return
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                self._failure = error
                self._raise_late_failure()
            self._anchor(self._descriptor, self._size, self._last)

    def _anchor(self, descriptor: int, size: int, last: str) -> None:
        """Write an anchor for what is on the disk, up to ``size``. If that fails, the log itself has not failed."""
        if size <= 0 or not last:
            return
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            head = anchor.Anchor(size, last, anchor.first_session(os.pread(descriptor, 4096, 0)), status.st_ino)
            anchor.advance(self.path, head, lambda found: matches_anchor(descriptor, found), made=status.st_ino == self._empty)

    def _raise_late_failure(self) -> None:
        error, self._failure = self._failure, None
        # After a failed sync the kernel may call the lost pages clean: only a new descriptor tells the truth.
        self._close_descriptor()
        reason = error.strerror if error else ""
        raise StorageFailed(
            f"log {self.path!r} could not be synced: {reason}",
            "what was appended in the last second may not survive a power loss; the next append opens the log anew",
        ) from error

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor, self._size = self._descriptor, -1, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):  # what a close reports late, a sync has reported or will report
                os.close(descriptor)

    def close(self) -> None:
        """Sync what is not yet on the disk and close the file; a later append opens it again.

        Raises:
            StorageFailed: when the sync failed.
        """
        syncer, self._syncer = self._syncer, None
        try:
            if syncer is not None:
                syncer.stop()
                self.sync()
        finally:
            with self._lock:
                self._close_descriptor()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if syncer := getattr(self, "_syncer", None):
            syncer.stop()
        if getattr(self, "_descriptor", -1) >= 0:
            self._close_descriptor()

    def sync_from_thread(self) -> None:
        """Sync without holding up appends; a failure is raised by the next append."""
        with self._lock:
            if self._descriptor < 0:
                return
            # A copy, because an append may replace the descriptor while this thread waits for the disk.
            copy, size, last = os.dup(self._descriptor), self._size, self._last
        try:
            os.fdatasync(copy)
            self._anchor(copy, size, last)
        except OSError as error:
            self._failure = error
        finally:
            os.close(copy)


_open_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_parent() -> None:
    for journal in list(_open_journals):
        journal.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)


def matches_anchor(descriptor: int, found: anchor.Anchor) -> bool:
    """Whether a log still holds what its anchor says: it is as long, a line ends there, and the last sum is the same.

    Raises:
        OSError: it can't be read.
    """
    return os.fstat(descriptor).st_size >= found.length and tail(descriptor, found.length) == (False, found.total)


def lock_within(descriptor: int, timeout: float) -> bool:
    """Take the descriptor's exclusive ``flock``; return False when it was not free within ``timeout`` seconds.

    Raises:
        OSError: when the file system knows no locks.
    """
    # There is no flock with a timeout, and an alarm signal would be the host program's. An append holds the lock for
    # microseconds, so the first pauses are short.
    deadline, pause = 0.0, 0.0002
    while True:
        try:
            flock(descriptor, _LOCK_NOW)
            return True
        except BlockingIOError:
            now = time.monotonic()
            deadline = deadline or now + timeout
            if now >= deadline:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, 0.005)


def _too_long(body: bytes) -> InvalidInput:
    return InvalidInput(f"record is {len(body):,} bytes long; the limit is {_MAX_BODY:,}")


def _hint(error: OSError) -> str:
    name = os.strerror(error.errno) if error.errno else "unknown"
    return f"free some space, or fix the permissions or the device ({name}), and try again"
