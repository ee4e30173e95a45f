"""Read the files that agents write: JSON lines and JSON documents, plain or compressed, complete or damaged."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ctxmgr.base.paths import open_regular
from ctxmgr.importers.values import decoder, mapping
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, Report, read_objects

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEAD_SIZE = 64 * 1024
"""Number of bytes by which a file's format is recognised. The first line of Codex may have 22 KB of instructions."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\0"
PACKED = re.compile(rb"\x28\xb5\x2f\xfd|\x1f\x8b|\xfd7zXZ\0|BZh[1-9]1AY&SY")
"""First bytes of a file that `open_log` can decompress."""

PACKED_SUFFIXES = (".gz", ".zst", ".xz", ".bz2")
ZSTD_REMEDY = "compressed with zstd; install ctxmgr-cli[zstd] to read it"

MAX_RATIO, MAX_BYTES = 100, 1 << 30
"""A compressed log is read up to this multiple of its size, or up to this number of bytes if that is more."""

MAX_DOCUMENT = 256 * 1024 * 1024
"""Maximum size in bytes of a JSON document, which is held in memory. JSON lines have no such limit."""

ELEMENTS = ""
"""Name for the elements of a document that is a list."""

_MAX_SMALL_FILE = 1 << 24
_SNIFFED_LINES = 50
_MIN_PIECE = 1 << 9
_PIECE_GROWTH = 16
_MAX_ESCAPE = 16
"""Characters at the end of a piece in which an escape, a number or a name may be cut, with some to spare."""
_MAX_TRIES = 10_000
"""Maximum number of places after a tear to try as the beginning of an element."""
_MAX_SCANNED = 1 << 26
"""Maximum number of characters to read in these tries, because a hostile document could cost its length per try."""
# Before an object, or before the end of a list that ends the document or is followed by another field.
_OPENER = re.compile(r"[,\[\s](?=\{)|(?=\]\s*(?:,\s*\"|\}|\Z))")
_SPACE = re.compile(r"[ \t\r\n]*")


def plain_name(path: Path) -> str:
    """Return the file name without the suffix of compression, so that both forms yield the same records."""
    name = path.name
    return next((name.removesuffix(suffix) for suffix in PACKED_SUFFIXES if name.endswith(suffix)), name)


def open_plain(path: Path) -> IO[bytes]:
    """Open a file without decompression.

    Raises:
        OSError: the file can't be read, or is not a regular file: a pipe or a device would block or never end.
    """
    return open(open_regular(path), "rb")


def small_object(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file, e.g. one beside a log, or an empty object if it can't be read."""
    try:
        with open_plain(path) as stream:
            return mapping(json.loads(stream.read(_MAX_SMALL_FILE)))
    except (OSError, ValueError, RecursionError):
        return {}


@contextmanager
def open_log(path: Path, report: Report) -> Generator[io.BufferedReader]:
    """Open a log and decompress gzip, xz, bzip2 and zstd. Damaged compression is passed to ``report``.

    Without the module ``zstandard``, a log that is compressed with zstd is read as empty.

    Raises:
        OSError: the file can't be read, or is not a regular file: a pipe or a device would block or never end.
    """
    with cast("io.BufferedReader", io.BufferedReader(io.FileIO(open_regular(path)), 1 << 20)) as file:
        magic = file.peek(16)
        if magic.startswith(ZSTD_MAGIC):
            yield from _zstd(file, path.stat().st_size, report)
        elif PACKED.match(magic):
            yield from _unpack(file, magic, path.stat().st_size, report)
        else:
            yield file


def _zstd(file: io.BufferedReader, size: int, report: Report) -> Generator[io.BufferedReader]:
    try:
        import zstandard
    except ImportError:
        report(0, size, ZSTD_REMEDY)
        # Read it as an empty log, because one unreadable file must not end the import of the others.
        yield io.BufferedReader(cast("io.RawIOBase", io.BytesIO()))
        return
    # A frame of a few bytes may request a window of gigabytes.
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)
    bounded = _BoundedStream(cast("IO[bytes]", reader), max(MAX_BYTES, size * MAX_RATIO))
    try:
        expected = zstandard.get_frame_parameters(file.peek(32)).content_size
    except zstandard.ZstdError as error:
        report(0, size, f"damaged zstd data: {error}")
        yield io.BufferedReader(cast("io.RawIOBase", io.BytesIO()))
        return
    try:
        yield io.BufferedReader(bounded, 1 << 18)
    except zstandard.ZstdError as error:
        report(0, size, f"damaged zstd data: {error}")
        return
    if bounded.is_cut:
        report(0, size, f"zstd data expands to more than {bounded.limit:,} bytes; the rest was not read")
        return
    # The library does not report data that ends too early. The line reader reports a cut inside a line.
    known = expected not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR)
    if reader.tell() < (expected if known else 1):
        report(0, size, "zstd data ends too early")


