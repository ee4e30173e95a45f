"""Reading a damaged log: every whole record is read, none is invented, every damaged range is reported."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import NotFound
from ctxmgr.log.codec import Record, chain, encode, seal
from ctxmgr.log.reader import BROKEN_SUM, FOREIGN, Line, read, tail

SEED = 20_261_121
Report = tuple[int, int, str]
Reports = list[Report]


def _record(number: int, **more: object) -> Record:
    return {"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "agent": "a", "input": {"n": number}, **more}


def _lines(count: int, sealed: bool = True, size: int = 0) -> list[bytes]:
    lines: list[bytes] = []
    last = ""
    for number in range(count):
        body = encode(_record(number, note="x{[,:" * (size // 5)))
        last = chain(last, body)
        lines.append(seal(body, last) if sealed else body)
    return lines


def _read(path: Path, content: bytes) -> tuple[list[Line], Reports]:
    path.write_bytes(content)
    reports: Reports = []

    def note(offset: int, length: int, reason: str) -> None:
        reports.append((offset, length, reason))

    return list(read(path, damage=note)), reports


def _ids(lines: list[Line]) -> list[object]:
    return [line.record.get("id") for line in lines]


def test_a_sound_log_is_read_in_order(tmp_path: Path) -> None:
    """Every record comes back with its place and a verified sum, and without the sum itself."""
    lines = _lines(5)

    found, reports = _read(tmp_path / "a.jsonl", b"\n".join(lines) + b"\n")

    assert [line.record for line in found] == [_record(number, note="") for number in range(5)]
    assert [line.sum_ok for line in found] == [True] * 5
    assert [(line.offset, line.length) for line in found] == [
        (sum(len(earlier) + 1 for earlier in lines[:number]), len(line)) for number, line in enumerate(lines)
    ]
    assert reports == []


def test_reading_goes_on_where_it_ended(tmp_path: Path) -> None:
    """With the offset and the sum of an earlier reading the rest is verified; without the sum it is believed."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(_lines(5)) + b"\n")
    third = list(read(path))[2]
    start = third.offset + third.length + 1

    assert [line.sum_ok for line in read(path, start, last=third.total)] == [True, True]
    assert [line.sum_ok for line in read(path, start, last=None)] == [None, True]
    assert [line.sum_ok for line in read(path, start, last="")] == [False, True]


