"""Summarise JSON and YAML as an outline of the data. The YAML reader builds only plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ctxmgr.context.summaries.prose import MORE, one_line, shorten
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import JSON, YAML, nesting_depth

_PLAIN = lazy_pattern(r"[A-Za-z_/.][\w./@+-]*(?: [\w./@+-]+)*", re.ASCII)
_NUMERIC = lazy_pattern(r"-?\d[\w.]*", re.ASCII)
WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML 1.1 reads as booleans or null, even as keys."""
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Detail:
    """Level of detail of an outline.

    Attributes:
        depth: levels of maps with one key per line; deeper maps are written on one line.
        inline: levels of maps on such a line; for deeper maps only the number of keys is shown.
        value: characters of a scalar; 0 shows its type instead.
        values: number of scalars to show; the later ones are left out.
        items: scalars of a list to show.
        keys: keys of a map to show; the others are counted, and their values merged into one.
        comment: characters of a comment, 0 for none.
        rows: items of a list of maps to show, apart from the merged item with the keys of all.
    """

    depth: int
    inline: int
    value: int
    values: int
    items: int
    keys: int
    comment: int
    rows: int = 0


LEVELS = (
    *(
        Detail(20, 20, 100 * size // 4, _NO_LIMIT, 3 * size // 4, 5_000, min(40 * size, 600), size)
        for size in (280, 200, 140, 100, 70, 50, 35, 25, 18, 13, 10, 8, 6, 5, 4)
    ),
    Detail(20, 20, 100, _NO_LIMIT, 3, 5_000, 160, 2),
    Detail(20, 20, 100, _NO_LIMIT, 3, 5_000, 160, 1),
    Detail(20, 20, 100, _NO_LIMIT, 3, 5_000, 160),
    Detail(20, 20, 60, _NO_LIMIT, 2, 5_000, 80),
    Detail(20, 20, 32, _NO_LIMIT, 1, 5_000, 60),
    Detail(6, 20, 20, _NO_LIMIT, 1, 2_000, 40),
    Detail(6, 20, 0, _NO_LIMIT, 0, 2_000, 40),
    *(Detail(4, 20, 24, values, 1, 1_000, 40) for values in (320, 160, 80, 40, 20, 10, 5)),
    Detail(4, 20, 0, 0, 0, 500, 0),
    Detail(2, 20, 0, 0, 0, 200, 0),
    Detail(2, 20, 0, 0, 0, 60, 0),
    Detail(2, 3, 0, 0, 0, 30, 0),
    Detail(2, 2, 0, 0, 0, 15, 0),
    Detail(1, 2, 0, 0, 0, 15, 0),
    Detail(1, 1, 0, 0, 0, 30, 0),
    Detail(1, 1, 0, 0, 0, 10, 0),
    Detail(1, 0, 0, 0, 0, 20, 0),
    Detail(1, 0, 0, 0, 0, 5, 0),
)
"""From the most detailed to the shortest. First come full values and many items, for texts with few keys. Then values become
types, comments are left out, and then deep levels. The names of keys are the last to go."""


class _Outline:
    def __init__(self, detail: Detail) -> None:
        self._detail = detail
        self._values = detail.values

    def lines(self, node: Node) -> Iterator[str]:
        if isinstance(node, Mapping):
            yield from self._map(node, "", 1)
        elif isinstance(node, Listing):
            yield from self._list(node, "", 1)
        else:
            yield self._scalar(node) or node.type

    def _map(self, node: Mapping, indent: str, depth: int) -> Iterator[str]:
        shown, rest = node.entries[: self._detail.keys], node.entries[self._detail.keys :]
        if not node.entries:
            yield indent + "{}"
        for entry in shown:
            yield from self._comment(entry, indent)
            yield from self._entry(entry, indent, depth)
        hidden = node.count - len(shown)
        if hidden:
            merged = overlay([entry.value for entry in rest[:200]]) if rest else None
            text = self._inline(merged, 1) if isinstance(merged, Mapping) and self._detail.inline else ""
            yield f"{indent}{MORE}{hidden:,} more: {text}".rstrip()

    def _entry(self, entry: Entry, indent: str, depth: int) -> Iterator[str]:
        value, key = entry.value, _key(entry.key)
        holds_maps = isinstance(value, Listing) and isinstance(value.overlaid, Mapping)
        nested = holds_maps or (isinstance(value, Mapping) and bool(value.entries))
        if not nested or depth >= self._detail.depth:
            yield f"{indent}{key}: {self._inline(value, 1)}".rstrip()
            return
        yield f"{indent}{key}:"
        if isinstance(value, Mapping):
            yield from self._map(value, indent + "  ", depth + 1)
        elif isinstance(value, Listing):
            yield from self._list(value, indent, depth + 1)

    def _list(self, node: Listing, indent: str, depth: int) -> Iterator[str]:
        if not isinstance(node.overlaid, Mapping):
            yield indent + self._inline(node, 1)
            return
        for number, line in enumerate(self._map(node.overlaid, indent + "  ", depth)):
            yield f"{indent}- {line[len(indent) + 2 :]}" if number == 0 else line
        rows = node.items[1 : 1 + self._detail.rows]
        yield from (f"{indent}- {self._inline(item, 1)}" for item in rows)
        if node.count > 1 + len(rows):
            yield f"{indent}- {MORE}{node.count - 1 - len(rows):,} more"

    def _inline(self, node: Node, depth: int) -> str:
        if isinstance(node, Scalar):
            return self._scalar(node)
        if isinstance(node, Listing):
            return self._inline_list(node, depth)
        if depth > self._detail.inline:
            return f"{{{MORE}{node.count:,}}}" if node.count else "{}"
        parts: list[str] = []
        for entry in node.entries[: self._detail.keys]:
            text = self._inline(entry.value, depth + 1)
            parts.append(f"{_key(entry.key)}: {text}" if text else _key(entry.key))
        return "{" + _join(parts, node.count) + "}"

    def _inline_list(self, node: Listing, depth: int) -> str:
        if node.overlaid is None:
            return "[]"
        if not isinstance(node.overlaid, Scalar):
            return "[" + _join([self._inline(node.overlaid, depth)], node.count) + "]"
        first = [item for item in node.items[: self._detail.items] if isinstance(item, Scalar)]
        shown = [text for text in map(self._scalar, first) if text]
        if not shown and self._values > 0:
            shown = [node.overlaid.type]
        return "[" + _join(shown, node.count) + "]"

    def _comment(self, entry: Entry, indent: str) -> Iterator[str]:
        if self._detail.comment and entry.comments:
            yield f"{indent}# {shorten(one_line(' '.join(entry.comments)), self._detail.comment)}"

    def _scalar(self, node: Scalar) -> str:
        if self._values <= 0:
            return ""
        self._values -= 1
        limit = self._detail.value
        if limit == 0:
            return node.type
        # Cut before normalising the blanks, because only one line of a value of megabytes is shown.
        line = shorten(one_line(node.text[: 4 * limit + 40]), limit)
        return line if node.type not in ("str", "nested") else _quote(line)


def _join(shown: list[str], count: int) -> str:
    hidden = count - len(shown)
    return ", ".join([*shown, *([f"{MORE}{hidden:,} more"] if hidden > 0 else [])])


def _key(text: str) -> str:
    line = shorten(text, 200)
    return line if _NUMERIC.fullmatch(line) else _quote(line)


def _quote(line: str) -> str:
    plain = _PLAIN.fullmatch(line) and line.lower() not in WORDS_OF_YAML
    # Escapes show invisible characters, such as marks for text that runs from right to left.
    return line if plain else json.dumps(line, ensure_ascii=not line.isprintable())


class YamlSummariser:
    """Summarises YAML as a YAML outline. It has a length limit because the parser reads only about 60 kB per second."""

    strategy = "yaml/2"
    kinds = frozenset({YAML, JSON})  # JSON with comments, and an outline of JSON, are YAML
    target = 20
    limit = 200_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines. Raises the errors of the parser on broken YAML."""
        return _drafts(from_yaml(text))


class JsonSummariser:
    """Summarises JSON as a YAML outline, which takes fewer characters."""

    strategy = "json/2"
    kinds = frozenset({JSON})
    target = 20
    limit = 4_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines. Raises ValueError or RecursionError if the text is not JSON."""
        return _drafts([from_json(text.removeprefix("\ufeff"))])


def _drafts(documents: list[Node]) -> Iterator[str]:
    for detail in LEVELS if documents else ():
        yield "\n---\n".join("\n".join(_Outline(detail).lines(document)) for document in documents) + "\n"


MAX_DEPTH = 60
"""Maximum number of levels to read. Deeper values become one scalar."""
MAX_ITEMS = 1_000
"""Maximum number of items of a list to read. All items are counted."""
MAX_KEPT_ITEMS = 300
"""Maximum number of items of a list to keep individually."""
MAX_KEYS = 5_000
"""Maximum number of keys of a map to read. All keys are counted."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value: the name of its type, and its source text."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: the number of its items, the first ones, and all of them merged into one node (None if it is empty)."""

    count: int
    items: tuple[Node, ...]
    overlaid: Node | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a map with its value and its comments."""

    key: str
    value: Node
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """A map in its own order. ``count`` is the number of its keys; ``entries`` holds at most `MAX_KEYS` of them."""

    count: int
    entries: tuple[Entry, ...]


Node = Scalar | Listing | Mapping
TOO_DEEP = Scalar("nested", "…")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as (key, value) pairs, including repeated keys."""


class _Number(str):
    """A JSON number as its source text: int() refuses numbers of more than 4,300 digits."""


def from_json(text: str) -> Node:
    """Return the structure of a JSON document.

    Raises:
        ValueError: the text is not JSON. RecursionError: it is nested too deeply.
    """
    value = json.loads(text, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    return _node(value, 0)


def listing(count: int, items: Sequence[Node]) -> Listing:
    """Return a list with ``count`` items, of which ``items`` are the first."""
    return Listing(count, tuple(items[:MAX_KEPT_ITEMS]), overlay(items) if items else None)


def overlay(nodes: Sequence[Node], depth: int = 0) -> Node:
    """Merge nodes into one that has all keys of the maps among them, at every level, with the first value of each key."""
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
    # A key that is null in the first row may have a value in a later one.
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
_MAX_NESTING = 150
_INT, _NUMBER = lazy_pattern(r"[-+]?\d+"), lazy_pattern(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS = {"true": "bool", "false": "bool", "null": "null", "~": "null", "": "null"}
_NO_COMMENT = lazy_pattern(r"#\W*$")


def from_yaml(text: str) -> list[Node]:
    """Return the structure of each document.

    Raises:
        Exception: any error of the parser for broken YAML; ValueError for a document that is mostly aliases.
    """
    if nesting_depth(text) > _MAX_NESTING:
        raise ValueError("nested too deep")
    from ruamel.yaml import YAML  # takes 80 ms to load, and only YAML summaries need it

    documents = list(YAML(typ="safe", pure=True).compose_all(text))
    reader = _Reader(text)
    return [reader.node(document, 0) for document in documents if document is not None]


class _Reader:
    """Converts the parser's nodes into our nodes, and finds the comments of each key."""

    def __init__(self, text: str) -> None:
        self._lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)  # the line ends at which the parser counts lines
        self._open: set[int] = set()
        self._known: dict[int, Node] = {}
        self._aliases = 0
        self._after = 0  # the first line whose comments belong to no key yet

    def node(self, node: Any, depth: int) -> Node:
        """Return our node for a parser's node; an alias, also to an enclosing node, becomes a scalar with its name.

        Raises:
            ValueError: the document refers to its anchors too often.
        """
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
        # Only nodes with an anchor can be referenced again.
        if getattr(node, "anchor", None):
            self._known[name] = found
        return found

    def _read(self, node: Any, depth: int) -> Node:
        value = node.value
        if isinstance(value, str):
            # What looks like a comment inside a text of several lines is part of the text.
            self._after = max(self._after, _last_line(node) + 1)
            return Scalar(_schema_type(node, value), value)
        if type(node).__name__ == "MappingNode":
            pairs = cast("list[tuple[Any, Any]]", value)
            return Mapping(len(pairs), tuple(self._entries(pairs[:MAX_KEYS], depth)))
        items = cast("list[Any]", value)
        return listing(len(items), [self.node(item, depth + 1) for item in items[:MAX_ITEMS]])

    def _entries(self, pairs: list[tuple[Any, Any]], depth: int) -> Iterator[Entry]:
        for key, value in pairs:
            place = key.start_mark
            comments = [*self._comments_above(place.line), *self._trailing_comment(key, value)]
            self._after = max(self._after, place.line + 1)
            name = key.value if isinstance(key.value, str) else _key_text(self.node(key, depth + 1))
            yield Entry(name, self.node(value, depth + 1), tuple(comments))

    def _comments_above(self, line: int) -> Iterator[str]:
        for text in self._lines[self._after : line]:
            comment = text.strip()
            if comment.startswith("#") and not _NO_COMMENT.match(comment):
                yield comment.lstrip("# ")

    def _trailing_comment(self, key: Any, value: Any) -> Iterator[str]:
        """Yield the comment at the end of the key's line, if there is one."""
        # A block text ends lines below. Its comment stands after the sign that opens it.
        mark = value.end_mark if isinstance(value.value, str) and value.style not in ("|", ">") else key.end_mark
        if mark.line != key.start_mark.line or mark.line >= len(self._lines):
            return
        rest = self._lines[int(mark.line)][int(mark.column) :]
        found = re.match(r"\s*:?\s+#\s*(.+)", rest)
        if found:
            yield found.group(1)


def _last_line(node: Any) -> int:
    # A block text ends where the next line begins.
    return node.end_mark.line - (1 if node.end_mark.column == 0 else 0)


def _schema_type(node: Any, value: str) -> str:
    # Quoted, so ``"12"`` and ``"true"`` are text.
    if node.style is not None:
        return "str"
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    return "int" if _INT.fullmatch(value) else "number" if _NUMBER.fullmatch(value) else "str"


def _key_text(node: Node) -> str:
    """Return the text of a key. If the key is a list or map, return a placeholder."""
    if isinstance(node, Scalar):
        return node.text
    return "[…]" if isinstance(node, Listing) else "{…}"
