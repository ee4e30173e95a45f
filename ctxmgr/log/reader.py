"""Read a log of format 1, damaged or not: yield whole records, report damaged byte ranges, invent nothing.

A line that parses as a whole is a record. In any other line, the reader searches for records only where they can't be the
content of another one: after a torn record to which something was appended, or behind bytes that are not JSON (NUL runs).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import NotFound, StorageFailed
from ctxmgr.log.codec import MAX_LINE, Record, chain, decoder, unseal
from ctxmgr.log.line_splitter import last_data_end, read_lines

Following = Callable[[], bytes | None]
"""Function that returns the next line without its line end, None if there is none."""

Damage = Callable[[int, int, str], None]
"""Called with offset, length and reason for each damaged byte range."""

BROKEN_SUM = "sum does not match: changed, removed or inserted before this record"
FOREIGN = "not a record of log format 1"
TORN_TAIL = "torn last line, or one still being written"

_HEAD = '{"v":'
_SPACE = b" \t\r\n"
_BLANK = _SPACE + b"\0"
_PADDING = _BLANK.decode()
_GAP = re.compile(r"[ \t\r\n\0]*+")
_MAX_TRIES = 32
"""Number of possible record beginnings tried in one torn line. A hostile line may have any number."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_KEY = re.compile(r'"([A-Za-z]{1,20})":$')
# The members of a record that may hold an object, and so a value that looks like a record.
_ANY_VALUE = frozenset({"input", "output", "data", "meta", "error", "usage", "source", "links"})
_scan = cast("Callable[[str, int], tuple[object, int]]", cast("Any", decoder).scan_once)
# The end of a line whose member ``sum`` was renamed. Without this it would look like a record without a checksum.
_SUM_LIKE = re.compile(rb',"[^"\\]{3}":"[0-9a-f]{16}"\}$')


class Line(NamedTuple):
    """One record of a log.

    Attributes:
        offset: the offset of its first byte in the file.
        length: its length in bytes, without a line end.
        record: the record without its ``sum``.
        sum_ok: whether its checksum continues the chain; None if there is nothing to compare.
        total: its checksum, "" if it has none.
        body: the bytes that the checksum covers: the record's own bytes, without the ``sum`` if that is the last member.
    """

    offset: int
    length: int
    record: Record
    sum_ok: bool | None
    total: str
    body: bytes


class _FoundRecord(NamedTuple):
    at: int
    raw: bytes
    record: Record


def read(
    path: str | os.PathLike[str], start: int = 0, damage: Damage | None = None, last: str | None = "", stop: int | None = None
) -> Iterator[Line]:
    """Yield the records of the file from byte ``start`` on, in order. Report every damaged range to ``damage``.

    Keeps one line in memory at a time, and none longer than `ctxmgr.log.codec.MAX_LINE`. A record with a wrong checksum is
    both reported and yielded.

    Args:
        path: the path of the log.
        start: the offset of a line, to continue after an earlier reading.
        damage: called with each damaged range; by default damage is skipped silently.
        last: the checksum before ``start``; if None, the first checksum found is trusted.
        stop: the offset of a line at which reading ends; by default it reads all.

    Raises:
        NotFound: the file does not exist.
        StorageFailed: the file can't be read.
    """
    report = damage or _ignore
    try:
        with open(open_regular(path), "rb") as stream:
            stream.seek(start)
            for _, offset, raw, length in read_lines(stream, MAX_LINE):
                if stop is not None and start + offset >= stop:
                    return
                if raw is None:
                    report(start + offset, length, f"line of {length:,} bytes is longer than the limit of {MAX_LINE:,}")
                    continue
                behind = start + offset + length
                for line in read_records(
                    raw, start + offset, length, last, report, partial(read_line, stream.fileno(), behind)
                ):
                    last = line.total or last
                    yield line
    except FileNotFoundError:
        raise NotFound(f"log {os.fspath(path)!r} does not exist") from None
    except OSError as error:
        raise StorageFailed(f"log {os.fspath(path)!r} can't be read: {error.strerror}") from error


def read_records(
    raw: bytes, offset: int, length: int, last: str | None, report: Damage, following: Following
) -> Iterator[Line]:
    """Yield the records of one line of a file, see `read`.

    Args:
        raw: the line without its line end.
        offset: the offset of the line in the file.
        length: the length of the line with its line end.
        last: the checksum before the line; None if unknown.
        report: called with damaged ranges.
        following: returns the next line, for the rare case in which only that shows whether a record is genuine.
    """
    if last is not None and (ordinary := _ordinary(raw, offset, last)) is not None:
        yield ordinary
        return
    for found in _records(raw, offset, length, last, report, following):
        line = _verify(found, offset, last, report)
        last = line.total or last
        yield line


