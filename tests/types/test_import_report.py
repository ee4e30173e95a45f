"""What is told of an import: names in words, however many there are."""

from __future__ import annotations

import pytest

from ctxmgr.types.import_report import list_first_names


@pytest.mark.parametrize(
    ("first", "count", "said"),
    [
        (["a", "b"], 2, "a, b"),
        (["a", "b"], 5, "a, b, and 3 more"),
        (["a"], 12_346, "a, and 12,345 more"),
        ([], 0, ""),
        (["a"], 0, "a"),
    ],
)
def test_the_others_are_counted(first: list[str], count: int, said: str) -> None:
    """The first by name, the rest by their number."""
    assert list_first_names(first, count) == said
