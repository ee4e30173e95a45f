"""Summaries of JSON and YAML: an outline of what the data holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxmgr.context.summaries.data_shape import Entry, Listing, Mapping, Node, Scalar, from_json, from_yaml, overlay
from ctxmgr.context.summaries.prose import MORE, one_line, shortened
from ctxmgr.text.content_kind import JSON, YAML
from ctxmgr.text.lazy_pattern import lazy_pattern

_PLAIN = lazy_pattern(r"[A-Za-z_/.][\w./@+-]*(?: [\w./@+-]+)*", re.ASCII)
_NUMERIC = lazy_pattern(r"-?\d[\w.]*", re.ASCII)
_OTHER_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is told.

    Attributes:
        depth: levels of maps written one key a line; below, one line holds them all.
        inline: levels of maps told in such a line; below, only how many keys there are.
        value: characters of a scalar; 0 tells its type.
        values: scalars that are told, the first ones; nothing stands for the others.
        items: scalars of a list that are shown.
        keys: keys of one map that are shown; the others are counted, their values laid over each other.
        comment: characters of a comment, 0 for none.
        rows: items of a list of maps that are told beside the one that has the keys of all.
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
        Detail(20, 20, 100 * size // 4, _ALL, 3 * size // 4, 5_000, min(40 * size, 600), size)
        for size in (280, 200, 140, 100, 70, 50, 35, 25, 18, 13, 10, 8, 6, 5, 4)
    ),
    Detail(20, 20, 100, _ALL, 3, 5_000, 160, 2),
    Detail(20, 20, 100, _ALL, 3, 5_000, 160, 1),
    Detail(20, 20, 100, _ALL, 3, 5_000, 160),
    Detail(20, 20, 60, _ALL, 2, 5_000, 80),
    Detail(20, 20, 32, _ALL, 1, 5_000, 60),
    Detail(6, 20, 20, _ALL, 1, 2_000, 40),
    Detail(6, 20, 0, _ALL, 0, 2_000, 40),
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
"""From the most to the least. The first tell whole values and many items, for which a text of few keys has room; then values
become types, comments go, then what lies deep; the names of keys go last."""


def outline(node: Node, detail: Detail) -> list[str]:
    """Return the lines of the outline."""
    return list(_Outline(detail).lines(node))


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
            alike = overlay([entry.value for entry in rest[:200]]) if rest else None
            told = self._inline(alike, 1) if isinstance(alike, Mapping) and self._detail.inline else ""
            yield f"{indent}{MORE}{hidden:,} more: {told}".rstrip()

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
        told = node.items[1 : 1 + self._detail.rows]
        yield from (f"{indent}- {self._inline(item, 1)}" for item in told)
        if node.count > 1 + len(told):
            yield f"{indent}- {MORE}{node.count - 1 - len(told):,} more"

    def _inline(self, node: Node, depth: int) -> str:
        if isinstance(node, Scalar):
            return self._scalar(node)
        if isinstance(node, Listing):
            return self._inline_list(node, depth)
        if depth > self._detail.inline:
            return f"{{{MORE}{node.count:,}}}" if node.count else "{}"
        parts: list[str] = []
        for entry in node.entries[: self._detail.keys]:
            told = self._inline(entry.value, depth + 1)
            parts.append(f"{_key(entry.key)}: {told}" if told else _key(entry.key))
        return "{" + _joined(parts, node.count) + "}"

    def _inline_list(self, node: Listing, depth: int) -> str:
        if node.overlaid is None:
            return "[]"
        if not isinstance(node.overlaid, Scalar):
            return "[" + _joined([self._inline(node.overlaid, depth)], node.count) + "]"
        first = [item for item in node.items[: self._detail.items] if isinstance(item, Scalar)]
        shown = [told for told in map(self._scalar, first) if told]
        if not shown and self._values > 0:
            shown = [node.overlaid.type]
        return "[" + _joined(shown, node.count) + "]"

    def _comment(self, entry: Entry, indent: str) -> Iterator[str]:
        if self._detail.comment and entry.comments:
            yield f"{indent}# {shortened(one_line(' '.join(entry.comments)), self._detail.comment)}"

    def _scalar(self, node: Scalar) -> str:
        if self._values <= 0:
            return ""
        self._values -= 1
        limit = self._detail.value
        if limit == 0:
            return node.type
        line = shortened(one_line(node.text[: 4 * limit + 40]), limit)
        return line if node.type not in ("str", "nested") else _quoted(line)


def _joined(shown: list[str], count: int) -> str:
    hidden = count - len(shown)
    return ", ".join([*shown, *([f"{MORE}{hidden:,} more"] if hidden > 0 else [])])


def _key(text: str) -> str:
    line = shortened(text, 200)
    return line if _NUMERIC.fullmatch(line) else _quoted(line)


def _quoted(line: str) -> str:
    plain = _PLAIN.fullmatch(line) and line.lower() not in _OTHER_WORDS
    return line if plain else json.dumps(line, ensure_ascii=not line.isprintable())


class YamlSummariser:
    """YAML as a YAML outline; the parser reads about 60 kB a second, which is what the limit is for."""

    strategy = "yaml/2"
    kinds = frozenset({YAML, JSON})  # JSON with comments, and an outline of JSON, are YAML
    target = 20
    limit = 200_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines; raises what the parser raises on broken YAML."""
        return _drafts(from_yaml(text))


class JsonSummariser:
    """JSON as a YAML outline, which says the same in fewer characters."""

    strategy = "json/2"
    kinds = frozenset({JSON})
    target = 20
    limit = 4_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield outlines; raises ValueError or RecursionError on what is no JSON."""
        return _drafts([from_json(text.removeprefix("\ufeff"))])


def _drafts(documents: list[Node]) -> Iterator[str]:
    for detail in LEVELS if documents else ():
        yield "\n---\n".join("\n".join(outline(document, detail)) for document in documents) + "\n"