def _ignore(offset: int, length: int, reason: str) -> None:
    del offset, length, reason


def _ordinary(raw: bytes, offset: int, last: str) -> Line | None:
    """Return the record of a line as a journal writes it, whose checksum continues the chain. None does not mean damage.

    This is the fast path for nearly all lines. It verifies the checksum before parsing, which guarantees the form of the line.
    """
    body, total = unseal(raw)
    if total is None or chain(last, body) != total:
        return None
    try:
        text = raw.decode("ascii")
        value, stop = _scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    if stop != len(text) or type(value) is not dict or not _is_record(record := cast("Record", value)):
        return None
    record.pop("sum", None)
    return Line(offset, len(raw), record, True, total, body)


def _verify(found: _FoundRecord, offset: int, last: str | None, report: Damage) -> Line:
    raw, record = found.raw, found.record
    body, total = unseal(raw)
    ok: bool | None = None
    if total is not None:
        ok = None if last is None else chain(last, body) == total
        record.pop("sum", None)
    # A checksum at another position than a journal writes it, or a member that looks like one under another name.
    elif "sum" in record or (last and _SUM_LIKE.search(raw)):
        ok = False
        record.pop("sum", None)
    if ok is False:
        report(offset + found.at, len(raw), BROKEN_SUM)
    return Line(offset + found.at, len(raw), record, ok, total or "", body)


def _records(
    raw: bytes, offset: int, length: int, last: str | None, report: Damage, following: Following
) -> Iterator[_FoundRecord]:
    """Yield the records of one line of the file; ``length`` includes its line end."""
    content = raw.rstrip(_BLANK)
    if not content:
        if b"\0" in raw:
            report(offset, len(raw), "NUL bytes")
        return
    text = content.decode("utf-8", "surrogateescape")
    value, stop = _parse(text, 0)
    if value is not None and stop == len(text):
        if _is_record(value):
            yield _FoundRecord(0, content, value)
        else:
            report(offset, len(content), FOREIGN)
        if b"\0" in raw[len(content) :]:
            report(offset + len(content), len(raw) - len(content), "NUL bytes")
        return
    torn = TORN_TAIL if length == len(raw) else "torn or unreadable record"
    at = 0
    for found in _salvage(text, last, following):
        if raw[at : found.at].strip(_SPACE):
            report(offset + at, found.at - at, "torn or unreadable record")
        yield found
        at = found.at + len(found.raw)
    if raw[at:].strip(_SPACE):
        report(offset + at, len(raw) - at, torn)


def _salvage(text: str, last: str | None, following: Following) -> Iterator[_FoundRecord]:
    """Yield the records in a line that is not one record."""
    at = place = 0  # end of the part that was parsed, in characters and in bytes
    start = text.find(_HEAD)
    for _ in range(_MAX_TRIES):
        if start < 0:
            return
        run, to_line_end = _read_run(text, start)
        before = text[at:start]
        if run and before.strip(_PADDING) and not (to_line_end and _stands_alone(before, run, last, following)):
            run = []
        for begin, raw, record in run:
            place += _byte_size(text[at:begin])
            yield _FoundRecord(place, raw, record)
            place += len(raw)
            at = begin + len(raw.decode("utf-8"))
            last = unseal(raw)[1] or last
        start = text.find(_HEAD, max(at, start + 1))


def _read_run(text: str, start: int) -> tuple[list[tuple[int, bytes, Record]], bool]:
    """Return the consecutive whole records from ``start`` on, and whether they reach the end of the line."""
    run: list[tuple[int, bytes, Record]] = []
    while text.startswith(_HEAD, start):
        value, stop = _parse(text, start)
        if value is None or not _is_record(value):
            break
        run.append((start, text[start:stop].encode("utf-8"), value))
        gap = _GAP.match(text, stop)
        start = gap.end() if gap else stop
    return run, start == len(text)


def _stands_alone(before: str, run: list[tuple[int, bytes, Record]], last: str | None, following: Following) -> bool:
    """Whether records behind the torn text ``before`` were appended to it, and are not a value inside it.

    If they could be such a value, checksums decide: the first record continues the chain from before the torn text, or the
    next line continues the chain of the last record. A value inside a record does neither. There is no other evidence, since
    the torn record's own checksum is lost.
    """
    if not _may_be_nested(before):
        return True
    body, total = unseal(run[0][1])
    # At the start of a chain (no ``last``), a copy of a first record would have a correct checksum too.
    if total is not None and last and chain(last, body) == total:
        return True
    total = unseal(run[-1][1])[1]
    if total is None or (line := following()) is None:
        return False
    body, after = unseal(line)
    return after is not None and chain(total, body) == after


