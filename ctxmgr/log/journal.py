"""Append records to a JSONL log durably, and read them back.

One append is one ``write(2)`` of whole lines on an O_APPEND descriptor under ``flock``. The chain of checksums covers the
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

__all__ = ["Durability", "Journal", "Line", "lock_within", "read"]

Durability = Literal["process", "os"]
"""``process``: passed to the kernel, synced within a second. ``os``: on the disk before the call returns."""

_MAX_BODY = MAX_LINE - 27  # the bytes that a checksum adds to a line
_LOCK_NOW = LOCK_EX | LOCK_NB
# Readable too, to find the last checksum. Opening a pipe or a terminal at the path must not block; it is refused afterwards.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW


class Journal:
    """An open JSONL log.

    Any number of journals, threads and processes may append to one file. After a fork the child opens a descriptor of its
    own.

    Args:
        path: the path of the file. Missing folders are created with mode 0700, the file with mode 0600.
        durability: what an append waits for.
        create: whether to create a missing file.
        mask: whether to mask secrets of known shapes before they are written.
        timeout: number of seconds that an append waits for the lock.

    Attributes:
        masked: function that returns encoded text in its written form, with secrets masked.

    Raises:
        NotFound: the file is missing and ``create`` is false.
        InvalidInput: the path is not a regular file.
        StorageFailed: the file can't be opened.
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
        """Release what belongs to the parent, in a forked child. The next append opens the file again.

        An inherited descriptor shares the parent's flock. Closing it is safe. Unlocking it would release the parent's lock, and
        keeping it would hold the lock of a parent that dies in the middle of an append.
        """
        self._lock = threading.Lock()
        self._owner = 0
        self._syncer = None
        self._failure = None
        self._close_descriptor()

    def append(self, records: Sequence[Record]) -> int:
        """Append the records in one write and return the file's length after it.

        A ``sum`` in a record is ignored, because the file has its own chain.

        Raises:
            InvalidInput: a record is not JSON or too long; nothing was written.
            Busy: the lock was not free within the timeout, or a signal handler appends during the append that it interrupted;
                nothing was written.
            StorageFailed: the records are not durable at this journal's level. Bytes that were already written have been
                truncated again if the system allowed it.
        """
        bodies = [self._encode(record) for record in records]
        for body in bodies:
            if len(body) > _MAX_BODY:
                raise _too_long(body)
        return self._append(bodies)

    def append_made(self, head: bytes, value: bytes, tail: bytes) -> None:
        """Append one record that is already encoded, exactly as by `ctxmgr.log.codec.encode`.

        Args:
            head: its line up to the value of one member, already masked. The member's name must not be that of a secret.
            value: the encoded value of that member, which is masked here.
            tail: the rest of the line, already masked, without checksum and line end.

        Raises:
            InvalidInput, Busy, StorageFailed: see `append`.
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
        # The lock is not reentrant: a signal handler that interrupts this thread's append would wait for it forever.
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
            # Cheaper than fstat. O_APPEND ignores the position.
            size = os.lseek(descriptor, 0, os.SEEK_END)
            if size != self._size:  # another process appended, so continue the chain from its last checksum
                self._torn, self._last = tail(descriptor, size)
            last = self._last
            # End a torn last line, so that it does not merge with the next record.
            lines = [b"\n"] if self._torn else []
            for body in bodies:
                last = chain(last, body)
                lines.append(seal(body, last, b"\n"))
            data = lines[0] if len(lines) == 1 else b"".join(lines)
            # One write on an O_APPEND descriptor, so a reader without a lock sees complete lines, or at worst a torn last one.
            written = os.write(descriptor, data)
            if written < len(data) or self.durability == "os":
                self._finish(descriptor, data, size, written)
            # Set last: an append that is interrupted after the write leaves the old size, so the next one reads the tail again.
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
        """Write the rest of the data and, at level ``os``, sync. After a failure truncate the file to ``size``.

        Raises:
            OSError: the write or the sync failed.
        """
        try:
            while written < len(data):
                written += os.write(descriptor, memoryview(data)[written:])
            if self.durability == "os":
                # fdatasync skips the file's times, but syncs its new length with the data.
                os.fdatasync(descriptor)
        except OSError:
            # If this fails too, the next append ends the torn line. Do not truncate if someone appended without the lock
            # meanwhile.
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
                anchor.store_empty(self.path)
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._close_descriptor()
                raise InvalidInput(f"{self.path!r} is not a regular file")
            if status.st_size == 0:
                self._empty = status.st_ino
            if self.durability == "os":
                # The process that created the file may not have synced its name.
                for name in (*created, self.path):
                    sync_folder(os.path.dirname(os.path.abspath(name)))
        except OSError as error:
            self._close_descriptor()
            raise StorageFailed(f"can't open log {self.path!r}: {error.strerror}", _hint(error)) from error
        self._size, self._last, self._torn = 0, "", False

    def sync(self) -> None:
        """Sync everything that was appended so far to the disk.

        Raises:
            StorageFailed: the sync failed; the records may not survive a power loss.
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
        """Write an anchor for the log up to ``size``, which is on the disk. Ignore errors, which do not affect the log."""
        if size <= 0 or not last:
            return
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            head = anchor.Anchor(size, last, anchor.first_session(os.pread(descriptor, 4096, 0)), status.st_ino)
            anchor.advance(
                self.path, head, lambda stored: matches_anchor(descriptor, stored), is_new=status.st_ino == self._empty
            )

    def _raise_late_failure(self) -> None:
        error, self._failure = self._failure, None
        # After a failed sync the kernel may mark the lost pages as clean, so only a new descriptor is reliable.
        self._close_descriptor()
        reason = error.strerror if error else ""
        raise StorageFailed(
            f"log {self.path!r} could not be synced: {reason}",
            "what was appended in the last second may not survive a power loss; the next append opens the log anew",
        ) from error

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor, self._size = self._descriptor, -1, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):  # a sync reports the same error
                os.close(descriptor)

    def close(self) -> None:
        """Sync the rest to the disk and close the file. A later append opens it again.

        Raises:
            StorageFailed: the sync failed.
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
        """Sync without blocking appends. The next append raises a failure."""
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
    """Whether a log still matches its anchor: it is as long, a line ends at the anchor, and the checksum there is the same.

    Raises:
        OSError: the log can't be read.
    """
    return os.fstat(descriptor).st_size >= found.length and tail(descriptor, found.length) == (False, found.total)


def lock_within(descriptor: int, timeout: float) -> bool:
    """Take the descriptor's exclusive ``flock``. Return False if it was not free within ``timeout`` seconds.

    Raises:
        OSError: the file system does not support locks.
    """
    # flock has no timeout, and the alarm signal belongs to the host program. An append holds the lock for microseconds, so
    # the first pauses are short.
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
