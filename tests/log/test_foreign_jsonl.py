"""Reading damaged JSON-lines files: every intact record, nothing made up, every damaged range once."""

from __future__ import annotations

import io
import itertools
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.log.foreign_jsonl import MAX_DEPTH, Accept, read_lines, read_objects


def _read(data: bytes, limit: int = 1 << 20, accept: Accept | None = None) -> tuple[list[Any], list[tuple[int, int]]]:
    damage: list[tuple[int, int]] = []
    values = [
        line.value for line in read_objects(io.BytesIO(data), lambda at, size, _: damage.append((at, size)), limit, accept)
    ]
    return values, damage


def _record(number: int, words: str = "hello") -> dict[str, Any]:
    return {"type": "user", "n": number, "message": {"content": [{"type": "text", "text": words}], "use": {"in": 1}}}


def _line(number: int, words: str = "hello") -> bytes:
    return json.dumps(_record(number, words), separators=(",", ":"), ensure_ascii=False).encode()


A, B, C = _line(1), _line(2, "größer"), _line(3)
RECORDS = [_record(1), _record(2, "größer"), _record(3)]
SPREAD = A.replace(b"hello", b"one\ntwo {}\n{}\nthree")
PRETTY = json.dumps(_record(9), indent=2).encode()
CUT_IN_CODE_POINT = B[: B.index("ö".encode()) + 1]

SHAPES: list[tuple[str, bytes, list[int], int]] = [
    ("nothing at all", b"", [], 0),
    ("blank lines", b"\n\n  \r\n" + A + b"\n", [1], 0),
    ("a byte order mark", b"\xef\xbb\xbf" + A + b"\n" + B + b"\n", [1, 2], 0),
    ("CRLF", A + b"\r\n" + B + b"\r\n", [1, 2], 0),
    ("no line end at the end", A + b"\n" + B, [1, 2], 0),
    ("two records on a line", A + B + b"\n" + C + b"\n", [1, 2, 3], 0),
    ("a torn last line", A + b"\n" + B[:40], [1], 1),
    ("a torn line with the next record glued to it", A[:40] + B + b"\n" + C, [2, 3], 1),
    ("a tear behind a nested object", A + b"\n" + B[:-2] + b"\n" + C + b"\n", [1, 3], 1),
    ("a tear behind a nested object, then a record", B[:-1] + A + b"\n" + C + b"\n", [1, 3], 1),
    ("a NUL run between lines", A + b"\n" + b"\0" * 900 + B + b"\n", [1, 2], 1),
    ("a NUL tail", A + b"\n" + b"\0" * 900, [1], 1),
    ("NULs behind a record on its line", A + b"\0" * 50 + b"\n" + B, [1, 2], 1),
    ("NULs over a part of a record", A[:30] + b"\0" * 20 + A[50:] + b"\n" + B + b"\n", [2], 1),
    ("invalid UTF-8 in a torn record", A + b"\n" + B[:-20].replace(b"type", b"\xff\xfe", 1) + b"\n" + C, [1, 3], 1),
    ("a tear inside a code point", CUT_IN_CODE_POINT + A + b"\n" + C, [1, 3], 1),
    ("a partial copy, then the whole", A[:50] + b"\n" + A + b"\n", [1], 1),
    ("a partial copy on the same line", A[:50] + A + b"\n" + B + b"\n", [1, 2], 1),
    ("a record spread over lines", A + b"\n" + SPREAD + b"\n" + C + b"\n", [1, 3], 1),
    ("a record spread by indentation", A + b"\n" + PRETTY + b"\n" + C + b"\n", [1, 3], 1),
    ("text in front of a record", b"note " + A + b"\n", [1], 1),
    ("a list", A + b"\n[" + B + b"]\n" + C, [1, 3], 1),
]


@pytest.mark.parametrize(("data", "expected", "damaged"), [pytest.param(*rest, id=name) for name, *rest in SHAPES])
def test_damage_shape(data: bytes, expected: list[int], damaged: int) -> None:
    """Each shape of damage costs only the damaged record, and is reported as one range."""
    values, damage = _read(data)
    assert values == [RECORDS[number - 1] for number in expected]
    assert len(damage) == damaged


