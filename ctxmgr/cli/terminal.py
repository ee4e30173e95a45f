"""The printer for all output: to a terminal, to a pipe, and through a pager if the output is longer than the screen.

On a terminal, lines are wrapped at words and tables are fitted to the width. Elsewhere nothing is cut, no escape byte is
written, and a table has plain columns with one row per line. Callers choose colours by meaning, not by name. The pager is
CTXMGR_PAGER, else PAGER, else less, as in git. It starts only if a person watches and can type. Its input has passed the same
filter, so it contains no escapes but our own colours.
"""

from __future__ import annotations

import io
import os
import sys
import time
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice

from ctxmgr.cli.invocation import at_words, columns, erase_progress, global_options, progress_lines
from ctxmgr.cli.views.layout import ASCII, GAP, UNICODE, Cell, Column, Span, Symbols, as_span, fit_columns, wrap_spans
from ctxmgr.cli.views.safe_text import VARIATION, Keep, cells, cut, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO


_BATCH = 256
# A longer cell in a pipe shifts the rest of its own row, but not the columns of all rows.
_MAX_PLAIN_WIDTH = 60

# Only the eight colours that every terminal has. Users choose them to fit their background.
_COLOURS: Mapping[str, str] = {
    "ok": "32", "healthy": "32", "error": "31", "denied": "35", "interrupted": "33", "open": "36",
    "loop": "1;31", "hung": "1;33", "warn": "33", "verified": "32", "recorded": "32", "reconstructed": "36", "unknown": "33",
    "dim": "2", "head": "2", "strong": "1", "match": "1;7", "name": "1;34",
}  # fmt: skip
# Terminals disagree on the width of signs with variation selectors. Removing the selectors keeps columns straight.
_UNVARIED = dict.fromkeys(map(ord, VARIATION))
_SPELLED = str.maketrans({"⏎": "\\n", "…": "...", "×": "x", "→": "->", "–": "-", "·": "."})


