"""Light named tuples behave like those of `typing`."""

from __future__ import annotations

import pickle
import typing

from ctxmgr.base import light_tuple


class Light(light_tuple.NamedTuple):
    """A place."""

    name: str
    number: int = 7

    @property
    def both(self) -> str:
        """Name and number."""
        return f"{self.name} {self.number}"

    @classmethod
    def first(cls, name: str) -> Light:
        """Return a place with the number 1."""
        return cls(name, 1)


class Typed(typing.NamedTuple):
    """A place."""

    name: str
    number: int = 7


def test_a_light_tuple_is_a_named_tuple() -> None:
    """Fields, defaults, docstring, module, methods, copies, equality and pickles are those of a named tuple."""
    light, typed = Light("a"), Typed("a")

    assert light == typed == ("a", 7)
    assert repr(light) == repr(typed).replace("Typed", "Light")
    assert (Light._fields, Light._field_defaults, Light.__doc__) == (Typed._fields, Typed._field_defaults, Typed.__doc__)
    assert (Light.__module__, Light.__qualname__) == (__name__, "Light")
    assert (light.both, Light.first("b"), light._replace(number=2)) == ("a 7", ("b", 1), ("a", 2))
    assert pickle.loads(pickle.dumps(light)) == light
