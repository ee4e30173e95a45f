"""Answers as text for programs and pages: CSV, TSV, Markdown tables of rows, and the views for people as Markdown.

Every cell passes the filter of the terminal. A spreadsheet reads a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
carriage return as a formula, and recorded text is hostile. Such a text gets a leading apostrophe in CSV and TSV; numbers never
do. JSON keeps texts unchanged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from ctxmgr.cli.envelope import ascii_json
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.layout import Cell, Column, Span, as_span
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.text.patterns import lazy_pattern

# Includes the full-width forms, which a spreadsheet may read like the plain ones.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_TSV = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

Row = Mapping[str, Any]


def cell(value: Any) -> str:
    """Return a value as text: empty for null, JSON for other values that are no text."""
    return "" if value is None else value if isinstance(value, str) else ascii_json(value)


def harmless(value: Any) -> str:
    """Return a value as a cell that no spreadsheet reads as a formula."""
    text = safe(cell(value), keep_lines=True)
    if not isinstance(value, str) or not text.startswith(_FORMULA) or _is_number(text):
        return text
    return "'" + text


def _is_number(text: str) -> bool:
    # A signed number stays a number: an apostrophe would turn a column of figures into texts.
    return text[0] in "+-" and text[1:].replace(".", "", 1).isdecimal() and text.isascii()


def column_names(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """Return the names of the columns: those given, else all names in the rows, in order of appearance."""
    return list(columns) if columns else list(dict.fromkeys(name for row in rows for name in row))


def as_csv(rows: Sequence[Row], columns: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of CSV (RFC 4180, but with a newline alone as line end), the header first."""
    names = column_names(rows, columns)
    if not names:
        return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for values in (names, *([row.get(name) for name in names] for row in rows)):
        writer.writerow([harmless(value) for value in values])
        yield out.getvalue().removesuffix("\n")
        # Hold one row at a time, however long the answer is.
        out.seek(0)
        out.truncate()


def as_tsv(rows: Sequence[Row], columns: Sequence[str] = ()) -> Iterator[str]:
    r"""Yield lines of cells between tabs, the header first; tabs, newlines and ``\`` in a cell are escaped."""
    names = column_names(rows, columns)
    if names:
        yield "\t".join(harmless(name).translate(_TSV) for name in names)
    for row in rows:
        yield "\t".join(harmless(row.get(name)).translate(_TSV) for name in names)


def as_markdown_table(rows: Sequence[Row], columns: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    names = column_names(rows, columns)
    if not names:
        return
    yield markdown_row(names)
    yield "|" + " --- |" * len(names)
    for row in rows:
        yield markdown_row([safe(cell(row.get(name))) for name in names])


def markdown_row(cells: Sequence[str]) -> str:
    """Return filtered texts as one row of a Markdown table."""
    return "| " + " | ".join(escape_markdown(text).replace("\n", "<br>") for text in cells) + " |"


_MARKS = str.maketrans({char: "\\" + char for char in "\\`*[]<|~$"})
# Inside a word, as in ``snake_case``, Markdown ignores an underscore, so it stays readable. In a comment on GitHub, a
# number sign before a number links to an issue. ``&lt;`` would show as another character.
_EDGES = lazy_pattern(r"(?<![^\W_])_|_(?![^\W_])|^[ ]*[#>]|#(?=\d)|&(?=#?\w+;)")
# A bare address becomes a link, and "@" before a name mentions somebody. ``session@12`` does neither.
_LINKED = lazy_pattern(r"(?<!\w)@(?=\w)|@(?=[^\W\d])|://|www\.", re.IGNORECASE)


def escape_markdown(text: str) -> str:
    """Return filtered text with all Markdown syntax escaped: no links, mentions, pictures or HTML."""
    shown = _EDGES.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], text.translate(_MARKS))
    # An empty comment is invisible and breaks up the text that would become a link.
    return _LINKED.sub(r"\g<0><!-- -->", shown)


WRITERS = {"csv": as_csv, "tsv": as_tsv, "md": as_markdown_table}


_BOLD = frozenset({"strong", "head"})
# Several blanks between words separate columns. At the beginning of a line they only indent it.
_GAPS = lazy_pattern(r"(?<=\S) {2,}(?=\S)")
_TICKS = lazy_pattern(r"`{3,}")
# White space or the end must follow: ``-1`` and ``3.5`` begin no list item.
_STARTS = lazy_pattern(r"^(\s*)([-+]|\d{1,9}[.)])(?=\s|$)")
_MIN_DRAWING_LINES, _MAX_WIDTH = 2, 120
"""Minimum number of successive lines with gaps that make a drawing, and the maximum width of its lines."""


