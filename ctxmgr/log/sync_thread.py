"""A thread that syncs what a writer has left to the kernel, at most half a second later.

Standard library only, and of that next to nothing: whoever writes one record and ends must not load `threading` for it.
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
            """Sync without holding up who writes, and keep a failure for the next write; raise nothing."""
            ...


SYNC_EVERY = 0.5  # seconds; leaves half of the promised second for the sync itself


class Syncer:
    """The thread of one writer; holds it weakly, so that a forgotten writer can go, and ends with the interpreter.

    Raises:
        RuntimeError: no thread can be started: the interpreter ends, or the system has no more.
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
        """Remember that something was written."""
        if not self.dirty:
            self.dirty = True
            _release_lock(self._wake)

    def stop(self) -> None:
        """End the thread."""
        _release_lock(self._stop)
        _release_lock(self._wake)

    def _run(self) -> None:
        # Woken by the first write; the half second of waiting for the end gathers what is written meanwhile into one sync.
        while self._wake.acquire() and not self._stop.acquire(timeout=SYNC_EVERY):
            # Before the sync: what is written while it runs must wake the thread again.
            self.dirty = False
            writer = self._writer()
            if writer is None:
                return
            writer.sync_from_thread()
            # A reference held while the thread sleeps would keep a forgotten writer alive.
            del writer


def _release_lock(lock: _thread.LockType) -> None:
    try:
        lock.release()
    except RuntimeError:  # it is free: another thread was faster
        return
