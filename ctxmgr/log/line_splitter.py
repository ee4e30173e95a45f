"""Split a byte stream of any size into lines with bounded memory."""

from __future__ import annotations

from ctxmgr.log.codec import MAX_LINE

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than to read a few lines
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_CHUNK = 1 << 18


def read_lines(stream: IO[bytes], limit: int = MAX_LINE) -> Iterator[tuple[int, int, bytes | None, int]]:
    """Yield (number, offset, bytes without line end, length) of each line; bytes are None when over ``limit``.

    Never holds more than ``limit`` bytes, however long a line is. A run of NULs that makes a line too long is yielded
    on its own, so that the record behind it is not lost with it.
    """
    number, offset = 1, 0
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
        yield number, offset, raw.rstrip(b"\r\n") if raw is not None else None, length
        offset += length
        number += 1
        head = stream.readline(limit + 1)


def _past_nuls(stream: IO[bytes], head: bytes, limit: int) -> tuple[int, bytes]:
    """Return the length of the NUL run that starts with ``head``, and the rest of the line up to ``limit``."""
    rest = head.lstrip(b"\0")
    length = len(head) - len(rest)
    while not rest:
        chunk = stream.readline(min(_CHUNK, limit))
        if not chunk:
            return length, b""
        rest = chunk.lstrip(b"\0")
        length += len(chunk) - len(rest)
    if not rest.endswith(b"\n"):
        rest += stream.readline(limit + 1 - len(rest))
    return length, rest
