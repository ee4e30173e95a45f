"""Turn answers into lines of a screen. All recorded text passes the filter of the printer here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ctxmgr.cli.browse.history import Judgement
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.entries import mark_matches, show_entry, show_messages
from ctxmgr.cli.views.findings import is_index, member_places, show_findings
from ctxmgr.cli.views.layout import (
    Span,
    ago,
    brief,
    clock,
    duration,
    end_to_keep,
    plural,
    pretty,
    short_ids,
    status_sign,
    verdict_sign,
    verdict_style,
)
from ctxmgr.cli.views.safe_text import cells, cut
from ctxmgr.cli.views.sessions import verdict_words
from ctxmgr.log.fast_json import json_object
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import Finding
from ctxmgr.types.query import MessagesResponse, SearchHit
from ctxmgr.types.view import EntryView, SessionView

_STYLES: Mapping[str, Style] = {
    name: Style.parse(words)
    for name, words in {
        "ok": "green", "healthy": "green", "error": "red", "denied": "magenta", "interrupted": "yellow", "open": "cyan",
        "loop": "bold red", "hung": "bold yellow", "warn": "yellow", "verified": "green", "recorded": "green",
        "reconstructed": "cyan", "unknown": "yellow", "dim": "dim", "head": "dim", "strong": "bold",
        "match": "bold reverse", "name": "bold cyan",
    }.items()
}  # fmt: skip
_MAX_SHOWN_CHARS = 20_000
"""Maximum number of characters of a value, unless the full value is asked for."""

_MAX_LANES = 8
"""Maximum number of columns for agents in a timeline. Further agents share the last column."""

_PAUSE = 60.0
"""Minimum seconds between two entries for which the pause is shown."""

Line = list[Span]


class Canvas(Printer):
    """A printer that collects its lines as spans."""

    def __init__(self, width: int) -> None:
        # Created as a terminal, so that the views of the commands lay out their lines for a person.
        super().__init__(StringIO(), StringIO(), terminal=True, width=width)
        self.lines: list[Line] = []

    def _emit(self, spans: Iterable[Span], *, exact: bool = False) -> None:
        self.lines.append([span for span in spans if span.text])

    def hint(self, *texts: str) -> None:
        """Add a remark about the answer as an ordinary line."""
        for text in texts:
            self.line(Span(text, "dim"))


def strip(line: Iterable[Span], width: int, *, under: Style | None = None) -> Strip:
    """Return a filtered line as a `Strip` of exactly ``width`` cells. ``under`` is the style of the whole line."""
    base = under or Style.null()
    segments = [Segment(span.text, base + _STYLES.get(span.style, Style.null())) for span in line]
    return Strip(segments).adjust_cell_length(width, base)


def _row(printer: Printer, width: int, parts: Sequence[tuple[Span, int]], rest: Span) -> Line:
    """Return parts with fixed widths (negative: right-aligned), then ``rest`` in the remaining width."""
    line: Line = []
    for span, wide in parts:
        text = printer.fit(span.text, abs(wide), span.keep)
        pad = " " * (abs(wide) - cells(text))
        line += [Span(pad), Span(text, span.style)] if wide < 0 else [Span(text, span.style), Span(pad)]
        line.append(Span(" "))
        width -= abs(wide) + 1
    return [*line, Span(printer.fit(rest.text, max(width, 1), rest.keep), rest.style)]


def session_row(session: SessionView, width: int) -> Line:
    """Return a session as one line: id, verdict, entries, age, title."""
    printer = Canvas(width)
    moment = session.last if session.last_progress is None else session.last_progress
    verdict, style = "…", "dim"
    if session.verdict is not None:
        words, kind = verdict_words(session, session.verdict)
        verdict, style = f"{verdict_sign(printer.symbols, kind)} {words}", verdict_style(kind)
    parts = [
        (Span(short_ids([session.session])[session.session], "strong"), 12), (Span(verdict, style), 12 if width < 100 else 22),
        (Span(f"{session.entries:,}"), -7), (Span(ago(moment, time.time())), -11),
        (Span("live" if session.live else session.outcome or "", "open" if session.live else "dim"), 9),
    ]  # fmt: skip
    return _row(printer, width, parts, Span(session.title or session.workflow or ", ".join(session.agents)))


def hit_row(hit: SearchHit, query: str, width: int, *, several: bool) -> Line:
    """Return a search hit as one line: place, action, field, and the text around the match."""
    printer, row = Canvas(width), hit.row
    where = f"@{row.index}" if row.kind == "entry" else "" if row.after is None else f"@{row.after}"
    parts = [(Span(where, "strong"), -7)]
    if several:
        parts.insert(0, (Span(short_ids([row.session])[row.session], "dim"), 12))
    parts += [(Span(row.action if row.kind == "entry" else row.type, "name"), 14), (Span(hit.field, "dim"), 10)]
    head = _row(printer, width, parts, Span(""))
    room = max(width - sum(cells(span.text) for span in head), 1)
    # Filtered like the excerpt, because otherwise a query with a control character would match nothing in it.
    found = re.compile(re.escape(printer.safe(query)), re.IGNORECASE)
    return [*head, *mark_matches(printer.safe(hit.excerpt), found, room, printer.symbols.ellipsis)]


@dataclass(slots=True)
class Timeline:
    """The state of a timeline: the columns of the agents, and the rounds of loops.

    Attributes:
        agents: in the order of their first actions.
        places: entry index -> (number of the round, whether the round begins there, its style).
        spans: (first index, last index, style) of each finding.
        total: number of entries in the session.
    """

    agents: list[str] = field(default_factory=list[str])
    places: dict[int, tuple[int, bool, str]] = field(default_factory=dict[int, tuple[int, bool, str]])
    spans: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    total: int = 0

    def take(self, judged: Judgement) -> None:
        """Store the places of the findings. Unresolved findings are drawn over resolved ones."""
        self.places.clear()
        self.spans.clear()
        findings = judged.verdict.findings if judged.verdict is not None else []
        for finding in sorted(findings, key=lambda each: each.resolved is None):
            self._add(finding, judged.entries)

    def _add(self, finding: Finding, entries: Mapping[str, EntryView]) -> None:
        # A member without a place in the session, such as an event, has a question mark instead.
        named = [int(place) for place in member_places(finding, entries) if place.isdecimal()]
        size = max(len(named) // max(finding.count, 1), 1)
        style = "dim" if finding.resolved is not None else finding.severity
        for number, place in enumerate(named):
            self.places[place] = (number // size + 1, number % size == 0, style)
        indexes = json_object(finding.evidence.get("indexes"))
        ends = [int(end) for end in (indexes.get("first"), indexes.get("last")) if end is not None and is_index(end)]
        if ends:
            self.spans.append((min(ends), max(ends), style))

    def row(self, entry: EntryView, before: EntryView | None, width: int) -> Line:
        """Return an entry as one line: index, time, round, sign in the agent's column, action, input, duration."""
        printer = Canvas(width)
        number, begins, style = self.places.get(entry.index, (0, False, ""))
        # The column is three cells wide.
        mark = f"{number}" if begins and number < 1000 else printer.symbols.limit if number else ""
        sign = Span(status_sign(printer.symbols, entry.status), entry.status)
        lanes = [Span("·", "dim")] * max(min(len(self.agents), _MAX_LANES), 1)
        lanes[min(self._lane(entry.agent), len(lanes) - 1)] = sign
        took = "" if entry.duration_ms is None else duration(entry.duration_ms / 1000)
        head = _row(
            printer, width,
            [(Span(str(entry.index), "strong"), -6), (Span(clock(entry.ts), "dim"), 8), (Span(mark, style), -3)], Span(""),
        )  # fmt: skip
        several = len(self.agents) > 1
        parts = [*([(Span(entry.agent, "dim"), 10)] if several and width >= 90 else []), (Span(entry.action, "name"), 12)]
        room = width - sum(cells(span.text) for span in head) - len(lanes) - 2
        call = brief(entry.input).strip()
        notes = f"{printer.symbols.note}{len(entry.notes)} " if entry.notes else ""
        text = f"{notes}{_pause(entry, before)}{call}"
        tail = _row(printer, room - (10 if took else 0), parts, Span(text, "", end_to_keep(text)))
        pad = room - sum(cells(span.text) for span in tail) - cells(took)
        return [*head, *lanes, Span(" "), *tail, Span(" " * max(pad, 1)), Span(took, "dim")]

    def _lane(self, agent: str) -> int:
        try:
            return self.agents.index(agent)
        except ValueError:
            self.agents.append(agent)
            return len(self.agents) - 1

    def find_next_trouble(self, index: int) -> int | None:
        """Return the index at which the next finding begins. After the last finding, start over; None if there is none."""
        begins = sorted({first for first, _, _ in self.spans})
        return next((first for first in begins if first > index), begins[0] if begins else None)

    def overview(self, cursor: int, width: int) -> Line:
        """Return the whole session as one line that shows the findings and the cursor."""
        symbols = Canvas(width).symbols
        room, total = max(width - 2, 4), max(self.total, 1)
        cells_: Line = [Span(symbols.thin, "dim") for _ in range(room)]
        for first, last, style in self.spans:
            for at in range(min(first * room // total, room - 1), min(last * room // total, room - 1) + 1):
                cells_[at] = Span(symbols.bar, style)
        # Drawn last, so that the cursor is visible on findings too.
        cells_[min(cursor * room // total, room - 1)] = Span(symbols.ok, "strong")
        return [Span(" "), *cells_]


def _pause(entry: EntryView, before: EntryView | None) -> str:
    """Return the length of the pause before an entry as text, or an empty text if it is short."""
    if before is None or before.index != entry.index - 1:
        return ""
    start, end = parse_time(before.ts), parse_time(entry.ts)
    if start is None or end is None:
        return ""
    # The duration of a long call is no pause; it stands beside the call.
    silent = end - start - (before.duration_ms or 0) / 1000
    return f"({duration(silent)} later) " if silent >= _PAUSE else ""


def session_head(
    session: SessionView, judged: Judgement | None, chosen: EntryView | None, width: int, *, follows: bool
) -> list[Line]:
    """Return two lines: the state of the session and the chosen entry, then the title of the session."""
    printer = Canvas(width)
    verdict = None if judged is None or judged.verdict is None else judged.verdict
    state = Span("judging it…", "dim")
    if verdict is not None:
        look = "warn" if verdict.verdict == "healthy" and verdict.notes else verdict.verdict
        state = Span(f"{verdict_sign(printer.symbols, look)} {verdict.summary or verdict.verdict}", verdict_style(look))
    calls = plural(session.entries, "call") + (f", {session.failed:,} failed" if session.failed else "")
    several = f" by {plural(len(session.agents), 'agent')}" if len(session.agents) > 1 else ""
    live = "  following" if follows else "  live" if session.live else ""
    name = short_ids([session.session])[session.session]
    first = [
        Span(" "), Span(name, "strong"), Span("  "), state, Span(f"  {calls}{several}", "dim"), Span(live, "open"),
    ]  # fmt: skip
    if chosen is not None:
        first += [Span(f"  @{chosen.index}", "strong"), Span(f" {chosen.agent}", "name")]
    second = Span(f" {session.title or session.workflow or ''}")
    return [_cut(printer, first, width), _cut(printer, [second], width)]


def _cut(printer: Printer, line: Line, width: int) -> Line:
    kept: Line = []
    for span in line:
        text = cut(printer.safe(span.text), width)
        width -= cells(text)
        kept.append(Span(text, span.style))
        if width <= 0:
            break
    return kept


def judged_lines(judged: Judgement, width: int) -> list[Line]:
    """Return the findings of a session, and the prompt that gets it going again."""
    canvas = Canvas(width)
    if judged.verdict is None:
        return [[Span("Nothing is recorded here.")]]
    # The reason why there is no answer comes first, because a person would look for the answer below.
    if judged.reason:
        canvas.line(Span(judged.reason, "warn"))
        canvas.line()
    show_findings(canvas, [judged.verdict], judged.entries)
    if judged.continuation is not None:
        canvas.heading(f"Prompt for {judged.continuation.target} (y copies it)")
        canvas.block(judged.continuation.prompt, indent=2)
    return canvas.lines


def entry_lines(entry: EntryView, messages: MessagesResponse | None, width: int, *, full: bool) -> list[Line]:
    """Return all fields of an entry as lines. ``full`` shows long values completely."""
    canvas = Canvas(width)
    # Cut before the layout, because megabytes of text would block the screen.
    if not full:
        entry = entry.model_copy(update={"input": _clip(entry.input), "output": _clip(entry.output)})
    show_entry(canvas, entry, full=full)
    if messages is not None and messages.messages:
        canvas.heading(f"Messages ({len(messages.messages)})")
        show_messages(canvas, messages.model_copy(update={"entry": None}))
    return canvas.lines


def _clip(value: Any) -> Any:
    text = pretty(value) if value is not None else ""
    return (
        value
        if len(text) <= _MAX_SHOWN_CHARS
        else f"{text[:_MAX_SHOWN_CHARS]}\n… {len(text) - _MAX_SHOWN_CHARS:,} more characters"
    )
