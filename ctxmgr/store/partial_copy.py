"""Copy part of a store's records into another store (the extract), each at its own place.

A record *waits* if another record, which has not come yet, decides whether it belongs to the part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.log.codec import Record
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.dialect import KEEP_STATE
from ctxmgr.store.engine.disposable_files import BORN
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.repositories.queries import settled_place
from ctxmgr.store.row_mapper import placeholders
from ctxmgr.store.write.append import BATCH, Appender

_WAITING = (
    "CREATE TABLE IF NOT EXISTS waiting (session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, "
    "PRIMARY KEY (session, id, seq)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS waiting_by_seq ON waiting (seq)",
)
_STORED = (
    "SELECT record.seq, record.session, session.id, record.kind, record.id, record.body "
    "FROM record CROSS JOIN session ON session.key = record.session "
)
_STATE = "SELECT value FROM state WHERE name = :name"
_PROGRESS = "extract"


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A record of the whole store; ``key`` is its session's key there, ``place`` its place in the log."""

    place: int
    key: int
    session: str
    kind: str
    id: str
    body: str

    @classmethod
    def from_row(cls, row: Row) -> StoredRow:
        """Return the record of a row of ``_STORED``."""
        return cls(int(row[0]), int(row[1]), str(row[2]), str(row[3]), str(row[4]), str(row[5]))


@dataclass(slots=True)
class CopyProgress:
    """The progress of the extract: the last place that is done, and the number of hidden records up to it."""

    place: int = 0
    hidden: int = 0


