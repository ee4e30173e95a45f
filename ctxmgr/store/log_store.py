"""A JSONL log read in place: the file is the source of truth, and a disposable index answers queries.

The index lies beside the log or in the user's cache folder. It is built at first use, grows with the log, and can be deleted
at any time.
"""

from __future__ import annotations

import os

from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.log.anchor import Anchor, encode_anchor, parse_anchor
from ctxmgr.store.base import Store
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.dialect import KEEP_STATE
from ctxmgr.store.engine.disposable_files import BORN, bring_up_to_date, discard_if_damaged, open_index_database
from ctxmgr.store.engine.log_bytes import LogBytes
from ctxmgr.store.engine.sqlite import MEMORY
from ctxmgr.store.text_normalisation import storable
from ctxmgr.store.write import deferred_indexes

TYPE_CHECKING = False  # like `typing.TYPE_CHECKING`; modules that index a log are imported only if there is something to index
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line
    from ctxmgr.store.engine.interface import OnConflict
    from ctxmgr.store.engine.log_bytes import DamagedRange
    from ctxmgr.store.log_rows import LogRows, Progress
    from ctxmgr.store.verification import VerificationResult
    from ctxmgr.store.write.append import AppendResult, EncodedRecord
    from ctxmgr.store.write.bulk import BulkWriter

_SLICE = 20
"""Batches in one transaction. An interruption loses only the batches of the last one."""

_DEFER_FROM_BYTES = 1 << 25
"""Number of bytes from which it pays to build an index with deferred secondary indexes, see `deferred_indexes`."""

_SOME, _MANY = 4_096, 32_768
"""If between so many records are not indexed for search yet, opening the log indexes them. That takes about a second."""

_ANCHOR = "anchor"


