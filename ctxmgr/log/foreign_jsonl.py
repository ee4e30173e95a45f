"""Read a foreign JSON-lines file of any size, even a damaged one, with bounded memory.

Lines end at the byte 0x0A only. Every intact object is read, and none is made up from fragments. Every byte range without an
object is reported once; neighbouring ranges are reported as one. Real agents leave this damage: a torn last line, a torn line
joined to the next record, NUL runs, invalid UTF-8, several objects on one line, one object on several lines, and lines
too long for memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO, Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.log.codec import MAX_LINE, is_deep
from ctxmgr.log.line_splitter import read_lines as read_lines

MAX_DEPTH = 200
"""Deepest accepted nesting, the same as in pydantic's JSON parser."""

_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"
_MAX_NUL_RUNS = 1_000
_MAX_SHAPES = 64
_INSIDE_JSON = frozenset(":,[ ")
"""Characters before an object that is a value inside another one. After any other character a new record begins."""
_MAX_SCAN = 32 * 1024 * 1024
"""Budget, in characters, for finding the next record behind torn text. A hostile line could cost its length squared."""
_MIN_TRY_COST = 64
"""Smallest cost of one try, however few characters it read."""
_FAILED_TRY_COST = _MAX_SCAN // 64
"""Cost of a try that failed without reporting a position."""
_MIN_CHECKED_BYTES = 1 << 20
"""Number of bytes from which a line is checked for its number of values before it is parsed."""
_MAX_OPENERS = 1_000_000
_MAX_COMMAS = 4_000_000
_NULS = re.compile(rb"\0+")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")  # "surrogateescape" maps bytes that are not UTF-8 to these

Report = Callable[[int, int, str], None]
"""Called with offset, length and reason for each damaged byte range."""

Accept = Callable[[dict[str, Any]], bool]
"""Function that returns whether an object looks like a whole record of the file's format. Called for objects next to damage."""

Skip = Callable[[bytes], bool]
"""Function that is called with each complete line before it is parsed, and returns whether to leave the line out."""

Decode = Callable[[bytes], object]
"""Function that returns the value of a line of JSON, or raises `ValueError` or `RecursionError` to use the slow reader."""


@dataclass(slots=True)
class Line:
    """One JSON object of a file.

    Attributes:
        number: the number of its line, from 1 on.
        value: the object.
        length: the length of the line without its line end.
    """

    number: int
    value: dict[str, Any]
    length: int = 0


def read_objects(
    stream: IO[bytes],
    report: Report,
    limit: int = MAX_LINE,
    accept: Accept | None = None,
    skip: Skip | None = None,
    decode: Decode | None = None,
) -> Iterator[Line]:
    """Yield every JSON object of the stream in order, and report every range without an object to ``report``.

    The reports are complete once the iterator is exhausted. Without ``accept``, an object next to damage counts as a
    record if it can't be a part of the torn one, or has the keys of a record read before. ``decode`` may be faster
    than the standard library, but must return the same values.
    """
    damage = _Damage(report)
    reader = _Reader(damage, accept, decode)
    for number, offset, raw, length in read_lines(stream, limit):
        if raw is None:
            damage.add(offset, length, f"{length:,} bytes that hold no line of at most {limit:,} bytes")
        elif skip is None or length == len(raw) or not skip(raw):
            # Next to damage a line may be the rest of a torn one, so it needs a closer look.
            value = reader.whole(raw) if offset - damage.end > 2 or damage.end < 0 else None
            if value is not None:
                yield Line(number, value, len(raw))
            else:
                yield from reader.objects(number, offset, raw)
    damage.flush()


