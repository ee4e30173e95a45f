"""Whatever an agent hands over becomes JSON, and nothing raises."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel

from ctxmgr.log.json_value import MAX_REPR, count_unstored, describe, is_plain, plain, shorten, type_name
from tests.test_recorder_template import VALUES

leaves = st.one_of(
    st.sampled_from(VALUES), st.text(), st.integers(), st.sampled_from([2**62 - 1, 2**62, -(2**62)]), st.booleans(), st.floats()
)


class _Model(BaseModel):
    when: datetime
    parts: set[int]


@dataclass
class _Data:
    name: str
    inner: list[Path] = field(default_factory=list[Path])


class _Pair(NamedTuple):
    left: int
    right: str


class _Colour(enum.Enum):
    RED = "red"


class _Level(enum.IntEnum):
    HIGH = 3


class _Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    @property
    def model_dump(self) -> object:
        raise ValueError("no")


class _Lying(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise OSError("gone")

    def __len__(self) -> int:
        return 1


class _SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

_VALUES: list[tuple[object, object]] = [
    (None, None), (True, True), (3, 3), (1.5, 1.5), ("a\ud800", "a\ud800"), ([1, (2,)], [1, [2]]),
    ({"a": {"b": 1}}, {"a": {"b": 1}}), (float("nan"), "NaN"), (float("inf"), "Infinity"), ([float("-inf")], ["-Infinity"]),
    ({3, 1}, [1, 3]), (frozenset("a"), ["a"]), (b"a\xff", {"base64": "Yf8="}),
    (bytearray(b"x"), "x"), (memoryview(b"abcd")[::2], "ac"),
    (MOMENT, "2026-01-02T03:04:05+00:00"), (date(2026, 1, 2), "2026-01-02"), (time(3, 4), "03:04:00"),
    (Path("/a/b"), "/a/b"),
    (_Colour.RED, "red"),
    (_Level.HIGH, 3),
    (_Data("x", [Path("y")]), {"name": "x", "inner": ["y"]}), (_Pair(1, "b"), [1, "b"]),
    (OrderedDict[str, int](a=1), {"a": 1}), (Decimal("1.50"), "Decimal('1.50')"), (1 + 2j, "(1+2j)"),
    (_Hostile(), "<_Hostile>"),
    (_Model(when=MOMENT, parts={2, 1}), {"when": "2026-01-02T03:04:05+00:00", "parts": [1, 2]}), (int, "<class 'int'>"),
    ({1: "a", None: "b", (1, 2): "c", b"k": "d"}, {"1": "a", "None": "b", "[1, 2]": "c", "k": "d"}),
    (10**5_000, hex(10**5_000)), (_Lying(), None), (_Model, None), (len, None),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(_VALUES)))
def test_values_become_json(number: int) -> None:
    """Each kind of value has a JSON form that strict JSON can hold and that a reader can parse again."""
    value, expected = _VALUES[number]
    made = plain(value)

    assert json.loads(json.dumps(made, allow_nan=False)) == made
    if expected is None and value is not None:
        assert isinstance(made, str)
    else:
        assert made == expected


class _Plain:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class _Slotted:
    __slots__ = ("_hidden", "left", "right")

    def __init__(self) -> None:
        self.left: object = [1]
        self._hidden = "x"


class _Heir(_Slotted):
    __slots__ = ("own",)

    def __init__(self) -> None:
        super().__init__()
        self.own = 2


class _Private:
    def __init__(self) -> None:
        self._text = "kept"


class _Calling(_Plain):
    def __call__(self) -> None:
        """Be callable, and an object with fields all the same."""


class _LoudError(ValueError):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = 7


class _Faulty:
    """An object one of whose fields can't be read."""

    __slots__ = ("fine", "torn")

    def __init__(self) -> None:
        self.fine = 1
        self.torn = _Hostile()


