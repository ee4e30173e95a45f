"""A thread that syncs what a writer has passed to the kernel, at most half a second later.

It uses only low-level modules of the standard library: a program that writes one record and exits must not load `threading`.
"""

from __future__ import annotations

import _thread
from _weakref import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Syncable(Protocol):
        """A writer that can be synced by another thread."""

        def sync_from_thread(self) -> None:
            """Sync without blocking writers. Raise nothing, but keep a failure for the next write."""
            ...


SYNC_EVERY = 0.5  # seconds; leaves half of the promised second for the sync itself


class Syncer:
    """The thread of one writer. It keeps only a weak reference to the writer, and ends with the interpreter.

    Raises:
        RuntimeError: no thread can be started, because the interpreter is shutting down or the system has no more.
    """

    def __init__(self, writer: Syncable) -> None:
        self._writer = ref(writer)
        self._wake = _thread.allocate_lock()
        self._stop = _thread.allocate_lock()
        self._wake.acquire()
        self._stop.acquire()
        self.dirty = False  # whether something was written since the last sync began
        _thread.start_new_thread(self._run, ())

    def note(self) -> None:
        """Note that something was written."""
        if not self.dirty:
            self.dirty = True
            _release_lock(self._wake)

    def stop(self) -> None:
        """End the thread."""
        _release_lock(self._stop)
        _release_lock(self._wake)

    def _run(self) -> None:
        # The first write wakes the thread. It then waits half a second, so that one sync covers all writes meanwhile.
        while self._wake.acquire() and not self._stop.acquire(timeout=SYNC_EVERY):
            # Reset before the sync, because a write during the sync must wake the thread again.
            self.dirty = False
            writer = self._writer()
            if writer is None:
                return
            writer.sync_from_thread()
            # Drop the reference, which would keep an unused writer alive while the thread sleeps.
            del writer


def _release_lock(lock: _thread.LockType) -> None:
    try:
        lock.release()
    except RuntimeError:  # another thread has released it already
        return
