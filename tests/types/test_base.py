"""Shapes that are stored: written in the order of their fields, and read only where every member is what it should be."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.types.base import StoredShape, Text


class Part(StoredShape):
    """What a file might hold."""

    part_name: Text
    size: int = 0
    reason: Text | None = None
    parts: list[Part] = []  # noqa: RUF012 -- copied for each instance
    sums: dict[str, int] = {}  # noqa: RUF012


def test_what_is_stored_is_read_as_it_was_written() -> None:
    """Members stand in the order of the fields, and each instance has lists of its own."""
    whole = Part(part_name="\ud800", parts=[Part(part_name="b", size=2)], sums={"a": 1})
    told = whole.to_json()

    assert list(told) == ["partName", "size", "reason", "parts", "sums"]
    assert Part.from_json({**told, "unknown": 1}).to_json() == told
    assert Part.from_json({name: value for name, value in told.items() if value is not None}).to_json() == told
    assert whole.replace(size=7).to_json() == {**told, "size": 7}
    assert Part(part_name="c").parts is not Part(part_name="c").parts


NO_PARTS: list[tuple[dict[str, Any], str]] = [
    ({"partName": None}, "partName is no text"),
    ({"size": True}, "size is no number"),
    ({"size": None}, "size is no number"),
    ({"reason": 7}, "reason is no text"),
    ({"parts": {}}, "parts is no list"),
    ({"parts": ["b"]}, "no object"),
    ({"parts": [{"partName": "b", "size": 2, "parts": [], "sums": {"x": "y"}}]}, "x is no number"),
    ({"sums": []}, "no object"),
]


@pytest.mark.parametrize(("change", "why"), NO_PARTS)
def test_what_is_no_part_is_said(change: dict[str, Any], why: str) -> None:
    """The first member that is missing or wrong is named, however deep it stands."""
    told = {**Part(part_name="a").to_json(), **change}
    with pytest.raises(ValueError, match=f"^{why}$"):
        Part.from_json({name: value for name, value in told.items() if value is not None})
    with pytest.raises(ValueError, match=r"^no object$"):
        Part.from_json(why)
