"""Pieces of text with a meaning, the signs views draw with, and the arithmetic of lines and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctxmgr.cli.views.safe_text import Keep, cells, take
from ctxmgr.light_dataclass import dataclass
from ctxmgr.text.lazy_pattern import lazy_pattern

GAP = "  "
"""What stands between two columns."""

TIME_STEPS = (16, 10)
"""Widths of a time of day with its date ("2026-01-22 14:03:22") without its seconds, and of the date alone."""

_WORDS = lazy_pattern(r" +|[^ ]+")


@dataclass(frozen=True, slots=True)
class Symbols:
    """The signs the views draw with; `ASCII` stands in where the encoding can't hold them."""

    ok: str = "●"
    error: str = "✗"
    denied: str = "⊘"
    interrupted: str = "◌"
    open: str = "○"
    unknown: str = "·"
    healthy: str = "✓"
    dots: str = "⋯"
    times: str = "×"
    arrow: str = "→"
    bar: str = "━"
    thin: str = "─"
    limit: str = "┃"
    tip: str = "▶"
    note: str = "✎"
    ellipsis: str = "…"
    newline: str = "⏎"
    dash: str = "–"


UNICODE = Symbols()
ASCII = Symbols(
    ok="*", error="x", denied="!", interrupted="~", open="o", unknown=".", healthy="+", dots="..", times="x",
    arrow="->", bar="=", thin="-", limit="|", tip=">", note="#", ellipsis="...", newline="\\n", dash="-",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with a meaning (a key of the colour table), e.g. ``Span("error", "error")``.

    ``keep`` says which part stays when it is cut to fit into a table.
    """

    text: str
    style: str = ""
    keep: Keep = "start"


Cell = str | int | Span | Sequence[str | Span] | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table and how it behaves when a terminal is too narrow.

    Attributes:
        give: columns with a higher number shrink first, down to ``least`` cells; 0 never shrinks.
        optional: may vanish when shrinking was not enough.
        fill: takes what the other columns leave, at least ``least``; one column a table.
        steps: the widths to which it shrinks, widest first, where only these make sense.
    """

    title: str
    right: bool = False
    give: int = 0
    least: int = 6
    optional: bool = False
    fill: bool = False
    steps: Sequence[int] = ()

    def shrunk(self, width: int) -> int:
        """Return the width that it takes when it may have at most this one."""
        return max(self.least, next((step for step in self.steps if step <= width), self.least) if self.steps else width)


def as_span(part: str | Span) -> Span:
    """Return a plain text as a piece without a meaning."""
    return Span(part) if isinstance(part, str) else part


def wrapped(spans: Iterable[Span], first: int, rest: int) -> list[list[Span]]:
    """Return the pieces in rows of at most ``first`` and then ``rest`` cells, broken at blanks where there are any."""
    rows: list[list[Span]] = [[]]
    room = max(first, 8)
    for span in spans:
        for word in _WORDS.findall(span.text):
            wide = cells(word)
            if wide > room and len(rows[-1]) and (word[0] == " " or wide <= rest or room < rest // 2):
                if not rows[-1][-1].text.strip(" ") and len(rows[-1]) > 1:
                    rows[-1].pop()
                rows.append([])
                room = max(rest, 8)
                if word[0] == " ":
                    continue
            while wide > room:
                head = take(word, room) or word[:1]
                rows[-1].append(Span(head, span.style))
                rows.append([])
                word, room = word[len(head) :], max(rest, 8)
                wide = cells(word)
            rows[-1].append(Span(word, span.style))
            room -= wide
    return rows


def fitted(columns: Sequence[Column], natural: Sequence[int], room: int) -> list[int]:
    """Return the width of each column so that a row takes at most ``room`` cells; 0 means the column is not shown."""
    widths = [min(wide, column.least) if column.fill else wide for column, wide in zip(columns, natural, strict=True)]

    def over() -> int:
        shown = [width for width in widths if width]
        return sum(shown) + len(GAP) * (len(shown) - 1) - room

    order = sorted(range(len(columns)), key=lambda place: -columns[place].give)
    for place in order:
        if columns[place].give and over() > 0 and widths[place] > columns[place].least:
            widths[place] = columns[place].shrunk(widths[place] - over())
    for place in order:
        if columns[place].optional and over() > 0:
            widths[place] = 0
    for place in reversed(range(len(columns))):
        if over() > 0 and widths[place]:
            widths[place] = max(0, widths[place] - over())
    for place, column in enumerate(columns):
        if column.fill and widths[place]:
            widths[place] = min(natural[place], widths[place] - over())
    return widths
