"""Read an answer by its structure: JSON objects, blocks of ``key: value`` lines, and the rows of tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.evidence.calls import call_input
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.diagnose.evidence.texts import LINE_NUMBER
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView

_MOST_OBJECTS = 400


def find_json(text: str, most: int = 6) -> Iterator[Any]:
    """Yield the outermost JSON objects and arrays within a text."""
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


def find_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects within a JSON value, the outer ones first. Texts that contain JSON are parsed."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            return
        item, depth = waiting.pop(0)
        if isinstance(item, str) and depth < 4 and ("{" in item or "[" in item):
            waiting += [(part, depth + 1) for part in find_json(item[:_MOST_TEXT])]
        elif isinstance(item, list) and depth < 12:
            waiting += [(part, depth + 1) for part in cast("list[Any]", item)[:100]]
        elif isinstance(item, dict) and depth < 12:
            fields = cast("dict[str, Any]", item)
            yield fields
            waiting += [(part, depth + 1) for part in fields.values() if isinstance(part, dict | list | str)]


_LINE = lazy_pattern(
    rf"^(?:{LINE_NUMBER})?[\s<*-]{{0,24}}[\"']?([A-Za-z][\w .-]{{0,39}}?)[\"']?\s{{0,12}}[:=]\s{{1,12}}(\S[^\n]{{0,200}})$"
)
_SEVERAL = lazy_pattern(r"\s*\|\s*|\t| {2,}")
_RULE = lazy_pattern(r"[-=+| ]+")
_HEADING = lazy_pattern(r"[A-Za-z][\w ./-]{0,30}")
_ID = lazy_pattern(r"(?<![\w.-])(?=[\w-]{0,40}\d)[A-Za-z0-9][\w-]{2,39}(?![\w-])")
# Dates, small numbers, ages (`3d`), hours (`10-11am`) and versions (`v2`) don't identify an item.
_DULL = lazy_pattern(r"\d{4}-\d\d-\d\d\w*|\d{1,2}|\d+[smhd]|v?\d+(?:-\d+)?[ap]?m?")
_MOST_TEXT, _MOST_ITEMS, _MOST_DEPTH, _KEPT, _LOOKED_AT, _LEAST_CELLS = 12_000, 200, 6, 400, 200, 3


class Item(NamedTuple):
    """A set of named values in an answer.

    Attributes:
        key: the name of the item, or "".
        fields: its plain values as text, by lower-case names; null is "null".
        around: the plain values around the item.
    """

    key: str
    fields: dict[str, str]
    around: str

    @property
    def text(self) -> str:
        """Its values and those around it, as one text."""
        return f"{self.around}\n{' '.join(self.fields.values())}"


def answers(evidence: Evidence) -> Iterator[tuple[EntryView, Item]]:
    """Yield the items of the newest answers, the newest answer first. The input of the call counts as values around them."""
    for entry in list(reversed(evidence.recent))[:_LOOKED_AT]:
        if entry.status != "open":
            for item in list_items(evidence.text(entry)[:_MOST_TEXT]):
                yield entry, item._replace(around=f"{call_input(entry)[:600]}\n{item.around}")


def find_ids(text: str) -> set[str]:
    """Return the ids in a text: names with a digit, without dates, counts and durations."""
    return {each for each in _ID.findall(text[:_MOST_TEXT]) if not _DULL.fullmatch(each) or (each.isdigit() and len(each) > 2)}


@lru_cache(_KEPT)  # several failure classes read the same answers
def list_items(text: str) -> tuple[Item, ...]:
    """Return the items of an answer, in their order."""
    found = list(_items_of_json(text))
    return tuple(found or [*_items_of_lines(text), *_items_of_table(text)])[:_MOST_ITEMS]


def _items_of_json(text: str) -> Iterator[Item]:
    waiting: list[tuple[Any, str, str, int]] = [(value, "", "", 0) for value in find_json(text, 1)]
    while waiting:
        each, key, around, depth = waiting.pop(0)
        if depth > _MOST_DEPTH:
            continue
        if isinstance(each, list):
            waiting += [(one, key, around, depth + 1) for one in cast("list[Any]", each)[:50]]
        elif isinstance(each, dict):
            members = list(cast("dict[str, Any]", each).items())[:60]
            fields = {str(name).casefold(): _plain_text(one) for name, one in members if not _holds_objects(one)}
            yield Item(key, fields, around)
            inner = f"{around}\n{' '.join(fields.values())}"[:2_000]
            waiting += [(one, str(name).casefold(), inner, depth + 1) for name, one in members if _holds_objects(one)]


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in cast("list[Any]", value))
    )


def _plain_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_plain_text(each) for each in cast("list[Any]", value)[:20])
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)[:300]


def _items_of_lines(text: str) -> Iterator[Item]:
    fields: dict[str, str] = {}
    for line in text.split("\n")[:300]:
        match = _LINE.match(line)
        if match is not None:
            name = match.group(1).casefold()
            if name in fields:
                yield Item("", fields, "")
                fields = {}
            fields[name] = match.group(2).strip().strip("\"',")
    if fields:
        yield Item("", fields, "")


def _items_of_table(text: str) -> Iterator[Item]:
    heads: list[str] = []
    for line in text.split("\n")[:200]:
        cells = [cell.strip() for cell in _SEVERAL.split(line.strip().strip("|").strip())]
        if len(cells) < _LEAST_CELLS or _RULE.fullmatch(line):
            continue
        if not heads:
            if not all(_HEADING.fullmatch(cell) for cell in cells):
                return
            heads = [cell.casefold() for cell in cells]
        elif len(cells) == len(heads):
            yield Item("", dict(zip(heads, cells, strict=True)), "")


def parse_row(line: str, heads: list[str]) -> dict[str, str] | None:
    """Return a line as a row of a table with these columns, or None."""
    cells = [cell.strip() for cell in _SEVERAL.split(line.strip())]
    return dict(zip(heads, cells, strict=True)) if len(cells) == len(heads) and not _RULE.fullmatch(line) else None


def parse_heads(text: str) -> list[str]:
    """Return the names of the columns if a text is only the head of a table."""
    lines = [line for line in text.split("\n") if line.strip() and not _RULE.fullmatch(line)]
    cells = [cell.strip() for cell in _SEVERAL.split(lines[0].strip())] if len(lines) == 1 else []
    return (
        [cell.casefold() for cell in cells]
        if len(cells) >= _LEAST_CELLS and all(re.fullmatch(r"[A-Za-z]\w*", c) for c in cells)
        else []
    )
