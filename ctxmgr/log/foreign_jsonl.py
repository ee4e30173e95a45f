"""Read a foreign JSON-lines file of any size, even a damaged one, with bounded memory.

Splits on the byte 0x0A alone. Every intact object is read, none is made up out of fragments, and every byte range that
holds no object is reported once; neighbouring ranges are reported as one. The damage that real agents leave behind: a
torn last line, a torn line with the next record glued to it, NUL runs, invalid UTF-8, several objects on one line, one
object spread over lines, and lines too long to hold.
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
"""Deepest accepted nesting; pydantic's own JSON reader stops at the same depth."""

_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\r\n"
_MAX_NUL_RUNS = 1_000
_MAX_SHAPES = 64
_INSIDE_JSON = frozenset(":,[ ")
"""Characters before an object that is a value inside another one; anywhere else a new record begins."""
_MAX_SCAN = 32 * 1024 * 1024
"""Budget, in characters, of looking for the next record behind a tear. A hostile line could cost its length squared."""
_MIN_TRY_COST = 64
"""Least cost of one try, however few characters it read."""
_FAILED_TRY_COST = _MAX_SCAN // 64
"""Cost of a try whose reading ended without saying where."""
_MIN_CHECKED_BYTES = 1 << 20
"""Bytes from which on a line is checked for its number of values before it is parsed."""
_MAX_OPENERS = 1_000_000
_MAX_COMMAS = 4_000_000
_NULS = re.compile(rb"\0+")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")  # what "surrogateescape" makes of a byte that is not UTF-8

Report = Callable[[int, int, str], None]
"""Called with offset, length and reason for each damaged byte range."""

Accept = Callable[[dict[str, Any]], bool]
"""Says whether an object looks like a whole record of the file's format; asked only about objects next to damage."""

Skip = Callable[[bytes], bool]
"""Asked about each line that ended properly, before it is parsed; true leaves the line out."""

Decode = Callable[[bytes], object]
"""Returns the value of a whole line of JSON; raises `ValueError` or `RecursionError` for what must be looked at closely."""


@dataclass(slots=True)
class Line:
    """One JSON object of a file.

    Attributes:
        number: 1-based number of the line it stands on.
        offset: of the line's first byte.
        value: the object.
        length: of the line, without its end.
    """

    number: int
    offset: int
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
    """Yield every JSON object of the stream in order; ``report`` hears of every range that holds none.

    The reports are complete once the iterator is exhausted. Without ``accept`` an object beside damage counts as a
    record when it cannot be a part of the torn one, or has the keys of a record read before. ``decode`` may be faster
    than the standard library, and must yield the same where it yields anything.
    """
    damage = _Damage(report)
    reader = _Reader(damage, accept, decode)
    for number, offset, raw, length in read_lines(stream, limit):
        if raw is None:
            damage.add(offset, length, f"{length:,} bytes that hold no line of at most {limit:,} bytes")
        elif skip is None or length == len(raw) or not skip(raw):
            # Beside damage a line may be the rest of a torn one, so it is not taken as it stands.
            value = reader.whole(raw) if offset - damage.end > 2 or damage.end < 0 else None
            if value is not None:
                yield Line(number, offset, value, len(raw))
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
    """Turns places in a text into byte offsets; they must be asked for in rising order."""

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
    """Finds the objects of one line after the other; remembers the sets of keys that complete records have."""

    def __init__(self, damage: _Damage, accept: Accept | None, decode: Decode | None) -> None:
        self._damage = damage
        self._accept = accept
        self._shapes: set[frozenset[str]] = set()
        self._learnt: set[tuple[str, ...]] = set()
        # NaN and Infinity, which Python reads but JSON does not know, are kept as their texts.
        self._decoder = json.JSONDecoder(parse_float=_finite, parse_constant=str)
        self._decode = decode or self._decode_line

    def whole(self, raw: bytes) -> dict[str, Any] | None:
        """Return the object that a line consists of, None if it is anything else or needs a closer look."""
        size = len(raw)
        if size >= _MIN_CHECKED_BYTES or not raw.startswith(b"{"):
            return None
        try:
            value = self._decode(raw)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        if size > 2 * MAX_DEPTH and raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:  # each level ends as well
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
                yield Line(number, offset, value, len(raw))
            before = "\0"

    def _pieces(self, offset: int, raw: bytes) -> Iterator[tuple[int, bytes]]:
        """Split a line at its NUL runs and leave out a byte order mark."""
        at = len(_BOM) if raw.startswith(_BOM) else 0
        # A crash leaves NUL bytes where a file had grown on the disk and its content was not written yet.
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
        # An indented line beside damage may be a part of an object that is spread over lines.
        if before == "\n" and at:
            before = " "
        while at < end:
            value, stop, _, reason = self._value(text, at)
            # Beside damage an object may be a part of the torn one, and is no record then.
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
        """Return the object at ``at`` (None when there is none to be used), its end, how far reading went, and why."""
        try:
            value, stop = cast("tuple[object, int]", self._decoder.raw_decode(text, at))
        except json.JSONDecodeError as error:
            return None, at + 1, error.pos, "torn or unreadable JSON"
        except ValueError:
            # How far it had read is not told, so such a try has a flat price.
            return None, at + 1, at + _FAILED_TRY_COST, "a number with too many digits"
        except RecursionError:
            return None, at + 1, at + _FAILED_TRY_COST, "JSON nested too deep"
        if not isinstance(value, dict):
            return None, stop, stop, "not a JSON object"
        if is_deep(cast("object", value), MAX_DEPTH, text.count("{", at, stop) + text.count("[", at, stop)):
            return None, stop, stop, "JSON nested too deep"
        return cast("dict[str, Any]", value), stop, stop, "a fragment of a JSON object"

    def _resume(self, text: str, start: int, tried: int) -> int:
        """Return where, behind a tear at or after ``start``, the next whole record begins; the end when there is none.

        In JSON a ``{"`` that belongs to the torn record itself follows a colon, comma or bracket; anywhere else
        it is the beginning of the next record. The work is limited, since on a hostile line each try could cost the
        length of the line.
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
                    budget -= reached >> 4  # the decoder's error counts all line ends in front of it
                if value is not None:
                    if self._is_record(text, value, stop, before):
                        return at
                    past = stop if _plausible_keys(value) else past
            at = text.find('{"', past)
        return len(text)

    def _is_record(self, text: str, value: dict[str, Any], stop: int, before: str) -> bool:
        """Whether an object beside damage is a record of its own; ``before`` is the character in front of it."""
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
        """Report invalid bytes inside an object that can be read nevertheless; return it with U+FFFD in their place."""
        places = [hit.start() for hit in _ESCAPED_BYTE.finditer(text, at, stop)]
        if not places:
            return value
        start = place.offset_at(places[0])
        self._damage.add(start, place.offset_at(places[-1] + 1) - start, "invalid UTF-8")
        return cast("dict[str, Any]", _replace_escapes(value))


def _finite(text: str) -> float | str:
    """Keep a number that is too large for a float as its text: an infinity could not be written again."""
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
    """Return the nearest character before ``at`` that is not a blank; a blank if none is within 64 places."""
    for place in range(at - 1, max(at - 65, -1), -1):
        if text[place] not in _SPACE:
            return text[place]
    return " "


def _plausible_keys(value: dict[str, Any]) -> bool:
    """Whether the first key begins like a name: read from inside a string outwards, keys are punctuation."""
    first = next(iter(value), "")[:1]
    return first.isalnum() or first in {"_", "$"}


def _is_part(text: str, stop: int) -> bool:
    """Whether what follows shows that the object ending at ``stop`` is a part of another one."""
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
