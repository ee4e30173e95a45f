"""Answers are read by their structure."""

from __future__ import annotations

from ctxmgr.diagnose.evidence.items import find_ids, find_json, find_objects, list_items


def test_items_are_read_from_json_lines_and_tables() -> None:
    """The three forms in which tools tell named values."""
    nested = list_items('{"id": "P-1", "signoff": {"who": "m.li", "given": null}}')
    lines = list_items("agent: a\nneeds: b.csv")
    rows = list_items("ID   STATE   LABELS\n3    idle    x,y\n7    busy    z")

    assert nested[1].key == "signoff"
    assert nested[1].fields == {"who": "m.li", "given": "null"}
    assert "P-1" in nested[1].around
    assert lines[0].fields == {"agent": "a", "needs": "b.csv"}
    assert [row.fields["labels"] for row in rows] == ["x,y", "z"]


def test_ids_are_names_with_a_digit() -> None:
    """Dates, counts and durations are none."""
    assert find_ids("REL-2290 of 2026-01-30, 12 items, 30s, order 5520, R-802") == {"REL-2290", "5520", "R-802"}


def test_json_is_found_within_text() -> None:
    """A bracket that begins no JSON is passed over, an object within a text is opened."""
    found = list(find_json('[warn] got {"a": {"b": 1}} and [2, 3]'))

    assert found == [{"a": {"b": 1}}, [2, 3]]
    assert list(find_objects({"body": '{"c": 4}'})) == [{"body": '{"c": 4}'}, {"c": 4}]