def _may_be_nested(before: str) -> bool:
    """Whether an object behind this text can be a value of the record that begins in the text.

    It can't be one inside a string (whose quotes are escaped), where JSON allows no value, or as the value of a member that
    is never an object.
    """
    bare = _STRING.sub("", before)
    if '"' in bare:
        return False
    mark = before.rstrip(_PADDING)[-1:]
    if mark not in (":", "[", ","):
        return False
    depth = bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")
    if depth != 1:
        return depth > 1
    if mark == ",":
        return False
    key = _KEY.search(before)
    return key is None or key[1] in _ANY_VALUE


def _is_record(value: Record) -> bool:
    version, kind, session = value.get("v"), value.get("kind"), value.get("session")
    if type(version) is not int or version != 1:
        # JSON's ``true`` equals 1 in Python.
        return False
    return isinstance(kind, str) and isinstance(session, str) and bool(kind) and bool(session)


def _parse(text: str, start: int) -> tuple[Record | None, int]:
    """Return the JSON object at ``start`` and its end, or (None, start)."""
    try:
        value, stop = cast("tuple[object, int]", decoder.raw_decode(text, start))
        if not text.isascii():
            text[start:stop].encode("utf-8")  # raises on bytes that were not UTF-8
    except (ValueError, RecursionError):
        return None, start
    return (cast("Record", value), stop) if isinstance(value, dict) else (None, start)


def _byte_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def tail(descriptor: int, size: int) -> tuple[bool, str]:
    """Return whether the file's last line lacks its end, and the last checksum that a reader of the whole file would find.

    This reads backwards to the last complete record with a checksum. Torn lines on the way are salvaged afterwards, in the
    order of the file, because their records depend on the checksum before them.
    """
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    pending: list[tuple[str, bytes | None]] = []
    anchor = ""
    behind: bytes | None = None
    for raw in _backwards(descriptor, size):
        after, behind = behind, raw
        if b'"sum"' not in raw:
            continue
        content = raw.rstrip(_BLANK)
        text = content.decode("utf-8", "surrogateescape")
        value, stop = _parse(text, 0)
        if value is not None and stop == len(text):
            total = unseal(content)[1]
            if total and _is_record(value):
                anchor = total
                break
            continue
        pending.append((text, after))
    for text, after in reversed(pending):
        for found in _salvage(text, anchor, partial(_same, after)):
            anchor = unseal(found.raw)[1] or anchor
    return torn, anchor


def _same(line: bytes | None) -> bytes | None:
    return line


def read_line(descriptor: int, offset: int) -> bytes | None:
    """Return the line at an offset of a file without its line end; None at the end of the file, or if it is too long."""
    pieces: list[bytes] = []
    size = 0
    # pread, because the position of the reader's own stream must not change.
    while size <= MAX_LINE and (piece := os.pread(descriptor, 1 << 14, offset + size)):
        end = piece.find(b"\n")
        if end >= 0:
            return b"".join([*pieces, piece[:end]]).rstrip(b"\r")
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces) if 0 < size <= MAX_LINE else None


def _backwards(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the file's lines from the last to the first, without line ends. Lines over the limit are left out."""
    stop, chunk = size, 1 << 13
    while stop > 0:
        begin, end, cut = stop, stop, -1
        pieces: list[bytes] = []
        while begin > 0 and cut < 0:
            take = min(chunk, begin)
            begin -= take
            # Pieces grow, so that a line of megabytes is not read in thousands of pieces.
            piece = os.pread(descriptor, take, begin)
            # Ignore the line's own end, just before `stop`. The line begins behind the line end before it.
            cut = piece.rfind(b"\n", 0, len(piece) - 1 if begin + take == end else len(piece))
            if end - begin <= MAX_LINE + 2 * take:
                # A line over the limit is skipped below, so its pieces are not kept.
                pieces.append(piece)
            chunk = min(2 * chunk, 1 << 20)
            if cut < 0 and not piece.strip(b"\0") and begin - (data := last_data_end(descriptor, 0, begin)) > MAX_LINE:
                begin = data  # a hole longer than any line, so this line is over the limit
        start = begin + cut + 1 if cut >= 0 else 0
        if end - start <= MAX_LINE + 1:
            raw = b"".join(reversed(pieces))[start - begin :]
            yield raw.rstrip(b"\r\n")
        stop = start
