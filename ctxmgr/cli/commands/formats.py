"""``formats``: the formats of logs that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.output import Answer, Shown, answer_without_store
from ctxmgr.cli.views.layout import Span
from ctxmgr.history.formats import format_views

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.importing import FormatView


def formats(*, how: Shown) -> None:
    """List the formats that are read, where each agent keeps its logs, and what they tell.

    A log is recognised by its content, whatever it is called; compressed ones too. Where a format tells nothing of errors or
    of times, loops are found by what the calls returned, and stalls are not judged.

    Examples:
      ctxmgr formats
      ctxmgr formats --json
    """

    def work() -> Answer:
        rows = format_views()
        return Answer([row.to_json() for row in rows], lambda out: show_formats(out, rows))

    answer_without_store("formats", how, work)


_COLUMNS = ("calls", "results", "errors", "open", "usage", "agents", "times")
_GAP = "  "


def show_formats(printer: Printer, rows: Sequence[FormatView]) -> None:
    """Show every format with a yes or a no for each thing that its logs may tell."""
    width = max(len(row.name) for row in rows)
    titles = _GAP.join(name.ljust(len(name)) for name in _COLUMNS)
    printer.line(Span("format".ljust(width) + _GAP + titles, "dim"))
    for row in rows:
        covered = (row.calls, row.results, row.errors, row.open_calls, row.usage, row.sub_agents, row.times)
        cells = _GAP.join(("yes" if yes else "no").ljust(len(name)) for name, yes in zip(_COLUMNS, covered, strict=True))
        printer.line(row.name.ljust(width), _GAP, cells, _GAP, Span(row.title, "dim"), hang=width + 2)
        for place in row.places:
            printer.line(" " * (width + 2), Span(place, "dim"), hang=width + 4)
