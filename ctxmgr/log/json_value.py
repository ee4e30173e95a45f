"""Convert any Python value to plain JSON without raising.

Standard library only. Pydantic models and dataclasses are recognised by their methods and attributes.
"""

from __future__ import annotations

import enum
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from ctxmgr.errors import InvalidInput
from ctxmgr.log import codec

MAX_REPR = 10_000
"""Number of characters kept of the ``repr`` of a value that has no JSON form."""

MAX_FIELD = codec.MAX_LINE // 8
"""Maximum length of a field in bytes. A record has fewer than eight fields of free form."""

_MAX_DEPTH = 100
_MAX_OBJECTS, _MAX_OBJECT_DEPTH = 1_000, 6  # an agent's object may refer to its client, and that to the whole program
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
_MAX_DIGITS = 4_000  # Python itself refuses to print or read longer integers
_MAX_SMALL = 1 << 62
"""Integers of a smaller absolute value are accepted by every encoder. Larger ones need a check."""
_TEXT = frozenset({str})
_LEAVES = frozenset({str, bool, type(None)})
_LEAVES_AND_NUMBERS = _LEAVES | {int}
_NAMES = {"dict": "object", "list": "array", "tuple": "array", "str": "string", "bool": "boolean", "int": "number",
          "float": "number", "NoneType": "null"}  # fmt: skip


class _Walk(threading.local):
    """The state of one thread's walk through objects.

    Attributes:
        unstored: the number of values, ever, whose content could not be kept.
        left: the number of objects that this walk may still enter.
        depth: the number of objects around the current value.
    """

    def __init__(self) -> None:
        self.unstored = 0
        self.left = _MAX_OBJECTS
        self.depth = 0


_walk = _Walk()


def plain(value: object) -> Any:
    """Return ``value`` as values of strict JSON.

    Dataclasses, pydantic models, mappings and enumerations keep their structure, and so do the fields of plain objects
    and of those with ``__slots__``. Sets become lists in a stable order, dates and paths become text. Bytes become text
    if they are UTF-8, else ``{"base64": ...}``. An exception becomes its type, message and fields. NaN and infinities
    become ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. A value that contains itself becomes ``"<circular>"``, anything else
    its ``repr``. A value whose content can't be read becomes ``"<its class>"``, and `count_unstored` counts it.
    """
    _walk.left, _walk.depth = _MAX_OBJECTS, 0
    try:
        return _plain(value, ())
    except Exception:
        # Properties and methods of a recorded object are foreign code and may raise anything.
        return _represent(value)


def count_unstored() -> int:
    """Return the number of values whose content `plain` could not keep, since this thread began."""
    return _walk.unstored


def is_plain(value: object) -> bool:
    """Whether `plain` would certainly return the same value. False does not mean that it would not."""
    if type(value) is not dict:
        return type(value) in _LEAVES
    members = cast("dict[object, object]", value)
    if not _TEXT.issuperset(map(type, members)):
        return False
    kinds = set(map(type, members.values()))
    if int in kinds:
        return kinds <= _LEAVES_AND_NUMBERS and all(
            -_MAX_SMALL < n < _MAX_SMALL for n in members.values() if isinstance(n, int)
        )
    return kinds <= _LEAVES


def type_name(value: object) -> str:
    """Return the JSON name of the value's type, or the name of its Python class if JSON has no such type."""
    name = type(value).__name__
    return _NAMES.get(name, name)


def shorten(value: object) -> dict[str, Any]:
    """Return the stand-in for a value too large to record: {tooLarge: characters, sha256, head: its first characters}."""
    text = value if isinstance(value, str) else _represent(value, None)
    digest = codec.digest(text.encode("utf-8", "surrogatepass"))
    return {"tooLarge": len(text), "sha256": digest, "head": text[:MAX_REPR]}


def fit_field(value: object) -> object:
    """Return a field of a record; one that is too large, or no JSON, becomes its stand-in (`shorten`)."""
    try:
        return value if len(codec.encode({"": value})) <= MAX_FIELD else shorten(value)
    except InvalidInput:
        return shorten(value)


def describe(error: BaseException) -> str:
    """Return the error's message, or its ``repr`` if it has none."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return text[:MAX_REPR] or _represent(error)


def _plain(value: object, parents: tuple[int, ...]) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool or (kind is int and -_MAX_SMALL < cast("int", value) < _MAX_SMALL):
        return value
    if kind is dict or kind is list:  # the most frequent containers, past the checks for rarer types
        return _convert_nested(value, parents)
    if isinstance(value, enum.Enum):
        return _plain(cast("object", value.value), parents)
    if isinstance(value, (str, int, float)):
        return _text_or_number(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text_or_base64(bytes(cast("bytes", value)))
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return _plain(os.fspath(cast("os.PathLike[str]", value)), parents)
    return _convert_nested(value, parents)


def _text_or_number(value: str | float) -> Any:
    """Return a large number, or a value of a class of its own, as JSON's own type."""
    if isinstance(value, str):
        # Not `str(value)`, which a subclass may override.
        return str.__str__(value)
    if isinstance(value, int):
        # A digit has more than three bits, so fewer bits than this mean fewer digits than Python's limit.
        return int(value) if value.bit_length() < 3 * _MAX_DIGITS else hex(value)[:MAX_REPR]
    return _number(float(value))


