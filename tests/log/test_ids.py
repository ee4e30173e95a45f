"""Ids that sort by time, and times that any text may claim to be."""

from __future__ import annotations

import os
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.log.ids import format_time, new_id, new_id_and_time, now, parse_time


def test_ids_are_uuids_of_version_7() -> None:
    """A new id is a UUID of version 7 in the standard variant, and says when it was made."""
    made = uuid.UUID(new_id(1_769_076_000_123))

    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == 1_769_076_000_123


def test_ids_are_distinct_and_sort_by_their_time() -> None:
    """Ids of one millisecond differ, and ids of later milliseconds sort behind."""
    same = {new_id(1_000_000) for _ in range(2000)}

    assert len(same) == 2000
    assert max(same) < new_id(1_000_001)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", new_id())


def test_an_id_and_its_time_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id begins with the millisecond in which its time lies, whatever was made before; no id is made twice."""
    seen: set[str] = set()
    for moment in [0, 1_000, 999_999_000, *range(1_769_076_000_123_456_789, 1_769_076_003_123_456_789, 17_131_113), 5]:
        monkeypatch.setattr("time.time_ns", lambda moment=moment: moment)
        made, present = new_id_and_time()

        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made)
        assert uuid.UUID(made).int >> 80 == moment // 1_000_000
        assert present == now()
        seen.add(made)

    assert len(seen) == 180


def test_a_forked_child_makes_ids_of_its_own() -> None:
    """Parent and child share none of the random bytes that the parent had in stock."""
    new_id(1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, " ".join(new_id(1) for _ in range(50)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 50 * 37).decode().split()

    assert len(theirs) == 50
    assert not set(theirs) & {new_id(1) for _ in range(600)}


def test_a_clock_beyond_48_bits_still_gives_an_id() -> None:
    """A moment that does not fit is cut, and the id stays well formed."""
    assert uuid.UUID(new_id(2**60)).version == 7


def test_now_is_a_time() -> None:
    """The present is written in UTC with microseconds, and read back."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", now())
    assert parse_time(now()) is not None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-22T10:00:00Z", 1_769_076_000.0),
        ("2026-01-22T10:00:00.250Z", 1_769_076_000.25),
        ("2026-01-22T10:00:00.123456789Z", 1_769_076_000.123456),
        ("2026-01-22T11:30:00+01:30", 1_769_076_000.0),
        ("2026-01-22T10:00:00", 1_769_076_000.0),
        ("2026-01-22 10:00:00Z", 1_769_076_000.0),
        ("2026-01-22", 1_769_040_000.0),
        ("1970-01-01T00:00:00Z", 0.0),
        ("1969-12-31T23:59:59Z", -1.0),
        ("2038-01-19T03:14:08Z", 2.0**31),
    ],
)
def test_times_are_read(text: str, seconds: float) -> None:
    """RFC 3339 with any zone, any precision, and without a zone (UTC) is read."""
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "odd",
    [
        None, 0, 1_769_076_000, 1.5, True, [], {}, b"2026-01-22", "", " ", "now", "yesterday", "2026-01-22T10:00:60Z",
        "2026-02-30T00:00:00Z", "2026-01-22T25:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59",
        "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "٢٠٢٦-٠١-٢٢T10:00:00Z", "2026-01-22T10:00:00\0Z", "2026-01-22\n",
        "2026-01-22T10:00:00Z" + " " * 60, "1769076000", "\ud800", "NaN",
    ],
    ids=lambda odd: ascii(odd)[:32],
)  # fmt: skip
def test_what_is_no_time_is_none(odd: object) -> None:
    """Anything else, beyond the calendar and other types included, is None and never raises."""
    assert parse_time(odd) is None


@given(st.text(st.characters()) | st.text("0123456789-:+.TZ W", max_size=40))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    """Whatever the text, the answer is a number or None."""
    assert parse_time(text) is None or isinstance(parse_time(text), float)


@given(st.integers(-62_000_000_000, 253_000_000_000), st.integers(0, 999_999))
def test_a_written_time_is_read_back(seconds: int, micros: int) -> None:
    """What is written is read back to the microsecond, as far as a number of seconds can hold it."""
    moment = seconds + micros / 1e6

    read = parse_time(format_time(moment))

    assert read is not None
    assert abs(read - moment) < 1e-4


def test_moments_outside_the_calendar_cant_be_written() -> None:
    """A moment before year 1 or after 9999 is refused."""
    for seconds in (1e18, -1e18, float("nan"), float("inf")):
        with pytest.raises((ValueError, OverflowError)):
            format_time(seconds)
