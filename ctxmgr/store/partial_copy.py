"""Copy part of a store's records into another store, each at its own place.

A record *waits* while whether it belongs to the part depends on another one that has not come yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.log.codec import Record
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.dialect import KEEP_STATE
from ctxmgr.store.engine.disposable_files import BORN
from ctxmgr.store.engine.interface import Engine, Row
from ctxmgr.store.row_mapper import placeholders
from ctxmgr.store.write.append import BATCH, Appender

_MAX_UNCONFIRMED = 4 * BATCH
"""Places that are remembered until they have been written for certain."""

_WAITING = (
    "CREATE TABLE IF NOT EXISTS waiting (session INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, "
    "PRIMARY KEY (session, id, seq)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS waiting_by_seq ON waiting (seq)",
)
_STORED = (
    "SELECT record.seq, record.session, session.id, record.kind, record.id, record.body "
    "FROM record CROSS JOIN session ON session.key = record.session "
)


_LINKED = "('entry', 'event', 'note', 'snapshot', 'continuation')"


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as the whole store holds it; ``key`` is its session's key there, ``place`` its place in the order of all."""

    place: int
    key: int
    session: str
    kind: str
    id: str
    body: str

    @classmethod
    def of(cls, row: Row) -> Stored:
        """Return what a row of ``_STORED`` says."""
        return cls(int(row[0]), int(row[1]), str(row[2]), str(row[3]), str(row[4]), str(row[5]))


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far the extract is: the last place that was looked at, how many records were, and how many were kept back."""

    place: int = 0
    looked_at: int = 0
    kept_back: int = 0


class Extract:
    """The extract in ``own`` of the records in ``whole``; what writes to ``own`` is called inside a transaction."""

    def __init__(self, whole: Engine, own: Engine) -> None:
        self._whole = whole
        self._own = own
        # The records were masked when they were recorded. Sums would break wherever a record is left out.
        self._appender = Appender(own, masked=False, sums=False)
        self._handed: dict[int, None] = {}

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the write lock of the extract."""
        with self._own.transaction():
            # Only extracts have this table, so it is not in the schema of all stores.
            for statement in _WAITING:
                self._own.execute(statement)
            yield

    def reached(self) -> CopyProgress | None:
        """Return how far the extract is; None when it was made of another store, or of this one before it was made anew."""
        state = dict(self._own.query("SELECT name, value FROM state"))
        if "extract.place" not in state:
            return CopyProgress()
        place = int(state["extract.place"])
        # Another store at the same path, or this one made anew: its places mean other records.
        if state.get("extract.mark") != self._mark(place):
            return None
        return CopyProgress(place, int(state["extract.looked_at"]), int(state["extract.kept_back"]))

    def last_place(self) -> int:
        """Return the place of the whole store's last record, 0 when there is none."""
        return int(self._whole.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])

    def _mark(self, place: int) -> str:
        """Return what only this store has at this place: the sum there covers all that lies before it."""
        born = self._whole.query("SELECT value FROM state WHERE name = :name", {"name": BORN})
        there = self._whole.query("SELECT sum, body FROM record WHERE seq = :place", {"place": place})
        return hashlib.sha256(repr([born, there]).encode("utf-8", "backslashreplace")).hexdigest()

    def clear(self) -> None:
        """Take everything out."""
        for table in (*schema.DERIVED, "waiting"):
            self._own.execute(f"DELETE FROM {table}")

    def settle(self, reached: CopyProgress) -> None:
        """Store how far the extract is."""
        values = {"place": reached.place, "looked_at": reached.looked_at, "kept_back": reached.kept_back}
        self._own.many(
            KEEP_STATE,
            [
                *({"name": f"extract.{name}", "value": str(value)} for name, value in values.items()),
                {"name": "extract.mark", "value": self._mark(reached.place)},
            ],
        )

    def stored_after(self, place: int) -> Iterator[Stored]:
        """Yield the whole store's records behind a place, in their order."""
        rows = self._whole.stream(f"{_STORED} WHERE record.seq > :place ORDER BY record.seq", {"place": place})
        return map(Stored.of, rows)

    def stored_at(self, place: int) -> Stored:
        """Return the whole store's record at a place."""
        return Stored.of(self._whole.query(f"{_STORED} WHERE record.seq = :place", {"place": place})[0])

    def frame(self, key: int, before: int) -> list[Stored]:
        """Return what a session began and ended with before a place."""
        found: list[Stored] = []
        for condition in ("record.kind = 'session'", "record.kind = 'sessionEnd'"):  # one by one they are found in an index
            rows = self._whole.query(
                f"{_STORED} WHERE record.session = :key AND {condition} AND record.seq < :before",
                {"key": key, "before": before},
            )
            found += map(Stored.of, rows)
        return sorted(found, key=lambda stored: stored.place)

    def places(self, key: int, kinds: Sequence[str], record_id: str, upto: int) -> list[int]:
        """Return the places, up to one, at which the whole store has records of a session with this id."""
        names, values = placeholders(kinds, "kind")
        rows = self._whole.query(
            f"SELECT seq FROM record WHERE session = :key AND kind IN ({names}) AND id = :id AND seq <= :upto",
            {**values, "key": key, "id": record_id, "upto": upto},
        )
        return [int(row[0]) for row in rows]

    def places_of(self, record_id: str) -> list[int]:
        """Return the places at which the whole store has records with this id, of whatever session and kind."""
        rows = self._whole.query(f"SELECT seq FROM record WHERE id = :id AND kind IN {_LINKED}", {"id": record_id})
        return [int(row[0]) for row in rows]

    def place_of(self, session: str, kind: str, record_id: str) -> int | None:
        """Return the place of a record in the whole store, given its session's id, or None."""
        rows = self._whole.query(
            "SELECT record.seq FROM session JOIN record ON record.session = session.key "
            "WHERE session.id = :session AND record.kind = :kind AND record.id = :id",
            {"session": session, "kind": kind, "id": record_id},
        )
        return int(rows[0][0]) if rows else None

    def holds(self, place: int) -> bool:
        """Whether the extract has the record of this place, or is about to have it."""
        return place in self._handed or bool(self._own.query("SELECT 1 FROM record WHERE seq = :place", {"place": place}))

    def shows(self, session: str) -> bool:
        """Whether the extract has any record of the session with exactly this id."""
        return bool(self._own.query("SELECT 1 FROM session WHERE id = :id", {"id": session}))

    def is_any_waiting(self) -> bool:
        """Whether any record waits."""
        return bool(self._own.query("SELECT 1 FROM waiting LIMIT 1"))

    def wait(self, stored: Stored, name: str) -> None:
        """Let a record wait for one of its session that has this id."""
        self._own.execute(
            "INSERT OR IGNORE INTO waiting (session, id, seq) VALUES (:session, :id, :seq)",
            {"session": stored.key, "id": name, "seq": stored.place},
        )

    def waits(self, place: int) -> bool:
        """Whether the record of this place waits."""
        return bool(self._own.query("SELECT 1 FROM waiting WHERE seq = :place", {"place": place}))

    def release(self, key: int, name: str) -> list[Stored]:
        """Return the records that waited for this one, in their order, and let them wait no longer."""
        values = {"key": key, "id": name}
        rows = self._own.query("SELECT seq FROM waiting WHERE session = :key AND id = :id ORDER BY seq", values)
        if rows:
            self._own.execute("DELETE FROM waiting WHERE session = :key AND id = :id", values)
        return [self.stored_at(int(row[0])) for row in rows]

    def copy(self, placed: Iterable[tuple[int, Record]]) -> int:
        """Write records at their places; return how many there were.

        They are written together, a few at a time: those that were handed over are held from then on.
        """

        def handed() -> Iterator[tuple[int, Record]]:
            for place, record in placed:
                if len(self._handed) >= _MAX_UNCONFIRMED:
                    # The older half was written by now: the appender writes after `BATCH` records at the latest.
                    self._handed = dict.fromkeys(list(self._handed)[_MAX_UNCONFIRMED // 2 :])
                self._handed[place] = None
                yield place, record

        try:
            return self._appender.copy(handed()).added
        finally:
            # What was handed over is in the table now, which `holds` asks as well.
            self._handed.clear()

    def set_right(self, events: Sequence[int]) -> None:
        """Say of events that came late behind which entry they stand."""
        self._own.many(
            # Entries of the session may be missing here, so those before it are counted, not looked up in the whole store.
            "UPDATE event SET after = (SELECT nullif(count(*), 0) - 1 FROM entry "
            "WHERE entry.session = event.session AND entry.seq < event.seq) WHERE seq = :seq",
            [{"seq": seq} for seq in events],
        )
