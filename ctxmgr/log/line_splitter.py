"""Split a byte stream of any size into lines with bounded memory."""

from __future__ import annotations

import errno
import os

from ctxmgr.log.codec import MAX_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_CHUNK = 1 << 18  # bytes read at a time when skipping


def read_lines(stream: IO[bytes], limit: int = MAX_LINE) -> Iterator[tuple[int, int, bytes | None, int]]:
    """Yield (number, offset, bytes without line end, length) of each line; bytes are None for a line over ``limit``.

    Never keeps more than ``limit`` bytes, however long a line is. A run of NULs that makes a line too long is yielded
    separately, so that the record behind it is not lost. Holes of a sparse file, which can look like terabytes of NULs, are
    skipped without being read.
    """
    number, offset = 1, 0
    # One byte more for the line end, because a line of exactly ``limit`` bytes is accepted.
    head = stream.readline(limit + 1)
    while head:
        length = len(head)
        raw: bytes | None = head
        if length > limit and not head.endswith(b"\n"):
            if head.startswith(b"\0"):
                length, head = _past_nuls(stream, head, limit)
                yield number, offset, None, length
                offset += length
                continue
            raw = None
            while rest := stream.readline(_CHUNK):
                length += len(rest)
                if rest.endswith(b"\n"):
                    break
                # NULs may be the beginning of a hole, such as one of a terabyte, which ``truncate -s 1T`` creates at once.
                if not rest.strip(b"\0"):
                    length += past_hole(stream)
        yield number, offset, raw.rstrip(b"\r\n") if raw is not None else None, length
        offset += length
        number += 1
        head = stream.readline(limit + 1)


def _past_nuls(stream: IO[bytes], head: bytes, limit: int) -> tuple[int, bytes]:
    """Return the length of the NUL run that begins with ``head``, and the rest of the line up to ``limit``."""
    rest = head.lstrip(b"\0")
    length = len(head) - len(rest)
    while not rest:
        chunk = stream.readline(min(_CHUNK, limit))
        if not chunk:
            return length, b""
        rest = chunk.lstrip(b"\0")
        length += len(chunk) - len(rest)
        if not rest:
            length += past_hole(stream)
    # The chunk may have ended within the record behind the NULs.
    if not rest.endswith(b"\n"):
        rest += stream.readline(limit + 1 - len(rest))
    return length, rest


def past_hole(stream: IO[bytes]) -> int:
    """Move a stream from a hole in its file to the next data. Return the number of bytes skipped.

    Returns 0 if the stream is not a file, or the system does not support this.
    """
    if not hasattr(os, "SEEK_DATA"):  # Windows, and some file systems of macOS
        return 0
    try:
        descriptor, current = stream.fileno(), stream.tell()
        # The stream assumes that only itself moves the file position, so restore it below.
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
    except (OSError, ValueError):
        return 0
    try:
        next_data = os.lseek(descriptor, current, os.SEEK_DATA)
    except OSError as error:
        next_data = os.fstat(descriptor).st_size if error.errno == errno.ENXIO else current  # ENXIO: no data up to the end
    os.lseek(descriptor, position, os.SEEK_SET)
    if next_data <= current:
        return 0
    stream.seek(next_data)
    return next_data - current


def last_data_end(descriptor: int, start: int, end: int) -> int:
    """Return the offset at which the last data between two offsets of a file end, ``start`` if there are none.

    Returns ``end`` if the system does not support this. Keeps the file position.
    """
    if not hasattr(os, "SEEK_DATA"):
        return end
    position, last = os.lseek(descriptor, 0, os.SEEK_CUR), end
    try:
        # Bisection: from some offset on, there is only a hole up to the end.
        while start < last:
            middle = (start + last) // 2
            if _is_hole(descriptor, middle, end):
                last = middle
            else:
                start = middle + 1
    except OSError:
        last = end
    os.lseek(descriptor, position, os.SEEK_SET)
    return last


def _is_hole(descriptor: int, start: int, end: int) -> bool:
    try:
        return os.lseek(descriptor, start, os.SEEK_DATA) >= end
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO means that no data follow
            raise
        return True
