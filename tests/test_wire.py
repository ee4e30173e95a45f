"""One record, one line: its bytes, its limits and its chain of sums."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.wire import MAX_DEPTH, MAX_LINE, chain, decode, encode, fingerprint, seal, unseal

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=10,
)
records = st.dictionaries(st.text(st.characters()), json_values, max_size=6)


HUGE = 10**5000


def _type_name(value: object) -> str:
    return type(value).__name__


def _nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@given(records)
def test_a_record_survives_its_line(record: dict[str, Any]) -> None:
    """Any record comes back from its line, which is printable ASCII without a line end."""
    line = encode(record)

    assert decode(line) == record
    assert line.isascii()
    assert line.decode("ascii").isprintable()
    assert encode(decode(line)) == line


def test_the_form_of_a_line() -> None:
    """A line has no blanks, keeps the order of keys, and writes what is not ASCII as escapes."""
    record = {"v": 1, "kind": "x", "b": [1.0, True, None], "a": "ä\ud800\u2028\0\x7f😀"}

    assert encode(record) == b'{"v":1,"kind":"x","b":[1.0,true,null],"a":"\\u00e4\\ud800\\u2028\\u0000\\u007f\\ud83d\\ude00"}'


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), {1, 2}, b"x", object(), HUGE, {(1, 2): 3}], ids=_type_name
)
def test_what_is_not_json_is_refused(value: object) -> None:
    """NaN, infinities, sets, bytes, objects and numbers without end are refused as input errors."""
    with pytest.raises(InvalidInput, match="not JSON"):
        encode({"v": [{"deep": value}]})


def test_cycles_and_depth_are_refused() -> None:
    """A cycle, and nesting beyond the limit, are refused; nesting at the limit is not."""
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (cycle, _nested(MAX_DEPTH), _nested(900), _nested(50_000), {"a": _nested(MAX_DEPTH)}, (_nested(MAX_DEPTH),)):
        with pytest.raises(InvalidInput, match="not JSON"):
            encode({"v": value})

    assert decode(encode({"v": _nested(MAX_DEPTH - 1)})) == {"v": _nested(MAX_DEPTH - 1)}
    assert len(encode({"v": [[{}] for _ in range(1000)], "text": "[" * 1000})) > 4000


def test_the_longest_line() -> None:
    """A line of the greatest length is accepted, one byte more is not."""
    room = MAX_LINE - len(encode({"v": ""}))

    assert len(encode({"v": "x" * room})) == MAX_LINE
    with pytest.raises(InvalidInput, match="the limit is"):
        encode({"v": "x" * (room + 1)})
    with pytest.raises(InvalidInput, match="the limit is"):
        encode({"v": "ä" * (room // 6 + 1)})


@pytest.mark.parametrize(
    "line",
    [
        b"", b" ", b"null", b"5", b'"x"', b"[]", b"[{}]", b"{", b'{"a":1', b'{"a":1}}', b'{"a":1}{"b":2}',
        b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":[-1e400]}',
        b"{'a':1}", b'{"a":1,}', b'{"a":01}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}',
        b"\0" * 50, b'\xef\xbb\xbf{"a":1}', b'{"a":"\n"}', b'{"a":' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"a":' * 100_000,
    ],
    ids=lambda line: ascii(line[:24]),
)  # fmt: skip
def test_what_is_no_line_raises_one_kind_of_error(line: bytes) -> None:
    """Whatever is not one JSON object in UTF-8 raises ValueError, infinities and hopeless depth included."""
    with pytest.raises(ValueError):  # noqa: PT011 -- its text is Python's own
        decode(line)


@pytest.mark.parametrize(
    "line", [b'{"a":1e308,"b":-0.0,"c":1E5}', b'  {"a": 1}\r', b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b"{}"]
)
def test_lines_of_others_are_read(line: bytes) -> None:
    """Blanks, exponents, doubled keys (the last counts) and lone surrogates are read as other readers read them."""
    assert decode(line) == json.loads(line)


def test_the_chain_of_sums() -> None:
    """A sum is 16 hex digits over the previous sum and the bytes; every change of either changes it."""
    first, second = chain("", b'{"v":1}'), chain(chain("", b'{"v":1}'), b'{"v":2}')

    assert (len(first), len(second)) == (16, 16)
    assert len({first, second, chain("", b'{"v":2}'), chain(first, b'{"v":1}'), chain("", b"")}) == 5
    assert chain("", b'{"v":1}') == first


@given(records)
def test_a_seal_comes_off_again(record: dict[str, Any]) -> None:
    """A sealed line is a record whose last key is its sum, and unsealing gives back both."""
    body = encode({"v": 1, **record})
    total = chain("", body)
    line = seal(body, total)

    assert unseal(line) == (body, total)
    assert list(decode(line))[-1] == "sum"
    assert {**decode(line), "sum": record.get("sum")} == {"v": 1, **record, "sum": record.get("sum")}


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"v":1}', b'{"sum":"short"}', b'"sum":"0123456789abcdef"', b'{"a":"b","sum":"0123456789abcde"}']
)
def test_a_line_without_a_seal_is_left_as_it_is(line: bytes) -> None:
    """What carries no sum of ours comes back unchanged."""
    assert unseal(line) == (line, None)


@given(records)
def test_fingerprints_do_not_depend_on_the_order_of_keys(record: dict[str, Any]) -> None:
    """Equal JSON values have equal fingerprints, whatever the order of their keys."""
    turned = dict(reversed(record.items()))

    assert fingerprint(record) == fingerprint(turned) == fingerprint(decode(encode(record)))
    assert fingerprint([record, 1]) != fingerprint([record, 2])


def test_fingerprints_tell_types_apart() -> None:
    """Values that JSON tells apart have different fingerprints."""
    values: list[object] = [
        None,
        True,
        False,
        0,
        1,
        1.0,
        "",
        "1",
        "null",
        [],
        {},
        [[]],
        [None],
        {"a": None},
        "ä",
        "a\u0308",
        "\ud800",
    ]

    assert len({fingerprint(value) for value in values}) == len(values)


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), {(1, 2): 3}, {1: 2, "1": 3}, float("nan"), HUGE, _nested(5000), b"x"], ids=_type_name
)
def test_fingerprints_never_raise(value: object) -> None:
    """What is not JSON has a fingerprint too."""
    assert len(fingerprint(value)) == 16
