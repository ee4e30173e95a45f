"""A store as the rest of the program sees it: append records, and its repositories to read."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ctxmgr import wire
from ctxmgr.errors import Damaged, StorageFailed
from ctxmgr.liveness import is_live
from ctxmgr.store import search_index
from ctxmgr.store.annotations import Annotations
from ctxmgr.store.append import Appender
from ctxmgr.store.artifacts import Artifacts
from ctxmgr.store.imported import Imported
from ctxmgr.store.interface import Appended, Engine, OnConflict
from ctxmgr.store.leases import Leases
from ctxmgr.store.queries import Queries
from ctxmgr.store.sessions import Sessions
from ctxmgr.store.shared import Shared
from ctxmgr.types.record import check
from ctxmgr.wire import Record

# As bytes: a flipped bit may make them no text any more, and the others are to be checked nevertheless.
_ALL_BYTES = "SELECT seq, CAST(body AS BLOB), CAST(sum AS BLOB) FROM record ORDER BY seq"


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a log that hold no readable record, or break its chain of sums."""

    offset: int
    length: int
    reason: str


class Store:
    """One history: all its sessions.

    Attributes:
        location: the path or URL it was opened by.
        readonly: whether appending is refused.
    """

    def __init__(self, engine: Engine, location: str, *, readonly: bool, masked: bool) -> None:
        self.engine = engine
        self.location = location
        self.readonly = readonly
        self.queries = Queries(engine)
        self.annotations = Annotations(engine)
        self.sessions = Sessions(engine)
        self.leases = Leases(engine)
        self.imported = Imported(engine)
        self.artifacts = Artifacts(engine)
        self.shared = Shared(engine)
        self._appender = Appender(engine, masked=masked)

    def append(self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False) -> Appended:
        """Write records, all or none; see `Appender.append`.

        Raises:
            InvalidInput: a record that does not follow format 1.
            Conflict: a known id with other content.
            StorageFailed, Busy: the record could not be written; nothing was.
        """
        self._require_writable()
        with self.engine.transaction():
            return self._appender.append((check(record) for record in records), on_conflict=on_conflict, doubles=doubles)

    def index(self, progress: search_index.Progress | None = None) -> bool:
        """Bring the search index up to date; it can be interrupted, and goes on next time.

        Args:
            progress: called with places of the log done and in all.

        Returns:
            Whether there was anything to do.

        Raises:
            StorageFailed, Busy: it can't be written.
        """
        return search_index.Builder(self.engine).advance(progress)

    def _require_writable(self) -> None:
        if self.readonly:
            raise StorageFailed(f"{self.location} was opened for reading only", "open it for writing")

    def damage(self) -> list[DamagedRange]:
        """Return the damaged ranges of the log; a database checks itself instead and has none."""
        return []

    def verify(self) -> tuple[int, list[DamagedRange]]:
        """Check every record against its sum; return the number of records and what is damaged.

        A range of a database is named by the record's place in it, with length 1.
        """
        damaged: list[DamagedRange] = []
        last, checked = "", 0
        try:
            damaged += [
                DamagedRange(0, 0, str(row[0])) for row in self.engine.query("PRAGMA integrity_check") if row[0] != "ok"
            ]
            for seq, body, total in self.engine.stream(_ALL_BYTES):
                checked += 1
                if total is not None:
                    if wire.chain(last, bytes(body)).encode("ascii") != bytes(total):
                        damaged.append(DamagedRange(int(seq), 1, "sum does not match: changed, removed or inserted"))
                    last = bytes(total).decode("ascii", "backslashreplace")
        except Damaged as error:
            damaged.append(DamagedRange(0, 0, f"can't be read to its end: {error.message}"))
        return checked, damaged

    def is_live(self, session: str) -> bool:
        """Whether a recorder holds this session open now."""
        return is_live(self.location, session)

    def clock(self) -> float:
        """Return the present, in seconds since 1970."""
        return time.time()

    def close(self) -> None:
        """Release the store."""
        self.engine.close()
