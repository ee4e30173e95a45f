"""Read and write JSON without importing the `json` package, for commands that run a few milliseconds.

The `json` package imports regular expressions, which alone take half as long to load as Python takes to start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any
    from typing import cast as cast

    _Scan = Callable[[str, int], tuple[Any, int]]
    """Function that returns the value at an offset, and its end. For a string the offset is behind the opening quote.

    For invalid JSON it raises StopIteration, ValueError or, while `json` is not loaded, SystemError.
    """
else:

    def cast(kind: object, value: Any) -> Any:
        """Return the value like `typing.cast`, without importing `typing`."""
        return value


def json_object(value: object) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one, because a recorded value may have any type."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType], a cast would be a call


def json_array(value: object) -> list[Any]:
    """Return the value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def json_texts(value: object) -> list[str]:
    """Return the texts in a JSON array; other values are skipped."""
    return [item for item in json_array(value) if isinstance(item, str)]


def json_objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a JSON array; other values are skipped."""
    return [item for item in json_array(value) if isinstance(item, dict)]


def text_or_none(value: object) -> str | None:
    """Return the value if it is a text, else None, because a recorded value may have any type."""
    return value if isinstance(value, str) else None


def text_or_empty(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


_SPACE = " \t\n\r"
_SAFE_DEL = ("\x7f", "\\u007f")
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Plain:
    """The attributes of a decoder that the C scanner reads, with the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__


def _load_parts() -> tuple[Callable[[str], Any], Callable[[Any], str], tuple[_Scan, _Scan]]:
    import _json

    parts: Any = _json
    scan = parts.make_scanner(_Plain)
    encoder = parts.make_encoder(None, str, parts.encode_basestring_ascii, None, ":", ",", False, False, False)

    def read(text: str) -> Any:
        bare = text.strip(_SPACE)
        try:
            value, end = scan(bare, 0)
        # While `json` is not loaded, the scanner can't find its error class, so the interpreter raises SystemError.
        except (StopIteration, SystemError):
            raise ValueError("no JSON value") from None
        if end != len(bare):
            raise ValueError("more than one JSON value")
        return value

    def write(value: Any) -> str:
        return "".join(encoder(value, 0))

    # `_json` is private to the interpreter, so test it once here to notice a change.
    if write(read(' {"a":[1,2.5,"\\u00e9",null]} ')) != '{"a":[1,2.5,"\\u00e9",null]}':
        raise ValueError("an unknown scanner")
    return read, write, (scan, parts.scanstring)


def _load_package() -> tuple[Callable[[str], Any], Callable[[Any], str], None]:
    import json

    encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"), check_circular=False, default=str)
    return json.loads, encoder.encode, None


parts: tuple[_Scan, _Scan] | None
"""The scanners for a value and for a string inside a longer text; None with another interpreter."""

try:
    loads, _write, parts = _load_parts()
except (ImportError, AttributeError, TypeError, ValueError):  # another interpreter; slower to start, but equivalent
    loads, _write, parts = _load_package()


def dumps(value: Any) -> str:
    """Return JSON in printable ASCII without blanks. A value without a JSON form becomes its ``str``.

    Raises:
        ValueError: the value contains NaN or an infinity.
    """
    # DEL is the only control character that the encoder does not escape.
    return _write(value).replace(*_SAFE_DEL)