class LogStore(Store):
    """A store over one ``.jsonl`` file."""

    def __init__(
        self,
        path: str,
        *,
        readonly: bool = False,
        masked: bool = True,
        durable: bool = False,
        progress: Progress | None = None,
    ) -> None:
        require_regular_file(path)
        self.path = path
        self._index = engine = open_index_database(path)
        super().__init__(engine, path, readonly=readonly, masked=masked)
        self._bytes = LogBytes(path)
        self._serve()
        self._durable = durable
        self._kept = engine.path != MEMORY
        self._tail: list[DamagedRange] = []
        self._seen: Anchor | None = None
        self._looked_back = False
        self._rows: LogRows | None = None
        try:
            self.catch_up(progress)
        except StorageFailed:
            if not self._kept:
                raise
            self._move_to_memory(progress)

    def _serve(self) -> None:
        self._bytes.serve(self._index)
        self._index.execute(schema.LINES_AS_RECORDS)

    def _move_to_memory(self, progress: Progress | None = None) -> None:
        """Index the log in memory for the rest of the process, because the disk (perhaps full) refuses the index."""
        self._index.move_to_memory()
        self._kept, self._rows = False, None
        bring_up_to_date(self._index)
        self._serve()
        self.catch_up(progress)

    def append(self, records: Iterable[Record], *, on_conflict: OnConflict = "raise", doubles: bool = False) -> AppendResult:
        """Append the new records to the log, then to the index."""
        from ctxmgr.store.write.append import AppendResult

        self._require_writable()
        report = AppendResult()
        written = False
        try:
            with self.engine.transaction():
                self._catch_up_whole()
                # Must follow the catch-up, so that records appended by others meanwhile count as known.
                fresh = self._new_records(records, on_conflict, report, doubles=doubles)
                report.added = len(fresh)
                if fresh:  # the log is written first, and the index follows it
                    self._write([item.record for item in fresh])
                written = True
                self._catch_up_whole()
        except StorageFailed:
            if not written:
                raise
            # The log was written, so the append has succeeded. The index on the disk catches up at the next opening.
            self._move_to_memory()
        return report

    def append_lines(self, lines: Iterable[Line], *, on_conflict: OnConflict = "raise") -> AppendResult:
        """Append the records of another log. Otherwise like `append`."""
        return self.append((line.record for line in lines), on_conflict=on_conflict)

    def bulk(self) -> BulkWriter | None:
        """Return None, because appended records go into the log."""
        return None

    def _new_records(
        self, records: Iterable[Record], on_conflict: OnConflict, report: AppendResult, *, doubles: bool
    ) -> list[EncodedRecord]:
        from ctxmgr.store.write.append import DuplicateTracker, KnownRecords, prepare
        from ctxmgr.types.record import check

        items = [prepare(check(record), masked=self._masked) for record in records]
        if doubles:
            items = DuplicateTracker(self.engine, report).drop_duplicates(items)
        keys: dict[str, int] = {}
        for item in items:
            session = str(item.record["session"])
            if session not in keys:
                rows = self.engine.query("SELECT key FROM session WHERE id = :id", {"id": storable(session)})
                keys[session] = int(rows[0][0]) if rows else -len(keys) - 1  # a key that no session has
            item.key = keys[session]
        return KnownRecords(self.engine, on_conflict, report).new(items)

    def append_encoded(self, record: Record, body: bytes) -> AppendResult:
        """Append a record. The log encodes it itself and ignores ``body``."""
        return self.append((record,))

    def _write(self, records: list[Record]) -> None:
        from ctxmgr.log.journal import Journal

        journal = Journal(self.path, durability="os" if self._durable else "process", mask=self._masked)
        try:
            journal.append(records)
        finally:
            journal.close()

    def damage(self) -> list[DamagedRange]:
        """Return the damaged ranges of the log, in order."""
        rows = self.engine.query("SELECT offset, length, reason FROM damage ORDER BY offset")
        if not rows:
            return [*self._tail]
        from ctxmgr.store.engine.log_bytes import DamagedRange

        return [*(DamagedRange(int(row[0]), int(row[1]), str(row[2])) for row in rows), *self._tail]

    def examine(self) -> VerificationResult:
        """Read the whole log again; verify every checksum, and the log against the anchors outside of it.

        This also checks the index. A damaged index is removed, and rebuilt by the next command.
        """
        from ctxmgr.store.verification import examine_log

        if self._kept:
            discard_if_damaged(self._index)
        return examine_log(self.path, self._seen)

    def accept(self) -> None:
        """Accept the log as it is now: replace the earlier anchor by a new one."""
        from ctxmgr.store.verification import accept_log

        head = accept_log(self.path)
        self.engine.execute(KEEP_STATE, {"name": _ANCHOR, "value": "" if head is None else encode_anchor(head).decode("ascii")})
        self._seen = head

    def _anchor(self, found: Anchor | None, end: int, last_sum: str) -> None:
        """Store an anchor of the log in the index, unless the log contradicts the former anchor."""
        if not last_sum or (found is not None and found.length == end and found.total == last_sum):
            return
        if found is not None and found.length and not self._bytes.matches_anchor(found):
            return
        from ctxmgr.log.ids import now

        head = Anchor(end, last_sum, self._bytes.first_session(), (self._bytes.identity or (0, 0))[1])
        head.time = now()
        self.engine.execute(KEEP_STATE, {"name": _ANCHOR, "value": encode_anchor(head).decode("ascii")})

    def catch_up(self, progress: Progress | None = None) -> None:
        """Index the records appended to the log since the last time. Rebuild the index if the log is another file now.

        If there is a search index (`Store.index`), extend it as the log grows, unless that would keep the caller waiting.
        """
        if self._is_current():  # without taking a lock
            self._tail = []
            return
        done = False
        try:
            while not done:
                with self.engine.transaction():
                    # One transaction for each slice, so an interruption keeps the slices before.
                    done = self._catch_up_locked(progress, _SLICE)
        finally:
            if self._rows is not None:
                self._rows.close()
        if not self._kept:
            return
        from ctxmgr.store.search.index import Builder, mark

        if mark(self.engine) and _SOME <= self.count_unindexed() <= _MANY:
            Builder(self.engine).advance()

    def _look_back(self, state: dict[str, str]) -> Anchor | None:
        """Return the anchor in the index. At the first call, keep it as the anchor that earlier readers left."""
        found = parse_anchor(state[_ANCHOR].encode()) if _ANCHOR in state else None
        if not self._looked_back:
            self._looked_back, self._seen = True, found
        return found

    def _is_current(self) -> bool:
        state = dict(self.engine.query("SELECT name, value FROM state"))
        self._look_back(state)
        if (
            "offset" not in state
            or BORN not in state
            or state.get(deferred_indexes.STAGE) in (deferred_indexes.BUILDING, deferred_indexes.DUE)
        ):
            return False
        try:
            end = int(state["offset"])
            # A log shorter than the compared head gets a longer head as it grows, so compare the beginning only.
            if self._bytes.follow() != end or not self._bytes.head().startswith(state["head"]):
                return False
            return self._bytes.digest_before(end) == state["before"]
        except (StorageFailed, ValueError, KeyError):  # the catch-up reports it, or rebuilds an altered index
            return False

    def _catch_up_whole(self) -> None:
        while not self._catch_up_locked(None):
            pass

    def _catch_up_locked(self, progress: Progress | None, most: int | None = None) -> bool:
        """Index the log, or at most ``most`` batches of it. Return whether all of it is indexed."""
        size = self._bytes.follow()
        head = self._bytes.head()
        state = dict(self.engine.query("SELECT name, value FROM state"))
        anchored = self._look_back(state)
        try:
            done = int(state.get("offset", "0"))
            same = "offset" not in state or (
                head.startswith(state["head"]) and state["before"] == self._bytes.digest_before(done)
            )
        except (ValueError, KeyError):  # an altered index
            done, same = 0, False
        if not same or size < done:
            # There is another log at the path, or this one was truncated, so nothing in the index is valid.
            self._clear()
            done, state = 0, {}
        if BORN not in state:
            self._begin(deferrable=size >= _DEFER_FROM_BYTES)
        elif state.get(deferred_indexes.STAGE) == deferred_indexes.DUE:
            if not deferred_indexes.complete(self.engine):
                # A record is repeated. Build the index again in the usual way, where the first one counts.
                self._clear()
                self._begin(deferrable=False)
                deferred_indexes.refuse(self.engine)
            return False
        if size == done:
            self._tail = []
            if deferred_indexes.stage(self.engine) != deferred_indexes.BUILDING:
                self._anchor(anchored, done, state.get("sum", ""))
                return True
            deferred_indexes.end(self.engine)
            return False
        end, last_sum, finished = self._index_from(done, state.get("sum", ""), size, progress, most)
        before = self._bytes.digest_before(end)
        # In the same transaction as the rows, so the offset in the index is always right.
        for name, value in (("offset", str(end)), ("head", head), ("before", before), ("sum", last_sum)):
            self.engine.execute(KEEP_STATE, {"name": name, "value": value})
        if finished:
            self._anchor(anchored, end, last_sum)
        return finished

    def _begin(self, *, deferrable: bool) -> None:
        from ctxmgr.log.ids import new_id

        schema.make_lines(self.engine.execute)
        self.engine.execute(KEEP_STATE, {"name": BORN, "value": new_id()})
        if deferrable:
            deferred_indexes.begin(self.engine)

    def _index_from(
        self, start: int, last_sum: str, size: int, progress: Progress | None, most: int | None
    ) -> tuple[int, str, bool]:
        from ctxmgr.store.log_rows import LogRows

        if self._rows is None:
            self._rows = LogRows(self.engine, self._bytes)
        end, last_sum, finished, damaged = self._rows.write(start, last_sum, size, progress, most)
        # A last line without a line end may still be written, so it is read again next time.
        if finished:
            end = max(end, self._bytes.complete_end(start, size))
        self._tail = [item for item in damaged if item.offset >= end]
        self.engine.many(
            "INSERT OR REPLACE INTO damage (offset, length, reason) VALUES (:offset, :length, :reason)",
            [{"offset": item.offset, "length": item.length, "reason": item.reason} for item in damaged if item.offset < end],
        )
        return end, last_sum, finished

    def _clear(self) -> None:
        from ctxmgr.store.search.index import drop

        for table in schema.DERIVED:
            if table == "state":  # keep the anchor, which reveals that records are gone
                self.engine.execute("DELETE FROM state WHERE name <> :name", {"name": _ANCHOR})
            elif table != "record":  # here a view of the log
                self.engine.execute(f"DELETE FROM {table}")
        self.engine.execute("DROP TABLE IF EXISTS main.line")
        deferred_indexes.forget(self.engine)
        drop(self.engine)

    def close(self) -> None:
        """Close the index and the log."""
        super().close()
        self._bytes.close()


def require_regular_file(path: str) -> None:
    """Check that a path is a regular file, which can be a log.

    Raises:
        NotFound: the path does not exist.
        InvalidInput: the path is a folder, a pipe or a device.
    """
    if not os.path.exists(path):
        raise NotFound(f"no log at {path}", "check the path given by --store or CTXMGR_STORE")
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder, not a log", "name a .jsonl file")
    if not os.path.isfile(path):
        raise InvalidInput(f"{path} is not a regular file", "a log is read more than once: copy it into a file first")
