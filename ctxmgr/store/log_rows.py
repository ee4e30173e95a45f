"""The index rows of a log's lines, and how they are written."""

from __future__ import annotations

from itertools import islice

from ctxmgr.errors import InvalidInput
from ctxmgr.store.engine.log_bytes import DamagedRange
from ctxmgr.store.write import deferred_indexes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from ctxmgr.log.codec import Record
    from ctxmgr.log.reader import Line
    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.store.engine.log_bytes import LogBytes
    from ctxmgr.store.write.append import Refused

    Progress = Callable[[int, int], None]
    """Called with the number of bytes done and of all bytes while an index is built."""

    Written = tuple[int, str, bool]
    """The offset at which the written lines end, the checksum before it, and whether the log ends there."""

_BATCH = 1_000

_BLOCKS_FROM_BYTES = 1 << 21
"""Number of bytes from which a log is indexed in blocks. The modules for blocks load as slowly as 1,000 lines are indexed."""


_MAX_DEFERRED = 400_000
"""Largest number of records with deferred indexes. Building those sorts some 60 bytes a record in memory."""


class LogRows:
    """Writes to the index of a log. The caller holds a transaction."""

    def __init__(self, engine: Engine, log: LogBytes) -> None:
        self._engine = engine
        self._log = log
        self._damaged: list[DamagedRange] = []
        self._reading: tuple[tuple[int, str, object], Generator[Row]] | None = None

    def write(
        self, start: int, last_sum: str, size: int, progress: Progress | None, most: int | None
    ) -> tuple[int, str, bool, list[DamagedRange]]:
        """Index the lines of the log from an offset on.

        Args:
            start: the offset of the first line.
            last_sum: the checksum before it.
            size: the size of the log in bytes.
            progress: called after each batch.
            most: the number of batches or blocks to index; None for all.

        Returns:
            The offset at which the last record ends or the next line begins; the checksum before it; whether the log ends
            there; and the damaged ranges.
        """
        self._damaged = []
        end, finished = start, True
        if size - start >= _BLOCKS_FROM_BYTES or deferred_indexes.stage(self._engine) == deferred_indexes.BUILDING:
            end, last_sum, finished = self._write_blocks(start, last_sum, size, progress, most)
        if finished:
            end, last_sum, finished = self._write_lines(end, last_sum, size, progress, most)
        return end, last_sum, finished, self._damaged

    def _write_blocks(self, start: int, last_sum: str, size: int, progress: Progress | None, most: int | None) -> Written:
        """Index whole lines in blocks."""
        from ctxmgr.store.write.bulk import BulkWriter, RowBatch

        building = deferred_indexes.stage(self._engine) == deferred_indexes.BUILDING
        writer = BulkWriter(self._engine, deferring=building)
        end, number = start, 0
        for number, packed in enumerate(self._read_blocks(start, last_sum, size), 1):
            block = RowBatch.unpack(packed)
            if block.parts is not None and writer.write(block):
                self._damaged += [DamagedRange(*what) for what in block.damage]
            elif building:  # from here on known records must be found, which takes the indexes
                self.close()
                break
            else:
                writer.flush()
                # The slow path, line by line, handles repeated records and records that must be written alone.
                self._write_lines(block.start, block.before, size, None, None, block.end)
            end, last_sum = block.end, block.after
            if progress is not None:
                progress(end, size)
            if building and writer.number >= _MAX_DEFERRED:
                break
            if number == most:
                # Both writers count the rows of sessions, so each must store its counts before the other goes on.
                writer.flush()
                return end, last_sum, False
        writer.flush()
        if building:
            deferred_indexes.end(self._engine)
        return end, last_sum, not building

    def _read_blocks(self, start: int, last_sum: str, size: int) -> Iterator[Row]:
        """Yield blocks from an offset on. Continue the former reading if it stopped there."""
        from ctxmgr.store.write.log_parser import read_blocks

        place = (start, last_sum, self._log.identity)
        if self._reading is None or self._reading[0] != place:
            self.close()
            self._reading = place, read_blocks(self._log.path, start, last_sum, size - start)
        blocks = self._reading[1]
        for packed in blocks:
            # A call for a few blocks stops early. The next call continues with the process that reads ahead, if the log is
            # still the same file and no other process indexed it meanwhile.
            self._reading = (packed[1], packed[3], self._log.identity), blocks
            yield packed
        self.close()

    def close(self) -> None:
        """Stop reading ahead."""
        if self._reading is not None:
            self._reading[1].close()
            self._reading = None

    def _write_lines(
        self, start: int, last_sum: str, size: int, progress: Progress | None, most: int | None, stop: int | None = None
    ) -> Written:
        """Index lines one by one, up to the offset ``stop`` or the end."""
        from ctxmgr.log.reader import read

        def hear(offset: int, length: int, reason: str) -> None:
            self._damaged.append(DamagedRange(offset, length, reason))

        lines = read(self._log.path, start, hear, last_sum, stop)
        end, batches = start, 0
        while batch := list(islice(lines, _BATCH)):
            self._write_batch(batch)
            end = batch[-1].offset + batch[-1].length
            last_sum = next((line.total for line in reversed(batch) if line.total), last_sum)
            if progress is not None:
                progress(end, size)
            batches += 1
            # If there is no next line, the log ends here, or the line is still being written.
            if most is not None and batches >= most and (begin := self._log.next_line(end)) is not None:
                return begin, last_sum, False
        return end, last_sum, True

    def _write_batch(self, batch: list[Line]) -> None:
        """Index records. A record that does not follow the format, or can't be encoded again, counts as damage."""
        from ctxmgr.store.write.append import Appender

        # Keyed by the identity of the record, because a refused record comes back as the same object.
        places = {id(line.record): line for line in batch}

        def refuse(record: Record, error: InvalidInput) -> None:
            line = places[id(record)]
            self._damaged.append(DamagedRange(line.offset, line.length, error.message))

        # The log's bytes are indexed as they are, with their own checksums. Their writer masked them.
        Appender(self._engine, masked=False, sums=False).index_lines(_check(batch, refuse), refuse)


def _check(batch: Iterable[Line], refuse: Refused) -> Iterator[Line]:
    from ctxmgr.types.record import check

    for line in batch:
        try:
            check(line.record)
        except InvalidInput as error:
            refuse(line.record, error)
        else:
            yield line
