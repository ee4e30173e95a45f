"""Describe the shape of structured data: maps, lists and scalars."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

MAX_DEPTH = 60
"""Levels that are told apart; what lies deeper is one scalar."""
MAX_ITEMS = 1_000
"""Items of one list that are looked at; all are counted."""
MAX_TOLD = 300
"""Items of one list that are kept as they are."""
MAX_KEYS = 5_000
"""Keys of one map that are looked at; all are counted."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: the word of its type, and how it is written."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: how many items, the first of them, and all of them laid over each other (None when it is empty)."""

    count: int
    items: tuple[Node, ...]
    overlaid: Node | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a map with its value and the comments beside it."""

    key: str
    value: Node
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """A map in its own order; ``count`` is the number of its keys, of which ``entries`` may hold fewer."""

    count: int
    entries: tuple[Entry, ...]


Node = Scalar | Listing | Mapping
TOO_DEEP = Scalar("nested", "…")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys as they stand, repeated ones included."""


class _Number(str):
    """A JSON number as it is written: reading it would refuse very long ones."""


def from_json(text: str) -> Node:
    """Return the shape of a JSON document.

    Raises:
        ValueError: it is no JSON. RecursionError: it is nested deeper than can be read.
    """
    value = json.loads(text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    return _node(value, 0)


def listing(count: int, items: Sequence[Node]) -> Listing:
    """Return a list of ``count`` items of which ``items`` are the first."""
    return Listing(count, tuple(items[:MAX_TOLD]), overlay(items) if items else None)


def overlay(nodes: Sequence[Node], depth: int = 0) -> Node:
    """Return one node that has every key of the maps among the nodes, at every level, with the first value of each."""
    if depth > MAX_DEPTH:
        return TOO_DEEP
    maps = [node for node in nodes if isinstance(node, Mapping)]
    if maps:
        return _overlaid_maps(maps, depth)
    lists = [node for node in nodes if isinstance(node, Listing)]
    if lists:
        inner = [node.overlaid for node in lists if node.overlaid is not None]
        longest = max(node.count for node in lists)
        return Listing(longest, lists[0].items, overlay(inner, depth + 1) if inner else None)
    return next((node for node in nodes if node != Scalar("null", "null")), nodes[0])


def _overlaid_maps(maps: Sequence[Mapping], depth: int) -> Mapping:
    if len(maps) == 1:
        return maps[0]
    values: dict[str, list[Node]] = {}
    comments: dict[str, tuple[str, ...]] = {}
    for node in maps:
        for entry in node.entries:
            values.setdefault(entry.key, []).append(entry.value)
            comments.setdefault(entry.key, entry.comments)
    entries = [Entry(key, overlay(found, depth + 1), comments[key]) for key, found in list(values.items())[:MAX_KEYS]]
    return Mapping(len(values), tuple(entries))


def _node(value: object, depth: int) -> Node:
    if depth > MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, _Pairs):
        return Mapping(len(value), tuple(Entry(key, _node(inner, depth + 1)) for key, inner in value[:MAX_KEYS]))
    if isinstance(value, list):
        items = cast("list[object]", value)
        return listing(len(items), [_node(item, depth + 1) for item in items[:MAX_ITEMS]])
    if isinstance(value, _Number):
        return Scalar("int" if re.fullmatch(r"-?\d+", value) else "number", str(value))
    if isinstance(value, str):
        return Scalar("str", value)
    return Scalar("null", "null") if value is None else Scalar("bool", "true" if value else "false")
