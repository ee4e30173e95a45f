"""What became of a column or table that is not known any more: a migration, a comment or a changelog of the record says it.

Tables and views are read from their definitions in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import edited_paths
from ctxmgr.diagnose.evidence.texts import ORDERS, plain_name
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

_MOST_TEXT, _MOST_LINE = 20_000, 300
"""Characters of an output and of a line that are read."""
_GONE = (
    r"(?:renam\w+|moved?|moves|replac\w+|dropp?\w*|remov\w+|deprecat\w+|obsolete|no longer|not any ?more|retired|goes"
    r"|go away|gone|went|split|superseded|now (?:in|on|at|called|named|kept|stored|lives?|comes?))"
)
_SAYS = (
    rf"WORD[`'\"]?\s(?:\w+\s){{0,4}}?{_GONE}\b|\b{_GONE}\s(?:the\s|old\s|flat\s|columns?\s|fields?\s|\w+\.){{0,3}}[`'\"]?WORD"
)
_DROPS = r"\bdrop (?:column |table )?(?:if exists )?[\"'`\[]?WORD|remove_column\W+\w+\W+WORD|drop_column\W+\w+\W+WORD"
_NEW_NAMES = (
    r"\brename (?:column )?[\"'`\[]?WORD[\"'`\]]? to [\"'`\[]?(\w{1,80})",
    r"\bchange (?:column )?[\"'`]?WORD[\"'`]? [\"'`]?(\w{1,80})",
    r"rename_?column\W+(?:\w+\W+)?WORD\W+(\w{1,80})",
    r"\balter table [\"'`]?WORD[\"'`]? rename to [\"'`]?(\w{1,80})",
    r"WORD[\"'`]? (?:is now|was renamed to|renamed to|has become|became|is now called|-+>|→) [\"'`]?(\w{1,80}(?:\.\w{1,80})?)",
)
_ABOUT_COLUMNS = lazy_pattern(r"\b(?:columns?|fields?)\b", re.IGNORECASE)
_COMMENT = lazy_pattern(r"^\s*(?:--|#|//|/\*|\*|-|>)")
CREATED = lazy_pattern(r"create table (?:if not exists )?[\"'`\[]?([\w.]{1,80})[\"'`\]]? ?\(([^;]{1,4000})", re.IGNORECASE)
_COLUMN = lazy_pattern(r"^\s*[\"'`\[]?(\w{1,80})[\"'`\]]?(?=\s+\w|\s*$)")
# Other beginnings of a line in CREATE TABLE: `PRIMARY KEY (id)`
_NO_COLUMN = frozenset(["primary", "foreign", "unique", "check", "constraint", "key", "index", "like"])
_VIEW = lazy_pattern(
    r"create (?:or replace )?(?:materialized )?view (?:if not exists )?[\"'`\[]?([\w.]{1,80})[\"'`\]]?\s+as\s+select\s+"
    r"([^;]{1,4000}?)\sfrom\s",
    re.IGNORECASE,
)
_LAST_WORD = lazy_pattern(r"(\w{1,80})[\"'`\]]?\s*$")


class MovedName(NamedTuple):
    """What a record says became of a name.

    Attributes:
        line: the line that says it.
        new: the name that it has now, or "".
        named: the line has the name itself, and not only its table.
        made: views and tables that the same text makes and that belong to the table, with their columns.
    """

    entry: EntryView
    line: str
    new: str
    named: bool
    made: list[tuple[str, list[str]]]


def find_moved_name(evidence: Evidence, name: str, tables: set[str], before: int) -> MovedName | None:
    """Return what the newest output that speaks of it says became of a column, or of a table if ``tables`` is empty."""
    found = [
        moved
        for entry in evidence.latest_before(before)
        # What an edit answers repeats the agent's own text.
        if evidence.has_succeeded(entry) and not edited_paths(entry)
        for moved in _list_moves(evidence, entry, name, tables)
    ]
    return min(found, key=lambda moved: (not moved.named, not moved.new), default=None)


def _list_moves(evidence: Evidence, entry: EntryView, name: str, tables: set[str]) -> Iterator[MovedName]:
    said = evidence.text(entry)[:_MOST_TEXT]
    if name not in said and not any(table in said for table in tables):
        return
    word = rf"(?<!\w){re.escape(name)}(?!\w)"
    # A text that adds the name as well may be the way back of a migration.
    if re.search(
        rf"\badd (?:column )?(?:if not exists )?[\"'`\[]?{word}|\bto [\"'`\[]?{word}|add_column\W+\w+\W+{word}", said, re.I
    ):
        return
    # A plain word may be about anything.
    coded = re.compile(word if "_" in name else rf"[`'\"]{re.escape(name)}[`'\"]")
    made = [
        (each, columns) for each, columns in list_definitions(said)
        if plain_name(each) and tables & {column.lower().removesuffix("_id") for column in columns}
    ]  # fmt: skip
    start = 0
    for line in said.split("\n"):
        start += len(line) + 1
        if len(line) > _MOST_LINE or ORDERS.search(line) or (tables and _is_of_other(said[:start], line, name, tables)):
            continue
        new = _find_new_name(line, word)
        if (
            new
            or re.search(_DROPS.replace("WORD", word), line, re.I)
            or (coded.search(line) and re.search(_SAYS.replace("WORD", word), line, re.I))
        ):
            yield MovedName(entry, line.strip(), new, True, made)
        elif (
            made
            and _COMMENT.match(line)
            and _ABOUT_COLUMNS.search(line)
            and any(re.search(rf"(?<!\w){re.escape(table)}(?!\w)", line, re.I) for table in tables)
            and re.search(rf"\b{_GONE}\b", line, re.I)
        ):
            yield MovedName(entry, line.strip(), "", False, made)


def _is_of_other(before: str, line: str, name: str, tables: set[str]) -> bool:
    """Whether a line is about a column of the same name in another table, by itself or by the statement that it is part of."""
    owners = [
        *re.findall(rf"(\w+)\.[\"'`]?{re.escape(name)}(?!\w)", line),
        *_CALLS.findall(line),
        *_ALTERS.findall(before.rpartition(";\n")[2])[-1:],
    ]
    return any(owner.lower() not in tables for owner in owners)


_ALTERS = lazy_pattern(r"\balter table (?:if exists |only )*[\"'`\[]?(?:\w+\.)?(\w{1,80})", re.IGNORECASE)
_CALLS = lazy_pattern(r"(?:remove|rename|drop)_?column\W+(\w{1,80})\W+\w", re.IGNORECASE)


def _find_new_name(line: str, word: str) -> str:
    """Return the name that a line gives to a name, or ""."""
    match = re.search("|".join(_NEW_NAMES).replace("WORD", word), line, re.I)
    new = next((group for group in match.groups() if group), "") if match else ""
    return new if "_" in new or "." in new or (match and re.search(r"rename|change", match.group(), re.I)) else ""


def list_definitions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the views and tables that a text makes, the views first, each with its columns."""
    for view, body in _VIEW.findall(text):
        yield view, [match.group(1) for part in _split_columns(f"{body})") if (match := _LAST_WORD.search(part))]
    for table, body in CREATED.findall(text):
        yield table, list(list_columns(body))


def list_columns(body: str) -> Iterator[str]:
    """Yield the columns in the body of a table's definition."""
    columns = (_COLUMN.match(part) for part in _split_columns(body))
    return (found.group(1) for found in columns if found and found.group(1).lower() not in _NO_COLUMN)


def _split_columns(body: str) -> Iterator[str]:
    """Yield the parts between the commas of a table's definition, ignoring commas within brackets."""
    depth, start = 0, 0
    for place, char in enumerate(body):
        depth += (char == "(") - (char == ")")
        # The list of columns ends at the bracket that opened it.
        if depth < 0 or (char == "," and depth == 0):
            yield body[start:place]
            start = place + 1
        if depth < 0:
            return
    yield body[start:]
