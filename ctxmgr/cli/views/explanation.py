"""What the detectors thought of one entry, nearest to a finding first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.views.layout import Cell, Column, Span
from ctxmgr.cli.views.one_line import row_text

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.explanation import Explanation, Thought

_COLUMNS = (Column("DETECTOR"), Column("SEEN", right=True), Column("OF", right=True), Column("WHY", fill=True, least=24))


def show_explanation(printer: Printer, found: Explanation) -> None:
    """Show the entry in a line, each detector's thought in a row, and what was raised on it."""
    entry = found.entry
    printer.rule(Span(f"{entry.session}@{entry.index}", "name"), f"  {entry.action} {printer.fit(row_text(entry), 60)}")
    if found.note is not None:
        printer.line(found.note)
    else:
        printer.table(_COLUMNS, [_row(thought) for thought in sorted(found.thoughts, key=_far)])
    for finding in found.findings:
        over = f" (resolved: {finding.resolved})" if finding.resolved else ""
        printer.line()
        printer.line(Span(finding.severity, finding.severity), f"  {finding.kind}{over}: {finding.reason}", hang=2)


def _far(thought: Thought) -> float:
    return -thought.count / max(1, thought.threshold)


def _row(thought: Thought) -> list[Cell]:
    style = "loop" if 0 < thought.threshold <= thought.count else "" if thought.count else "dim"
    said = f"{thought.why}: {thought.compared}" if thought.compared and thought.count else thought.why
    name = f"{thought.detector}: {thought.rule}" if thought.rule else thought.detector
    return [Span(name, style), f"{thought.count:,}", f"{thought.threshold:,}", said]
