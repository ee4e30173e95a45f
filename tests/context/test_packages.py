"""YAML written here is read back as the same values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ctxmgr.context.packages import block, mapping_lines
from ctxmgr.text.tokens import nesting_depth

TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\n\t \r\x00\x1b\x85\u2028\ufeff\ud800#:-'\"|>%@`"), max_size=40
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


def _read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(text=TEXT | st.lists(TEXT, max_size=6).map("\n".join))
def test_any_text_survives(text: str) -> None:
    """A block gives back exactly the text put into it: blanks, tabs, line ends, control characters, surrogates and all."""
    written = "a:\n" + block("content", text, 2) + "  after: 1\n"

    assert _read(written) == {"a": {"content": text, "after": 1}}


@pytest.mark.slow
@settings(max_examples=500)
@given(values=st.dictionaries(TEXT, JSON, max_size=4))
def test_any_values_survive(values: dict[str, Any]) -> None:
    """A map of JSON values is read back equal, whatever its keys are."""
    written = "top:\n" + "\n".join(mapping_lines({**values, "last": 1}, 2)) + "\n"

    assert _read(written) == {"top": {**values, "last": 1}}


@pytest.mark.parametrize(
    "word", ["yes", "No", "on", "null", "~", "true", "1", "1e3", "0x1f", "2024-01-01", "=", "<<", "a: b", "- a", ""]
)
def test_words_that_mean_something_stay_text(word: str) -> None:
    """Text that YAML would read as another type is text as a value and as a key."""
    assert _read("\n".join(mapping_lines({word: word}, 0))) == {word: word}


@pytest.mark.parametrize("size", [101, 1_500, 100_000])
def test_long_keys_survive(size: int) -> None:
    """Keys beyond what YAML allows in short form are written in its long one, at any depth."""
    values: dict[str, Any] = {"k" * size: [{"q" * size: 1}]}

    assert _read("\n".join(mapping_lines(values, 0))) == values


def test_deep_values_survive() -> None:
    """Values nested deeper than is readable go on one line."""
    values: dict[str, Any] = {"a": 1}
    for _ in range(60):
        values = {"a": values, "b": [values and 2]}

    assert _read("\n".join(mapping_lines(values, 0))) == values


def test_plain_text_stands_as_it_is() -> None:
    """Ordinary text is a literal block, line by line."""
    assert block("content", "one\n\n  two  \n", 2) == "  content: |\n    one\n\n      two  \n"
    assert block("content", "one", 2) == "  content: |-\n    one\n"
    assert block("content", " one\n\n", 0) == "content: |2+\n   one\n\n"


@pytest.mark.parametrize(
    ("text", "deep"),
    [("a: 1", 0), ("[[1], {a: [2]}]", 3), ("]]][", 1), ("- - - a", 0), ("- " * 9 + "a", 9), ("a: '[[['", 3), ("? " * 200, 200)],
)
def test_how_deep_a_text_is_nested(text: str, deep: int) -> None:
    """Brackets count wherever they stand, dashes from eight in a row on, since plain words have a few."""
    assert nesting_depth(text) == deep
