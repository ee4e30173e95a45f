"""A stream of bytes becomes lines: each with its place and length, none held that is too long, no hole of a file read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.log.line_splitter import last_data_end, past_hole, read_lines

HOLE = 1 << 24
BLOCK = 1 << 16
"""As large as the blocks of any usual file system, so that data and holes lie where they are put."""


class Counting(io.BytesIO):
    """A stream that keeps the longest piece that was asked for."""

    longest = 0

    def readline(self, size: int | None = -1) -> bytes:
        """Return a line, or as much of it as was asked for."""
        line = super().readline(size)
        self.longest = max(self.longest, len(line))
        return line


@given(
    st.lists(st.sampled_from([b"", b"a", b"12345678", b"123456789", b"x" * 40, b"\0\0", b"a\r", b"\0" * 30 + b"a"])),
    st.booleans(),
)
def test_the_lines_put_together_are_the_stream(lines: list[bytes], ended: bool) -> None:
    """Every byte belongs to one line, in order; a short line is there without its end, a long one only with its length."""
    content = b"\n".join(lines) + (b"\n" if ended else b"")
    place, last = 0, 0
    for number, offset, raw, length in read_lines(io.BytesIO(content), 8):
        assert offset == place
        assert number in (last, last + 1)
        piece = content[offset : offset + length]
        assert raw == (piece.rstrip(b"\r\n") if len(piece) <= 9 and not (len(piece) == 9 and piece[-1:] != b"\n") else None)
        place, last = offset + length, number

    assert place == len(content)


def test_a_line_that_is_too_long_is_passed_over_in_pieces() -> None:
    """What is behind it is read; of the line itself no more than the limit, or a piece, is ever held."""
    stream = Counting(b"first\n" + b"x" * 3_000_000 + b"\nlast\n")

    assert list(read_lines(stream, 1_000)) == [
        (1, 0, b"first", 6),
        (2, 6, None, 3_000_001),
        (3, 3_000_007, b"last", 5),
    ]
    assert stream.longest <= 1 << 18


@pytest.mark.parametrize("ended", [b"\n", b""])
def test_a_record_behind_zeros_is_not_lost_with_them(ended: bytes) -> None:
    """A run of NULs beyond the limit, as a crash leaves, is told on its own, under the number of the line that it is in."""
    content = b"a\n" + b"\0" * 50 + b"record" + ended

    assert list(read_lines(io.BytesIO(content), 20)) == [
        (1, 0, b"a", 2),
        (2, 2, None, 50),
        (2, 52, b"record", 6 + len(ended)),
    ]
    assert list(read_lines(io.BytesIO(b"\0" * 50), 20)) == [(1, 0, None, 50)]


def test_the_ends_of_other_systems_are_none_of_the_line() -> None:
    """A carriage return before the end goes too; one within stays."""
    assert [raw for _, _, raw, _ in read_lines(io.BytesIO(b"a\r\nb\rc\n\r\nd"))] == [b"a", b"b\rc", b"", b"d"]


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """Return a file with a line, a hole, a line, and a hole to its end."""
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as stream:
        stream.write(b"first\n")
        stream.seek(HOLE)
        stream.write(b"\nlast\n")
        stream.truncate(2 * HOLE)
    if path.stat().st_blocks * 512 >= HOLE:
        pytest.skip("this file system knows no holes")
    return path


def test_a_hole_is_passed_over_and_counted(sparse: Path) -> None:
    """Its length is told as if it had been read; the lines around it are whole."""
    with sparse.open("rb") as stream:
        found = list(read_lines(stream, 1_000))

    assert [(raw, length) for _, _, raw, length in found if raw] == [(b"first", 6), (b"last", 5)]
    assert sum(length for *_, length in found) == 2 * HOLE
    assert found[1][2:] == (None, HOLE - 6)


def test_where_there_is_no_hole_nothing_is_skipped(sparse: Path) -> None:
    """A stream that stands on data, or is no file, stays where it is."""
    with sparse.open("rb") as stream:
        assert (past_hole(stream), stream.tell()) == (0, 0)
        stream.seek(BLOCK)
        assert past_hole(stream) == HOLE - BLOCK
        assert stream.read(6) == b"\nlast\n"
        stream.seek(HOLE + BLOCK)
        assert past_hole(stream) == HOLE - BLOCK, "up to the end of the file"
        assert stream.read() == b""
    assert past_hole(io.BytesIO(b"\0" * 10)) == 0


def test_the_last_data_of_a_file_are_found_without_reading_it(sparse: Path) -> None:
    """From there on it is a hole; the place of the file stays, and where there are only holes the first place is told."""
    descriptor = os.open(sparse, os.O_RDONLY)
    try:
        os.lseek(descriptor, 3, os.SEEK_SET)
        found = last_data_end(descriptor, 0, 2 * HOLE)
        assert HOLE + 6 <= found <= HOLE + BLOCK
        assert os.lseek(descriptor, found - 1, os.SEEK_DATA) == found - 1
        os.lseek(descriptor, 3, os.SEEK_SET)
        assert last_data_end(descriptor, HOLE + BLOCK, 2 * HOLE) == HOLE + BLOCK
        assert last_data_end(descriptor, 0, 6) == 6
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 3
    finally:
        os.close(descriptor)
