"""Sync the commits of a database to the disk within a second, and anchor it there.

At level ``process`` SQLite leaves commits to the kernel until a checkpoint. This module opens the write-ahead log by name and
syncs it from a thread. Normally no file of a database may be opened beside SQLite, because closing it drops the POSIX locks
on it. The log is safe, because SQLite locks the database and its ``-shm`` file, never the ``-wal``.
A commit at ``synchronous = FULL`` would sync through SQLite, but it holds the write lock, so appends would wait for the
disk. A checkpoint does not sync while a reader is at the end of the log. SQLite syncs pages that it moved from the log into
the database before it restarts the log, so a sync of the log covers every commit.
"""

from __future__ import annotations

import os

from ctxmgr.errors import CtxmgrError, StorageFailed
from ctxmgr.log import anchor, codec
from ctxmgr.store.engine.schema import READABLE
from ctxmgr.store.project_session import END, end_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ctxmgr.log.sync_thread import Syncer
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.engine.sqlite import SqliteEngine


class WalSync:
    """Syncs and anchors one database for the engine that writes it.

    Args:
        path: the path of the database.
        reader: opens another connection to it, for reading.
        durable: whether SQLite itself syncs the commits (level ``os``), so that only the anchor is left to write.
    """

    def __init__(self, path: str, reader: Callable[[], SqliteEngine], *, durable: bool) -> None:
        self._path = path
        self._reader = reader
        self._durable = durable
        self._owner = os.getpid()
        self._syncer: Syncer | None = None
        self._written = self._named = False
        self._failure: OSError | None = None

    def note(self) -> None:
        """Note a commit, and have the thread sync it."""
        self._written = True
        if self._syncer is None:
            from ctxmgr.log.sync_thread import Syncer

            try:
                self._syncer = Syncer(self)
            except RuntimeError:  # no new threads: the interpreter ends, or the system has no more
                self.sync_from_thread()
        if self._syncer is not None:
            self._syncer.note()

    def require_synced(self) -> None:
        """Report a failed sync of the thread once, to the next transaction.

        Raises:
            StorageFailed: the last commits may not survive a power loss.
        """
        if self._failure is not None:
            error, self._failure = self._failure, None
            raise _sync_error(self._path, error)

    def sync_from_thread(self) -> None:
        """Sync the log. `require_synced` reports a failure."""
        try:
            # A connection of its own, because only one thread at a time may use that of the engine.
            engine = self._reader()
            try:
                # Read the head before the sync, because the anchor must not name a record that is not on the disk.
                head = read_head(engine, anchor.load(self._path))
                self._sync_log()
                self._advance(engine, head)
            finally:
                engine.close()
        except OSError as error:
            self._failure = error
        except CtxmgrError:  # e.g. new damage, which the next statement reports
            return

    def _sync_log(self) -> None:
        if self._durable:
            return
        if not self._named:
            from ctxmgr.base.paths import sync_folder

            sync_folder(os.path.dirname(os.path.abspath(self._path)))
            # From now on the files keep their names after a power loss.
            self._named = True
        try:
            log = os.open(self._path + "-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # SQLite moved everything into the database and synced it
            return
        try:
            os.fdatasync(log)
        finally:
            os.close(log)

    def _advance(self, engine: SqliteEngine, head: anchor.Anchor | None) -> None:
        if head is not None:
            anchor.advance(self._path, head, lambda stored: matches_anchor(engine, stored))

    def close(self, engine: SqliteEngine) -> None:
        """Stop the thread and sync the rest. Called before the engine is closed.

        Raises:
            StorageFailed: the sync failed.
        """
        if self._syncer is not None:
            self._syncer.stop()
        # After a fork, the parent process syncs what it wrote before.
        if not self._written or self._owner != os.getpid():
            return
        self._written = False
        try:
            head = read_head(engine, anchor.load(self._path))
            self._sync_log()
            self._advance(engine, head)
        except OSError as error:
            raise _sync_error(self._path, error) from None
        except CtxmgrError:
            return


_ALL_ENDS = "SELECT sum FROM session UNION ALL SELECT value FROM state WHERE name >= :end AND name < :after"
# The last checksum of each session with records behind a place, and its last checksum up to that place.
_NEW_ENDS = (
    "SELECT sum, (SELECT sum FROM record WHERE record.session = session.key AND record.seq <= :place "
    "ORDER BY record.seq DESC LIMIT 1) FROM session WHERE key IN (SELECT session FROM record WHERE seq > :place)"
)


def read_head(engine: Engine, former: anchor.Anchor | None = None) -> anchor.Anchor | None:
    """Return an anchor of the database as it is now, None if it is empty.

    Args:
        engine: the engine of the database.
        former: an earlier anchor of the database. Its digest is kept for sessions without new records, instead of reading
            them again, so it still reveals a session that was rewritten meanwhile.
    """
    with engine.reading():
        rows = engine.query("SELECT seq, sum FROM record ORDER BY seq DESC LIMIT 1")
        if not rows or not rows[0][1]:
            return None
        ((session,),) = engine.query("SELECT id FROM session ORDER BY key LIMIT 1")
        head = anchor.Anchor(int(rows[0][0]), str(rows[0][1]), str(session))
        if engine.schema_version() > READABLE:  # in older versions the sessions' rows have no checksum
            head.ends_digest = _ends_digest(engine, former)
    return head


def _ends_digest(engine: Engine, former: anchor.Anchor | None) -> str:
    if former is None or not former.ends_digest or is_archived_since(engine, former.length):
        return digest_sums(
            (total or "").partition(" ")[0] for (total,) in engine.query(_ALL_ENDS, {"end": END, "after": END + "~"})
        )
    found = engine.query(_NEW_ENDS, {"place": former.length})
    return digest_sums((now for now, _ in found), (before for _, before in found), former.ends_digest)


def digest_sums(totals: Iterable[str | None], without: Iterable[str | None] = (), former: str = "0") -> str:
    """Return the digest ``former`` after adding ``totals`` and removing ``without``. The order of checksums does not matter."""
    value = int(former, 16)
    for sign, some in ((1, totals), (-1, without)):
        value += sign * sum(int(codec.chain("", total.encode()), 16) for total in some if total)
    return f"{value % 2**64:016x}"


def is_archived_since(engine: Engine, place: int) -> bool:
    """Whether a session with records at or behind a place was archived. Its checksum at that place is no longer known."""
    sql = "SELECT 1 FROM state WHERE name >= :name AND name < :after LIMIT 1"
    return bool(engine.query(sql, {"name": end_name(place), "after": END + "~"}))


def matches_anchor(engine: SqliteEngine, found: anchor.Anchor) -> bool:
    """Whether a database still matches its anchor, up to the anchor's place."""
    rows = engine.query("SELECT sum FROM record WHERE seq = :seq", {"seq": found.length})
    return rows[0][0] == found.total if rows else is_archived_since(engine, found.length)


def _sync_error(path: str, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{path} could not be synced: {error.strerror}",
        "what was written in the last second may not survive a power loss; free some space or check the disk",
    )
