"""Open a Codex log, plain or compressed, and yield its JSON objects."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ctxmgr.importers.codex.known_types import ZSTD_MAGIC
from ctxmgr.importers.codex.values import mapping
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, Report, read_objects
from ctxmgr.paths import open_regular

if TYPE_CHECKING:
    from typing_extensions import Buffer

ZSTD_REMEDY = "compressed with zstd; install ctxmgr-cli[zstd] to read it"

MOST_TIMES, MOST_BYTES = 100, 1 << 30
"""A compressed log is read up to so many times its own size, and in any case up to so many bytes."""

SINGLE_OBJECT = re.compile(rb'\s*\{\s*"session"\s*:\s*\{')
"""How the rollouts of the TypeScript CLI (April and May 2025) begin: one object ``{session, items}``."""


class ZstdMissingError(Exception):
    """The optional module that reads compressed rollouts is not installed."""


def plain_name(path: Path) -> str:
    """Return the file's name as it was before Codex compressed it, so that both forms yield the same records."""
    return path.name.removesuffix(".zst")


def read_log(path: Path, report: Report) -> Iterator[Line]:
    """Yield the objects of a log in order; damage inside is told to ``report``.

    The items of a single-object rollout are numbered as lines from 2 on, line 1 being its header.

    Raises:
        OSError: when the file can't be read.
        ZstdMissingError: when it is compressed and the module ``zstandard`` is absent.
    """
    with _stream(path, report) as stream:
        if SINGLE_OBJECT.match(stream.peek(256)):
            yield from _single(stream, report)
        else:
            yield from read_objects(cast("IO[bytes]", stream), report)


@contextmanager
def _stream(path: Path, report: Report) -> Generator[io.BufferedReader]:
    with open(open_regular(path), "rb") as file:
        if not file.peek(4).startswith(ZSTD_MAGIC):
            yield file
            return
        try:
            import zstandard
        except ImportError:
            raise ZstdMissingError(ZSTD_REMEDY) from None
        size = path.stat().st_size
        # A frame of a few bytes may ask for a window of gigabytes.
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)
        bounded = _Bounded(cast("IO[bytes]", reader), max(MOST_BYTES, size * MOST_TIMES))
        try:
            expected = zstandard.get_frame_parameters(file.peek(32)).content_size
            yield io.BufferedReader(bounded, 1 << 18)
        except zstandard.ZstdError as error:
            report(0, size, f"damaged zstd data: {error}")
            return
        if bounded.is_cut:
            report(0, size, f"zstd data expands to more than {bounded.most:,} bytes; the rest was not read")
            return
        # The library is silent about data that ends too early; a cut inside a line is told by the line reader.
        known = expected not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR)
        if reader.tell() < (expected if known else 1):
            report(0, size, "zstd data ends too early")


class _Bounded(io.RawIOBase):
    """What a decompressor yields, up to a limit: a few kilobytes of zstd can hold terabytes of zeros."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        super().__init__()
        self._source, self._left, self.most = source, most, most
        self.is_cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        piece = self._source.read(min(len(view), self._left + 1))
        if len(piece) > self._left:
            self.is_cut = True
            piece = piece[: self._left]
        self._left -= len(piece)
        view[: len(piece)] = piece
        return len(piece)


def _single(stream: io.BufferedReader, report: Report) -> Iterator[Line]:
    raw = stream.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        report(0, len(raw), f"object is longer than the limit of {MAX_LINE:,} bytes")
        return
    try:
        whole: object = json.loads(raw)
    except (ValueError, RecursionError):
        report(0, len(raw), "torn or unreadable JSON")
        return
    content = mapping(whole)
    yield Line(1, 0, mapping(content.get("session")))
    items: object = content.get("items")
    if not isinstance(items, list):
        return
    for number, item in enumerate(cast("list[Any]", items), 2):
        if isinstance(item, dict):
            yield Line(number, 0, cast("dict[str, Any]", item))
        else:
            report(0, 0, f"item {number - 1} is not an object")
