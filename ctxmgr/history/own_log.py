"""Import a log of format 1 into a store, line by line or in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from ctxmgr.log.reader import Line, read
from ctxmgr.store import AppendResult, Store
from ctxmgr.store.write.bulk import BulkWriter, RowBatch, import_facts
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import KINDS

_MIN_BLOCK_BYTES = 1 << 21
"""Size in bytes from which a log is imported in blocks. For a smaller log, loading the block code costs more than it saves."""

_LINES_PER_REPORT = 1_000
_BLOCKS = 10
"""Blocks in one transaction."""

_COUNTED_EVENTS = {"user_message": "user_messages", "message": "messages", "thought": "thoughts", "usage": "responses"}

Heard = Callable[[int], None]
"""Called with the number of bytes done of one session's files."""


class OwnCount:
    """The counts of one log of format 1.

    Attributes:
        count: the counts.
    """

    def __init__(self, path: Path) -> None:
        self.count = FileCount(path, version="1", bytes=path.stat().st_size)
        self._pending: set[str] = set()  # ids of the entries without a result

    @property
    def is_long(self) -> bool:
        """Whether the log is long enough to be imported in blocks."""
        return self.count.bytes >= _MIN_BLOCK_BYTES

    def add(self, session: str, kind: str, name: str, status: str | None, entry: str) -> None:
        """Count one record; see `ctxmgr.store.write.bulk.import_facts`."""
        count = self.count
        count.records += 1
        count.session = count.session or session
        if kind == "entry":
            count.tool_calls[name] += 1
            if status is None:
                self._pending.add(entry)
        elif kind == "result":
            self._pending.discard(entry)
        elif kind == "event":
            if (place := _COUNTED_EVENTS.get(name)) is not None:
                setattr(count, place, getattr(count, place) + 1)
        elif kind not in KINDS:
            count.unknown[kind] += 1
        if kind in ("entry", "result") and status not in (None, "ok"):
            count.failed += 1
        count.open = len(self._pending)

    def hear(self, offset: int, length: int, reason: str) -> None:
        """Count damage."""
        self.count.damaged.append((offset, length, reason))


def own_lines(own: OwnCount, heard: Heard | None, start: int = 0, last: str = "", stop: int | None = None) -> Iterator[Line]:
    """Yield the records of a log, or of a range of it, like `read`, with the file's checksums; the store computes its own."""
    for line in read(own.count.path, start, own.hear, last, stop):
        own.add(str(line.record.get("session")), *import_facts(line.record))
        if heard is not None and own.count.records % _LINES_PER_REPORT == 0:
            heard(line.offset)
        yield line


def take_blocks(
    store: Store,
    writer: BulkWriter,
    own: OwnCount,
    write_lines: Callable[[RowBatch], AppendResult],
    met: Callable[[str], None],
    heard: Heard | None,
) -> Iterator[tuple[AppendResult, tuple[int, str]]]:
    """Import the complete lines of a log in blocks. Yield (result, (offset, checksum)) after each transaction.

    Args:
        store: the store to write to.
        writer: the bulk writer of the store.
        own: the counts to update.
        write_lines: writes a block that must be read line by line, for example because of damage.
        met: called with each session.
        heard: called with the number of bytes done.
    """
    from ctxmgr.store.write.log_parser import read_blocks

    end, last = 0, ""
    blocks = read_blocks(str(own.count.path), 0, "", own.count.bytes, writer.masked)
    for first in blocks:
        report = AppendResult()
        with store.engine.transaction():
            for packed in chain((first,), islice(blocks, _BLOCKS - 1)):
                block = RowBatch.unpack(packed)
                end, last = block.end, block.after
                if block.parts is None or not writer.write(block):
                    # Write the earlier blocks first, because records keep the order of the log.
                    writer.flush()
                    report.plus(write_lines(block))
                else:
                    report.added += block.count
                    _count_block(own, block, met)
            writer.flush()
        yield report, (end, last)
        if heard is not None:
            heard(end)


def _count_block(own: OwnCount, block: RowBatch, met: Callable[[str], None]) -> None:
    sessions = list(block.parts or ())
    for session in sessions:
        met(session)
    for told in block.told:
        # The count keeps only the first session of a log, which is the first of its first block.
        own.add(sessions[0], *told)
    for damaged in block.damage:
        own.hear(*damaged)
