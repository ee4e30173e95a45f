"""The shape of data, and a YAML reader that builds nothing but plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ctxmgr.text.lazy_pattern import lazy_pattern

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


_MAX_ALIASES = 1_000
_MAX_NESTING = 150  # brackets; the parser's time grows with the square of them
_INT, _NUMBER = lazy_pattern(r"[-+]?\d+"), lazy_pattern(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"true": "bool", "false": "bool", "null": "null", "~": "null", "": "null"}
_NO_COMMENT = lazy_pattern(r"#\W*$")


def from_yaml(text: str) -> list[Node]:
    """Return the shape of each document.

    Raises:
        Exception: whatever the parser says about broken YAML; ValueError for one that is mostly aliases.
    """
    if _nesting(text) > _MAX_NESTING:
        raise ValueError("nested too deep")
    from ruamel.yaml import YAML  # 80 ms, and only where YAML is summarised

    documents = list(YAML(typ="safe", pure=True).compose_all(text))
    reader = _Reader(text)
    return [reader.node(document, 0) for document in documents if document is not None]


def _nesting(text: str) -> int:
    """Return how many brackets are open at once, at the most, wherever they stand."""
    depth = deepest = 0
    for found in re.finditer(r"[\[\]{}]", text):
        depth = depth + 1 if found.group() in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


class _Reader:
    """Turns the parser's nodes into shapes and finds the comments that belong to each key."""

    def __init__(self, text: str) -> None:
        self._lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)  # where the parser counts lines
        self._open: set[int] = set()
        self._known: dict[int, Node] = {}
        self._aliases = 0
        self._after = 0  # the first line that no key has claimed the comments of

    def node(self, node: Any, depth: int) -> Node:
        """Return the shape of a node; an alias is named, and what contains itself ends there."""
        name = id(node)
        if name in self._open:
            return Scalar("alias", f"*{node.anchor}")
        if name in self._known:
            self._aliases += 1
            if self._aliases > _MAX_ALIASES:
                raise ValueError("more aliases than content")
            return Scalar("alias", f"*{node.anchor}")
        if depth > MAX_DEPTH:
            return TOO_DEEP
        self._open.add(name)
        found = self._read(node, depth)
        self._open.discard(name)
        if getattr(node, "anchor", None):
            self._known[name] = found
        return found

    def _read(self, node: Any, depth: int) -> Node:
        value = node.value
        if isinstance(value, str):
            self._after = max(self._after, _last_line(node) + 1)
            return Scalar(_type_of(node, value), value)
        if type(node).__name__ == "MappingNode":
            pairs = cast("list[tuple[Any, Any]]", value)
            return Mapping(len(pairs), tuple(self._entries(pairs[:MAX_KEYS], depth)))
        items = cast("list[Any]", value)
        return listing(len(items), [self.node(item, depth + 1) for item in items[:MAX_ITEMS]])

    def _entries(self, pairs: list[tuple[Any, Any]], depth: int) -> Iterator[Entry]:
        for key, value in pairs:
            place = key.start_mark
            comments = [*self._above(place.line), *self._beside(key, value)]
            self._after = max(self._after, place.line + 1)
            name = key.value if isinstance(key.value, str) else _words(self.node(key, depth + 1))
            yield Entry(name, self.node(value, depth + 1), tuple(comments))

    def _above(self, line: int) -> Iterator[str]:
        for text in self._lines[self._after : line]:
            comment = text.strip()
            if comment.startswith("#") and not _NO_COMMENT.match(comment):
                yield comment.lstrip("# ")

    def _beside(self, key: Any, value: Any) -> Iterator[str]:
        """Yield the comment at the end of the key's line, after its value where that is on the same line."""
        mark = value.end_mark if isinstance(value.value, str) and value.style not in ("|", ">") else key.end_mark
        if mark.line != key.start_mark.line or mark.line >= len(self._lines):
            return
        rest = self._lines[int(mark.line)][int(mark.column) :]
        found = re.match(r"\s*:?\s+#\s*(.+)", rest)
        if found:
            yield found.group(1)


def _last_line(node: Any) -> int:
    return node.end_mark.line - (1 if node.end_mark.column == 0 else 0)


def _type_of(node: Any, value: str) -> str:
    if node.style is not None:
        return "str"
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return "int" if _INT.fullmatch(value) else "number" if _NUMBER.fullmatch(value) else "str"


def _words(node: Node) -> str:
    """Return a key that is itself a structure as text."""
    if isinstance(node, Scalar):
        return node.text
    return "[…]" if isinstance(node, Listing) else "{…}"
