"""A store: append records, and repositories to read them."""

from __future__ import annotations

import os
import time

from ctxmgr.errors import StorageFailed
from ctxmgr.store.repositories.queries import Queries
from ctxmgr.store.repositories.sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from socket import socket
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line
    from ctxmgr.store.engine.interface import Engine, OnConflict
    from ctxmgr.store.engine.log_bytes import DamagedRange
    from ctxmgr.store.integrity.verification import VerificationResult
    from ctxmgr.store.repositories.annotations import Annotations
    from ctxmgr.store.repositories.blobs import Blobs
    from ctxmgr.store.repositories.bookkeeping import ImportedFiles, Leases
    from ctxmgr.store.repositories.shared_state import Artifacts, ProjectState
    from ctxmgr.store.search.index import Progress
    from ctxmgr.store.write.append import Appender, AppendResult
    from ctxmgr.store.write.bulk import BulkWriter


class Store:
    """One history: all its sessions.

    Attributes:
        location: the path or URL it was opened by.
        readonly: whether appending is refused.
        origin: whose log it is, as people call it; None for a history of our own.
    """

    origin: str | None = None

    annotations: Annotations
    leases: Leases
    imported: ImportedFiles
    artifacts: Artifacts
    shared: ProjectState
    _appender: Appender

    def __init__(self, engine: Engine, location: str, *, readonly: bool, masked: bool) -> None:
        self.engine = engine
        self.location = location
        self.readonly = readonly
        self.queries = Queries(engine)
        self.sessions = Sessions(engine)
        self._masked = masked
        for name in _LAZY:  # made over another engine, where a store is set up again
            self.__dict__.pop(name, None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make what reading does not need, and what loads slowly, when it is first asked for."""
            if name not in _LAZY:
                raise AttributeError(f"a store has no {name!r}")
            # Found as an ordinary attribute from now on: `__getattr__` is only asked for what is missing.
            setattr(self, name, _make(name, self.engine, masked=self._masked))
            return self.__dict__[name]

    def team(self) -> str | None:
        """Return the name of the team whose records these are; None where a store is not divided into teams."""
        return None

    def blobs(self) -> Blobs | None:
        """Return what keeps the contents of artifacts; None where they are files beside the store."""
        return None

    def catch_up(self) -> None:
        """Bring a derived store up to date with its source; a store of its own always is."""

    def append(self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False) -> AppendResult:
        """Write records, all or none; see `Appender.append`.

        Raises:
            InvalidInput: a record that does not follow format 1.
            Conflict: a known id with other content.
            StorageFailed, Busy: the record could not be written; nothing was.
        """
        from ctxmgr.types.record import check

        self._require_writable()
        with self._append_transaction():
            return self._appender.append(map(check, records), on_conflict=on_conflict, doubles=doubles)

    def append_encoded(self, record: Record, body: bytes) -> AppendResult:
        """Write one record that is masked already and spelled as `ctxmgr.log.codec.encode` would do it; else as `append`."""
        from ctxmgr.types.record import check

        self._require_writable()
        with self._append_transaction():
            return self._appender.append_encoded(check(record), body)

    def append_lines(self, lines: Iterable[Line], *, on_conflict: OnConflict = "raise") -> AppendResult:
        """Write the records of a log, all or none; else as `append`."""
        from ctxmgr.types.record import check

        self._require_writable()

        def checked_lines() -> Iterator[Line]:
            for line in lines:
                check(line.record)
                yield line

        with self._append_transaction():
            return self._appender.append_lines(checked_lines(), on_conflict=on_conflict)

    def _append_transaction(self) -> AbstractContextManager[None]:
        return self.engine.transaction()

    def bulk(self) -> BulkWriter | None:
        """Return what writes blocks of a log into this store, or None where records are written one by one."""
        from ctxmgr.store.write.bulk import BulkWriter

        self._require_writable()
        # A block's records are numbered from the last one on, while the write lock is held. On a server many write at once, and
        # places are drawn from a sequence.
        return None if self.engine.shared else BulkWriter(self.engine, self._masked)

    def index(self, progress: Progress | None = None) -> bool:
        """Bring the search index up to date; it can be interrupted, and goes on next time.

        Args:
            progress: called with places of the log done and in all.

        Returns:
            Whether there was anything to do.

        Raises:
            StorageFailed, Busy: it can't be written.
        """
        from ctxmgr.store.search.index import Builder

        return Builder(self.engine, self.location).advance(progress)

    def count_unindexed(self) -> int:
        """Return how many records a search has to read because they are not indexed yet."""
        from ctxmgr.store.search.index import mark

        return int(self.engine.query("SELECT coalesce(max(seq), 0) FROM record")[0][0]) - mark(self.engine)

    def _require_writable(self) -> None:
        if self.readonly:
            raise StorageFailed(f"{self.location} was opened for reading only", "open it for writing")

    def damage(self) -> list[DamagedRange]:
        """Return the damaged ranges of the log; a database checks itself instead and has none."""
        return []

    def unread(self) -> int:
        """Return the number of log bytes that are unreadable; a line still being written does not count."""
        damage = self.damage()
        if not damage:
            return 0
        from ctxmgr.log.reader import TORN_TAIL

        return sum(item.length for item in damage if item.reason != TORN_TAIL)

    def verify(self) -> tuple[int, list[DamagedRange]]:
        """Check every record against its sum; return the number of records and what is damaged.

        A range of a database is named by the record's place in it, with length 1.
        """
        examined = self.examine()
        return examined.records, examined.damaged

    def examine(self) -> VerificationResult:
        """Check every record against its sum, and the whole against the anchors outside of it."""
        from ctxmgr.store.integrity.verification import examine_database

        return examine_database(self.engine, self.location)

    def accept(self) -> None:
        """Anchor the history as it stands: what an earlier anchor says counts no more."""
        from ctxmgr.store.integrity.verification import accept_database

        accept_database(self.engine, self.location)

    def is_live(self, session: str) -> bool:
        """Whether a recorder holds this session open now."""
        if not os.path.isdir(f"{self.location}.live"):  # where recorders are named; what looks at them loads slowly
            return False
        from ctxmgr.log.session_lock import is_live

        return is_live(self.location, session)

    def clock(self) -> float:
        """Return the present, in seconds since 1970."""
        return self.engine.clock()

    def migrate(self) -> tuple[int, int]:
        """Bring the tables to the latest version; return (version before, version now).

        A database that is open for writing is there already.

        Raises:
            StorageFailed: it was opened for reading only.
            Denied: the role does not own the tables of a server.
        """
        self._require_writable()
        version = self.engine.schema_version()
        return version, version

    def require_keeper(self) -> None:
        """Refuse who may not remove from the store what was archived; whoever writes a file may.

        Raises:
            Denied: it is on a server, and the role has no right to.
        """

    def forget_sessions(self) -> None:
        """Forget what an append remembers of sessions: some were removed."""
        self.__dict__.pop("_appender", None)

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for something new, so long at most, or until something can be read from ``end``."""
        if end is None:
            time.sleep(seconds)
            return
        from select import select

        select([end], [], [], seconds)

    def tell(self) -> None:
        """Say to all who wait that there is something new; on one machine they look."""

    def close(self) -> None:
        """Release the store."""
        self.engine.close()


_LAZY = ("annotations", "leases", "imported", "artifacts", "shared", "_appender")


def _make(name: str, engine: Engine, *, masked: bool) -> object:
    if name == "annotations":
        from ctxmgr.store.repositories.annotations import Annotations

        return Annotations(engine)
    if name == "leases":
        from ctxmgr.store.repositories.bookkeeping import Leases, ServerLeases

        return ServerLeases(engine) if engine.shared else Leases(engine)
    if name == "imported":
        from ctxmgr.store.repositories.bookkeeping import ImportedFiles

        return ImportedFiles(engine)
    if name == "artifacts":
        from ctxmgr.store.repositories.shared_state import Artifacts

        return Artifacts(engine)
    if name == "shared":
        from ctxmgr.store.repositories.shared_state import ProjectState

        return ProjectState(engine)
    if engine.shared:
        from ctxmgr.store.write.append_on_server import ServerAppender

        return ServerAppender(engine, masked=masked)
    from ctxmgr.store.write.append import Appender

    return Appender(engine, masked=masked)
