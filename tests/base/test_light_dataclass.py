"""A light data class behaves as one of the standard library, and its functions work on it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from ctxmgr.base import light_dataclass as light


def _pair(module: Any, **options: Any) -> tuple[type[Any], type[Any]]:
    """Return two classes, the second made from the first, by a module's decorator."""

    @module.dataclass(**options)
    class Base:
        a: int
        b: str = "x"
        kept: ClassVar[int] = 7

        def double(self) -> int:
            return self.a * 2

    @module.dataclass(**options)
    class More(Base):
        c: list[int] = module.field(default_factory=list)
        d: dict[str, int] = module.field(default_factory=dict, compare=False)
        e: int = module.field(default=3, init=False, repr=False, compare=False)

    return Base, More


OPTIONS = [{}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_instances_are_alike(options: dict[str, Any]) -> None:
    """What is given, defaults, equality, hash, and how an instance is shown are those of the standard library."""
    base, more = _pair(light, **options)
    own, own_more = _pair(dataclasses, **options)
    for mine, theirs, given, named in (
        (base, own, (1,), {}), (base, own, (1, "y"), {}), (base, own, (), {"b": "z", "a": 2}),
        (more, own_more, (1,), {"c": [3]}), (more, own_more, (1, "q", [4], {"e": 5}), {}),
    ):  # fmt: skip
        made, other = mine(*given, **named), theirs(*given, **named)
        assert [getattr(made, name) for name in theirs.__match_args__] == [
            getattr(other, name) for name in theirs.__match_args__
        ]
        assert mine.__match_args__ == theirs.__match_args__
        assert repr(made).rpartition(".")[2] == repr(other).rpartition(".")[2]
        assert made == mine(*given, **named)
        assert (made == mine(9)) == (other == theirs(9))
        assert made.double() == other.double()
        assert dataclasses.asdict(made) == dataclasses.asdict(other)
        assert [each.name for each in dataclasses.fields(made)] == [each.name for each in dataclasses.fields(other)]
        assert dataclasses.replace(made, a=5).a == light.replace(made, a=5).a == 5
        assert copy.deepcopy(made) == made
        assert hasattr(made, "__dict__") == hasattr(other, "__dict__")
    assert more(1, d={"x": 1}) == more(1, d={})
    assert more(1).e == 3
    assert more(1).c is not more(1).c
    assert (base.__hash__ is None) == (own.__hash__ is None)
    if options.get("frozen"):
        assert hash(base(1)) == hash(base(1))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_wrong_calls_are_refused_alike(options: dict[str, Any]) -> None:
    """What is missing, unknown, or given twice is no call; a frozen instance can't be changed."""
    base, _ = _pair(light, **options)
    for given, named in (((), {}), ((1, 2, 3), {}), ((1,), {"nosuch": 1}), ((1,), {"a": 1})):
        with pytest.raises(TypeError):
            base(*given, **named)
    made = base(1)
    if options.get("frozen"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.a = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del made.a
    else:
        made.a = 2
        assert made.a == 2
    with pytest.raises(TypeError):
        light.replace(made, nosuch=1)


@light.dataclass(frozen=True, slots=True)
class Sample:
    """A class that can be found by its name."""

    a: int
    b: str = "b"


def test_an_instance_travels_between_processes() -> None:
    """A frozen instance with slots is the same after pickling."""
    assert pickle.loads(pickle.dumps(Sample(3))) == Sample(3)


def test_it_loads_next_to_nothing() -> None:
    """To make and to use a class loads neither the standard library's module nor what that loads."""
    code = (
        "import sys\nfrom ctxmgr.base.light_dataclass import dataclass\n@dataclass(frozen=True, slots=True)\nclass A:\n"
        "    a: 'int' = 1\nassert A() == A(1) != A(2)\nprint({'dataclasses', 'inspect', 'typing'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": "."}
    )
    assert ended.stdout == "set()\n"
