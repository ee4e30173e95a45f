"""Answers as text for other programs and pages: CSV, TSV, a Markdown table of rows, and what people see as Markdown.

Every cell passes the filter of the terminal. A spreadsheet takes a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or
a carriage return for a formula, and recorded text is hostile. Such a text therefore begins with an apostrophe in CSV and TSV;
numbers never do. JSON has texts unchanged.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from ctxmgr.cli.envelope import ascii_json
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.layout import Cell, Column, Span, as_span
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.text.lazy_pattern import lazy_pattern

# With the full-width forms, which a spreadsheet may take for the plain ones.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_TSV = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})

Row = Mapping[str, Any]


def cell(value: Any) -> str:
    """Return a value as one text: nothing for null, JSON for what is no text."""
    return "" if value is None else value if isinstance(value, str) else ascii_json(value)


def harmless(value: Any) -> str:
    """Return a value as a cell that no spreadsheet takes for a formula."""
    text = safe(cell(value), keep_lines=True)
    if not isinstance(value, str) or not text.startswith(_FORMULA) or _is_number(text):
        return text
    return "'" + text


def _is_number(text: str) -> bool:
    # A signed number stays one: a mark in front of it would turn a column of figures into texts.
    return text[0] in "+-" and text[1:].replace(".", "", 1).isdecimal() and text.isascii()


def column_names(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """Return the names of the columns: those given, else all that a row has, in order of appearance."""
    return list(columns) if columns else list(dict.fromkeys(name for row in rows for name in row))


def as_csv(rows: Sequence[Row], columns: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of CSV (RFC 4180, but lines end in a newline alone), the names of the columns first."""
    names = column_names(rows, columns)
    if not names:
        return
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for values in (names, *([row.get(name) for name in names] for row in rows)):
        writer.writerow([harmless(value) for value in values])
        yield out.getvalue().removesuffix("\n")
        # One row at a time is held, however long the answer is.
        out.seek(0)
        out.truncate()


def as_tsv(rows: Sequence[Row], columns: Sequence[str] = ()) -> Iterator[str]:
    r"""Yield lines of cells between tabs, the names of the columns first; tabs, newlines and ``\`` in a cell are escaped."""
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
    """Return one line of a Markdown table of filtered texts."""
    return "| " + " | ".join(escape_markdown(text).replace("\n", "<br>") for text in cells) + " |"


_MARKS = str.maketrans({char: "\\" + char for char in "\\`*[]<|~$"})
# Inside of a word, as in ``snake_case``, an underscore means nothing to Markdown and stays readable. A number sign before a
# number is a link to an issue in a comment on GitHub, and ``&lt;`` another character.
_EDGES = lazy_pattern(r"(?<![^\W_])_|_(?![^\W_])|^[ ]*[#>]|#(?=\d)|&(?=#?\w+;)")
# A bare address is a link, and a name behind "@" mentions somebody. ``session@12`` is neither.
_LINKED = lazy_pattern(r"(?<!\w)@(?=\w)|@(?=[^\W\d])|://|www\.", re.IGNORECASE)


def escape_markdown(text: str) -> str:
    """Return filtered text in which nothing means anything to Markdown: no link, no mention, no picture, no HTML."""
    shown = _EDGES.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], text.translate(_MARKS))
    # An empty comment shows as nothing and parts what would be a link.
    return _LINKED.sub(r"\g<0><!-- -->", shown)


WRITERS = {"csv": as_csv, "tsv": as_tsv, "md": as_markdown_table}


_BOLD = frozenset({"strong", "head"})
# Between words several blanks part columns; at the beginning of a line they only indent it.
_GAPS = lazy_pattern(r"(?<=\S) {2,}(?=\S)")
_TICKS = lazy_pattern(r"`{3,}")
# A blank or the end must follow: ``-1`` and ``3.5`` begin no item.
_STARTS = lazy_pattern(r"^(\s*)([-+]|\d{1,9}[.)])(?=\s|$)")
_MIN_DRAWING_LINES, _MAX_WIDTH = 2, 120
"""Number of successive lines with gaps that make a drawing, and the width of its widest line."""


