"""Normalise the texts of a record for search: fold their case, and find each with its path."""

from __future__ import annotations

from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ctxmgr.log.codec import Record

# A noncharacter that no folded text contains, so that no match can span two texts.
_SEPARATOR = "\U0010ffff"
# Recorded values may be nested to any depth. Values below this depth are not searched.
_DEPTH = 64
_WIDTH = 60  # characters of an excerpt on each side of the match

FIELDS: dict[str, tuple[str, ...]] = {
    "entry": ("action", "agent", "inputType", "input", "output", "error", "task"),
    "result": ("output", "error"),
    "event": ("type", "agent", "data"),
    "note": ("content", "tags", "links", "author"),
}
"""The fields of each kind of record that a search covers."""


def fold(text: str) -> str:
    """Return a text in the form for comparison: case-folded, with U+FFFD for lone surrogates and U+10FFFF."""
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    # A text outside of ASCII may fold to ASCII: the Kelvin sign folds to k.
    return folded if folded.isascii() else _unstorable().sub("\ufffd", folded)


_pattern: re.Pattern[str] | None = None


def _unstorable() -> re.Pattern[str]:
    global _pattern  # compiled at first use, because most processes never need it
    if _pattern is None:
        import re

        _pattern = re.compile("[\ud800-\udfff\U0010ffff]")
    return _pattern


def storable(text: str) -> str:
    """Return a text that a database can store, with lone surrogates replaced by their escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain_texts(record: Record) -> list[str]:
    """Return the texts of `searchable_texts` for a record decoded from JSON. Faster, without paths and in any order."""
    return flat_texts([record.get(name) for name in FIELDS.get(str(record.get("kind")), ())])


_kind_of: Callable[[object], object] = type


def flat_texts(values: Iterable[Any]) -> list[str]:
    """Return the texts, numbers and keys in the values of a record's fields, in any order."""
    # Walk level by level, because one call for each value, as in `_walk`, would take longer than the work itself.
    texts: list[str] = []
    level, depth = values, _DEPTH
    while level:
        below: list[Any] = []
        for value in level:
            kind = _kind_of(value)
            if kind is str:
                texts.append(value)
            elif kind is dict:
                if depth:
                    texts += value
                    below += value.values()
            elif kind is list:
                if depth:
                    below += value
            elif kind is int or kind is float:
                texts.append(repr(value))
        level, depth = below, depth - 1
    return texts


def fold_text(record: Record) -> str | None:
    """Return the searchable text of a record, or None for kinds that search does not cover."""
    texts = [fold(text) for _, text in searchable_texts(record)]
    return _SEPARATOR.join(texts) if texts else None


def searchable_texts(record: Record) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every text, number and key that search covers, e.g. ``("input.command", "ls")``."""
    for name in FIELDS.get(str(record.get("kind")), ()):
        yield from _walk(name, record.get(name), _DEPTH)


def _walk(path: str, value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield path, repr(value)
    elif depth == 0:
        return
    elif isinstance(value, dict):
        for name, item in cast("dict[object, Any]", value).items():
            key = name if isinstance(name, str) else _spell(name)
            yield f"{path}.{key}", key
            yield from _walk(f"{path}.{key}", item, depth - 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _walk(f"{path}[{number}]", item, depth - 1)


def _spell(key: object) -> str:
    """Return the JSON spelling of a key that is not a string."""
    import json

    return json.dumps(key)


def find(record: Record, needle: str) -> tuple[str, str] | None:
    """Return (path, excerpt around the first match of the folded ``needle``), or None when nothing matches."""
    for name in FIELDS.get(str(record.get("kind")), ()):
        if (found := _first(record.get(name), needle, _DEPTH)) is not None:
            path, text, folded = found
            first = folded.find(needle)
            last = first + len(needle)
            # Some letters fold to several (ß to ss), so offsets in the folded text differ from those in the text itself.
            if len(folded) != len(text):
                first, last = _unfold(text, first), _unfold(text, last)
            start, end = max(0, first - _WIDTH), min(len(text), last + _WIDTH)
            return name + path, ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return None


def _first(value: Any, needle: str, depth: int) -> tuple[str, str, str] | None:
    """Return (path below the value, text, folded text) for the first text of `_walk` that contains the needle, or None."""
    if isinstance(value, str):
        folded = value.lower() if value.isascii() else fold(value)
        return ("", value, folded) if needle in folded else None
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, dict):
        for name, item in cast("dict[object, Any]", value).items() if depth else ():
            key = name if isinstance(name, str) else _spell(name)
            folded = key.lower() if key.isascii() else fold(key)
            if needle in folded:
                return f".{key}", key, folded
            if (found := _first(item, needle, depth - 1)) is not None:
                return f".{key}{found[0]}", found[1], found[2]
    elif isinstance(value, list | tuple):
        for number, item in enumerate(cast("list[Any]", value)) if depth else ():
            if (found := _first(item, needle, depth - 1)) is not None:
                return f"[{number}]{found[0]}", found[1], found[2]
    elif isinstance(value, int | float):
        text = repr(value)
        return ("", text, text) if needle in text else None
    return None


def _unfold(text: str, place: int) -> int:
    """Return the offset in a text for an offset in its folded form. One letter may fold to up to three."""
    passed = 0
    for number, letter in enumerate(text):
        if passed >= place:
            return number
        passed += len(letter.casefold())
    return len(text)
