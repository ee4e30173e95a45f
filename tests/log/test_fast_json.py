"""JSON without the `json` package: read and written as that package reads and writes it."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import dumps, json_object, loads, text_or_empty, text_or_none

ROOT = Path(__file__).parents[2]

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=15
)


@pytest.fixture(params=["scanner", "package"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the parts in C, and the package that stands in for them in another interpreter."""
    make = fast_json._load_parts if request.param == "scanner" else fast_json._load_package  # pyright: ignore[reportPrivateUsage]
    read, write, _ = make()
    monkeypatch.setattr(fast_json, "loads", read)
    monkeypatch.setattr(fast_json, "_write", write)


def test_a_value_of_another_type_counts_as_missing() -> None:
    """A recorded value may have any type: what is no object or no text is read as an empty one, or as none."""
    assert [json_object({"a": 1}), json_object([]), json_object(None)] == [{"a": 1}, {}, {}]
    assert [text_or_none(value) for value in ("a", "", 1, ["a"])] == ["a", "", None, None]
    assert [text_or_empty(value) for value in ("a", 1, None)] == ["a", "", ""]


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    """By both, the same value comes back; the text is one line of printable ASCII without blanks between."""
    written = dumps(value)

    assert written.isascii()
    assert written.isprintable()
    assert fast_json.loads(written) == json.loads(written) == value
    assert written == json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


@pytest.mark.parametrize("text", ["", " ", "{", "[1,]", "01", "{'a':1}", "1 2", '"\n"', "nul", '{"a" 1}', "{} x", "[1] [2]"])
def test_what_is_no_json_is_one_kind_of_error(text: str) -> None:
    """As the package, with ``ValueError``; also what holds more than one value."""
    with pytest.raises(ValueError, match=r"."):
        fast_json.loads(text)


def test_values_of_javascript_are_read_and_not_written() -> None:
    """NaN and infinities, which other programs write, are read; JSON has no form for them."""
    assert math.isnan(fast_json.loads(" NaN\n"))
    assert fast_json.loads("[Infinity,-Infinity]") == [math.inf, -math.inf]
    for odd in (math.nan, math.inf, {"a": [-math.inf]}):
        with pytest.raises(ValueError, match=r"."):
            dumps(odd)


def test_what_has_no_form_is_written_as_its_text() -> None:
    """An object of another kind becomes a text, and DEL is escaped like all other control characters."""
    assert dumps({"a": {1}, "b": 1 + 2j, "c": "\x7f\x1b"}) == '{"a":"{1}","b":"(1+2j)","c":"\\u007f\\u001b"}'


def test_the_package_is_not_loaded() -> None:
    """With this interpreter neither it nor regular expressions are."""
    code = "import sys; from ctxmgr.log.fast_json import dumps, loads; loads(dumps(1))\nprint({'json', 're'} & {*sys.modules})"
    ran = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.stdout == "set()\n"
    assert loads is not json.loads
