"""Write values as YAML that every parser reads back unchanged.

Text goes into a literal block where YAML can hold it there unchanged, else between quotes with escapes. All strings but
the plainest keys are quoted, so that YAML 1.1 and 1.2 agree on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from ctxmgr.text.lazy_pattern import lazy_pattern

_BARE_KEY = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]{0,60}", re.ASCII)
# Words that YAML 1.1 reads as booleans or null, also as keys.
_OTHER_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_UNSAFE = lazy_pattern(
    '[\x00-\x1f"\\\\\x7f-\xa0\u00ad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\ud800-\udfff\ufeff\ufff0-\uffff]'
    "|[\U000e0000-\U000e0fff]"
)
# Controls and line breaks that a literal block can't hold or would change.
_NOT_LITERAL = lazy_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_MAX_KEY = 100  # a parser need not accept a simple key of more than 1,024 characters (YAML 1.2)
_MAX_BLOCK_DEPTH = 8


def quoted(text: str) -> str:
    """Return the text between double quotes, on one line, with escapes for all that is not plainly visible."""
    return '"' + _UNSAFE.sub(_escaped, text) + '"'


def block(key: str, text: str, indent: int) -> str:
    """Return ``key: text`` at that many blanks, the text as a literal block where that gives it back unchanged."""
    margin = " " * indent
    if not text.strip("\n") or _NOT_LITERAL.search(text) is not None:
        return f"{margin}{key}: {quoted(text)}\n"
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    # A first line that begins with a blank would set the block's indentation: it is stated instead.
    marker = "2" if body[0] in " \t\n" else ""
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    inner = margin + "  "
    lines = "\n".join(inner + line if line else "" for line in body.split("\n"))
    return f"{margin}{key}: |{marker}{chomping}\n{lines}\n" + "\n" * (ends - 1)


def mapping(values: dict[str, Any], indent: int) -> Iterator[str]:
    """Yield the lines of a map at that many blanks, without line ends; the values are plain JSON."""
    margin = " " * indent
    for key, value in values.items():
        opening = f"{margin}{_key(key)}:" if len(key) <= _MAX_KEY else f"{margin}? {quoted(key)}\n{margin}:"
        yield from _member(opening, value, indent)


def _member(opening: str, value: object, indent: int) -> Iterator[str]:
    if isinstance(value, dict) and value and indent < 2 * _MAX_BLOCK_DEPTH:
        yield opening
        yield from mapping(cast("dict[str, Any]", value), indent + 2)
    elif isinstance(value, list) and value and indent < 2 * _MAX_BLOCK_DEPTH:
        yield opening
        for item in cast("list[object]", value):
            yield f"{' ' * indent}- {flow(item)}"
    else:
        yield f"{opening} {flow(cast('object', value))}"


def flow(value: object) -> str:
    """Return a plain JSON value on one line."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return "{" + ", ".join(f"{_flow_key(key)}: {flow(inner)}" for key, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in cast("list[object]", value)) + "]"
    if isinstance(value, float):
        return _float(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return str(value)


def _float(value: float) -> str:
    """Return the number with a point before its exponent, which YAML 1.1 asks for."""
    text = repr(value)
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if sign else text


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key.lower() not in _OTHER_WORDS else quoted(key)


def _flow_key(key: str) -> str:
    return quoted(key) if len(key) <= _MAX_KEY else f"? {quoted(key)} "


def _escaped(found: re.Match[str]) -> str:
    sign = found.group()
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
