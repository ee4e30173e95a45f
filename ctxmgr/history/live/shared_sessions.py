"""Follow all active sessions of a store on a server: alone, for many readers in one process, or shared by leases."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.live.record_sources import Batch
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id
from ctxmgr.store import Store, open_store
from ctxmgr.store.repositories.bookkeeping import WATCHED, WATCHER, ServerLeases
from ctxmgr.store.repositories.queries import changed_sessions, held_leases, read_records_after, recent_sessions, settled_place

MOST = 64
"""Maximum sessions that one process follows at once."""

RECENT = 3600.0
"""Seconds without a record after which a session is no longer followed."""

LEASE = 30.0
"""Seconds after which other watchers take over the sessions of a process that no longer renews its leases."""


class SharedSessions:
    """The active sessions of a server. Each is read from its beginning when it is first followed.

    Args:
        store: a store on a server.
        share: follow only sessions whose lease this process holds; all watchers get about equal numbers of them.
    """

    def __init__(self, store: Store, *, share: bool) -> None:
        self._store = store
        self._share = share
        # A random id too, because process ids are reused on a machine.
        self._holder = f"{os.uname().nodename}-{os.getpid()}-{new_id()}"
        self._place: int | None = None
        self._active: dict[int, str] = {}
        self._last_seen: dict[int, float] = {}
        self._followed: dict[int, int] = {}
        self._changed: set[int] = set()
        self._renewed: dict[str, float] = {}
        self._begun: set[str] = set()
        self._gone: set[str] = set()

    def poll(self) -> Batch:
        """Return the new records of the followed sessions."""
        self._find_changes()
        self._choose()
        gone, self._gone = frozenset(self._gone), set[str]()
        return Batch(self._records(), fresh=False, begun=frozenset(self._begun), gone=gone)

    def _find_changes(self) -> None:
        """Find the sessions that changed since last time. Places where transactions may still commit are checked again."""
        now, upto = time.monotonic(), settled_place(self._store.engine)
        if self._place is None:
            # On the first poll, sessions that ended long ago are not read from their beginning.
            found = recent_sessions(self._store.engine, self._store.clock() - RECENT)
        else:
            found = changed_sessions(self._store.engine, self._place)
        self._changed |= {key for key, _ in found}
        self._place = max(self._place or 0, upto)
        for key, name in found:
            self._active[key], self._last_seen[key] = name, now
        for key in [key for key, last_seen in self._last_seen.items() if now - last_seen > RECENT]:
            self._leave(key)
            del self._active[key], self._last_seen[key]

    def _choose(self) -> None:
        if self._share:
            self._follow_share()
            return
        newest = sorted(self._active, key=self._last_seen.__getitem__, reverse=True)[:MOST]
        for key in [key for key in self._followed if key not in newest]:
            self._leave(key)
        for key in newest:
            self._begin(key)

    def _follow_share(self) -> None:
        """Follow as many of the active sessions as fall to each watcher, and none that another one follows."""
        if not self._renewed:
            self._remove_expired()
        self._take(f"{WATCHER}{self._holder}")
        for key in list(self._followed):
            if not self._take(f"{WATCHED}{self._active[key]}"):
                self._leave(key)
        members = max(1, len(held_leases(self._store.engine, WATCHER)))
        # Every watcher computes the same share from the same leases. A watcher with too many sessions gives some up, and one
        # with too few takes them.
        fair = min(MOST, math.ceil(len(self._active) / members))
        for key in list(self._followed)[fair:]:
            self._leave(key)
        leases = held_leases(self._store.engine, WATCHED)
        for key, name in self._active.items():
            if len(self._followed) >= fair:
                return
            if key not in self._followed and f"{WATCHED}{name}" not in leases and self._take(f"{WATCHED}{name}"):
                self._begin(key)

    def _take(self, name: str) -> bool:
        """Take or renew a lease. It is renewed after a third of its time, so that one failed renewal does not lose it."""
        now = time.monotonic()
        if now - self._renewed.get(name, -math.inf) < LEASE / 3:
            return True
        if not self._store.leases.take(name, self._holder, self._store.clock(), LEASE):
            self._renewed.pop(name, None)
            return False
        self._renewed[name] = now
        return True

    def _begin(self, key: int) -> None:
        if key not in self._followed:
            self._followed[key] = 0
            self._changed.add(key)
            self._begun.add(self._active[key])

    def _leave(self, key: int) -> None:
        name = f"{WATCHED}{self._active[key]}"
        if self._followed.pop(key, None) is not None:
            self._gone.add(self._active[key])
            self._begun.discard(self._active[key])
        if self._renewed.pop(name, None) is not None:
            self._store.leases.release(name, self._holder)

    def _records(self) -> Iterator[Record]:
        for key in sorted(self._changed & self._followed.keys()):  # the others have nothing new
            for place, record in read_records_after(self._store.engine, key, self._followed[key]):
                self._followed[key] = place
                yield record
        self._changed.clear()
        self._begun.clear()  # not earlier: if reading is interrupted, they still count as begun

    def close(self) -> None:
        """Release all leases, so that others need not wait for their expiry; they do where the server does not answer."""
        with suppress(CtxmgrError):
            for name in list(self._renewed):
                del self._renewed[name]
                self._store.leases.release(name, self._holder)
            if self._share:
                self._remove_expired()

    def _remove_expired(self) -> None:
        """Remove what ended watchers have left. Each has its own name, so nobody else would reuse it."""
        cast("ServerLeases", self._store.leases).remove_expired()


Receive = Callable[[Record], object]
"""Takes a record. Called in the thread of the feed, which waits for it."""


class Feed:
    """Reads the records of a server's sessions once and gives them to all subscribers of a process. Close it.

    For any number of subscribers, the server is asked over three connections (for questions, for records, for notifications),
    and each record is read and decoded once. A subscriber gets every record of the sessions that were active in the hour
    before the feed was opened, and everything that follows. It gets each record once and in order within a session, even if a
    connection is lost. A later subscriber first gets the records that the others had.

    Args:
        location: URL of the store.
        every: seconds between two polls without a notification.
        failed: called with a subscriber that raised, which gets nothing more, and with its error.

    Attributes:
        error: why the last poll of the server failed; None if it succeeded.

    Raises:
        CtxmgrError: the store can't be opened.
    """

    def __init__(
        self, location: str, *, every: float = 1.0, failed: Callable[[Receive, Exception], object] | None = None
    ) -> None:
        self._store = open_store(location, readonly=True)
        self._every = every
        self._failed = failed
        # Records from now on are delivered, whatever time they claim, even if they come before the thread's first poll.
        self._place, self._looked = settled_place(self._store.engine), False
        self._given: dict[int, int] = {}
        self._new: list[Receive] = []
        self._joining: list[Receive] = []
        self._caught_up: dict[int, int] = {}
        self._receivers: list[Receive] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._end, self._waker = socket.socketpair()
        self.error: CtxmgrError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="ctxmgr feed")
        self._thread.start()

    def subscribe(self, receive: Receive) -> None:
        """Give a subscriber first the records that the others had, then every new record."""
        with self._lock:
            self._new.append(receive)

    def unsubscribe(self, receive: Receive) -> None:
        """Give a subscriber nothing more."""
        with self._lock:
            for each in (self._new, self._joining, self._receivers):
                if receive in each:
                    each.remove(receive)

    def close(self) -> None:
        """End the feed after the delivery in progress."""
        self._ended.set()
        self._waker.close()  # a waiting thread can read the end of it
        self._thread.join()
        self._end.close()
        self._store.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._admit_waiting()
                self._look()
                self.error = None
            except CtxmgrError as error:  # the next poll continues from the same place
                self.error = error
            self._store.wait(self._every, self._end)

    def _admit_waiting(self) -> None:
        """Give waiting subscribers the records that the others had. If that is interrupted, it continues next time."""
        if not self._joining:
            with self._lock:
                self._joining, self._new = self._new, []
        if not self._joining:
            return
        for key, last in self._given.items():
            for place, record in read_records_after(self._store.engine, key, self._caught_up.get(key, 0)):
                # From here on, the new subscriber gets records together with the others.
                if place > last:
                    break
                self._caught_up[key] = place
                self._give(record, self._joining)
        with self._lock:
            self._receivers += self._joining
            self._joining = []
        self._caught_up.clear()

    def _look(self) -> None:
        engine = self._store.engine
        # Ask for this before the changes: a commit between the two requests lies after it, and is found next time.
        upto = settled_place(engine)
        found = changed_sessions(engine, self._place)
        if not self._looked:
            found = [*recent_sessions(engine, self._store.clock() - RECENT), *found]
        for key, _ in found:
            for place, record in read_records_after(engine, key, self._given.get(key, 0)):
                self._given[key] = place
                self._give(record, self._receivers)
        self._place, self._looked = max(self._place, upto), True

    def _give(self, record: Record, receivers: list[Receive]) -> None:
        for receive in tuple(receivers):
            try:
                receive(record)
            except Exception as error:
                # It missed this record, but a subscriber is promised every record without a gap.
                self.unsubscribe(receive)
                if self._failed is not None:
                    self._failed(receive, error)
