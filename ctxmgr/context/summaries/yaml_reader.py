"""Parse YAML with comments and order; tags are never constructed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from ctxmgr.context.summaries.data_shape import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_KEYS,
    TOO_DEEP,
    Entry,
    Listing,
    Mapping,
    Node,
    Scalar,
    listing,
)
from ctxmgr.text.lazy_pattern import lazy_pattern

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
