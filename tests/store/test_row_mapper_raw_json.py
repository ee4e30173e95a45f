"""Long texts pass from a store into JSON as they are stored: what comes out is what decoding and spelling would give."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import Damaged
from ctxmgr.log import fast_json
from ctxmgr.log.codec import encode
from ctxmgr.store.row_mapper import LongTexts, load

LONG = "a line of text\n\t\"quoted\" \\ and more 'of it'" * 200

# What a long text may be made of: plain letters, what is escaped in one way, in several, and what is beyond ASCII.
PIECES = st.sampled_from(["x" * 3000, "\n", '"', "\\", "/", "\x7f", "\x01", "é", "\ud800", "verbatim 0", "\\u0041", "\\/"])
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


def _spelled(body: str) -> str:
    return fast_json.dumps(load(body))


def _passed(body: str) -> str:
    texts = LongTexts()
    return texts.restore(fast_json.dumps(texts.load(body)))


@given(st.dictionaries(st.sampled_from(["input", "output", "data", "meta", "error"]), VALUES))
def test_what_passes_through_is_what_would_be_spelled(members: dict[str, Any]) -> None:
    """Any record of ours comes out byte for byte as if it were decoded and encoded."""
    body = encode({"v": 1, "kind": "entry", "session": "s", "id": "e", **members}).decode("ascii")

    assert _passed(body) == _spelled(body)


ODD = [
    f'{{"v":1,"input":"{"x" * 5000}\\/y"}}',
    f'{{"v":1,"input":"{"x" * 5000}\\u0041"}}',
    f'{{"v":1,"input":"{"x" * 5000}\\u00E9"}}',
    f'{{"v":1,"input":"{"x" * 5000}\x7f"}}',
    f'{{"v":1,"input":"{"x" * 5000}é"}}',
    f'{{ "v" : 1, "input" : "{"x" * 5000}" }}',
    f'{{"v":1,"input":{{"a":"{"x" * 5000}","a":"{"y" * 5000}"}}}}',
    f'{{"v":1,"input":"{"x" * 5000}","input":"{"y" * 5000}"}}',
    f'{{"v":1,"input":{{}},"output":[],"data":{{"a":{{}},"b":"{"y" * 5000}"}}}}',
    f'{{"v":1,"input":1E2,"output":{{"n":1.50,"t":"{"x" * 5000}"}}}}',
    f'{{"v":1,"input":{"[" * 50}"{"x" * 5000}"{"]" * 50}}}',
    '{"v":1,"input":' + '{"a":' * 20 + f'"{"x" * 5000}"' + "}" * 20 + "}",
    json.dumps({"v": 1, "data": {str(number): "y" * 50 for number in range(500)}}, separators=(",", ":")),
    f'  {{"v":1,"input":"{"x" * 5000}"}}\n',
]


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_what_is_spelled_otherwise_says_the_same(body: str) -> None:
    """What another program spelled in its own way comes out as the same values, and as printable ASCII."""
    passed = _passed(body)

    assert fast_json.loads(passed) == fast_json.loads(_spelled(body))
    assert passed.isascii()
    assert passed.isprintable()


BROKEN = [
    f'{{"v":1,"input":"{"x" * 5000}',
    f'{{"input":"{"x" * 5000}"',
    f'{{"input":"{"x" * 5000}"}}}}',
    f'{{"input":"{"x" * 5000}\\q"}}',
    f'{{"input":"{"x" * 5000}\n"}}',
    f'{{"input":"{"x" * 5000}",}}',
    f'["{"x" * 5000}"]',
    "{" + " " * 5000,
    '{"a"' + "x" * 5000,
]


@pytest.mark.parametrize("body", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_body_is_damage(body: str) -> None:
    """What can't be decoded is told, long or not."""
    with pytest.raises(Damaged):
        LongTexts().load(body)


def test_long_texts_are_not_spelled() -> None:
    """A long text goes round the encoder, at any place where it is shown as it is, and nowhere else."""
    body = encode({"v": 1, "input": {"path": "a", "content": LONG}, "output": LONG, "data": {"text": LONG}, "meta": LONG})
    texts = LongTexts()

    record = texts.load(body.decode("ascii"))

    held = [record["input"]["content"], record["output"], record["data"]["text"]]
    assert all(len(mark) < 60 for mark in held)
    assert record["input"]["path"] == "a"
    assert record["meta"] == LONG


def test_no_recorded_text_is_taken_for_a_mark() -> None:
    """Marks are made of what nobody can know who wrote the history."""
    first, second = LongTexts(), LongTexts()
    mark = first.load(encode({"v": 1, "input": LONG}).decode("ascii"))["input"]
    forged = encode({"v": 1, "output": mark, "input": LONG}).decode("ascii")

    assert second.restore(fast_json.dumps(second.load(forged))) == _spelled(forged)
