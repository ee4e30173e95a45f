"""Bring what was committed to a database to the disk within a second, and anchor it there.

At level ``process`` SQLite leaves commits to the kernel until a checkpoint. Here the write-ahead log is synced from a
thread, by its own name. That is safe although no database file may be opened beside SQLite: the rule protects POSIX
locks, which any close of the locked file drops, and SQLite locks the database and its ``-shm`` file, never its ``-wal``.
A commit at ``synchronous = FULL`` would do the same through SQLite, but it takes the write lock, so that an append would
wait for the disk; a checkpoint does not sync while a reader stands at the end of the log. What was moved from the log
into the database is synced by SQLite before it begins the log anew, so a sync of the log covers every commit.
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
        path: of the database.
        reader: opens another connection to it, for reading.
        durable: commits are synced by SQLite itself (level ``os``); only the anchor is to be kept.
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
        """Remember that something was committed."""
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
        """Let the next transaction hear of a sync that failed behind its back, once.

        Raises:
            StorageFailed: what was committed last may not survive a power loss.
        """
        if self._failure is not None:
            error, self._failure = self._failure, None
            raise _sync_error(self._path, error)

    def sync_from_thread(self) -> None:
        """Sync the log; a failure is raised by the next commit."""
        try:
            # Another connection, for that of the engine is used by one thread at a time.
            engine = self._reader()
            try:
                # First how far the database has come, then the sync: an anchor must not know more than the disk holds.
                head = read_head(engine, anchor.load(self._path))
                self._sync_log()
                self._advance(engine, head)
            finally:
                engine.close()
        except OSError as error:
            self._failure = error
        except CtxmgrError:  # e.g. damaged just now: whoever asks it is told
            return

    def _sync_log(self) -> None:
        if self._durable:
            return
        if not self._named:
            from ctxmgr.base.paths import sync_folder

            sync_folder(os.path.dirname(os.path.abspath(self._path)))
            # From now on a power loss can't take the names of the files away.
            self._named = True
        try:
            log = os.open(self._path + "-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # all of it is in the database, which SQLite has synced
            return
        try:
            os.fdatasync(log)
        finally:
            os.close(log)

    def _advance(self, engine: SqliteEngine, head: anchor.Anchor | None) -> None:
        if head is not None:
            anchor.advance(self._path, head, lambda found: holds(engine, found))

    def close(self, engine: SqliteEngine) -> None:
        """Sync what is left, when the engine is about to be closed, and end the thread.

        Raises:
            StorageFailed: it could not be synced.
        """
        if self._syncer is not None:
            self._syncer.stop()
        # What a parent process wrote before a fork is the parent's to sync.
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
# Of each session that went on behind a place: its last sum, and the one that it had there.
_NEW_ENDS = (
    "SELECT sum, (SELECT sum FROM record WHERE record.session = session.key AND record.seq <= :place "
    "ORDER BY record.seq DESC LIMIT 1) FROM session WHERE key IN (SELECT session FROM record WHERE seq > :place)"
)


def read_head(engine: Engine, former: anchor.Anchor | None = None) -> anchor.Anchor | None:
    """Return how far a database has come, None when it holds nothing.

    Args:
        engine: of the database.
        former: an earlier anchor of it. What that says of sessions that did not go on is taken over, not looked up: one that
            was rewritten meanwhile is not forgotten.
    """
    with engine.reading():
        rows = engine.query("SELECT seq, sum FROM record ORDER BY seq DESC LIMIT 1")
        if not rows or not rows[0][1]:
            return None
        ((session,),) = engine.query("SELECT id FROM session ORDER BY key LIMIT 1")
        head = anchor.Anchor(int(rows[0][0]), str(rows[0][1]), str(session))
        if engine.schema_version() > READABLE:  # else sessions do not know their last sums
            head.ends = _ends(engine, former)
    return head


def _ends(engine: Engine, former: anchor.Anchor | None) -> str:
    if former is None or not former.ends or is_archived_since(engine, former.length):
        return digest_sums(
            (total or "").partition(" ")[0] for (total,) in engine.query(_ALL_ENDS, {"end": END, "after": END + "~"})
        )
    found = engine.query(_NEW_ENDS, {"place": former.length})
    return digest_sums((now for now, _ in found), (before for _, before in found), former.ends)


def digest_sums(totals: Iterable[str | None], without: Iterable[str | None] = (), former: str = "0") -> str:
    """Return a digest of last sums in any order: the ``former`` one with ``totals`` and without those of ``without``."""
    value = int(former, 16)
    for sign, some in ((1, totals), (-1, without)):
        value += sign * sum(int(codec.chain("", total.encode()), 16) for total in some if total)
    return f"{value % 2**64:016x}"


def is_archived_since(engine: Engine, place: int) -> bool:
    """Whether a session was archived that went on up to a place or behind it: what it was there is not known any more."""
    sql = "SELECT 1 FROM state WHERE name >= :name AND name < :after LIMIT 1"
    return bool(engine.query(sql, {"name": end_name(place), "after": END + "~"}))


def holds(engine: SqliteEngine, found: anchor.Anchor) -> bool:
    """Whether a database still is, up to there, what its anchor says."""
    rows = engine.query("SELECT sum FROM record WHERE seq = :seq", {"seq": found.length})
    return rows[0][0] == found.total if rows else is_archived_since(engine, found.length)


def _sync_error(path: str, error: OSError) -> StorageFailed:
    return StorageFailed(
        f"{path} could not be synced: {error.strerror}",
        "what was written in the last second may not survive a power loss; free some space or check the disk",
    )