class MarkdownPrinter(Printer):
    """Draws a view as Markdown; call `finish` at the end. Nothing in recorded text means anything to Markdown."""

    def __init__(self, out: TextIO, talk: TextIO) -> None:
        super().__init__(out, talk, terminal=False)
        self._started = False
        self._lines: list[tuple[str, str]] = []  # as text, and as it is drawn

    def line(self, *parts: str | Span, indent: int = 0, hang: int = 0, most: int | None = None) -> None:
        """Add a line to the paragraph or the drawing at hand; an empty one ends it."""
        spans = [Span(self.safe(span.text), span.style) for span in map(as_span, parts)]
        drawn = " " * indent + "".join(span.text for span in spans)
        if not drawn.strip():
            self.finish()
            return
        text = "".join(_markdown_span(span) for span in spans)
        self._lines.append((text.strip().removeprefix("· ").removesuffix(" ·"), drawn.rstrip()))

    def block(self, text: object, *, indent: int = 0, style: str = "", most: int | None = None) -> int:
        """Write text as it is between fences."""
        self._write_fence(self.safe(text, keep_lines=True).split("\n"))
        return 0

    def heading(self, title: str) -> None:
        """Write the title of a part."""
        self._part([f"### {escape_markdown(self.safe(title))}"])

    def rule(self, *parts: str | Span) -> None:
        """Write a title that parts one thing from the next."""
        words = "  ".join(filter(None, (self.safe(as_span(part).text).strip() for part in parts)))
        self._part([f"## {_GAPS.sub(' · ', escape_markdown(words))}"])

    def pairs(self, pairs: Iterable[tuple[str, Cell]], *, indent: int = 2) -> None:
        """Write names and values as a list."""
        shown = [(name, self._text(value)) for name, value in pairs if value not in (None, "", [])]
        self._part([f"- **{escape_markdown(self.safe(name))}**: {escape_markdown(value)}" for name, value in shown])

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> None:
        """Write a table, the columns in which nothing stands left out."""
        drawn = [[self._text(cell) for cell in row] for row in rows]
        # Markdown gives each column its room, so an empty one would only push the others together.
        shown = [place for place in range(len(columns)) if any(row[place] for row in drawn)]
        rules = [" ---: |" if columns[place].right else " --- |" for place in shown]
        titles = [self.safe(columns[place].title).lower() for place in shown]
        self._part(
            [markdown_row(titles), "|" + "".join(rules), *(markdown_row([row[place] for place in shown]) for row in drawn)]
        )

    def _text(self, value: Cell) -> str:
        parts = [value] if isinstance(value, str | Span) else [str(value)] if isinstance(value, int) else value or []
        return "".join(self.safe(as_span(part).text) for part in parts).strip()

    def finish(self) -> None:
        """Write what is still to be written: lines that are laid out as a drawing, the others as a paragraph."""
        lines, self._lines = self._lines, []
        written: list[tuple[str, str]] = []
        for has_gaps, group in groupby(lines, lambda line: _GAPS.search(line[1].strip()) is not None):
            part = list(group)
            # Gaps in successive lines place things below each other, which only a fence keeps.
            if has_gaps and len(part) >= _MIN_DRAWING_LINES and all(len(drawn) <= _MAX_WIDTH for _, drawn in part):
                self._part(list(_paragraph_lines(written)))
                self._write_fence([drawn for _, drawn in part])
                written = []
            else:
                written += part
        self._part(list(_paragraph_lines(written)))

    def _write_fence(self, lines: list[str]) -> None:
        longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=2)
        # A fence longer than any in the text: recorded text can't close it and go on as Markdown.
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
    """Yield lines as a paragraph where they stand at the margin, else as items of a list; what stands deeper goes on."""
    depths = [len(drawn) - len(drawn.lstrip()) for _, drawn in lines]
    for place, (text, _) in enumerate(lines):
        # A sign at the beginning of a line would make an item of a list out of it.
        words = _STARTS.sub(r"\1\\\2", text)
        goes_on = place + 1 < len(lines) and (not depths[0] or depths[place + 1] > depths[0])
        lead = "" if not depths[0] else "- " if depths[place] <= depths[0] else "  "
        yield lead + words + ("\\" if goes_on else "")


def _markdown_span(span: Span) -> str:
    """Return a piece of a line; the blanks that part it from the next are a dot, those inside it are its own."""
    inner = span.text.strip(" ")
    before = len(span.text) - len(span.text.lstrip(" "))
    after = len(span.text) - len(inner) - before
    words = f"**{escape_markdown(inner)}**" if inner and span.style in _BOLD else escape_markdown(inner)
    return _separator(before) + words + (_separator(after) if inner else "")


def _separator(blanks: int) -> str:
    return " · " if blanks > 1 else " " * blanks


def markdown_printer() -> MarkdownPrinter:
    """Return the printer of Markdown for standard output."""
    return MarkdownPrinter(sys.stdout, sys.stderr)
