"""A stall drawn as a line of time: the last sign of progress, the limit, the silence up to now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.views.brief import brief, telling_end
from ctxmgr.cli.views.evidence import Entries, as_seconds, place, seconds, steps
from ctxmgr.cli.views.humane import clock, duration
from ctxmgr.cli.views.layout import Span
from ctxmgr.ids import format_time, parse_time

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding

_WIDEST = 96


def draw_stall(printer: Printer, finding: Finding, entries: Entries) -> None:
    """Draw the silence against its limit, then the calls that are still open."""
    silent, limit = seconds(finding, "stalledSeconds"), seconds(finding, "limitSeconds")
    if silent is not None and silent > 0:
        printer.line()
        _time_line(printer, finding, entries, silent, limit)
    _open_calls(printer, finding, entries)


def _time_line(printer: Printer, finding: Finding, entries: Entries, silent: float, limit: float | None) -> None:
    width = min(printer.width if printer.terminal else 80, _WIDEST) - 4
    symbols = printer.symbols
    began, waiting = entries.get(finding.first), finding.first in finding.members
    start = " ".join(part for part in (
        place(finding, entries, "first", finding.first), "started" if waiting else "last progress",
        clock(began.ts) if began is not None else "",
    ) if part)  # fmt: skip
    start = printer.fit(start, width // 2)
    end = "over" if finding.resolved else "now"
    moment = parse_time(began.ts) if began is not None and waiting else None
    if moment is not None:
        # Only an open call's start is the exact beginning of the silence, so only then the end is known exactly.
        end = f"{clock(_text(moment + silent))} {end}"
    printer.line(start + end.rjust(width - printer.cells(start)), indent=2)
    mark = None if limit is None or limit > silent else max(1, min(round(limit / silent * (width - 2)), width - 3))
    bar = [Span(symbols.ok, "ok")]
    if mark is None:
        bar.append(Span(symbols.bar * (width - 2), "hung"))
    else:
        bar += [Span(symbols.thin * (mark - 1), "dim"), Span(symbols.limit, "strong")]
        bar.append(Span(symbols.bar * (width - 2 - mark), "hung"))
    printer.line(*bar, Span(symbols.tip, "hung"), indent=2)
    told = f"silent for {duration(silent)}"
    allowed = "" if limit is None else f"limit {duration(limit)}"
    at = min(mark or 1, max(width - len(told) - len(allowed) - 3, 0))
    label = " " * at + allowed
    printer.line(Span(label, "dim"), Span(told.rjust(width - len(label)), "hung"), indent=2)


def _text(moment: float) -> str | None:
    try:
        return format_time(moment)
    except (ValueError, OverflowError):
        return None


def _open_calls(printer: Printer, finding: Finding, entries: Entries) -> None:
    limits = {step.get("id"): as_seconds(step.get("limitSeconds")) for step in steps(finding, "openCalls") if
              isinstance(step.get("id"), str)}  # fmt: skip
    named = {str(step.get("id")): step for step in steps(finding, "openCalls")}
    if finding.members:
        printer.line()
    for member in finding.members:
        entry, step = entries.get(member), named.get(member, {})
        action = entry.action if entry is not None else step.get("action")
        asked = brief(entry.input if entry is not None else step.get("input")).strip()
        limit = limits.get(member)
        state = ("  open" if not finding.resolved else "") + (f", limit {duration(limit)}" if limit else "")
        where = printer.fit(place(finding, entries, "", member), 20)
        head = f"{printer.symbols.open} {where}  {printer.fit(action, 24)}"
        room = printer.width - 4 - len(head) - len(state)
        printer.line(
            Span(head, "open"),
            Span("  " + printer.fit(asked, max(room, 12), telling_end(asked))),
            Span(state, "dim"),
            indent=2,
            hang=4,
        )
