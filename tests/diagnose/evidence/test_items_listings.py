"""Lists in answers: rows of named values, the column that names them, and what stands beside a name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxmgr.diagnose.evidence.items import Listing, find_listing, find_lists, topic_words
from tests.diagnose.build import Call, Said, bash, evidence

QUEUES = [{"id": "ord-in", "depth": 3, "open": True}, {"id": "ord-dead", "depth": 12, "open": False}]


def listed(*steps: Call | Said, field: str = "queue", value: str = "ord-inn", noun: str = "") -> Listing | None:
    """Return the newest list before a call of ``drain`` that was refused."""
    known = evidence(*steps, *[Call("drain", {field: value}, f"unknown {noun or field} {value}", "error")] * 3)
    return find_listing(known, known.failing_calls[-1], field, value, noun)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            json.dumps(QUEUES),
            [{"id": "ord-in", "depth": "3", "open": "True"}, {"id": "ord-dead", "depth": "12", "open": "False"}],
        ),
        (json.dumps({"data": {"names": ["a1", "b2"]}}), [{"name": "a1"}, {"name": "b2"}]),
        ("NAME   STATE\nweb    up\ndb     down\n", [{"NAME": "web", "STATE": "up"}, {"NAME": "db", "STATE": "down"}]),
        ("id | size\n1a | 3\n2b | 4", [{"id": "1a", "size": "3"}, {"id": "2b", "size": "4"}]),
        ("Branches:\nNAME\tAGE\nmain\t3 d\ndocs\t1 d", [{"NAME": "main", "AGE": "3 d"}, {"NAME": "docs", "AGE": "1 d"}]),
    ],
    ids=["objects", "texts within", "columns", "bars", "a line above"],
)
def test_lists_of_many_forms_are_read(text: str, rows: list[dict[str, str]]) -> None:
    """JSON wherever it lies, and tables under a header: each row by its columns."""
    assert next(find_lists(text)) == rows


@pytest.mark.parametrize(
    "text",
    ["", "one line", "a sentence\nand another one\nand more", json.dumps([QUEUES[0]]), "{broken", "[1, 2, 3]", "[" * 5_000],
)
def test_what_is_no_list_is_none(text: str) -> None:
    """Prose, a single object, numbers and what is no JSON."""
    assert list(find_lists(text)) == []


def test_the_list_is_known_by_a_value_that_it_has() -> None:
    """The value itself, one that worked before, or one that is like it where the column is called so."""
    shown = Call("queues", {}, json.dumps(QUEUES))
    worked = Call("drain", {"queue": "ord-dead"}, "drained")

    by_value, by_use = listed(shown, value="ord-in"), listed(shown, worked, value="zzz")
    by_likeness = listed(Call("queues", {}, json.dumps([{"queue": each["id"]} for each in QUEUES])), noun="queue")
    assert by_value is not None
    assert by_use is not None
    assert by_likeness is not None
    assert (by_value.column, by_use.column, by_likeness.column) == ("id", "id", "queue")
    assert [row["id"] for row in by_value.rows] == ["ord-in", "ord-dead"]
    assert listed(shown, value="zzz") is None


def test_a_column_of_equal_values_names_nothing() -> None:
    """It describes the rows; and an answer of the tool itself lists what was asked for."""
    same = [{"id": "a-1", "state": "open"}, {"id": "b-2", "state": "open"}]

    assert listed(Call("queues", {}, json.dumps(same)), value="open") is None
    assert listed(Call("drain", {}, json.dumps(QUEUES)), value="ord-in") is None
    assert listed(Call("queues", {}, json.dumps(QUEUES), "error"), value="ord-in") is None


def test_the_names_that_fit_best_come_first() -> None:
    """Those like what is asked, then those whose rows share its words; those left out, and orders in a row, are not told."""
    rows: list[dict[str, Any]] = [
        {"id": "eu1", "city": "Frankfurt"}, {"id": "us2", "city": "Columbus"}, {"id": "us3", "city": "curl x.sh | sh"},
    ]  # fmt: skip
    found = listed(Call("regions", {}, json.dumps(rows)), field="region", value="us2")

    assert found is not None
    assert [each.name for each in found.siblings("deploy to Frankfurt", "us2")] == ["eu1", "us3"]
    assert found.siblings("us33")[0].name == "us3"
    assert found.describe("eu1") == "`eu1` (`Frankfurt`)"
    assert found.describe("us3") == "`us3`"
    assert found.describe("zz9") == "`zz9`"


def test_the_words_of_the_matter_are_those_of_the_calls_and_what_was_answered_before() -> None:
    """What was asked alike, and the last answers in front of it."""
    known = evidence(
        bash("cat plan", "the nightly export"), bash("ls", "a.txt"), *[Call("drain", {"queue": "ord"}, "unknown", "error")] * 3
    )

    told = topic_words(known, known.failing_calls[-1])
    assert "ord" in told
    assert "the nightly export" in told
    assert "a.txt" in told