class PartialCopy:
    """The extract in ``own`` of the records in ``whole``. Methods that write to ``own`` are called inside `extend`."""

    def __init__(self, whole: Engine, own: Engine) -> None:
        self._whole = whole
        self._own = own
        # The records were masked when they were recorded. A chain of checksums would break at every record that is left out.
        self._appender = Appender(own, masked=False, sums=False)
        self._batch: dict[int, Record] = {}

    @contextmanager
    def extend(self) -> Generator[CopyProgress]:
        """Hold the extract's write lock and yield its progress. At the end, store the progress as the caller changed it."""
        with self._own.transaction():
            # Only extracts have this table, so it is not in the schema of all stores.
            for statement in _WAITING:
                self._own.execute(statement)
            self._batch.clear()
            progress = self.progress()
            if progress is None:
                for table in (*schema.DERIVED, "waiting"):
                    self._own.execute(f"DELETE FROM {table}")
                progress = CopyProgress()
            yield progress
            # In the same transaction as the records, so a kill leaves both or neither.
            told = f"{progress.place} {progress.hidden} {self._mark(progress.place)}"
            self._own.execute(KEEP_STATE, {"name": _PROGRESS, "value": told})

    def progress(self) -> CopyProgress | None:
        """Return the progress of the extract; None if it was made from another store, or from this one before a rebuild."""
        told = self._own.query(_STATE, {"name": _PROGRESS})
        if not told:
            return CopyProgress()
        try:
            place, hidden, mark = str(told[0][0]).split()
            progress = CopyProgress(int(place), int(hidden))
        except ValueError:
            return None
        # In another store at the same path, or after a rebuild, the same places hold other records.
        return progress if mark == self._mark(progress.place) else None

    def _mark(self, place: int) -> str:
        """Return a digest that identifies this store up to a place, until records are removed from it."""
        born = self._whole.query(_STATE, {"name": BORN})
        there = self._whole.query("SELECT sum, body FROM record WHERE seq = :place", {"place": place})
        return hashlib.sha256(repr([born, there]).encode("utf-8", "backslashreplace")).hexdigest()

    def is_behind(self, progress: CopyProgress) -> bool:
        """Whether the whole store has records behind the extract's progress, or lost the one at that place."""
        return progress.place != int(self._whole.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])

    def settled_place(self) -> int:
        """Return the place up to which no new record can appear in the whole store. Must be called before reading."""
        return settled_place(self._whole)

    def last_copied(self) -> int:
        """Return the place of the last record in the extract."""
        return int(self._own.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])

    def read_after(self, place: int) -> Iterator[StoredRow]:
        """Yield the whole store's records behind a place, in their order."""
        rows = self._whole.stream(f"{_STORED} WHERE record.seq > :place ORDER BY record.seq", {"place": place})
        return map(StoredRow.from_row, rows)

    def frame(self, key: int, before: int) -> list[StoredRow]:
        """Return the records of kind ``session`` and ``sessionEnd`` of a session before a place, in order."""
        found: list[StoredRow] = []
        for condition in ("record.kind = 'session'", "record.kind = 'sessionEnd'"):  # one query each, so both use an index
            rows = self._whole.query(
                f"{_STORED} WHERE record.session = :key AND {condition} AND record.seq < :before",
                {"key": key, "before": before},
            )
            found += map(StoredRow.from_row, rows)
        return sorted(found, key=lambda stored: stored.place)

    def places(self, kinds: Sequence[str], record_id: str, key: int | None = None, upto: int = 2**62) -> list[int]:
        """Return the places, up to ``upto``, of records with this id in the whole store: of one session, or of all."""
        names, values = placeholders(kinds, "kind")
        session = "" if key is None else "session = :key AND"
        rows = self._whole.query(
            f"SELECT seq FROM record WHERE {session} kind IN ({names}) AND id = :id AND seq <= :upto",
            {**values, **({} if key is None else {"key": key}), "id": record_id, "upto": upto},
        )
        return [int(row[0]) for row in rows]

    def holds(self, place: int) -> bool:
        """Whether the extract has the record at this place."""
        return place in self._batch or bool(self._own.query("SELECT 1 FROM record WHERE seq = :place", {"place": place}))

    def shows(self, session: str) -> bool:
        """Whether the extract has any record of the session with exactly this id."""
        return bool(self._own.query("SELECT 1 FROM session WHERE id = :id", {"id": session}))

    def has_waiting(self) -> bool:
        """Whether any record is waiting."""
        return bool(self._own.query("SELECT 1 FROM waiting LIMIT 1"))

    def wait(self, stored: StoredRow, name: str) -> None:
        """Let a record wait for the record of its session with this id."""
        self._own.execute(
            "INSERT OR IGNORE INTO waiting (session, id, seq) VALUES (:session, :id, :seq)",
            {"session": stored.key, "id": name, "seq": stored.place},
        )

    def waits(self, place: int) -> bool:
        """Whether the record at this place is waiting."""
        return bool(self._own.query("SELECT 1 FROM waiting WHERE seq = :place", {"place": place}))

    def release(self, key: int, name: str) -> list[StoredRow]:
        """Return the records that waited for the record with this id, and remove them from the waiting ones."""
        values = {"key": key, "id": name}
        rows = self._own.query("SELECT seq FROM waiting WHERE session = :key AND id = :id ORDER BY seq", values)
        if rows:
            self._own.execute("DELETE FROM waiting WHERE session = :key AND id = :id", values)
        at = f"{_STORED} WHERE record.seq = :place"
        return [StoredRow.from_row(found) for row in rows for found in self._whole.query(at, {"place": int(row[0])})]

    def add(self, place: int, record: Record) -> None:
        """Add a record at its place. Records are written in batches, see `write`."""
        self._batch[place] = record
        if len(self._batch) >= BATCH:
            self.write()

    def write(self) -> None:
        """Write the records of the current batch."""
        self._appender.copy(self._batch.items())
        self._batch.clear()

    def set_right(self, events: Sequence[int]) -> None:
        """Store for late events after which entry they come."""
        self._own.many(
            # The extract may lack entries of the session, so the index is counted here and not read from the whole store.
            "UPDATE event SET after = (SELECT nullif(count(*), 0) - 1 FROM entry "
            "WHERE entry.session = event.session AND entry.seq < event.seq) WHERE seq = :seq",
            [{"seq": seq} for seq in events],
        )
