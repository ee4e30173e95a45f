"""One entry in full: every field, input and output to be read, its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxmgr.cli.views.brief import command, compact, error_text, pretty
from ctxmgr.cli.views.humane import duration, plural, size
from ctxmgr.cli.views.layout import Span
from ctxmgr.cli.views.notes import note_lines
from ctxmgr.cli.views.status import status_span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.view import EntryView

_LONGEST = 40


def show_entry(printer: Printer, entry: EntryView, *, full: bool = False) -> None:
    """Show all that is known of an entry; on a terminal long values are shown in part unless ``full``."""
    status = status_span(printer, entry.status)
    took = "" if entry.duration_ms is None else f"  {duration(entry.duration_ms / 1000)}"
    where = f"{entry.session}@{entry.index}"
    printer.rule(
        Span(printer.fit(where, max(printer.width - 40, 20), "end"), "strong"), "  ", Span(entry.action, "name"), "  ",
        status, took,
    )  # fmt: skip
    printer.pairs([
        ("id", entry.id), ("time", entry.ts), ("agent", entry.agent), ("process", entry.process),
        ("input type", entry.input_type), ("turn", _scalar(entry.turn)), ("step", _scalar(entry.step)),
        ("parent", entry.parent), ("task", entry.task),
        ("limit", "" if entry.timeout_ms is None else f"{duration(entry.timeout_ms / 1000)} (declared)"),
        ("tokens", _scalar(entry.usage)), ("meta", _scalar(entry.meta)),
        ("missing", Span(", ".join(entry.missing), "warn") if entry.missing else None),
        ("events", f"{entry.events}: {command('messages', where)}" if entry.events else None),
    ])  # fmt: skip
    _value(printer, entry, "Input", entry.input, full=full)
    if entry.error is not None:
        _value(printer, entry, "Error", error_text(entry.error), full=full, style="error")
    _value(printer, entry, "Output", entry.output, full=full)
    if entry.status == "open":
        printer.line()
        printer.line(Span("No result is recorded: the call is still running, or its run ended without one.", "open"))
    if entry.notes:
        printer.heading(f"Notes ({len(entry.notes)})")
        for note in entry.notes:
            note_lines(printer, note, about=False)


def _scalar(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else compact(value)


def _value(printer: Printer, entry: EntryView, title: str, value: Any, *, full: bool, style: str = "") -> None:
    if value is None:
        return
    text = pretty(value).rstrip("\n")
    lines = text.count("\n") + 1
    extent = f"  {plural(lines, 'line')}, {size(len(text.encode('utf-8', 'replace')))}" if lines > 3 else ""
    printer.heading(f"{title}{extent}")
    left = printer.block(text, indent=2, style=style, most=None if full else _LONGEST)
    if left:
        show = command("show", f"{entry.session}@{entry.index}", "--full")
        printer.line(Span(f"{printer.symbols.ellipsis} {plural(left, 'more line')}: {show}", "dim"), indent=2)
