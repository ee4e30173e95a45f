"""Read an answer by its structure: JSON objects, blocks of ``key: value`` lines, and the rows of tables.

A `Listing` is a list of rows with named values. It tells which values stand beside a name, and which names are similar to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.evidence.calls import call_input, command_of, fields_of
from ctxmgr.diagnose.evidence.nearest_names import likeness
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.diagnose.evidence.texts import LINE_NUMBER, ORDERS, code, plain_name
from ctxmgr.text.patterns import lazy_pattern
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
_CELL_GAP = lazy_pattern(r"\s*\|\s*|\t| {2,}")
_RULE = lazy_pattern(r"[-=+| ]+")
_HEADING = lazy_pattern(r"[A-Za-z][\w ./-]{0,30}")
_ID = lazy_pattern(r"(?<![\w.-])(?=[\w-]{0,40}\d)[A-Za-z0-9][\w-]{2,39}(?![\w-])")
# Dates, small numbers, ages (`3d`), hours (`10-11am`) and versions (`v2`) don't identify an item.
_DULL = lazy_pattern(r"\d{4}-\d\d-\d\d\w*|\d{1,2}|\d+[smhd]|v?\d+(?:-\d+)?[ap]?m?")
_MOST_TEXT, _MOST_ITEMS, _MOST_DEPTH, _KEPT, _LEAST_CELLS = 12_000, 200, 6, 400, 3


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
    for entry in evidence.latest:
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
        cells = [cell.strip() for cell in _CELL_GAP.split(line.strip().strip("|").strip())]
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
    cells = [cell.strip() for cell in _CELL_GAP.split(line.strip())]
    return dict(zip(heads, cells, strict=True)) if len(cells) == len(heads) and not _RULE.fullmatch(line) else None


def parse_heads(text: str) -> list[str]:
    """Return the names of the columns if a text is only the head of a table."""
    lines = [line for line in text.split("\n") if line.strip() and not _RULE.fullmatch(line)]
    cells = [cell.strip() for cell in _CELL_GAP.split(lines[0].strip())] if len(lines) == 1 else []
    return (
        [cell.casefold() for cell in cells]
        if len(cells) >= _LEAST_CELLS and all(re.fullmatch(r"[A-Za-z]\w*", c) for c in cells)
        else []
    )


_CELL = lazy_pattern(r"\s{2,}|\t|\s*\|\s*")
_TOKEN = lazy_pattern(r"[A-Z]{2,}|[A-Za-z]{4,}|\d{3,}")
_MOST_ANSWER, _MOST_ROWS, _MOST_CELLS, _MOST_CELL = 20_000, 60, 12, 70
_LEAST_LIKENESS, _LEAST_ROWS = 0.6, 2

Row = dict[str, str]


class Sibling(NamedTuple):
    """A name in a list, and the other values in its row."""

    name: str
    beside: str
    rank: float

    @property
    def description(self) -> str:
        """The name with the values beside it."""
        return f"{code(self.name, 50)} ({code(self.beside, _MOST_CELL)})" if self.beside else code(self.name, 50)


class Listing(NamedTuple):
    """A list in an answer, by the column that names its rows."""

    entry: EntryView
    rows: Sequence[Row]
    column: str

    def siblings(self, asked: str, *but: str) -> list[Sibling]:
        """Return its names without some; first those similar to the requested name, or whose rows share words with it."""
        tokens, words = set(_TOKEN.findall(asked)), re.split(r"[\s\"',:;]+", asked)
        found: list[Sibling] = []
        for row in self.rows:
            name = row[self.column]
            if name in but or not plain_name(name):
                continue
            beside = ", ".join(value for key, value in row.items() if key != self.column and value and not ORDERS.search(value))
            alike = max((likeness(word, name) for word in words if len(word) > 2), default=0.0)
            shared = len(tokens & set(_TOKEN.findall(f"{name} {beside}")))
            found.append(Sibling(name, beside, alike + 0.2 * shared))
        return sorted(found, key=lambda each: -each.rank)

    def describe(self, name: str) -> str:
        """Return a name in the list with the values beside it."""
        return next((each.description for each in self.siblings("") if each.name == name), code(name, 50))


def find_listing(evidence: Evidence, entry: EntryView, field: str, value: str, noun: str = "") -> Listing | None:
    """Return the newest list of a call's possible values for a field: it has its value, a similar one, or one that worked.

    Args:
        evidence: the session.
        entry: the call.
        field: the name of the field.
        value: the call's value of the field.
        noun: the refusal's word for it, or "".
    """
    worked = {
        str(fields_of(each).get(field)) for each in evidence.recent
        if each.action == entry.action and evidence.has_succeeded(each)
    }  # fmt: skip
    for other in evidence.latest_before(entry.index):
        # An answer of the same tool lists what was asked for, not what can be asked for.
        if not evidence.has_succeeded(other) or (other.action == entry.action and not command_of(other)):
            continue
        for rows in find_lists(evidence.text(other)[:_MOST_ANSWER]):
            for column in rows[0]:
                names = [row[column] for row in rows if column in row]
                own = f"{other.action} {column}".casefold()
                named = noun and noun.casefold().rstrip("s") in own
                fits = (
                    value in names
                    or worked & set(names)
                    or (named and any(likeness(value, each) >= _LEAST_LIKENESS for each in names))
                )
                # A column with equal values describes the rows, but names none of them.
                if fits and len(names) == len(rows) and len(set(names)) >= _LEAST_ROWS:
                    return Listing(other, rows, column)
    return None


def topic_words(evidence: Evidence, entry: EntryView) -> str:
    """Return what calls like this one recently asked for, with the answers just before them, as words on the subject."""
    same = [each for each in evidence.tail if each.action == entry.action and each.index <= entry.index]
    first = same[0].index if same else entry.index
    before = [each for each in evidence.entries_before(first) if each.status == "ok"][:_LEAST_ROWS]
    return "\n".join([*(call_input(each)[:1_000] for each in same[-6:]), *(evidence.text(each)[:1_000] for each in before)])


def find_lists(text: str) -> Iterator[list[Row]]:
    """Yield the lists in a text: JSON objects with equal members, or lines under a header."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _find_json_lists(json.loads(text))
        except (ValueError, RecursionError):
            return
        return
    lines = [line for line in text.split("\n")[:_MOST_ROWS] if line.strip()]
    for place, line in enumerate(lines[:3]):
        header = [cell for cell in _CELL.split(line.strip()) if cell]
        rows = [[cell for cell in _CELL.split(each.strip()) if cell] for each in lines[place + 1 :]]
        rows = [row for row in rows if len(row) == len(header)]
        # Most lines must have as many cells as the header. Otherwise it is no table.
        if 1 < len(header) <= _MOST_CELLS and len(rows) >= _LEAST_ROWS and len(rows) >= len(lines) - place - 3:
            yield [dict(zip(header, row, strict=True)) for row in rows]
            return


def _find_json_lists(value: Any, depth: int = 0) -> Iterator[list[Row]]:
    if depth > 4:
        return
    if isinstance(value, dict):
        for part in list(cast("dict[str, Any]", value).values())[:_MOST_CELLS]:
            yield from _find_json_lists(part, depth + 1)
    elif isinstance(value, list):
        items = cast("list[Any]", value)[:_MOST_ROWS]
        rows = [
            {key: str(cell) for key, cell in cast("dict[str, Any]", item).items() if isinstance(cell, str | int | float)}
            for item in items if isinstance(item, dict)
        ]  # fmt: skip
        rows = [dict(list(row.items())[:_MOST_CELLS]) for row in rows if row]
        if len(rows) >= _LEAST_ROWS:
            yield rows
        elif len(items) >= _LEAST_ROWS and all(isinstance(item, str) for item in items):
            yield [{"name": str(item)} for item in items]
        for item in items[:_LEAST_ROWS]:
            yield from _find_json_lists(item, depth + 1)
