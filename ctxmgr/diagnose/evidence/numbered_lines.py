"""The lines of a file in a view that has a number before each: where the number ends and the line begins.

Some clients put a sign after the number, others only blanks. Only the whole view tells those from the indentation of a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from ctxmgr.text.patterns import lazy_pattern

# `     1→x` and `1\tx` of Claude Code, `00001| x` and `1: x` of opencode, `     1|x` of Cursor, `1:x` of SWE-agent, `   1  x`
_ROW = lazy_pattern(r"( {0,8})(\d{1,7})(?:([\t→|:])|(?= )|$)")
_SURE = ("\t", "→")
_LEAST_SHARE, _LEAST_ROWS, _MOST_VIEWS = 0.6, 3, 12
"""Share of a view's lines that have numbers, rows that show a column of numbers without a sign, other views that are read."""
_MOST_BLANKS = 2
"""Blanks between a number and its line, where no line of the view is known to begin at the margin."""


class NumberedLines(NamedTuple):
    """The number of the first line of a view, and the lines without their numbers; none if it is unclear where they begin."""

    first: int
    lines: tuple[str, ...]


class _Row(NamedTuple):
    padded: bool
    number: int
    sign: str
    rest: str


def read_numbered_lines(lines: Sequence[str], others: Iterable[Sequence[str]] = ()) -> NumberedLines | None:
    """Return the lines of a view without the numbers before them, or None if they have no numbers.

    Args:
        lines: the view. Lines around it that say something else are left out.
        others: other views by the same tool, which show where its lines begin if all of this one are indented.
    """
    rows = _find_rows(lines)
    if not rows:
        return None
    first, sign = rows[0].number, _sign(rows)
    if sign in _SURE:
        return NumberedLines(first, tuple(row.rest for row in rows))
    views = [rows]
    is_column = bool(sign) or (len(rows) >= _LEAST_ROWS and rows[0].padded)
    if not is_column or _count_blanks(sign, views) not in range(_MOST_BLANKS + 1):
        views += [found for other in islice(others, _MOST_VIEWS) if (found := _find_rows(other)) and _sign(found) == sign]
    # A column of numbers that ends in no sign of its own may be the file's.
    if not is_column and len(views) == 1:
        return None
    blanks = _count_blanks(sign, views)
    if blanks is None:
        return NumberedLines(first, ())
    # Indentation is even, so an odd number has the one blank that stands after the sign.
    return NumberedLines(first, tuple(row.rest[blanks % 2 if sign else blanks :] for row in rows))


def _find_rows(lines: Sequence[str]) -> list[_Row]:
    """Return the lines that begin with a number, if these are most, and count up where only that shows what they are."""
    found = [(match, line) for line in lines if (match := _ROW.match(line))]
    every = [_Row(bool(match[1]), int(match[2]), match[3] or "", line[match.end() :]) for match, line in found]
    sign = _sign(every)
    rows: list[_Row] = []
    for row in every:
        if row.sign != sign and row.rest.strip():
            continue
        if sign in (*_SURE, "|") or not rows or row.number == rows[-1].number + 1:
            rows.append(row)
        elif len(rows) == 1:
            rows = [row]
    return rows if len(rows) >= _LEAST_SHARE * sum(bool(line.strip()) for line in lines) else []


def _sign(rows: Sequence[_Row]) -> str:
    counts = Counter(row.sign for row in rows if row.rest.strip() or row.sign)
    return max(counts, key=lambda sign: counts[sign], default="")


def _count_blanks(sign: str, views: Sequence[Sequence[_Row]]) -> int | None:
    """Return how many blanks all lines have after the number and its sign; None if some of them may be indentation."""
    # An empty line shows the blanks of the column alone, unless the tool cuts them off.
    rests = [row.rest for view in views for row in view if row.rest]
    least = min((len(rest) - len(rest.lstrip(" ")) for rest in rests), default=0)
    return least if sign or least <= _MOST_BLANKS or any(view[0].number == 1 for view in views) else None
