"""Turn any Python value into plain JSON: what an agent hands over is recorded, however odd, and never raises.

Standard library only; pydantic models and dataclasses are recognised by what they can do.
"""

from __future__ import annotations

import enum
import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from typing import Any, cast

MAX_REPR = 10_000
"""Characters kept of the ``repr`` of a value that has no JSON form."""

_MAX_DEPTH = 100
_MAX_DIGITS = 4_000  # Python itself refuses to print or read longer integers
_SMALL = 1 << 62
_TEXT = frozenset({str})
_LEAVES = frozenset({str, bool, type(None)})
_LEAVES_AND_NUMBERS = _LEAVES | {int}
_NAMES = {"dict": "object", "list": "array", "tuple": "array", "str": "string", "bool": "boolean", "int": "number",
          "float": "number", "NoneType": "null"}  # fmt: skip


def plain(value: object) -> Any:
    """Return ``value`` as values that strict JSON can hold.

    Dataclasses, pydantic models, mappings and enumerations keep their structure; sets become lists in a stable order;
    dates, paths and bytes become text; NaN and infinities become ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``; what
    contains itself becomes ``"<circular>"``; anything else its ``repr``.
    """
    try:
        return _plain(value, ())
    except Exception:
        # Properties and methods of a recorded object are its author's code and may raise anything.
        return _represent(value)


def is_plain(value: object) -> bool:
    """Whether `plain` would return the same value beyond doubt; False says nothing."""
    if type(value) is not dict:
        return type(value) in _LEAVES
    members = cast("dict[object, object]", value)
    if not _TEXT.issuperset(map(type, members)):
        return False
    kinds = set(map(type, members.values()))
    if int in kinds:
        return kinds <= _LEAVES_AND_NUMBERS and all(-_SMALL < n < _SMALL for n in members.values() if isinstance(n, int))
    return kinds <= _LEAVES


def type_name(value: object) -> str:
    """Return the JSON name of the value's type, or the name of its Python class where JSON has none."""
    name = type(value).__name__
    return _NAMES.get(name, name)


def shorten(value: object) -> dict[str, Any]:
    """Return what stands for a value too large to record: its size in characters, its hash and its beginning."""
    text = value if isinstance(value, str) else _represent(value, None)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"tooLarge": len(text), "sha256": digest, "head": text[:MAX_REPR]}


def describe(error: BaseException) -> str:
    """Return the error's message, or its ``repr`` when it has none."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return text[:MAX_REPR] or _represent(error)


def _plain(value: object, parents: tuple[int, ...]) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool or (kind is int and -_SMALL < cast("int", value) < _SMALL):
        return value
    if kind is dict or kind is list:  # which are none of what is looked for here
        return _inside(value, parents)
    if isinstance(value, enum.Enum):
        return _plain(cast("object", value.value), parents)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() < 3 * _MAX_DIGITS else hex(value)[:MAX_REPR]
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, memoryview):
        value = cast("memoryview[int]", value).tobytes()
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return _plain(os.fspath(cast("os.PathLike[str]", value)), parents)
    return _inside(value, parents)


def _inside(value: object, parents: tuple[int, ...]) -> Any:
    if id(value) in parents:
        return "<circular>"
    if len(parents) >= _MAX_DEPTH:
        return f"<nested deeper than {_MAX_DEPTH}>"
    return _container(value, (*parents, id(value)))


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _container(value: object, parents: tuple[int, ...]) -> Any:
    if type(value) is dict or isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {name if type(name) is str else _key(name): _plain(item, parents) for name, item in items}
    if isinstance(value, (set, frozenset)):
        members = [_plain(item, parents) for item in cast("Iterable[object]", value)]
        return sorted(members, key=repr)
    if isinstance(value, (list, tuple)):
        return [_plain(item, parents) for item in cast("Iterable[object]", value)]
    if isinstance(value, type):
        return _represent(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return _plain(cast("Callable[[], object]", dump)(), parents)
    if fields := getattr(value, "__dataclass_fields__", None):
        return {str(name): _plain(getattr(value, name, None), parents) for name in cast("Iterable[str]", fields)}
    return _represent(value)


def _key(name: object) -> str:
    if isinstance(name, str):
        return str.__str__(name)
    made = _plain(name, ())
    return made if isinstance(made, str) else _represent(made)


def _represent(value: object, limit: int | None = MAX_REPR) -> str:
    try:
        return repr(value)[:limit]
    except Exception:
        return f"<{type(value).__name__}>"
