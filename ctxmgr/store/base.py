"""The base class of all stores: appends records, and has repositories to read them."""

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
    from ctxmgr.store.repositories.annotations import Annotations
    from ctxmgr.store.repositories.blobs import Blobs
    from ctxmgr.store.repositories.bookkeeping import ImportedFiles, Leases
    from ctxmgr.store.repositories.shared_state import Artifacts, ProjectState
    from ctxmgr.store.search.index import Progress
    from ctxmgr.store.verification import VerificationResult
    from ctxmgr.store.write.append import Appender, AppendResult
    from ctxmgr.store.write.bulk import BulkWriter


class Store:
    """One history with all its sessions.

    Attributes:
        location: the path or URL by which it was opened.
        readonly: whether it refuses to append.
        origin: the name of the program whose log this is; None for a history of our own.
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
        for name in _LAZY:  # a store that is initialised again drops the objects over its former engine
            self.__dict__.pop(name, None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Create a lazy attribute at first use: reading does not need it, or its module loads slowly."""
            if name not in _LAZY:
                raise AttributeError(f"a store has no {name!r}")
            # From now on it is an ordinary attribute, for which Python does not call `__getattr__`.
            setattr(self, name, _make(name, self.engine, masked=self._masked))
            return self.__dict__[name]

    def team(self) -> str | None:
        """Return the name of the team that owns these records; None if the store is not divided into teams."""
        return None

    def blobs(self) -> Blobs | None:
        """Return what keeps the contents of artifacts; None where they are files beside the store."""
        return None

    def signature(self, author: str | None) -> str | None:
        """Return who signs a record, given the author that whoever asks names. The operator may sign as anybody."""
        return author

    def catch_up(self) -> None:
        """Bring a store that is derived from a log up to date with it. Other stores always are."""

    def append(self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False) -> AppendResult:
        """Append records, all or none; see `Appender.append`.

        Raises:
            InvalidInput: a record does not follow format 1.
            Conflict: a record has a known id and other content.
            StorageFailed, Busy: a record could not be written, so none was.
        """
        from ctxmgr.types.record import check

        self._require_writable()
        with self._append_transaction():
            return self._appender.append(map(check, records), on_conflict=on_conflict, doubles=doubles)

    def append_own(self, records: Iterable[Record]) -> AppendResult:
        """Append records that the program itself signed, e.g. the notes of a recovery; see `append`."""
        return self.append(records)

    def append_encoded(self, record: Record, body: bytes) -> AppendResult:
        """Append one record whose body is masked and encoded by `ctxmgr.log.codec.encode`. Otherwise like `append`."""
        from ctxmgr.types.record import check

        self._require_writable()
        with self._append_transaction():
            return self._appender.append_encoded(check(record), body)

    def append_lines(self, lines: Iterable[Line], *, on_conflict: OnConflict = "raise") -> AppendResult:
        """Append the records of a log, all or none. Otherwise like `append`."""
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
        """Return a writer of whole blocks of a log, or None if this store takes records one by one."""
        from ctxmgr.store.write.bulk import BulkWriter

        self._require_writable()
        # The writer numbers the records of a block from the last place on, under the write lock. A server draws places from a
        # sequence instead, because many clients append at once.
        return None if self.engine.shared else BulkWriter(self.engine, self._masked)

    def index(self, progress: Progress | None = None) -> bool:
        """Bring the search index up to date. After an interruption, the next call goes on where this one stopped.

        Args:
            progress: called with the number of places indexed and the number of all.

        Returns:
            Whether there was anything to index.

        Raises:
            StorageFailed, Busy: the index can't be written.
        """
        from ctxmgr.store.search.index import Builder

        return Builder(self.engine, self.location).advance(progress)

    def count_unindexed(self) -> int:
        """Return the number of records that are not indexed yet, so that a search has to read them."""
        from ctxmgr.store.search.index import mark

        return int(self.engine.query("SELECT coalesce(max(seq), 0) FROM record")[0][0]) - mark(self.engine)

    def _require_writable(self) -> None:
        if self.readonly:
            raise StorageFailed(f"{self.location} was opened for reading only", "open it for writing")

    def damage(self) -> list[DamagedRange]:
        """Return the damaged ranges of a log. A database has none, because SQLite or the server checks it."""
        return []

    def gaps(self) -> list[str]:
        """Return what of a log was read and not understood, in words, if that is enough to matter."""
        return []

    def unread_parts(self) -> list[str]:
        """Return what of a log can't be judged, because it is damaged or was not understood, in words."""
        size = self.unread()
        return [*([f"{size:,} bytes of it are damaged, and nobody can judge what stood there"] if size else []), *self.gaps()]

    def unread(self) -> int:
        """Return the number of unreadable bytes in the log, without a last line that may still be written."""
        damage = self.damage()
        if not damage:
            return 0
        from ctxmgr.log.reader import TORN_TAIL

        return sum(item.length for item in damage if item.reason != TORN_TAIL)

    def verify(self) -> tuple[int, list[DamagedRange]]:
        """Verify the checksum of every record. Return the number of records and the damaged ranges.

        In a database, a range has the record's place as its offset and the length 1.
        """
        examined = self.examine()
        return examined.records, examined.damaged

    def examine(self) -> VerificationResult:
        """Verify the checksum of every record, and the history against the anchors that are kept outside of the store."""
        from ctxmgr.store.verification import examine_database

        return examine_database(self.engine, self.location)

    def accept(self) -> None:
        """Accept the history as it is now: replace the earlier anchor by a new one."""
        from ctxmgr.store.verification import accept_database

        accept_database(self.engine, self.location)

    def is_live(self, session: str) -> bool:
        """Whether a recorder holds this session open now."""
        return is_live(self.location, session)

    def clock(self) -> float:
        """Return the current time in seconds since 1970."""
        return self.engine.clock()

    def migrate(self) -> tuple[int, int]:
        """Migrate the tables to the latest version. Return (version before, version now).

        A database in a file was already migrated when it was opened for writing.

        Raises:
            StorageFailed: the store was opened for reading only.
            Denied: the role does not own the tables on the server.
        """
        self._require_writable()
        version = self.engine.schema_version()
        return version, version

    def require_keeper(self) -> None:
        """Check that the user may remove archived sessions from the store. Everybody who can write a file may.

        Raises:
            Denied: the store is on a server, where the role has no right to delete them.
        """

    def forget_sessions(self) -> None:
        """Drop what the appender caches about sessions, after some were removed."""
        self.__dict__.pop("_appender", None)

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for new records, at most this many seconds, or until ``end`` becomes readable."""
        if end is None:
            time.sleep(seconds)
            return
        from select import select

        select([end], [], [], seconds)

    def tell(self) -> None:
        """Notify everybody in `wait` of new records. Watchers of a file poll it, so nothing is sent to them."""

    def close(self) -> None:
        """Close the store."""
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


def is_live(target: str, session: str) -> bool:
    """Whether a recorder on this machine holds the session of a target, a log or a database, open now."""
    if not os.path.isdir(f"{target}.live"):  # the folder of the recorders' locks; their module loads slowly
        return False
    from ctxmgr.log import session_lock

    return session_lock.is_live(target, session)
