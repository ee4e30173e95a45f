"""Typed values out of foreign JSON: times, nesting, texts, and how much damage is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.importers.base import damage_reporter
from ctxmgr.importers.values import clean, is_time, moment, parse_json, read_attributes, texts, title
from ctxmgr.log.ids import parse_time
from ctxmgr.types.import_report import FileCount


@pytest.mark.parametrize(
    "day", ["2026-02-28", "2026-02-29", "2024-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "0001-01-01"]
)
@pytest.mark.parametrize(
    "hour", ["T00:00:00", "T23:59:59.999", "T24:00:00", "T12:60:00", "T12:00:00.123456", "T12:00:00.1", " 12:00:00"]
)
@pytest.mark.parametrize("zone", ["Z", "", "+02:00", "z", "\n"])
def test_what_is_a_time_is_told_as_the_calendar_tells_it(day: str, hour: str, zone: str) -> None:
    """The quick look and the calendar never differ."""
    stamp = f"{day}{hour}{zone}"
    assert is_time(stamp) is (parse_time(stamp) is not None)
    if zone == "Z":
        assert moment(stamp) == (stamp if is_time(stamp) else None)


@pytest.mark.parametrize("depth", [10, 79, 80, 81, 82, 150])
def test_json_in_a_text_is_cut_where_json_in_a_record_is(depth: int) -> None:
    """Nesting ends at the same depth whether a value stands in the log itself or as JSON in a text of it."""
    for start, end in (("[", "]"), ('{"a":', "}")):
        told = start * depth + "1" + end * depth
        assert parse_json(told) == clean(json.loads(told))
        assert ("nested too deep" in json.dumps(parse_json(told))) is (depth > 81)


def test_numbers_that_json_has_not_become_texts() -> None:
    """At any depth, and keys are texts."""
    assert clean({1: [float("inf"), {"a": float("nan")}], "b": 1.5}) == {"1": ["inf", {"a": "nan"}], "b": 1.5}
    assert parse_json('[NaN, {"a": 1e999}]') == ["nan", {"a": "inf"}]


def test_texts_of_content_are_those_of_its_parts() -> None:
    """Of a text itself, of parts that are texts or carry one; nothing of anything else."""
    assert texts("a") == ["a"]
    assert texts(["a", {"text": "b"}, {"text": 1}, {"image": "c"}, 5, None]) == ["a", "b"]
    assert texts({"text": "a"}) == texts(None) == []
    assert title("  a \n b" + " c" * 100) == ("a b" + " c" * 100)[:80]


def test_damage_is_listed_up_to_a_limit() -> None:
    """A log of nothing but tears fills neither memory nor the report; what is left out is one last range."""
    count = FileCount(Path("log"), bytes=10_000)
    note = damage_reporter(count)
    for number in range(3_000):
        note(3 * number, 1, "torn")
    assert len(count.damaged) == 1_001
    assert count.damaged[-1] == (3_000, 7_000, "more damage follows; not listed")


@pytest.mark.parametrize(
    ("stated", "number"),
    [("12", 12), ("-5", -5), (7, 7), ("--5", None), ("-", None), ("", None), ("5-", None), ("\u0663", None), ("1" * 99, None)],
)
def test_a_whole_number_in_a_text_is_read_or_nothing(stated: object, number: int | None) -> None:
    """OTLP writes numbers of 64 bits as texts; what is no number must not end an import."""
    assert read_attributes({"attributes": [{"key": "n", "value": {"intValue": stated}}]}) == {"n": number}
