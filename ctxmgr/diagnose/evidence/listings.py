"""The lists in answers: rows of named values, and the values beside a name in its row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.evidence.calls import call_input, command_of, fields_of
from ctxmgr.diagnose.evidence.nearest_names import likeness
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.diagnose.evidence.texts import ORDERS, code, plain_name
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView

_CELL = lazy_pattern(r"\s{2,}|\t|\s*\|\s*")
_TOKEN = lazy_pattern(r"[A-Z]{2,}|[A-Za-z]{4,}|\d{3,}")
_LOOKED_AT, _READ, _MOST_ROWS, _MOST_CELLS, _LONGEST = 200, 20_000, 60, 12, 70
_NEAR, _LEAST = 0.6, 2

Row = dict[str, str]


class Sibling(NamedTuple):
    """A name in a list, and the other values in its row."""

    name: str
    beside: str
    rank: float

    @property
    def description(self) -> str:
        """The name with the values beside it."""
        return f"{code(self.name, 50)} ({code(self.beside, _LONGEST)})" if self.beside else code(self.name, 50)


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
        if each.action == entry.action and each.status == "ok" and not evidence.has_failed(each)
    }  # fmt: skip
    for other in list(evidence.entries_before(entry.index))[:_LOOKED_AT]:
        # An answer of the same tool lists what was asked for, not what can be asked for.
        if other.status != "ok" or evidence.has_failed(other) or (other.action == entry.action and not command_of(other)):
            continue
        for rows in find_lists(evidence.text(other)[:_READ]):
            for column in rows[0]:
                names = [row[column] for row in rows if column in row]
                own = f"{other.action} {column}".casefold()
                named = noun and noun.casefold().rstrip("s") in own
                fits = (
                    value in names or worked & set(names) or (named and any(likeness(value, each) >= _NEAR for each in names))
                )
                # A column with equal values describes the rows, but names none of them.
                if fits and len(names) == len(rows) and len(set(names)) >= _LEAST:
                    return Listing(other, rows, column)
    return None


def topic_words(evidence: Evidence, entry: EntryView) -> str:
    """Return what calls like this one recently asked for, with the answers just before them, as words on the subject."""
    same = [each for each in evidence.tail if each.action == entry.action and each.index <= entry.index]
    first = same[0].index if same else entry.index
    before = [each for each in evidence.entries_before(first) if each.status == "ok"][:_LEAST]
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
        if 1 < len(header) <= _MOST_CELLS and len(rows) >= _LEAST and len(rows) >= len(lines) - place - 3:
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
        if len(rows) >= _LEAST:
            yield rows
        elif len(items) >= _LEAST and all(isinstance(item, str) for item in items):
            yield [{"name": str(item)} for item in items]
        for item in items[:_LEAST]:
            yield from _find_json_lists(item, depth + 1)