def _unpack(file: io.BufferedReader, magic: bytes, size: int, report: Report) -> Generator[io.BufferedReader]:
    import bz2
    import lzma

    packers = {GZIP_MAGIC: ("gzip", gzip.open), _XZ_MAGIC: ("xz", lzma.open), b"BZh": ("bzip2", bz2.open)}
    name, unpack = next(packer for start, packer in packers.items() if magic.startswith(start))
    source = unpack(file, "rb")
    reader = _UntilFault(cast("IO[bytes]", source), max(MAX_BYTES, size * MAX_RATIO))
    reader.faults = (*reader.faults, lzma.LZMAError)
    yield io.BufferedReader(reader, 1 << 18)
    if reader.fault:
        report(0, size, f"damaged {name} data: {reader.fault}")
    elif reader.is_cut:
        report(0, size, f"{name} data expands to more than {reader.limit:,} bytes; the rest was not read")


class _BoundedStream(io.RawIOBase):
    """The output of a decompressor up to a limit, because a few kilobytes can hold terabytes of zeros."""

    def __init__(self, source: IO[bytes], limit: int) -> None:
        super().__init__()
        self._source, self._left, self.limit = source, limit, limit
        self.is_cut = False

    def readable(self) -> bool:
        return True

    def _take(self, limit: int) -> bytes:
        return self._source.read(limit)

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer)
        piece = self._take(min(len(view), self._left + 1))  # one more byte shows that there is more
        if len(piece) > self._left:
            self.is_cut = True
            piece = piece[: self._left]
        self._left -= len(piece)
        view[: len(piece)] = piece
        return len(piece)


class _UntilFault(_BoundedStream):
    """Yields the data before a fault. ``fault`` then says what was wrong."""

    fault = ""
    faults: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error)

    def _take(self, limit: int) -> bytes:
        return cast("gzip.GzipFile", self._source).read1(limit)  # a longer read would lose the data before the fault

    def readinto(self, buffer: Buffer, /) -> int:
        try:
            return 0 if self.fault else super().readinto(buffer)
        except self.faults as error:
            self.fault = str(error) or "it ends too early"
            return 0


def uncompressed_head(path: Path, head: bytes) -> bytes:
    """Return the first decompressed bytes of a compressed file; for any other file, ``head``.

    Raises:
        OSError: the file can't be read.
    """
    if not PACKED.match(head):
        return head
    with open_log(path, _ignore) as stream:
        return stream.read(HEAD_SIZE) or head


def is_compressed(path: Path) -> bool:
    """Whether `open_log` can decompress a file.

    Raises:
        OSError: the file can't be read.
    """
    with open_plain(path) as stream:
        return PACKED.match(stream.read(16)) is not None


def _ignore(offset: int, length: int, reason: str) -> None:
    """Ignore damage, because reading the whole file reports it."""


def read_values(path: Path, lists: Sequence[str], report: Report) -> Iterator[Line]:
    """Yield the objects of a log: each line of JSON lines, or the one document.

    A document that is a list becomes an object with the list under `ELEMENTS`. A damaged document keeps the complete elements
    of its ``lists``; other ranges are passed to ``report``.

    Raises:
        OSError: the file can't be read.
    """
    with open_log(path, report) as stream:
        head = stream.peek(HEAD_SIZE)
        # A head without a line end belongs to a document, or to JSON lines with a long first line. Only that line tells which.
        if _is_document(head) and not (b"\n" not in head and len(head) >= HEAD_SIZE and _has_long_first_line(path)):
            yield Line(1, _read_document(stream, lists, report))
        else:
            yield from read_objects(cast("IO[bytes]", stream), report, decode=decoder())


def _is_document(head: bytes) -> bool:
    """Whether these first bytes belong to a single JSON value instead of JSON lines.

    They do if they begin with a list, if they consist of one object, or if no object ends on the first line and no further line
    begins with one. A first line that is longer than ``head`` therefore counts as a document.
    """
    start = head.lstrip(b"\xef\xbb\xbf\0 \t\r\n")
    if start.startswith(b"["):
        return True
    if not start.startswith(b"{"):
        return False
    first, _, rest = start.partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        # A lone brace begins a document that spans several lines.
        return first.strip() == b"{" or not _has_lines(start)
    return not rest.strip()