class Printer:
    """Write filtered text to one stream, and hints about it to another.

    The printer filters every string with `safe`, so callers can't forget to. ``BrokenPipeError`` passes through.

    Attributes:
        terminal: whether a person watches; otherwise text is never cut or wrapped.
        width: width of the terminal in cells.
        symbols: the signs that the stream's encoding can hold.
        waiting: hints to write after the answer; None if hints are written at once.
    """

    waiting: list[str] | None = None

    def __init__(self, out: TextIO, talk: TextIO, *, terminal: bool, width: int = 80, colour: bool = False) -> None:
        # A stream with another encoding must escape characters that it can't hold. An error would end the command.
        for stream in (out, talk):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        self.terminal, self.width, self.colour = terminal, max(width, 20), colour
        self._out, self._talk = out, talk
        self._encoding = out.encoding or "utf-8"
        try:
            # Use all signs or none, because a page with both sets would need two legends.
            "".join(str(getattr(UNICODE, name)) for name in Symbols.__slots__).encode(self._encoding)
            self.symbols, self._unicode = UNICODE, True
        except (UnicodeError, LookupError):
            self.symbols, self._unicode = ASCII, False

    def safe(self, text: object, *, keep_lines: bool = False) -> str:
        """Return the text as it appears on this stream: filtered, and escaped for the encoding."""
        shown = safe(text, keep_lines=keep_lines)
        if shown.isascii():
            return shown
        if self._unicode:
            return shown.translate(_UNVARIED) if self.terminal else shown
        return shown.translate(_SPELLED).encode("ascii", "backslashreplace").decode("ascii")

    def cells(self, text: str) -> int:
        """Return the width of filtered text."""
        if self.terminal or text.isascii():
            return cells(text)
        if len(text) > 4 * _MAX_PLAIN_WIDTH:  # wider than any column, so not worth counting
            return len(text)
        # Not with rich: it measures better, but takes longer to load than most answers to a pipe.
        return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)

    def fit(self, text: object, width: int, keep: Keep = "start") -> str:
        """Return the text in one line; on a terminal, cut to ``width`` cells."""
        shown = self.safe(self._limit_text(text))
        return cut(shown, width, self.symbols.ellipsis, keep) if self.terminal else shown

    def _limit_text(self, text: object) -> object:
        # Cut first: filtering megabytes to show one line of them would slow down a list.
        most = 4096 + 4 * self.width
        if self.terminal and isinstance(text, str) and len(text) > most:
            return text[:most] + self.symbols.ellipsis
        return text

    def line(self, *parts: str | Span, indent: int = 0, hang: int = 0, most: int | None = None) -> None:
        """Write one line. A terminal wraps it into at most ``most`` lines; later ones are indented by ``hang`` more cells."""
        spans = [Span(self.safe(span.text), span.style) for span in map(as_span, parts)]
        if not self.terminal:
            self._emit([Span(" " * indent), *spans])
            return
        # On a narrow terminal the text needs the room more than the indentation does.
        indent = min(indent, self.width // 4)
        hang = min(hang, self.width // 2 - indent)
        rows = list(wrap_spans(spans, self.width - indent, self.width - indent - hang))
        if most is not None and len(rows) > most:
            room = self.width - indent - (hang if most > 1 else 0)
            rows[most - 1 :] = [[*self._cut(rows[most - 1], room - 2), Span(" " + self.symbols.ellipsis, "dim")]]
        for number, row in enumerate(rows):
            self._emit([Span(" " * (indent + (hang if number else 0))), *row])

    def block(self, text: object, *, indent: int = 0, style: str = "", most: int | None = None) -> int:
        """Write text with its own line ends, on a terminal at most ``most`` lines. Return how many lines were left out."""
        lines = self.safe(text, keep_lines=True).split("\n")
        shown = lines[:most] if self.terminal and most is not None else lines
        for line in shown:
            if self.terminal:
                self.line(Span(line.replace("\t", "    "), style), indent=indent)
            else:
                self._emit([Span(" " * indent), Span(line, style)], exact=True)
        return len(lines) - len(shown)

    def heading(self, title: str) -> None:
        """Write the title of a section, after an empty line."""
        self._emit([])
        self.line(Span(title, "strong"))

    def rule(self, *parts: str | Span) -> None:
        """Write a title that separates two items. On a terminal, extend it to the full width with a line, or cut it."""
        spans = [as_span(part) for part in parts]
        thin = self.symbols.thin
        if self.terminal:
            spans = self._cut([Span(self.safe(span.text), span.style) for span in spans], self.width - 8)
            room = self.width - 4 - sum(self.cells(span.text) for span in spans)
            spans = [Span(thin * 2 + " ", "dim"), *spans, Span(" " + thin * room, "dim")]
        self._emit([Span(self.safe(span.text), span.style) for span in spans])

    def pairs(self, pairs: Iterable[tuple[str, Cell]], *, indent: int = 2) -> None:
        """Write one name and value per line; skip empty values."""
        kept = [(name, self._spans(value)) for name, value in pairs if value not in (None, "", [])]
        wide = max((len(name) for name, _ in kept), default=0) + 2
        for name, spans in kept:
            self.line(Span(name.ljust(wide), "dim"), *spans, indent=indent, hang=wide)

    def hint(self, *texts: str) -> None:
        """Write remarks about the answer to the stream for talk, so that the answer stays pure data."""
        self._out.flush()  # otherwise a buffered answer would appear after the remark
        if global_options.quiet:
            return
        if self.waiting is not None:
            self.waiting += texts
            return
        for text in texts:
            self._talk.write(at_words(self.safe(text), self._talk) + "\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> None:
        """Write a table row by row, so that endless tables need no memory."""
        # On a terminal the first batch sets the widths. In a pipe columns may still grow, because nothing is cut there.
        source = iter(rows)
        widths: list[int] = []
        while batch := list(islice(source, _BATCH)):
            drawn = [[self._spans(cell) for cell in row] for row in batch]
            natural = [self._natural_width(self.safe(column.title), place, drawn) for place, column in enumerate(columns)]
            first = not widths
            if not self.terminal:
                before = widths or [0] * len(columns)
                widths = [max(old, min(new, _MAX_PLAIN_WIDTH)) for old, new in zip(before, natural, strict=True)]
            elif first:
                widths = fit_columns(columns, natural, self.width - indent)
            if first:
                self._row(columns, [[Span(self.safe(column.title), "head")] for column in columns], widths, indent)
            for row in drawn:
                self._row(columns, row, widths, indent)

    def _natural_width(self, title: str, place: int, drawn: list[list[list[Span]]]) -> int:
        widest = max(sum(self.cells(span.text) for span in row[place]) for row in drawn)
        # On a terminal an empty column is left out. Programs need the same columns each time.
        return 0 if self.terminal and not widest else max(widest, self.cells(title))

    def _row(self, columns: Sequence[Column], row: Sequence[list[Span]], widths: list[int], indent: int) -> None:
        out, owed = [Span(" " * indent)], 0
        shown = [place for place, width in enumerate(widths) if width]
        for place in shown:
            spans, width = row[place], widths[place]
            if self.terminal:
                spans = self._cut(spans, width)
            pad = max(width - sum(self.cells(span.text) for span in spans), 0)
            if any(span.text for span in spans):
                out += [Span(" " * (owed + (pad if columns[place].right else 0))), *spans]
                owed = 0
                pad = 0 if columns[place].right else pad
            # Write padding only before the next text, so that no line ends in blanks, coloured ones included.
            owed += pad + len(GAP)
        self._emit(out)

    def _spans(self, cell: Cell) -> list[Span]:
        parts = [cell] if isinstance(cell, str | Span) else [str(cell)] if isinstance(cell, int) else cell or []
        return [Span(self.safe(self._limit_text(span.text)), span.style, span.keep) for span in map(as_span, parts)]

    def _cut(self, spans: list[Span], width: int) -> list[Span]:
        kept: list[Span] = []
        for number, span in enumerate(spans):
            rest = 1 if any(later.text for later in spans[number + 1 :]) else 0
            if self.cells(span.text) + rest * len(self.symbols.ellipsis) > width:
                # The added blanks stand for the following pieces: the cut must be marked even if this piece alone would
                # fit.
                text = span.text + " " * rest * width if span.keep == "start" else span.text
                kept.append(Span(cut(text, width, self.symbols.ellipsis, span.keep), span.style))
                break
            kept.append(span)
            width -= self.cells(span.text)
        return kept

    def _emit(self, spans: Iterable[Span], *, exact: bool = False) -> None:
        if not self.colour:
            text = "".join(span.text for span in spans)
            self._out.write((text if exact else text.rstrip(" ")) + "\n")
            return
        for style, group in groupby((span for span in spans if span.text), lambda span: span.style):
            text, code = "".join(span.text for span in group), _COLOURS.get(style, "")
            self._out.write(f"\x1b[{code}m{text}\x1b[0m" if code else text)
        self._out.write("\n")


def printer() -> Printer:
    """Return the printer for standard output, configured from the environment (COLUMNS, NO_COLOR, FORCE_COLOR, TERM)."""
    terminal = sys.stdout.isatty()
    forced = os.environ.get("FORCE_COLOR", "0") not in ("", "0")
    colour = (
        global_options.colour and not os.environ.get("NO_COLOR") and (forced or (terminal and os.environ.get("TERM") != "dumb"))
    )
    return Printer(sys.stdout, sys.stderr, terminal=terminal, width=columns(sys.__stdout__), colour=colour)


_LESS = "FRX"
"""Options of less: quit if all text fits on one screen, pass colours through, leave the text on the screen (as in git)."""


@contextmanager
def open_pager() -> Generator[Printer]:
    """Yield a printer for the terminal and show its text at the end, in a pager if the text is longer than the screen."""
    if not _is_requested():
        yield printer()
        return
    # Hold the text back, because only its length tells whether a pager is needed.
    held = io.BytesIO()
    kept = io.TextIOWrapper(held, sys.stdout.encoding or "utf-8", newline="\n", write_through=True)
    plain = printer()
    shown = Printer(kept, sys.stderr, terminal=True, width=plain.width, colour=plain.colour)
    shown.waiting = []
    yield shown
    text = held.getvalue()
    if text.count(b"\n") < _height() or not _show_in_pager(text):
        sys.stdout.write(text.decode(kept.encoding))
    plain.hint(*shown.waiting)


def _is_requested() -> bool:
    return global_options.pager and os.environ.get("TERM") != "dumb" and sys.stdin.isatty() and sys.stdout.isatty()


def _height() -> int:
    """Return the number of lines of the screen, or `sys.maxsize` if it is unknown."""
    try:
        return int(os.environ["LINES"])
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or sys.maxsize
    except (OSError, ValueError, AttributeError):
        return sys.maxsize


def _pager() -> list[str]:
    """Return the command of the pager, or an empty list if there is none."""
    import shlex
    import shutil

    named = os.environ.get("CTXMGR_PAGER")
    named = os.environ.get("PAGER") if named is None else named
    try:
        words = shlex.split("less" if named is None else named)
    except ValueError:
        return []
    # ``PAGER=cat`` switches the pager off.
    return words if words and words != ["cat"] and shutil.which(words[0]) else []


def _show_in_pager(text: bytes) -> bool:
    """Show the text in the pager; return False if it can't be started. Leaving it early is not an error."""
    import subprocess

    if not (command := _pager()):
        return False
    sys.stdout.flush()
    # The defaults that git sets. ``-c`` makes the pager ``lv`` pass colours through.
    environment = {**os.environ, "LESS": os.environ.get("LESS", _LESS), "LV": os.environ.get("LV", "-c")}
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    assert process.stdin is not None
    try:
        process.stdin.write(text)
        process.stdin.close()
    except (BrokenPipeError, KeyboardInterrupt):  # the reader left early, or interrupts the pager, which handles that itself
        pass
    while True:
        try:
            process.wait()
            return True
        except KeyboardInterrupt:  # less handles the interrupt, and must not lose the terminal to us
            continue


_AFTER = 1.0  # seconds of work before the line appears; shorter work needs none
_AFTER_IN_PIPE = 5.0
_INTERVAL = 0.2


class ProgressMeter:
    """A progress line on stderr that is rewritten. It stays empty if stderr is no terminal or the work is short.

    Args:
        doing: the work, e.g. "indexing the log".
        unit: the unit of the count, e.g. "MB".
        each: how much of a reported number makes one unit.
        in_pipe: where stderr is no terminal, write one line if the work takes longer than a few seconds.
        stream: stream to write to; stderr by default.
        clock: returns seconds.
    """

    def __init__(
        self,
        doing: str,
        unit: str,
        each: int,
        *,
        in_pipe: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._in_pipe = in_pipe
        self._doing = doing
        self._unit = unit
        self._each = each
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began: tuple[float, int] | None = None
        self._shown_at = 0.0
        self._shown = 0

    def __call__(self, done: int, total: int | None, *_: object) -> None:
        """Report progress; ``total`` is None where nobody knows it. Further arguments are ignored."""
        terminal = self._stream.isatty()
        if global_options.quiet or not (terminal or self._in_pipe):
            return
        now = self._clock()
        if self._began is None:
            # Pretend a line was shown at this later time, so that the first real one comes after `_AFTER` seconds.
            self._began, self._shown_at = (now, done), now + _AFTER - _INTERVAL
        if total is not None and done >= total:
            self.end()
        elif not terminal:
            # In a file or a pipe, each update would be a line of its own.
            if now - self._began[0] >= _AFTER_IN_PIPE:
                self._in_pipe = False
                self._stream.write(f"ctxmgr: {self._line(done, total, now)}\n")
                self._stream.flush()
        elif now - self._shown_at >= _INTERVAL:
            self._shown_at = now
            self._write(self._line(done, total, now))

    def end(self) -> None:
        """Erase the line at the end of the work."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0
            if self.end in progress_lines:
                progress_lines.remove(self.end)

    def _write(self, line: str) -> None:
        if self.end not in progress_lines:
            erase_progress()
            progress_lines.append(self.end)
        self._stream.write("\r" + line.ljust(self._shown))
        self._stream.flush()
        self._shown = len(line)

    def _line(self, done: int, total: int | None, now: float) -> str:
        if total is None:
            return f"{self._doing}: {done // self._each:,} {self._unit}"
        began, first = self._began or (now, done)
        line = f"{self._doing}: {100 * done // max(1, total)} %"
        if done > first and now > began:
            rate = (done - first) / (now - began)
            line += f", {rate / self._each:,.0f} {self._unit}/s, {_span((total - done) / rate)} left"
        return line


def search_progress() -> ProgressMeter:
    """Return the meter for a search for logs in folders."""
    return ProgressMeter("searching for logs", "files", 1, in_pipe=True)


def with_progress(logs: Sequence[Path]) -> Generator[Path]:
    """Yield logs that are to be judged, and show how much of them is done by their sizes."""
    sizes = [log.stat().st_size if log.exists() else 0 for log in logs]
    meter = ProgressMeter("judging logs", "kB", 1_000, in_pipe=True)
    done, total = 0, sum(sizes)
    for log, size in zip(logs, sizes, strict=True):
        meter(done, total)
        yield log
        done += size
    meter.end()


def _span(seconds: float) -> str:
    total = round(seconds)
    return f"{total} s" if total < 100 else f"{total // 60} min {total % 60:02} s" if total < 6000 else f"{total // 3600} h"
