"""Rows of a history, entries and events side by side; with it come hits, one entry in full, and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.brief import row_text, telling_end
from ctxmgr.cli.views.entry import show_entry
from ctxmgr.cli.views.hits import show_hits
from ctxmgr.cli.views.humane import clock, day, duration
from ctxmgr.cli.views.layout import Cell, Column, Span
from ctxmgr.cli.views.messages import show_messages
from ctxmgr.cli.views.status import status_span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import Page
    from ctxmgr.types.view import EntryView, EventView

__all__ = ["show_entry", "show_hits", "show_messages", "show_rows"]

_COLUMNS = (
    Column("@", right=True),
    Column("TIME", give=2, least=8, optional=True),
    Column("AGENT", give=4, least=8),
    Column("ACTION", give=3, least=10),
    Column("STATUS"),
    Column("INPUT", fill=True, least=20),
    Column("TOOK", right=True),
)
_AGENT = 2


def show_rows(printer: Printer, rows: Sequence[EntryView | EventView], page: Page | None) -> None:
    """Show entries and events in the order given; an agent or a day that all rows share is said once, above them."""
    if not rows:
        printer.hint(_nothing(page))
        return
    if not printer.terminal:
        columns = (Column("SESSION"), *_COLUMNS[:-2], _COLUMNS[-1], Column("NOTES", right=True), _COLUMNS[-2])
        printer.table(columns, (_plain_row(row) for row in rows))
        return
    agents = {row.agent for row in rows if row.agent}
    days = {day(row.ts) for row in rows} - {""}
    shared = [*(agents if len(agents) == 1 else ()), *(days if len(days) == 1 else ())]
    if shared:
        printer.line(Span(" · ".join(shared), "dim"))
    cells = (_row(printer, row, dated=len(days) > 1) for row in rows)
    if len(agents) > 1:
        printer.table(_COLUMNS, cells)
    else:
        printer.table(_COLUMNS[:_AGENT] + _COLUMNS[_AGENT + 1 :], (row[:_AGENT] + row[_AGENT + 1 :] for row in cells))


def _nothing(page: Page | None) -> str:
    if page is not None and page.total:
        return f"Nothing from row {page.offset} on; there are {page.total}."
    return "Nothing here: widen the filters, choose another --session ('ctxmgr sessions'), or 'ctxmgr import' first."


def _row(printer: Printer, row: EntryView | EventView, *, dated: bool) -> list[Cell]:
    when = f"{day(row.ts)[5:]} {clock(row.ts)}".strip() if dated else clock(row.ts)
    text = row_text(row).strip()
    if row.kind == "event":
        return ["", Span(when, "dim"), row.agent, Span(row.type, "dim"), "", Span(text, "dim"), ""]
    notes = f"{printer.symbols.note}{len(row.notes)} " if row.notes else ""
    took = "" if row.duration_ms is None else duration(row.duration_ms / 1000)
    told = [Span(notes, "strong"), Span(_missing(row), "warn"), Span(text, keep=telling_end(text))]
    return [
        row.index, Span(when, "dim"), row.agent, Span(row.action, "name"), status_span(printer, row.status), told,
        Span(took, "dim"),
    ]  # fmt: skip


def _missing(row: EntryView) -> str:
    return f"(missing: {', '.join(row.missing)}) " if row.missing else ""


def _plain_row(row: EntryView | EventView) -> list[Cell]:
    if row.kind == "event":
        return [row.session, "", row.ts, row.agent, row.type, "event", "", "", row_text(row)]
    took = "" if row.duration_ms is None else duration(row.duration_ms / 1000)
    return [
        row.session, row.index, row.ts, row.agent, row.action, row.status, took, len(row.notes) or "",
        _missing(row) + row_text(row),
    ]  # fmt: skip