def _has_long_first_line(path: Path) -> bool:
    """Whether an object ends on the first line of a file and more follows: one OTLP export may have megabytes."""
    with open_log(path, _ignore) as stream:
        first = stream.readline(MAX_LINE)
        try:
            return isinstance(decoder()(first), dict) and bool(stream.read(HEAD_SIZE).strip())
        except (ValueError, RecursionError):
            return False


def _has_lines(start: bytes) -> bool:
    """Whether the text after the first line looks like further objects, one per line."""
    lines = start.split(b"\n")[1:]
    return any(line.startswith(b'{"') for line in lines)


def _read_document(stream: io.BufferedReader, lists: Sequence[str], report: Report) -> dict[str, Any]:
    raw = stream.read(MAX_DOCUMENT + 1)
    if len(raw) > MAX_DOCUMENT:
        report(0, len(raw), f"document is longer than the limit of {MAX_DOCUMENT:,} bytes")
        return {}
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        value: object = decoder()(raw)
        return {ELEMENTS: value} if isinstance(value, list) else mapping(value)
    except (ValueError, RecursionError):
        pass
    try:
        # The fast decoder refuses NaN and lone surrogates, which Python writes. Only what `json` refuses too is damaged.
        text = raw.decode()
    except UnicodeDecodeError as error:
        report(error.start, error.end - error.start, "invalid UTF-8")
        text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return _salvage(text, lists, report)
    return {ELEMENTS: value} if isinstance(value, list) else mapping(value)


class _Salvage:
    """Reads the complete parts of a damaged document. It never makes up values from fragments."""

    def __init__(self, text: str, report: Report, shapes: set[frozenset[str]] | None = None) -> None:
        self.text, self._report = text, report
        # NaN and infinity become texts, as in `clean`. A raw line end inside a text is no reason to lose the element.
        self._decoder = json.JSONDecoder(parse_constant=str, strict=False)
        self.shapes = set[frozenset[str]]() if shapes is None else shapes
        self._scan_budget = _MAX_SCANNED
        self.reported_end = False
        self._measured = 0, 0

    def value(self, at: int) -> tuple[Any, int] | None:
        """Return (value, end) of the value at a place, or None."""
        found = self._decode(at)
        return found if isinstance(found, tuple) else None

    def _decode(self, at: int) -> tuple[Any, int] | int:
        """Return (value, end) of the value at a place, or the place of the fault."""
        # In growing pieces, because `json` reads everything before a fault to find its line, for every fault.
        size = _MIN_PIECE
        while True:
            piece = self.text[at : at + size]
            whole = at + size >= len(self.text)
            try:
                value, end = self._decoder.raw_decode(piece)
            except json.JSONDecodeError as error:
                if whole or (error.pos < len(piece) - _MAX_ESCAPE and not error.msg.startswith("Unterminated string")):
                    return at + error.pos
            except (ValueError, RecursionError):
                return at
            else:
                if whole or end < len(piece):
                    return value, at + end
            size *= _PIECE_GROWTH

    def past_space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def report_range(self, start: int, end: int) -> None:
        """Report a range given in characters."""
        self.reported_end = end >= len(self.text)
        # Continue counting from the last place, because there may be a tear at every other character.
        place, offset = self._measured if self._measured[0] <= start else (0, 0)
        offset += self._bytes(place, start)
        self._measured = start, offset
        self._report(offset, self._bytes(start, end), "torn or unreadable JSON")

    def _bytes(self, start: int, end: int) -> int:
        return len(self.text[start:end].encode("utf-8", "surrogatepass"))

    def report_end(self, end: int) -> None:
        """Report the text after a document, or a missing end unless the last part was reported as torn."""
        if end <= len(self.text) and (rest := self.past_space(end)) < len(self.text):
            self.report_range(rest, len(self.text))
        elif end > len(self.text) and not self.reported_end:
            self.report_range(len(self.text), len(self.text))

    def elements(self, at: int) -> tuple[list[Any], int]:
        """Return (complete elements, end) of the list whose content begins at a place."""
        found: list[Any] = []
        while (at := self.past_space(at)) < len(self.text) and self.text[at] != "]":
            read = self.value(at)
            if read is None:
                start, at = at, self._next_element(at + 1)
                self.report_range(start, at)
                continue
            found.append(read[0])
            # The field names of elements help to recognise elements after a tear.
            self.shapes.add(frozenset(mapping(read[0])))
            at = self.past_space(read[1])
            if self.text[at : at + 1] == ",":
                at += 1
        return found, at + 1

    def _next_element(self, at: int) -> int:
        """Return the place after a tear where the next element begins or the list ends, or the end of the text.

        An object inside the torn element does not count: it has fields that no element has, and the rest of the document does
        not follow it.
        """
        torn = self._tear(at - 1)
        for found in islice(_OPENER.finditer(self.text, at), _MAX_TRIES):
            start = found.end()
            if self.text.startswith("]", start):
                if start >= torn and self._is_end(start):
                    return start
                continue
            read = self.value(start)
            if read is None:
                continue
            if frozenset(mapping(read[0])) in self.shapes or (start >= torn and self._is_last_part(start)):
                return start
        return len(self.text)

    def _tear(self, at: int) -> int:
        """Return where the tear in the value at a place may be: in the last text before the fault, or after it."""
        fault = self._decode(at)
        return at if isinstance(fault, tuple) else max(at, self.text.rfind('"', at, max(at, self.text.rfind('"', at, fault))))

    def _is_last_part(self, start: int) -> bool:
        """Whether elements, the end of their list, and the rest of the document follow here."""
        at = start
        while self._scan_budget > 0 and (read := self.value(at)) is not None:
            self._scan_budget -= read[1] - at
            at = self.past_space(read[1])
            if not self.text.startswith(",", at):
                break
            at = self.past_space(at + 1)
        return self._is_end(at)

    def _is_end(self, at: int) -> bool:
        """Whether the list ends here and only the rest of the document follows."""
        if not self.text.startswith("]", at) or self._scan_budget <= 0:
            return False
        at = self.past_space(at + 1)
        while self.text.startswith(",", at) and (member := _member(self, self.past_space(at + 1), ())) is not None:
            self._scan_budget -= member[2] - at
            at = self.past_space(member[2])
        # A document that is an object also needs its closing brace. 0 stands for no end.
        if not self.text.startswith("[", self.past_space(0)):
            at = self.past_space(at + 1) if self.text.startswith("}", at) else 0
        return at == len(self.text)