def test_a_missing_log_is_not_found(tmp_path: Path) -> None:
    """Reading what does not exist is an error of its own."""
    with pytest.raises(NotFound):
        list(read(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ("torn tail", [0, 1, 2, 3, 4]), ("torn tail that is whole", [0, 1, 2, 3, 4, 5]),
        ("torn, then a new line", [0, 1, 2, 3, 4, 6]),
        ("NUL tail", [0, 1, 2, 3, 4, 5]), ("NULs, then a record", [0, 1, 2, 3, 4, 5, 6]), ("NUL line", [0, 1, 2, 3, 4, 5, 6]),
        ("hole of NULs", [0, 1, 2, 3, 4, 6]), ("two on a line", [0, 1, 2, 3, 4, 5, 6]), ("invalid UTF-8", [0, 1, 2, 3, 4, 6]),
        ("CRLF", [0, 1, 2, 3, 4, 5, 6]), ("byte order mark", [0, 1, 2, 3, 4, 5, 6]),
        ("record, then junk", [0, 1, 2, 3, 4, 5, 6]),
        ("blank lines", [0, 1, 2, 3, 4, 5, 6]), ("foreign JSON", [0, 1, 2, 3, 4, 5, 6]), ("text", [0, 1, 2, 3, 4, 5, 6]),
    ],
)  # fmt: skip
def test_each_shape_of_damage_costs_only_what_it_hit(tmp_path: Path, shape: str, kept: list[int], sealed: bool) -> None:
    """Over the damage shapes of real agents and 40 places each, every intact record is read and none invented."""
    source = random.Random(f"{SEED}{shape}")
    lines = _lines(7, sealed, 60)
    head, five, six = b"\n".join(lines[:5]) + b"\n", lines[5], lines[6] + b"\n"
    for _ in range(40):
        cut = source.randrange(1, len(five) - 1)
        content = {
            "torn tail": head + five[:cut],
            "torn tail that is whole": head + five,
            "torn, then a new line": head + five[:cut] + b"\n" + six,
            "NUL tail": head + five + b"\n" + b"\0" * cut,
            "NULs, then a record": head + five + b"\n" + b"\0" * cut + six,
            "NUL line": head + five + b"\n" + b"\0" * cut + b"\n" + six,
            "hole of NULs": head + five[:cut] + b"\0" + five[cut + 1 :] + b"\n" + six,
            "two on a line": head + five + six,
            "invalid UTF-8": head + five[:cut] + b"\xff" + five[cut:] + b"\n" + six,
            "CRLF": (head + five + b"\n" + six).replace(b"\n", b"\r\n"),
            "byte order mark": b"\xef\xbb\xbf" + head + five + b"\n" + six,
            "record, then junk": head + five + b"junk\n" + six,
            "blank lines": head + b"\n \n" + five + b"\n\n" + six,
            "foreign JSON": head + b'[1,2]\n{"a":1}\n{"v":2,"kind":"entry","session":"s"}\n' + five + b"\n" + six,
            "text": head + b"Traceback: {\n" + five + b"\n" + six,
        }[shape]
        found, reports = _read(tmp_path / "a.jsonl", content)

        assert _ids(found) == [f"e{number}" for number in kept], (SEED, shape, cut)
        silent = shape in {"torn tail that is whole", "two on a line", "CRLF", "blank lines"}
        assert bool(reports) != silent, (SEED, shape, cut, reports)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_record_glued_to_a_torn_one_is_found(tmp_path: Path, sealed: bool) -> None:
    """Whatever the byte at which a record was torn, the records appended to its line are read.

    Where the torn record awaits a value of free form, a record without a sum could be that value and is left out.
    """
    torn = encode(_record(9, meta=[1, "{", {"k": None}], note='a \\ " b'))
    before, *after = _lines(3, sealed)
    left_out: list[bytes] = []
    for cut in range(1, len(torn)):
        glued = after[0] + (after[1] if cut % 2 else b"")
        found, reports = _read(tmp_path / "a.jsonl", before + b"\n" + torn[:cut] + glued + b"\n")
        expected = ["e0", "e1", "e2"] if cut % 2 else ["e0", "e1"]
        if "e1" not in _ids(found):
            left_out.append(torn[:cut])
            expected.remove("e1")

        assert _ids(found) == expected, torn[:cut]
        assert (len(before) + 1) in [offset for offset, _, _ in reports]

    assert all(prefix.endswith((b'"input":', b'"n":', b'"meta":', b"[", b'"k":', b",")) for prefix in left_out)
    assert len(left_out) == (0 if sealed else 7), left_out


@pytest.mark.cases(1)
@pytest.mark.parametrize("place", ["text", "object", "list", "text in text"])
def test_recorded_content_never_becomes_a_record(tmp_path: Path, place: str) -> None:
    """A copied record inside a record is content, wherever the outer record is torn."""
    copied = json.loads(_lines(1)[0])
    forged = {**_record(666), "sum": copied["sum"]}
    content: object = {
        "text": json.dumps(copied),
        "object": {"a": copied, "b": forged},
        "list": [copied, forged, [copied]],
        "text in text": json.dumps(json.dumps(forged)),
    }[place]
    outer = encode(_record(1, output=content))
    for cut in range(1, len(outer)):
        for ending in (b"", b"\n", b"\n" + encode(_record(2)) + b"\n"):
            found, _ = _read(tmp_path / "a.jsonl", outer[:cut] + ending)

            assert _ids(found) == (["e2"] if len(ending) > 1 else []), outer[:cut]


