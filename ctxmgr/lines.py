"""Read a foreign JSON-lines file of any size and in any state of repair, with bounded memory.

Splits on the byte 0x0A alone. Survives a torn last line, NUL runs, invalid UTF-8, several objects on one line and lines
too long to hold; every byte range that holds no object is reported (reference: the damage shapes of real agents).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

from ctxmgr.wire import MAX_LINE

_CHUNK = 1 << 18
_decoder = json.JSONDecoder()

Report = Callable[[int, int, str], None]
"""Called with offset, length and reason for each damaged byte range."""


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON object of a file.

    Attributes:
        number: 1-based number of the line it stands on.
        offset: of the line's first byte.
        value: the object.
    """

    number: int
    offset: int
    value: dict[str, Any]


def read_objects(stream: IO[bytes], report: Report, limit: int = MAX_LINE) -> Iterator[Line]:
    """Yield every JSON object of the stream in order; ``report`` hears of every range that holds none."""
    for number, offset, raw, length in read_lines(stream, limit):
        if raw is None:
            report(offset, length, f"line of {length:,} bytes is longer than the limit of {limit:,}")
            continue
        yield from _objects(number, offset, raw, report)


def read_lines(stream: IO[bytes], limit: int = MAX_LINE) -> Iterator[tuple[int, int, bytes | None, int]]:
    """Yield (number, offset, bytes without line end, length) of each line; bytes are None when over ``limit``.

    Never holds more than ``limit`` bytes, however long a line is.
    """
    number = offset = 0
    while head := stream.readline(limit + 1):
        number += 1
        length = len(head)
        raw: bytes | None = head
        if not head.endswith(b"\n") and length > limit:
            raw = None
            while rest := stream.readline(_CHUNK):
                length += len(rest)
                if rest.endswith(b"\n"):
                    break
        yield number, offset, raw.rstrip(b"\r\n") if raw is not None else None, length
        offset += length


def _objects(number: int, offset: int, raw: bytes, report: Report) -> Iterator[Line]:
    cleaned = raw.replace(b"\0", b"")
    if len(cleaned) != len(raw):
        report(offset, len(raw), f"{len(raw) - len(cleaned):,} NUL bytes")
    if not cleaned.strip():
        return
    try:
        text = cleaned.decode("utf-8")
    except UnicodeDecodeError as error:
        report(offset + error.start, 1, "invalid UTF-8")
        text = cleaned.decode("utf-8", "replace")
    at, end = 0, len(text)
    while at < end:
        start = text.find("{", at)
        if start < 0:
            report(offset, len(raw), "not a JSON object")
            return
        try:
            value, stop = cast("tuple[object, int]", _decoder.raw_decode(text, start))
        except (ValueError, RecursionError):
            resume = text.find('{"', start + 1) if start == at else -1
            report(offset, len(raw), "torn or unreadable JSON")
            if resume < 0 or not _resumes(text, resume):
                return
            at = resume
            continue
        if text[at:start].strip():
            report(offset, len(raw), "text before a JSON object")
        if isinstance(value, dict):
            yield Line(number, offset, cast("dict[str, Any]", value))
        at = stop
        while at < end and text[at].isspace():
            at += 1


def _resumes(text: str, at: int) -> bool:
    """Whether one whole object runs from ``at`` to the end: a complete record glued on to a torn one."""
    try:
        _, stop = cast("tuple[object, int]", _decoder.raw_decode(text, at))
    except (ValueError, RecursionError):
        return False
    return not text[stop:].strip()