def _salvage(text: str, lists: Sequence[str], report: Report) -> dict[str, Any]:
    """Return the readable parts of a damaged document.

    The first of two passes learns the field names of elements, also of those after a tear.
    """
    first = _Salvage(text, _ignore)
    _document(first, lists)
    return _document(_Salvage(text, report, first.shapes), lists)


def _document(reader: _Salvage, lists: Sequence[str]) -> dict[str, Any]:
    text = reader.text
    at = reader.past_space(0)
    if text.startswith("[", at):
        elements, end = reader.elements(at + 1)
        reader.report_end(end)
        return {ELEMENTS: elements}
    found: dict[str, Any] = {}
    wanted = re.compile(rf'"(?:{"|".join(map(re.escape, lists))})"\s*:\s*\[')
    at = reader.past_space(at + 1)
    while at < len(text) and text[at] != "}":
        member = _member(reader, at, lists)
        if member is None:
            # Continue at the next list of records, because the text before it may be part of the torn field.
            later = wanted.search(text, at + 1) if lists else None
            start, at = at, later.start() if later else len(text)
            reader.report_range(start, at)
            continue
        name, found[name], at = member
        at = reader.past_space(at)
        at = reader.past_space(at + 1) if text.startswith(",", at) else at
    reader.report_end(at + 1)
    return found


def _member(reader: _Salvage, at: int, lists: Sequence[str]) -> tuple[str, Any, int] | None:
    """Return (name, value, end) of the object's field at a place, or None."""
    name = reader.value(at)
    if name is None or not isinstance(name[0], str) or not reader.text.startswith(":", colon := reader.past_space(name[1])):
        return None
    at = reader.past_space(colon + 1)
    if name[0] in lists and reader.text.startswith("[", at):
        return name[0], *reader.elements(at + 1)
    value = reader.value(at)
    return None if value is None else (name[0], *value)


# The importers are asked one after another about the same head.
@lru_cache(maxsize=1)
def head_values(head: bytes, lists: tuple[str, ...] = ()) -> tuple[dict[str, Any], ...]:
    """Return the readable objects in the first bytes of a file, by which its format is recognised."""
    if _is_document(head):
        text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            return (_salvage(text, lists, _ignore),)
        return ({ELEMENTS: value} if isinstance(value, list) else mapping(value),)
    found: list[dict[str, Any]] = []
    for line in head.split(b"\n")[:_SNIFFED_LINES]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        found.append(mapping(value))
    return tuple(found)