def test_a_record_glued_to_a_torn_one_of_its_own_chain_is_read(tmp_path: Path) -> None:
    """Whatever the byte at which a record lost its end and its line end, the next one is read, and the stub is damage.

    The sum of the next one follows from the lost one's, so it can't be checked: it is read and told.
    """
    lines = _lines(5)
    whole = [json.loads(line)["id"] for line in lines]
    for cut in range(1, len(lines[2])):
        content = b"\n".join([*lines[:2], lines[2][:cut] + lines[3], lines[4], b""])
        found, reports = _read(tmp_path / "a.jsonl", content)

        assert _ids(found) == [whole[0], whole[1], whole[3], whole[4]], lines[2][:cut]
        place = len(lines[0]) + len(lines[1]) + 2
        assert (place, cut) in [(offset, length) for offset, length, _ in reports]
        assert (place + cut, BROKEN_SUM) in [(offset, reason) for offset, _, reason in reports]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.lists(_VALUES, min_size=4, max_size=6), st.data())
def test_any_stub_costs_itself_alone(values: list[object], data: st.DataObject) -> None:
    """Of any sealed log in which one record lost its end, every other record is read, and none is invented.

    The values hold copies of records too: they are content, wherever the record around them is torn.
    """
    lines, last = list[bytes](), ""
    for number, value in enumerate(values):
        copied = json.loads(lines[-1]) if lines and data.draw(st.booleans()) else None
        body = encode(_record(number, output=[value, copied], meta={"copy": copied}))
        last = chain(last, body)
        lines.append(seal(body, last))
    torn = data.draw(st.integers(0, len(lines) - 3))
    cut = data.draw(st.integers(1, len(lines[torn]) - 1))
    content = b"\n".join([*lines[:torn], lines[torn][:cut] + lines[torn + 1], *lines[torn + 2 :], b""])
    with tempfile.TemporaryDirectory() as folder:
        found, reports = _read(Path(folder) / "a.jsonl", content)

    assert _ids(found) == [f"e{number}" for number in range(len(values)) if number != torn]
    assert reports


def test_every_bit_flip_is_detected(tmp_path: Path) -> None:
    """Of 300 flipped bits each leads to a report, and no changed record is read as verified."""
    source = random.Random(SEED)
    whole = b"\n".join(_lines(12)) + b"\n"
    originals = [line.record for line in _read(tmp_path / "a.jsonl", whole)[0]]
    verified = 0
    for _ in range(300):
        at, bit = source.randrange(len(whole)), source.randrange(8)
        changed = bytearray(whole)
        changed[at] ^= 1 << bit
        found, reports = _read(tmp_path / "a.jsonl", bytes(changed))

        assert reports, (SEED, at, bit, changed[at])
        assert all(line.record in originals for line in found if line.sum_ok), (SEED, at, bit)
        verified += sum(line.sum_ok is True for line in found)
    assert verified > 300 * 8


def test_every_bit_of_the_last_record_is_guarded(tmp_path: Path) -> None:
    """No bit of the last record, its sum and its line end included, can change unnoticed."""
    first, last = _lines(2)
    for at in range(len(last) + 1):
        for bit in range(8):
            changed = bytearray(last + b"\n")
            changed[at] ^= 1 << bit
            _, reports = _read(tmp_path / "a.jsonl", first + b"\n" + bytes(changed))

            assert reports, (at, bit, bytes(changed))


@pytest.mark.parametrize("change", ["delete", "swap", "duplicate", "insert sealed"])
def test_moved_records_break_the_chain(tmp_path: Path, change: str) -> None:
    """Deleting, swapping, repeating or inserting a sealed record is reported and hides nothing."""
    lines = _lines(6)
    body = encode(_record(99))
    changed = {
        "delete": [*lines[:2], *lines[3:]],
        "swap": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "duplicate": [*lines[:3], *lines[2:]],
        "insert sealed": [*lines[:2], seal(body, "0123456789abcdef"), *lines[2:]],
    }[change]

    found, reports = _read(tmp_path / "a.jsonl", b"\n".join(changed) + b"\n")

    assert len(found) == len(changed)
    assert {reason for _, _, reason in reports} == {BROKEN_SUM}


