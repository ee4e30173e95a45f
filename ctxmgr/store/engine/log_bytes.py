"""Read the bytes of a log through one descriptor; describe its damaged ranges."""

from __future__ import annotations

import os

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import StorageFailed
from ctxmgr.log import codec
from ctxmgr.log.anchor import first_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.log.anchor import Anchor
    from ctxmgr.store.engine.interface import Engine


_HEAD = 4096
_CHUNK = 1 << 16
_MOST_KEPT, _LONGEST_KEPT = 4_096, 2_048
"""Number of lines whose bodies are kept, as several searches read the same ones, and the longest of them in bytes."""


class LogBytes:
    """One log, open for reading. `follow` opens it again if another file has taken its path.

    Attributes:
        identity: device and inode of the open file; None if no file is open.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self.identity: tuple[int, int] | None = None
        self._bodies: dict[bytes, str] = {}

    def follow(self) -> int:
        """Open the file that is at the path now, if it is not open yet, and return its size.

        Raises:
            StorageFailed: the file can't be read.
        """
        try:
            # After a log rotation there is another file at the path, while the descriptor still reads the old one.
            status = os.stat(self.path)
            if self.identity != (status.st_dev, status.st_ino):
                self.close()
                self._descriptor = open_regular(self.path)
                status = os.fstat(self._descriptor)
                self.identity = (status.st_dev, status.st_ino)
            return status.st_size
        except OSError as error:
            raise StorageFailed(f"can't read {self.path}: {error.strerror}", "check the path and its permissions") from None

    def read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes from an offset, or fewer if the file ends before.

        Raises:
            StorageFailed: the file can't be read.
        """
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise StorageFailed(f"can't read {self.path}: {error.strerror}", "check the disk") from None

    def head(self) -> str:
        """Return the first 4 KiB of the file in hex digits."""
        return self.read(0, _HEAD).hex()

    def digest_before(self, end: int) -> str:
        """Return a digest of the 4 KiB before an offset. It reveals a log that was rewritten behind its first lines."""
        start = max(0, end - _HEAD)
        # The head would not reveal that, because a rewritten log often begins with the same session.
        return codec.digest(self.read(start, end - start))

    def first_session(self) -> str:
        """Return the session id of the first record, "" if it can't be read."""
        return first_session(self.read(0, _HEAD))

    def matches_anchor(self, found: Anchor) -> bool:
        """Whether the log still matches its anchor, up to the anchor's offset."""
        from ctxmgr.log.journal import matches_anchor

        try:
            return matches_anchor(self._descriptor, found)
        except OSError:
            return False

    def next_line(self, end: int) -> int | None:
        """Return the offset of the line after a record that ends at ``end``, or None if the record's line goes on."""
        return end + 1 if self.read(end, 1) == b"\n" else None

    def complete_end(self, start: int, size: int) -> int:
        """Return the offset after the last line end between ``start`` and ``size``."""
        # Search backwards, because the last line end is usually near the end.
        end = size
        while end > start:
            begin = max(start, end - _CHUNK)
            at = self.read(begin, end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
        return start

    def body(self, offset: int, length: int) -> str:
        """Return the record of a line in the form of a store: ASCII JSON without the checksum.

        Raises:
            StorageFailed: there is no longer a record at this offset.
        """
        raw = self.read(offset, length)
        body, total = codec.unseal(raw)
        # A line in the journal's own form needs no decoding and encoding.
        if total is not None and body.isascii() and len(raw) == length and raw[:1] == b"{":
            return body.decode("ascii")
        if (known := self._bodies.get(raw)) is not None:
            return known
        try:
            record = codec.decode(raw)
            record.pop("sum", None)
            found = codec.encode(record).decode("ascii")
        except ValueError:
            raise StorageFailed(f"{self.path} was changed while it was read", "run the command again") from None
        if length <= _LONGEST_KEPT and len(self._bodies) < _MOST_KEPT:
            self._bodies[raw] = found
        return found

    def total(self, offset: int, length: int) -> str | None:
        """Return the checksum in a line, or None."""
        return codec.unseal(self.read(offset, length))[1]

    def serve(self, engine: Engine) -> None:
        """Register the functions with which statements read bodies and checksums of lines."""
        engine.function("log_body", 2, self.body)
        engine.function("log_sum", 2, self.total)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self.identity = -1, None

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()


class DamagedRange:
    """Bytes of a log that hold no readable record or break its chain of checksums: offset, length and reason.

    Attributes:
        kind: ``unreadable``, ``altered``, ``inserted``, ``unsummed`` or ``cut``; see `ctxmgr.store.verification`.
    """

    __slots__ = ("kind", "length", "offset", "reason")

    def __init__(self, offset: int, length: int, reason: str, kind: str = "unreadable") -> None:
        self.offset = offset
        self.length = length
        self.reason = reason
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DamagedRange) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return "DamagedRange({}, {}, {!r})".format(*self._values())

    def _values(self) -> tuple[int, int, str]:
        return self.offset, self.length, self.reason
