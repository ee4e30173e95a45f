"""Find the JSON that stands within recorded text, and the objects within it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

_MOST_TEXT, _MOST_OBJECTS = 12_000, 400


def json_in(text: str, most: int = 6) -> Iterator[Any]:
    """Yield the objects and arrays of JSON that stand within a text, the outermost ones."""
    decoder, at, found = json.JSONDecoder(), 0, 0
    for _ in range(40):
        starts = [place for sign in "{[" if (place := text.find(sign, at)) >= 0]
        if not starts or found >= most:
            return
        at = min(starts)
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value, dict | list) and value:
            found += 1
            yield value


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects within a value of JSON, the outer ones first; texts that hold JSON are opened."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            return
        item, depth = waiting.pop(0)
        if isinstance(item, str) and depth < 4 and ("{" in item or "[" in item):
            waiting += [(part, depth + 1) for part in json_in(item[:_MOST_TEXT])]
        elif isinstance(item, list) and depth < 12:
            waiting += [(part, depth + 1) for part in cast("list[Any]", item)[:100]]
        elif isinstance(item, dict) and depth < 12:
            fields = cast("dict[str, Any]", item)
            yield fields
            waiting += [(part, depth + 1) for part in fields.values() if isinstance(part, dict | list | str)]