def _convert_nested(value: object, parents: tuple[int, ...]) -> Any:
    if id(value) in parents:
        return "<circular>"
    if len(parents) >= _MAX_DEPTH:
        return f"<nested deeper than {_MAX_DEPTH}>"
    return _container(value, (*parents, id(value)))


def _text_or_base64(value: bytes) -> Any:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"base64": b2a_base64(value, newline=False).decode("ascii")}


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _container(value: object, parents: tuple[int, ...]) -> Any:
    if type(value) is dict or isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {name if type(name) is str else _plain_key(name): _plain(item, parents) for name, item in items}
    if isinstance(value, (set, frozenset)):
        members = [_plain(item, parents) for item in cast("Iterable[object]", value)]
        return sorted(members, key=repr)  # the order of a set differs between runs, but its fingerprint must not
    if isinstance(value, (list, tuple)):
        return [_plain(item, parents) for item in cast("Iterable[object]", value)]
    return _convert_object(value, parents)


def _convert_object(value: object, parents: tuple[int, ...]) -> Any:
    """Return a class, or an object of any class that is no container: by its own method, its fields or its ``repr``."""
    if isinstance(value, type):  # a class has the attributes of its instances' protocols, but no values
        return _represent(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return _plain(cast("Callable[[], object]", dump)(), parents)
    if fields := getattr(value, "__dataclass_fields__", None):
        return {str(name): _plain(getattr(value, name, None), parents) for name in cast("Iterable[str]", fields)}
    if isinstance(value, BaseException):
        fields = _object(value, parents)
        return {**(fields if isinstance(fields, dict) else {}), "type": type(value).__name__, "message": describe(value)}
    # A ``repr`` with an address is Python's default or says as little, so use the fields.
    if _has_own_repr(value) and not _ADDRESS.search(text := _represent(value)):
        return text
    if isinstance(value, _CODE) or not (names := _field_names(value)):
        return _stand_in(value)
    return _object(value, parents, names)


def _has_own_repr(value: object) -> bool:
    return type(value).__repr__ is not object.__repr__


def _stand_in(value: object) -> Any:
    """Return the stand-in for an object without fields, of which nothing is lost."""
    if type(value).__module__ != "builtins" and not _has_own_repr(value):
        return {}
    return _represent(value)


def _field_names(value: object) -> list[str]:
    """Return the names of an object's public fields, or of the private ones if it has no public ones."""
    # Base classes first, which is the order of the declarations.
    names = [name for kind in reversed(type(value).__mro__) for name in _list_slots(kind)]
    names += vars(value) if hasattr(value, "__dict__") else ()
    names = [name for name in dict.fromkeys(names) if not name.startswith("__")]
    return [name for name in names if not name.startswith("_")] or names


def _list_slots(kind: type) -> list[str]:
    slots: Any = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if isinstance(name, str)]


def _object(value: object, parents: tuple[int, ...], names: Iterable[str] | None = None) -> dict[str, Any] | str:
    """Return the readable fields of an object; its class name if it exceeds the limit on objects or on depth."""
    if _walk.left <= 0 or _walk.depth >= _MAX_OBJECT_DEPTH:
        return _mark_unstored(value)
    _walk.left -= 1
    _walk.depth += 1
    try:
        return {name: _read_field(value, name, parents) for name in names or _field_names(value) if _is_set(value, name)}
    finally:
        _walk.depth -= 1


def _is_set(value: object, name: str) -> bool:
    try:
        return hasattr(value, name)
    except Exception:  # a property, which is foreign code
        return True


def _read_field(value: object, name: str, parents: tuple[int, ...]) -> Any:
    try:
        return _plain(getattr(value, name), parents)
    except Exception:
        return _mark_unstored(value)


def _mark_unstored(value: object) -> str:
    _walk.unstored += 1
    return f"<{type(value).__name__}>"


def _plain_key(name: object) -> str:
    if isinstance(name, str):
        return str.__str__(name)
    made = _plain(name, ())
    return made if isinstance(made, str) else _represent(made)


def _represent(value: object, limit: int | None = MAX_REPR) -> str:
    """Return the ``repr`` of a value without memory addresses, which differ each time."""
    try:
        text = repr(value)
    except Exception:
        return _mark_unstored(value)
    if " at 0x" in text[:MAX_REPR]:
        # For code there is nothing to keep but the name, so nothing is lost.
        if not isinstance(value, _CODE):
            _walk.unstored += 1
        text = _ADDRESS.sub("", text)
    return text[:limit]