_OBJECTS: list[tuple[object, object]] = [
    (_Plain(a=1, b=_Plain(c=b"d")), {"a": 1, "b": {"c": "d"}}), (_Slotted(), {"left": [1]}),
    (_Heir(), {"left": [1], "own": 2}), (_Private(), {"_text": "kept"}), (_Plain(), {}), (_Calling(a=1), {"a": 1}),
    (_LoudError("loud"), {"type": "_LoudError", "message": "loud", "code": 7}),
    (ValueError("x"), {"type": "ValueError", "message": "x"}), ({"k": [_Slotted()]}, {"k": [{"left": [1]}]}),
    (_Plain(when=_Plain), {"when": f"<class '{__name__}._Plain'>"}), (_Plain(call=len), {"call": "<built-in function len>"}),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(_OBJECTS)))
def test_objects_keep_their_fields(number: int) -> None:
    """Plain and slotted objects are stored with what they hold, wherever they lie; nothing of it counts as not stored."""
    value, expected = _OBJECTS[number]
    before = count_unstored()

    assert plain(value) == expected
    assert count_unstored() == before


@pytest.mark.parametrize("value", [object(), Lock(), (item for item in ""), _Hostile(), {"in": [object()]}, _Faulty()])
def test_what_has_no_content_is_counted(value: object) -> None:
    """Objects that nothing can be read of leave their class, without an address, and are counted."""
    before = count_unstored()
    made = json.dumps(plain(value))

    assert "0x" not in made
    assert count_unstored() == before + 1


def test_a_whole_program_behind_an_object_is_not_stored() -> None:
    """Objects that hold each other are followed only so far, and what was left out is counted."""
    tangled = [_Plain() for _ in range(30)]
    for one in tangled:
        one.__dict__.update({f"n{number}": other for number, other in enumerate(tangled)})
    before = count_unstored()

    assert len(json.dumps(plain(tangled[0]))) < 2_000_000
    assert count_unstored() > before


def test_what_contains_itself_is_cut() -> None:
    """A circle is marked where it closes; the same object twice is no circle."""
    circle: dict[str, Any] = {"a": [1]}
    circle["a"].append(circle)
    twice = [1]

    assert plain(circle) == {"a": [1, "<circular>"]}
    assert plain([twice, twice]) == [[1], [1]]


def test_deep_nesting_is_cut() -> None:
    """Nesting beyond a hundred levels ends in a mark that says so."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert "<nested deeper than 100>" in json.dumps(plain(deep))


def test_a_long_repr_is_cut() -> None:
    """An object without JSON form costs at most ten thousand characters."""

    class Long:
        def __repr__(self) -> str:
            return "x" * 50_000

    assert plain(Long()) == "x" * MAX_REPR


@pytest.mark.parametrize(
    ("value", "name"),
    [({}, "object"), ((1,), "array"), ("", "string"), (True, "boolean"), (1.0, "number"), (None, "null"),
     (_Pair(1, ""), "_Pair")],
)  # fmt: skip
def test_types_have_json_names(value: object, name: str) -> None:
    """The input type is JSON's name, or the class's where JSON has none."""
    assert type_name(value) == name


def test_what_is_too_large_is_described() -> None:
    """Size, hash and beginning stand for a value too large to record."""
    short = shorten("a" * 20_000)

    assert (short["tooLarge"], len(short["sha256"]), short["head"]) == (20_000, 64, "a" * MAX_REPR)
    assert shorten(["\ud800"])["head"] == "['\\ud800']"


def test_every_exception_can_be_described() -> None:
    """An exception without a message, or with one that raises, still gives text."""
    assert describe(ValueError("x")) == "x"
    assert describe(ValueError()) == "ValueError()"
    assert describe(_SilentError()) == "_SilentError()"


@given(st.one_of(leaves, st.dictionaries(st.one_of(st.text(), st.integers(), st.booleans()), leaves, max_size=4)))
def test_what_is_plain_stays_as_it_is(value: Any) -> None:
    """A value that is called plain is returned by `plain` as it is, its types and keys included."""
    assume(is_plain(value))
    made = plain(value)
    assert repr(made) == repr(value)
    assert type(made) is type(value)
