"""Add items to the lists of a JSON text, and remove them again, without touching anything else in it.

Blanks, order, comments and line ends stay as people wrote them. New items are formatted like their surroundings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.errors import InvalidInput

_SPACE = re.compile(r"[ \t\r\n]*")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATOM = re.compile(r"[^\s,\]}]+")
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_INDENT = re.compile(r"[\[{,][ \t]*\r?\n([ \t]+)")
# Settings of clients are a few levels deep. Each level of a hostile file would take a stack frame.
_MAX_DEPTH = 100
_BOM = "\ufeff"


@dataclass(slots=True)
class Node:
    """A value in the text: its start and end, the members of an object (with the start of each key), the items of a list."""

    start: int
    end: int
    kind: str
    members: dict[str, tuple[int, Node]] = field(default_factory=dict[str, tuple[int, "Node"]])
    items: list[Node] = field(default_factory=list["Node"])


def parse(text: str, *, comments: bool) -> Node:
    """Return the object in a text.

    Raises:
        InvalidInput: the text is not a JSON object, repeats a key, or has comments where none are allowed.
    """
    bare = blank_comments(text) if comments else text
    body = bare[len(_BOM) :] if bare.startswith(_BOM) else bare
    # The standard library's parser decides what is valid. The code below only finds positions in a valid text.
    try:
        value: Any = json.loads(body, object_pairs_hook=_unique)
    except RecursionError:
        raise InvalidInput("it is nested too deeply", "mend the file first") from None
    except ValueError as error:
        raise InvalidInput(f"it is not valid JSON: {error}", "mend the file first; nothing was changed") from None
    if not isinstance(value, dict):
        raise InvalidInput("it holds no JSON object", "mend the file first; nothing was changed")
    return _node(bare, _skip(bare, len(bare) - len(body)), 0)


def blank_comments(text: str) -> str:
    """Return the text with its comments replaced by blanks, so that every value keeps its position."""
    return _COMMENT.sub(_blank_comment, text)


def _blank_comment(found: re.Match[str]) -> str:
    match = found[0]  # string literals match too, so that "//" inside one is not taken for a comment
    return match if match.startswith('"') else re.sub(r"[^\r\n]", " ", match)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        # Readers differ in which of the two they use, so a change to either may be lost.
        raise ValueError("an object has one key twice")
    return members


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _text_end(text: str, start: int) -> int:
    found = _TEXT.match(text, start)
    return start if found is None else found.end()


def _node(text: str, start: int, depth: int) -> Node:
    """Return the value at a position of a text that is known to be valid JSON."""
    if depth > _MAX_DEPTH:
        raise InvalidInput("it is nested too deeply", "mend the file first; nothing was changed")
    if text[start] == '"':
        return Node(start, _text_end(text, start), "text")
    if text[start] not in "{[":
        found = _ATOM.match(text, start)
        return Node(start, start if found is None else found.end(), "atom")
    node = Node(start, start, "object" if text[start] == "{" else "list")
    place = _skip(text, start + 1)
    while text[place] not in "}]":
        name, at = "", place
        if node.kind == "object":
            end = _text_end(text, place)
            name = str(json.loads(text[place:end]))
            place = _skip(text, _skip(text, end) + 1)
        inner = _node(text, place, depth + 1)
        if node.kind == "object":
            node.members[name] = (at, inner)
        else:
            node.items.append(inner)
        place = _skip(text, inner.end)
        if text[place] == ",":
            place = _skip(text, place + 1)
    node.end = place + 1
    return node


def insert_items(text: str, entries: Sequence[tuple[tuple[str, ...], Any]], *, comments: bool) -> str:
    """Return the text with each item added at the end of its list. Missing lists and objects on the path are created.

    Args:
        text: JSON; empty or blank text counts as an empty object.
        entries: the path of keys to a list, and the item for it.
        comments: whether the text may contain comments.

    Raises:
        InvalidInput: see `parse`, or a value on the path is not an object or list.
    """
    if not text.strip():
        text = "{}" + ("\r\n" if "\r\n" in text else "\n")
    for keys, item in entries:
        text = _insert_item(text, keys, item, comments)
    return text


def _insert_item(text: str, keys: tuple[str, ...], item: Any, comments: bool) -> str:
    # Parse again for each item, because inserting the one before it changed the positions.
    node = parse(text, comments=comments)
    for depth, key in enumerate(keys):
        if node.kind != "object":
            raise InvalidInput(f"{'.'.join(keys[:depth])} is no object", "mend the file first; nothing was changed")
        found = node.members.get(key)
        if found is None:
            value: Any = [item]
            for inner in reversed(keys[depth + 1 :]):
                value = {inner: value}
            return _put(text, node, value, depth + 1, key)
        node = found[1]
    if node.kind != "list":
        raise InvalidInput(f"{'.'.join(keys)} is no list", "mend the file first; nothing was changed")
    return _put(text, node, item, len(keys) + 1)


def _put(text: str, node: Node, value: Any, depth: int, key: str | None = None) -> str:
    """Return the text with one more member of an object, or item of a list, after the last one."""
    newline, unit = layout(text)
    last = max([inner.end for _, inner in node.members.values()] + [inner.end for inner in node.items], default=None)
    # A value that people wrote on one line stays on one line.
    flat = newline == "" or (last is not None and "\n" not in text[node.start : node.end])
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + (": " if not flat or ": " in text else ":")
    if flat:
        chunk = label + json.dumps(value, ensure_ascii=False)
        return text[:last] + ", " + chunk + text[last:] if last else text[: node.start + 1] + chunk + text[node.start + 1 :]
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + unit * depth)
    chunk = newline + unit * depth + label + body
    if last is not None:
        return text[:last] + "," + chunk + text[last:]
    rest = text[node.start + 1 : node.end - 1]
    return text[: node.start + 1] + chunk + ("" if "\n" in rest else newline + unit * (depth - 1)) + text[node.start + 1 :]


def layout(text: str) -> tuple[str, str]:
    """Return the line end and the indent of a text; "" as the line end if the text is on one line."""
    found = _INDENT.search(text)
    lines = text.rstrip("\r\n")
    newline = "\r\n" if "\r\n" in text else "\n"
    if found is None:
        return (newline if lines.strip(_BOM + " \t") in ("{}", "{ }") or "\n" in lines else ""), "  "
    return newline, found[1]


def remove_items(text: str, is_ours: re.Pattern[str], top: str, *, comments: bool) -> str:
    """Remove the list items below a top key that match a pattern, and lists and objects that become empty. Return the text.

    Raises:
        InvalidInput: see `parse`.
    """
    while True:  # one at a time, because each cut changes the positions behind it
        span = _span(text, parse(text, comments=comments), is_ours, top)
        if span is None:
            return text
        text = text[: span[0]] + text[span[1] :]


def _span(text: str, root: Node, is_ours: re.Pattern[str], top: str) -> tuple[int, int] | None:
    """Return the range of our first item, including the comma that separates it."""
    if top not in root.members or root.members[top][1].kind != "object":
        return None
    at, hooks = root.members[top]
    for start, listed in hooks.members.values():
        for place, item in enumerate(listed.items):
            if not is_ours.search(text[item.start : item.end]):
                continue
            if len(listed.items) > 1:
                return _cut(listed.start, [(each.start, each.end) for each in listed.items], place, text)
            spans = [(begin, inner.end) for begin, inner in hooks.members.values()]
            if len(spans) > 1:
                return _cut(hooks.start, spans, spans.index((start, listed.end)), text)
            above = [(begin, inner.end) for begin, inner in root.members.values()]
            return _cut(root.start, above, above.index((at, hooks.end)), text)
    return None


def _cut(opening: int, spans: list[tuple[int, int]], place: int, text: str) -> tuple[int, int]:
    """Return the range to cut for one of several parts: from the end of the part before it, or up to the part after it."""
    if place:
        return spans[place - 1][1], spans[place][1]
    if len(spans) > 1:
        return spans[0][0], spans[1][0]
    # Also cut the blanks behind the only part, or the empty brackets would be on two lines.
    return opening + 1, spans[0][1] + len(text[spans[0][1] :]) - len(text[spans[0][1] :].lstrip(" \t\r\n"))