def test_damaged_ranges_are_exact() -> None:
    """A reported range begins and ends where the damage does."""
    assert _read(A + b"\n" + B[:40] + C + b"\n")[1] == [(len(A) + 1, 40)]
    assert _read(A + b"\n\0\0\0")[1] == [(len(A) + 1, 3)]
    assert _read(CUT_IN_CODE_POINT + A)[1] == [(0, len(CUT_IN_CODE_POINT))]


def test_invalid_bytes_in_a_readable_record_are_replaced_and_reported() -> None:
    """A record whose text holds invalid UTF-8 is read with U+FFFD in place of the bytes, which are reported."""
    values, damage = _read(b'{"type":"user","text":"caf\xc3"}\n' + A)
    assert values == [{"type": "user", "text": "caf�"}, RECORDS[0]]
    assert damage == [(26, 1)]


def test_strings_read_inside_out_are_no_record() -> None:
    """Text between the strings of a torn record is not taken for an object, however it is arranged."""
    assert _read(b'{"x":["{",":1,",":2}"]\n')[0] == []
    assert _read(b'{"x":["{",":1,",":2}"]\n', accept=lambda _: True)[0] == []


def test_a_record_quoted_in_a_text_stays_a_text() -> None:
    """A whole record inside a torn record's text is not read as a record."""
    quoted = json.dumps({"type": "user", "n": 7, "text": A.decode()})
    assert _read(quoted[:-2].encode() + b"\n" + C + b"\n")[0] == [RECORDS[2]]


def test_the_predicate_decides_next_to_damage() -> None:
    """An object that could be a part of the torn record in front of it counts only if the predicate says so."""
    torn = b'{"type":"user","message":' + C + b"\n"
    assert _read(torn, accept=lambda value: "n" in value)[0] == [RECORDS[2]]
    assert _read(torn, accept=lambda value: "uuid" in value) == ([], [(0, len(torn) - 1)])


def test_keys_seen_before_tell_a_record_without_a_predicate() -> None:
    """Without a predicate an ambiguous object is read when it has the keys of an earlier record, else reported."""
    torn = b'{"type":"user","message":' + C
    assert _read(A + b"\n" + torn)[0] == [RECORDS[0], RECORDS[2]]
    assert _read(torn)[0] == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b'{"a":' + b"1" * 100_000 + b"}",
        b'{"a":1}1' * 20_000,
        b'{"a":{"b":1},' * 20_000,
        b"a\0" * 20_000,
        b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
    ],
)
def test_hostile_lines_cost_themselves_only(line: bytes) -> None:
    """Depth, digits, fragments and NULs without end are reported, and the next line is read."""
    values, damage = _read(line + b"\n" + A + b"\n", accept=lambda value: "n" in value)
    assert values[-1] == RECORDS[0]
    assert damage


def test_numbers_that_no_log_can_hold_become_text() -> None:
    """NaN, infinities and numbers beyond a float are kept as their text."""
    assert _read(b'{"a":NaN,"b":-Infinity,"c":1e999,"d":1e3}') == (
        [{"a": "NaN", "b": "-Infinity", "c": "1e999", "d": 1000.0}],
        [],
    )


def test_line_separators_inside_a_text_do_not_cut_it() -> None:
    """U+2028, U+0085 and the like do not end a line."""
    text = "a\u2028b\u0085c\x1cd"
    assert _read(json.dumps({"n": text}, ensure_ascii=False).replace("\x1c", "\\u001c").encode())[0] == [{"n": text}]


