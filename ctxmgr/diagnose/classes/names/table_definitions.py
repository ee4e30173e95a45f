"""Tables and views as their definitions in SQL show them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.text.patterns import lazy_pattern

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
