"""One record, one line: its bytes, its limits and its chain of sums."""

from __future__ import annotations

import enum
import json
import math
import subprocess
import sys
import uuid
from collections import OrderedDict
from datetime import date
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.log import codec
from ctxmgr.log.codec import MAX_DEPTH, MAX_LINE, chain, decode, encode, fingerprint, seal, unseal, use_loaded_encoder

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


def test_a_record_that_was_refused_leaves_nothing_behind() -> None:
    """After a record that is no JSON, the containers that it was made of can be recorded."""
    inner: dict[str, Any] = {"a": [1]}
    for bad in ({"v": inner, "w": float("nan")}, {"v": [inner, {1, 2}]}):
        with pytest.raises(InvalidInput):
            encode(bad)

    assert encode({"v": inner}) == b'{"v":{"a":[1]}}'
    inner["a"].append(inner)
    with pytest.raises(InvalidInput, match="Circular"):
        encode({"v": inner})


class _Colour(enum.Enum):
    RED = "red"


class _Name(str):
    __slots__ = ()


_ODD: list[Any] = [
    1e16, 1e-7, -0.0, float("nan"), 2**64, -(2**63) - 1, "\x7f", "\ud800", "é", _Colour.RED, _Name("a"), (1, 2),
    uuid.UUID(int=5), date(2026, 1, 22), b"x", {1: 2}, {"\ud800": 1}, {_Name("a"): 1}, OrderedDict(a=1), frozenset({1}), None,
]  # fmt: skip
odd_values = st.recursive(
    st.one_of(st.sampled_from(_ODD), st.text(), st.text(st.characters(max_codepoint=127)), st.integers(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=12,
)


def _dumps_like_orjson(value: object) -> bytes:
    """Stand in for orjson, which writes some values otherwise and takes some that are no JSON."""

    def default(odd: object) -> object:
        return odd.value if isinstance(odd, enum.Enum) else str(odd)

    def raw(item: object) -> object:
        if isinstance(item, float):
            return None if math.isnan(item) else f"{item:g}"
        if isinstance(item, dict):
            return {name: raw(value) for name, value in cast("dict[str, object]", item).items()}
        return [raw(value) for value in cast("list[object]", item)] if isinstance(item, list) else item

    try:
        return json.dumps(raw(value), ensure_ascii=False, separators=(",", ":"), default=default).encode()
    except UnicodeEncodeError as error:
        raise TypeError(str(error)) from None


@pytest.mark.parametrize("loaded", [False, True])
@given(odd_values)
def test_every_encoder_writes_the_same_bytes(loaded: bool, value: object) -> None:
    """What is written, and what is refused, does not depend on whether orjson is loaded."""
    try:
        expected: str | None = json.dumps({"v": value}, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        expected = None
    # Inside of the test, since Hypothesis runs it many times in one fixture.
    with pytest.MonkeyPatch.context() as patch:
        if loaded and "orjson" not in sys.modules:
            patch.setitem(sys.modules, "orjson", SimpleNamespace(dumps=_dumps_like_orjson))
        use_loaded_encoder()
        try:
            if expected is None:
                with pytest.raises(InvalidInput):
                    encode({"v": value})
            else:
                assert encode({"v": value}) == expected.encode()
        finally:
            patch.undo()
            use_loaded_encoder()


def test_a_faster_encoder_knows_the_limit_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too long is refused whoever encodes it."""
    monkeypatch.setitem(sys.modules, "orjson", SimpleNamespace(dumps=_dumps_like_orjson))
    use_loaded_encoder()
    try:
        with pytest.raises(InvalidInput, match="the limit is"):
            encode({"v": "x" * MAX_LINE})
    finally:
        monkeypatch.undo()
        use_loaded_encoder()


def test_an_encoder_that_writes_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of that name whose output differs, or which is not loaded to its end, is left alone."""
    for dumps in ({"dumps": lambda _: b"{}"}, {}):  # pyright: ignore[reportUnknownLambdaType, reportUnknownVariableType]
        monkeypatch.setitem(sys.modules, "orjson", SimpleNamespace(**dumps))
        use_loaded_encoder()

        assert encode({"v": 1}) == b'{"v":1}'
    monkeypatch.undo()
    use_loaded_encoder()


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
    record.pop("sum", None)  # what is sealed has none
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


@pytest.mark.parametrize("before", [0, 500_000])
@pytest.mark.parametrize("length", [0, 300, 5000])
def test_sums_are_the_same_whoever_hashes(before: int, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a little, which the interpreter hashes itself, and those of much are SHA-256."""
    monkeypatch.setattr(codec, "_sha256", codec._hash_few)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(codec, "_hashed", before)
    monkeypatch.delitem(sys.modules, "hashlib")

    assert chain("ab", b"x" * length) == sha256(b"ab" + b"x" * length).hexdigest()[:16]


def test_writing_a_record_loads_next_to_nothing() -> None:
    """One record is encoded, read, and summed without `json`, regular expressions, or the library of hashes."""
    code = (
        "import sys; from ctxmgr.log.codec import chain, decode, encode, fingerprint; line = encode({'v': 1, 'x': [1.5]}); "
        "chain('', line); fingerprint(decode(line)); sys.exit(bool(sys.modules.keys() & {'json', 're', 'typing', 'hashlib'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("call", ["codec.decode(b'{')", "fast_json.loads('{')", "row_mapper.LongTexts().load('{')"])
def test_damage_is_told_before_json_is_loaded(call: str) -> None:
    """What is no JSON raises a ValueError or Damaged, even while the scanner in C knows no class for its error."""
    code = (
        "import sys\nfrom ctxmgr.errors import Damaged\nfrom ctxmgr.log import codec, fast_json\n"
        "from ctxmgr.store import row_mapper\nassert 'json' not in sys.modules\n"
        f"try: {call}\nexcept (ValueError, Damaged): sys.exit(0)\nsys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_text_over_the_limit_is_refused_before_it_is_encoded(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge text costs no copy of itself: it is refused by its length."""

    def encoded(*_: object) -> str:
        raise AssertionError("it was encoded")

    monkeypatch.setattr(codec, "_text", encoded)
    monkeypatch.setattr(codec, "_faster", None)
    value: object = "y" * (codec.MAX_LINE + 1)
    for _ in range(depth):
        value = {"a": value}
    with pytest.raises(InvalidInput, match="the limit is"):
        codec.encode_value(value, 0)


TORN = ['{"a', '{"a"', '{"a":', '{"a":1', "{1", "[1", '"a', '"\\x"', "[1 2]", "", "nul", '{"a":"\\ud8"}', "{,}"]


@pytest.mark.parametrize("module", ["fast_json", "codec"])
@pytest.mark.parametrize("text", TORN)
def test_what_is_no_json_is_a_value_error(module: str, text: str) -> None:
    """The interpreter's scanner takes its exception from `json`, and fails without one where that is not loaded."""
    call = "fast_json.loads(text)" if module == "fast_json" else "codec.decode(text.encode())"
    code = (
        f"import sys\nfrom ctxmgr.log import {module}\ntext = {text!r}\nassert 'json' not in sys.modules\n"
        f"try: {call}\nexcept ValueError: print('refused')"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("refused\n", "")