class _Endless(io.RawIOBase):
    """A line of many bytes that exists nowhere, then an ordinary one."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._tail = b"\n" + A + b"\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._left)
        if size:
            buffer[:size] = b"x" * size
            self._left -= size
            return size
        size = min(len(buffer), len(self._tail))
        buffer[:size], self._tail = self._tail[:size], self._tail[size:]
        return size


def test_a_line_of_300_megabytes_is_reported_in_bounded_memory() -> None:
    """An overlong line costs little memory, is reported with its true length, and the next record is read."""
    damage: list[tuple[int, int]] = []
    tracemalloc.start()
    values = [
        line.value for line in read_objects(io.BufferedReader(_Endless(300_000_000)), lambda at, n, _: damage.append((at, n)))
    ]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert values == [RECORDS[0]]
    assert damage == [(0, 300_000_001)]
    assert peak < 150_000_000


def test_a_record_behind_a_nul_run_longer_than_the_limit_is_read() -> None:
    """A long run of NULs does not take the record behind it along."""
    values, damage = _read(b"\0" * 5_000 + A + b"\n" + B + b"\n", limit=500)
    assert values == RECORDS[:2]
    assert damage == [(0, 5_000)]


def test_lines_are_numbered_and_placed() -> None:
    """Each line comes with its number, its offset and its length with the line end."""
    found = list(read_lines(io.BytesIO(b"ab\r\n\nxyz"), 2))
    assert found == [(1, 0, None, 4), (2, 4, b"", 1), (3, 5, None, 3)]
    assert [line.number for line in read_objects(io.BytesIO(A + b"\n" + A + B), print)] == [1, 2, 2]


def test_skipped_lines_are_whole_ones() -> None:
    """The filter is asked only about lines that ended, since a last line without an end may be torn."""
    asked: list[bytes] = []

    def skip(line: bytes) -> bool:
        asked.append(line)
        return True

    found = [line.value for line in read_objects(io.BytesIO(A + b"\n" + B), print, skip=skip)]
    assert asked == [A]
    assert found == [RECORDS[1]]


_names = st.text(st.characters(codec="utf-8"), max_size=6)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[bytes, list[dict[str, Any]], bool]:
    """Draw a file of records with damage between them: its bytes, the intact records, and whether it is damaged."""
    out, intact, hurt = b"", list[dict[str, Any]](), False
    for number in range(draw(st.integers(1, 6))):
        record = {"type": "user", "n": number, "body": draw(_json)}
        line = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=(",", ":")).encode()
        how = draw(st.sampled_from(["whole", "whole", "cut", "cut and glued", "nul", "glued"]))
        if how.startswith("cut"):
            line = line[: draw(st.integers(1, len(line) - 1))]
            hurt = True
        else:
            intact.append(record)
        if how == "nul":
            line = b"\0" * draw(st.integers(1, 30)) + line
            hurt = True
        out += line + (b"" if how.endswith("glued") else b"\n")
    return out, intact, hurt


@given(_damaged())
def test_intact_records_survive_any_damage(drawn: tuple[bytes, list[dict[str, Any]], bool]) -> None:
    """Whatever is cut, glued or overwritten, exactly the intact records are read, and damage never passes unreported."""
    data, intact, hurt = drawn
    values, damage = _read(data, accept=lambda value: list(value) == ["type", "n", "body"])
    assert values == intact
    assert bool(damage) == hurt
    assert all(at >= 0 and size > 0 and at + size <= len(data) for at, size in damage)
    assert all(first[0] + first[1] <= second[0] for first, second in itertools.pairwise(damage))


@given(st.binary(max_size=400) | st.text(alphabet='{}[]",:\\ \n\0a1', max_size=200).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    """Any bytes at all give records and ranges, never an exception."""
    values, damage = _read(data, limit=64)
    assert all(isinstance(value, dict) for value in values)
    assert all(at >= 0 and at + size <= len(data) for at, size in damage)


def test_a_file_cut_anywhere_keeps_its_whole_records() -> None:
    """Cut at every byte, a file gives all records that end before the cut, and no other."""
    data = A + b"\n" + B + b"\n" + C + b"\n"
    ends = [len(A), len(A) + 1 + len(B), len(data) - 1]
    for cut in range(len(data) + 1):
        assert _read(data[:cut])[0] == RECORDS[: sum(end <= cut for end in ends)]