class MarkdownPrinter(Printer):
    """Draw a view as Markdown. Call `finish` at the end. Markdown syntax in recorded text is escaped."""

    def __init__(self, out: TextIO, talk: TextIO) -> None:
        super().__init__(out, talk, terminal=False)
        self._started = False
        self._lines: list[tuple[str, str]] = []  # (text as Markdown, text as drawn)

    def line(self, *parts: str | Span, indent: int = 0, hang: int = 0, most: int | None = None) -> None:
        """Add a line to the current paragraph or drawing; an empty line ends it."""
        spans = [Span(self.safe(span.text), span.style) for span in map(as_span, parts)]
        drawn = " " * indent + "".join(span.text for span in spans)
        if not drawn.strip():
            self.finish()
            return
        text = "".join(_markdown_span(span) for span in spans)
        self._lines.append((text.strip().removeprefix("· ").removesuffix(" ·"), drawn.rstrip()))

    def block(self, text: object, *, indent: int = 0, style: str = "", most: int | None = None) -> int:
        """Write text unchanged inside a code fence."""
        self._write_fence(self.safe(text, keep_lines=True).split("\n"))
        return 0

    def heading(self, title: str) -> None:
        """Write the title of a section."""
        self._part([f"### {escape_markdown(self.safe(title))}"])

    def rule(self, *parts: str | Span) -> None:
        """Write a title that separates two items."""
        words = "  ".join(filter(None, (self.safe(as_span(part).text).strip() for part in parts)))
        self._part([f"## {_GAPS.sub(' · ', escape_markdown(words))}"])

    def pairs(self, pairs: Iterable[tuple[str, Cell]], *, indent: int = 2) -> None:
        """Write names and values as a list."""
        shown = [(name, self._text(value)) for name, value in pairs if value not in (None, "", [])]
        self._part([f"- **{escape_markdown(self.safe(name))}**: {escape_markdown(value)}" for name, value in shown])

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> None:
        """Write a table without its empty columns."""
        drawn = [[self._text(cell) for cell in row] for row in rows]
        # Markdown gives every column room, so an empty one would only narrow the others.
        shown = [place for place in range(len(columns)) if any(row[place] for row in drawn)]
        rules = [" ---: |" if columns[place].right else " --- |" for place in shown]
        titles = [self.safe(columns[place].title).lower() for place in shown]
        self._part(
            [markdown_row(titles), "|" + "".join(rules), *(markdown_row([row[place] for place in shown]) for row in drawn)]
        )

    def _text(self, value: Cell) -> str:
        return "".join(span.text for span in self._spans(value)).strip()

    def finish(self) -> None:
        """Write the pending lines: drawings inside code fences, the others as paragraphs."""
        lines, self._lines = self._lines, []
        written: list[tuple[str, str]] = []
        for has_gaps, group in groupby(lines, lambda line: _GAPS.search(line[1].strip()) is not None):
            part = list(group)
            # Gaps in successive lines align columns, and only a code fence keeps the alignment.
            if has_gaps and len(part) >= _MIN_DRAWING_LINES and all(len(drawn) <= _MAX_WIDTH for _, drawn in part):
                self._part(list(_paragraph_lines(written)))
                self._write_fence([drawn for _, drawn in part])
                written = []
            else:
                written += part
        self._part(list(_paragraph_lines(written)))

    def _write_fence(self, lines: list[str]) -> None:
        longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=2)
        # The fence is longer than any in the text, so recorded text can't close it and continue as Markdown.
        fence = "`" * (longest + 1)
        self._part([fence, *lines, fence])

    def _part(self, lines: list[str]) -> None:
        if self._lines:
            self.finish()
        if not lines:
            return
        self._out.write(("\n" if self._started else "") + "".join(f"{line}\n" for line in lines))
        self._started = True


def _paragraph_lines(lines: list[tuple[str, str]]) -> Iterator[str]:
    """Yield lines at the margin as a paragraph, indented lines as list items; deeper lines continue an item."""
    depths = [len(drawn) - len(drawn.lstrip()) for _, drawn in lines]
    for place, (text, _) in enumerate(lines):
        # A sign at the beginning of a line would make it a list item.
        words = _STARTS.sub(r"\1\\\2", text)
        goes_on = place + 1 < len(lines) and (not depths[0] or depths[place + 1] > depths[0])
        lead = "" if not depths[0] else "- " if depths[place] <= depths[0] else "  "
        yield lead + words + ("\\" if goes_on else "")


def _markdown_span(span: Span) -> str:
    """Return a piece of a line as Markdown. Several blanks at its ends become a dot; blanks inside it stay."""
    inner = span.text.strip(" ")
    before = len(span.text) - len(span.text.lstrip(" "))
    after = len(span.text) - len(inner) - before
    words = f"**{escape_markdown(inner)}**" if inner and span.style in _BOLD else escape_markdown(inner)
    return _separator(before) + words + (_separator(after) if inner else "")


def _separator(blanks: int) -> str:
    return " · " if blanks > 1 else " " * blanks