class _Damage:
    """Collects damaged ranges and joins those with at most a line end between them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._start: int | None = None
        self._reason = ""
        self.end = -1

    def add(self, start: int, length: int, reason: str) -> None:
        if self._start is None or start - self.end > 2:
            self.flush()
            self._start, self._reason = start, reason
        self.end = start + length

    def flush(self) -> None:
        if self._start is not None:
            self._report(self._start, self.end - self._start, self._reason)
        self._start = None


class _Place:
    """Converts positions in a text to byte offsets. They must be converted in ascending order."""

    def __init__(self, offset: int, text: str) -> None:
        self._offset = offset
        self._text = text
        self._at = 0

    def offset_at(self, at: int) -> int:
        skipped_text = self._text[self._at : at]
        self._offset += len(skipped_text) if skipped_text.isascii() else len(skipped_text.encode("utf-8", "surrogateescape"))
        self._at = at
        return self._offset


class _Reader:
    """Finds the objects of one line after the other, and remembers the sets of keys of complete records."""

    def __init__(self, damage: _Damage, accept: Accept | None, decode: Decode | None) -> None:
        self._damage = damage
        self._accept = accept
        self._shapes: set[frozenset[str]] = set()
        self._learnt: set[tuple[str, ...]] = set()
        # NaN and Infinity, which Python reads but JSON does not have, are kept as texts.
        self._decoder = json.JSONDecoder(parse_float=_finite, parse_constant=str)
        self._decode = decode or self._decode_line

    def whole(self, raw: bytes) -> dict[str, Any] | None:
        """Return the object of a line that is one JSON object; None for any other line, or one that needs a closer look."""
        size = len(raw)
        if size >= _MIN_CHECKED_BYTES or not raw.startswith(b"{"):
            return None
        try:
            value = self._decode(raw)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        if size > 2 * MAX_DEPTH and raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:  # each level takes two brackets
            return None
        if tuple(value) not in self._learnt:  # pyright: ignore[reportUnknownArgumentType], a cast would be a call
            self._learn(value)  # pyright: ignore[reportUnknownArgumentType]
        return value  # pyright: ignore[reportUnknownVariableType]

    def _decode_line(self, raw: bytes) -> object:
        value, stop = cast("tuple[object, int]", self._decoder.raw_decode(text := raw.decode()))
        return value if stop == len(text) else None

    def objects(self, number: int, offset: int, raw: bytes) -> Iterator[Line]:
        """Yield the objects on a line and report the rest of it."""
        before = "\n" if 0 <= offset - self._damage.end <= 2 else None
        for start, piece in self._pieces(offset, raw):
            for value in self._read_piece(start, piece, before):
                yield Line(number, value, len(raw))
            before = "\0"

    def _pieces(self, offset: int, raw: bytes) -> Iterator[tuple[int, bytes]]:
        """Split a line at its NUL runs, without a byte order mark."""
        at = len(_BOM) if raw.startswith(_BOM) else 0
        # A crash leaves NUL bytes if a file had grown on the disk before its content was written.
        if b"\0" in raw:
            if sum(1 for _ in islice(_NULS.finditer(raw), _MAX_NUL_RUNS + 1)) > _MAX_NUL_RUNS:
                self._damage.add(offset, len(raw), "NUL bytes throughout; perhaps not UTF-8")
                return
            for run in _NULS.finditer(raw):
                yield offset + at, raw[at : run.start()]
                self._damage.add(offset + run.start(), run.end() - run.start(), "NUL bytes")
                at = run.end()
        yield offset + at, raw[at:] if at else raw

    def _read_piece(self, offset: int, piece: bytes, before: str | None) -> Iterator[dict[str, Any]]:
        """Yield the objects of a piece; ``before`` is the damage in front of it, if any."""
        if _has_too_many_values(piece):
            self._damage.add(offset, len(piece), "more values on one line than fit into memory")
            return
        text, sound = _decode_piece(piece)
        place = _Place(offset, text)
        at, end, begun = _past_space(text, 0), len(text), False
        # An indented line next to damage may be a part of an object on several lines.
        if before == "\n" and at:
            before = " "
        while at < end:
            value, stop, _, reason = self._value(text, at)
            # Next to damage an object may be a part of the torn one, and not a record.
            if value is None or (before is not None and not self._is_record(text, value, stop, before)):
                resume = self._resume(text, at, stop)
                start = place.offset_at(at if begun else 0)
                until = end if resume == end else _before_space(text, at, resume)
                self._damage.add(start, place.offset_at(until) - start, reason)
                at, before, begun = resume, None, True
                continue
            if not sound:
                value = self._repair(text, at, stop, value, place)
            self._learn(value)
            yield value
            at, before, begun = _past_space(text, stop), None, True

    def _value(self, text: str, at: int) -> tuple[dict[str, Any] | None, int, int, str]:
        """Return (object at ``at`` or None, its end, position that parsing reached, reason why it is not a record)."""
        try:
            value, stop = cast("tuple[object, int]", self._decoder.raw_decode(text, at))
        except json.JSONDecodeError as error:
            return None, at + 1, error.pos, "torn or unreadable JSON"
        except ValueError:
            # This error has no position, so such a try has a fixed cost.
            return None, at + 1, at + _FAILED_TRY_COST, "a number with too many digits"
        except RecursionError:
            return None, at + 1, at + _FAILED_TRY_COST, "JSON nested too deep"
        if not isinstance(value, dict):
            return None, stop, stop, "not a JSON object"
        if is_deep(cast("object", value), MAX_DEPTH, text.count("{", at, stop) + text.count("[", at, stop)):
            return None, stop, stop, "JSON nested too deep"
        return cast("dict[str, Any]", value), stop, stop, "a fragment of a JSON object"

    def _resume(self, text: str, start: int, tried: int) -> int:
        """Return the position of the next whole record behind torn text at or after ``start``; the end if there is none.

        A ``{"`` that belongs to the torn record itself follows a colon, comma or bracket. After any other character it begins
        the next record. The work is limited, because on a hostile line each try could cost the length of the line.
        """
        budget = _MAX_SCAN
        at = text.find('{"', max(start + 1, tried))
        while at >= 0 and budget > 0:
            before = _character_before(text, at)
            past = at + 1
            if before not in _INSIDE_JSON or self._accept is not None or self._shapes:
                value, stop, reached, _ = self._value(text, at)
                budget -= reached - at + _MIN_TRY_COST
                if value is None:
                    budget -= reached >> 4  # to create its error, the decoder counts all line ends before the position
                if value is not None:
                    if self._is_record(text, value, stop, before):
                        return at
                    past = stop if _plausible_keys(value) else past
            at = text.find('{"', past)
        return len(text)

    def _is_record(self, text: str, value: dict[str, Any], stop: int, before: str) -> bool:
        """Whether an object next to damage is a record of its own; ``before`` is the character before it."""
        if not _plausible_keys(value) or _is_part(text, stop):
            return False
        if before == "\n":
            return True
        if self._accept is not None:
            return self._accept(value)
        return before not in _INSIDE_JSON or frozenset(value) in self._shapes

    def _learn(self, value: dict[str, Any]) -> None:
        if (keys := tuple(value)) not in self._learnt and self._accept is None and len(self._shapes) < _MAX_SHAPES:
            self._learnt.add(keys)
            self._shapes.add(frozenset(keys))

    def _repair(self, text: str, at: int, stop: int, value: dict[str, Any], place: _Place) -> dict[str, Any]:
        """Report invalid bytes inside an object that is otherwise readable. Return the object with U+FFFD in their place."""
        places = [hit.start() for hit in _ESCAPED_BYTE.finditer(text, at, stop)]
        if not places:
            return value
        start = place.offset_at(places[0])
        self._damage.add(start, place.offset_at(places[-1] + 1) - start, "invalid UTF-8")
        return cast("dict[str, Any]", _replace_escapes(value))


def _finite(text: str) -> float | str:
    """Return a float, or the text of a number that is too large for one, because JSON can't represent an infinity."""
    number = float(text)
    return text if number in (float("inf"), float("-inf")) else number


def _decode_piece(piece: bytes) -> tuple[str, bool]:
    try:
        return piece.decode("utf-8"), True
    except UnicodeDecodeError:
        return piece.decode("utf-8", "surrogateescape"), False


def _past_space(text: str, at: int) -> int:
    end = len(text)
    while at < end and text[at] in _SPACE:
        at += 1
    return at


def _before_space(text: str, start: int, at: int) -> int:
    while at > start and text[at - 1] in _SPACE:
        at -= 1
    return at


def _character_before(text: str, at: int) -> str:
    """Return the nearest character before ``at`` that is not a blank; a blank if there is none within 64 characters."""
    for place in range(at - 1, max(at - 65, -1), -1):
        if text[place] not in _SPACE:
            return text[place]
    return " "


def _plausible_keys(value: dict[str, Any]) -> bool:
    """Whether the first key begins like a name. In an "object" read from the middle of a string, keys are punctuation."""
    first = next(iter(value), "")[:1]
    return first.isalnum() or first in {"_", "$"}


def _is_part(text: str, stop: int) -> bool:
    """Whether the text behind ``stop`` shows that the object that ends there is a part of another one."""
    at = _past_space(text, stop)
    return at < len(text) and text[at] in ",:]}"


def _has_too_many_values(piece: bytes) -> bool:
    """Whether the values of a long line would take many times its size in memory (16 MB of ``[],`` take 350 MB)."""
    if len(piece) < _MIN_CHECKED_BYTES:
        return False
    return piece.count(b"[") + piece.count(b"{") > _MAX_OPENERS or piece.count(b",") > _MAX_COMMAS


def _replace_escapes(value: object) -> object:
    if isinstance(value, str):
        return _ESCAPED_BYTE.sub("�", value)
    if isinstance(value, list):
        return [_replace_escapes(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_ESCAPED_BYTE.sub("�", key): _replace_escapes(item) for key, item in cast("dict[str, object]", value).items()}
    return value
