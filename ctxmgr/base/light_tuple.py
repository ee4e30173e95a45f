"""Named tuples without the checks of `typing.NamedTuple`, which take most of the time of its definitions.

A class declares its fields as with `typing.NamedTuple`, and behaves like one. Annotations stay the texts that they are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Definition(type):
        """Turns the definition of a class into a named tuple with its fields, defaults, methods and docstring."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type[tuple[Any, ...]]:
            fields = body["__annotations__"]
            made = namedtuple(
                name, fields, defaults=[body[field] for field in fields if field in body], module=body["__module__"]
            )
            for key, value in body.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Definition, "NamedTuple", (), {})

__all__ = ["NamedTuple"]