def test_a_sum_that_is_not_last_does_not_verify(tmp_path: Path) -> None:
    """A record whose members were reordered is kept and reported."""
    record = json.loads(_lines(1)[0])

    found, reports = _read(tmp_path / "a.jsonl", encode({"sum": record.pop("sum"), **record}) + b"\n")

    assert [(line.sum_ok, line.record) for line in found] == [(False, record)]
    assert [reason for _, _, reason in reports] == [BROKEN_SUM]


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"1", b'"v"', b"{}", b'{"v":1}', b'{"v":true,"kind":"a","session":"s"}', b'{"v":1,"kind":"","session":"s"}',
        b'{"v":1,"kind":{},"session":"s"}', b'{"v":1,"kind":"a","session":null}', b'{"v":1.0,"kind":"a","session":"s"}',
        b'{"v":1,"kind":"a","session":"s","input":NaN}', b'{"v":1,"kind":"a","session":"s","input":' + b"9" * 5_000 + b"}",
        b'{"v":' * 3_000, b'{"v":1,"a":' + b"[" * 100_000, b"{" * 100_000,
        b'{"v":1,"kind":"a","session":"' + b"\xed\xa0\x80" + b'"}',
    ],
)  # fmt: skip
def test_what_is_no_record_is_reported_once(tmp_path: Path, line: bytes) -> None:
    """Foreign, hostile and impossible lines are damage, never an exception and never a record."""
    found, reports = _read(tmp_path / "a.jsonl", line + b"\n" + encode(_record(1)) + b"\n")

    assert _ids(found) == ["e1"]
    assert [offset for offset, _, _ in reports] == [0]
    assert reports[0][1] == len(line)


def test_foreign_json_is_named_as_such(tmp_path: Path) -> None:
    """A line of JSON that is not ours gets its own reason."""
    _, reports = _read(tmp_path / "a.jsonl", b'{"type":"user"}\n')

    assert reports == [(0, 15, FOREIGN)]


@pytest.mark.parametrize("size", [0, 300, 40_000])
def test_the_tail_is_where_a_reader_arrives(tmp_path: Path, size: int) -> None:
    """The sum found from the end is the last one found from the start, whatever lies at the end."""
    lines = _lines(4, size=size)
    whole = b"\n".join(lines) + b"\n"
    foreign = encode(_record(7)) + b"\n"
    body = encode(_record(8))
    glued = seal(body, chain(json.loads(lines[3])["sum"], body))
    nested = encode({"a": json.loads(lines[0])}) + b"\n"
    for extra in (b"", foreign, b"\n\n", b'{"v":1,"ki', b"\0" * 9_000, foreign * 50, b'{"v":1,"in' + glued, glued, nested):
        path = tmp_path / "a.jsonl"
        found, _ = _read(path, whole + extra)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            torn, last = tail(descriptor, len(whole + extra))
        finally:
            os.close(descriptor)

        assert last == next(line.total for line in reversed(found) if line.total), extra[:40]
        assert torn == (not (whole + extra).endswith(b"\n")), extra[:40]


def test_an_empty_file_has_an_empty_tail(tmp_path: Path) -> None:
    """Nothing to read, nothing torn, no sum."""
    path = tmp_path / "a.jsonl"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)

    assert tail(descriptor, 0) == (False, "")

    os.close(descriptor)


HUGE = """
import resource, sys
from ctxmgr.log.reader import read, tail
import os
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reports = []
found = [line.record["id"] for line in read(sys.argv[1], damage=lambda *report: reports.append(report))]
descriptor = os.open(sys.argv[1], os.O_RDONLY)
last = tail(descriptor, os.fstat(descriptor).st_size)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found, len(reports), last[1] != "", (peak - base) // 1024)
"""


def test_a_line_of_300_megabytes_costs_bounded_memory(tmp_path: Path) -> None:
    """A line beyond the limit is skipped and reported with less than 150 MB of memory."""
    path = tmp_path / "a.jsonl"
    first, second = _lines(2)
    with path.open("wb") as stream:
        stream.write(first + b"\n" + second + b"\n")
        stream.write(b'{"v":1,"a":"')
        stream.seek(300_000_000, os.SEEK_CUR)  # a hole: takes no disk
        stream.write(b'"}\n' + encode(_record(5)) + b"\n")

    answer = subprocess.run([sys.executable, "-c", HUGE, str(path)], capture_output=True, text=True, check=True).stdout
    found, _, growth = answer.rpartition(" ")

    assert found == "['e0', 'e1', 'e5'] 1 True"
    assert int(growth) < 150
