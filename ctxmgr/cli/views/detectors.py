"""Show what each detector thought of one entry, and how they scored in a backtest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import plural
from ctxmgr.cli.views.layout import Cell, Column, Span
from ctxmgr.cli.views.one_line import row_text

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.analysis import Backtest, Distances, Score
    from ctxmgr.types.operations import Explanation, Thought


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


_RULES = {
    "detectors": "ctxmgr",
    "always": "always alarm",
    "never": "never alarm",
    "longer": "longer than the median",
    "sameInARow": "same call 3 in a row",
    "abab": "A-B-A-B",
    "anyRepeat": "same call 3 anywhere",
}
_SCORES = (
    Column("RULE"), Column("TP", right=True), Column("FP", right=True), Column("FN", right=True), Column("TN", right=True),
    Column("PRECISION", right=True), Column("RECALL", right=True), Column("F1", right=True), Column("MCC", right=True),
)  # fmt: skip


def show_backtest(printer: Printer, found: Backtest) -> None:
    """Show the scores, recall by pattern, distances, and each false alarm, missed loop and late alarm."""
    if not found.scored:
        printer.hint("No labelled session is in the logs, so there is nothing to score.")
        return
    printer.table(_SCORES, [_score(score) for score in (found.detectors, *found.baselines, *found.rules)])
    printer.line()
    printer.pairs([
        ("sessions", f"{found.scored:,} scored: {plural(found.loops, 'loop')}, {found.healthy:,} healthy"),
        ("not scored", f"{found.ignored:,} labelled null, {found.unlabelled:,} without a label"),
        ("onset", _distances(found.onset, "exact")),
        ("3rd iteration", _distances(found.delay, "in time")),
        ("warned only", ", ".join(found.warned)),
    ], indent=0)  # fmt: skip
    if found.patterns:
        printer.heading("Found, by pattern")
        rows: list[list[Cell]] = [[each.pattern or "(none)", f"{each.found:,}", f"{each.of:,}"] for each in found.patterns]
        printer.table((Column("PATTERN"), Column("FOUND", right=True), Column("OF", right=True)), rows, indent=2)
    if found.false_alarms:
        printer.heading("False alarms")
        for alarm in found.false_alarms:
            printer.line(Span(alarm.session, "name"), f"  {alarm.kind} at {alarm.raised_at}: {alarm.reason}", indent=2, hang=4)
    if found.missed:
        printer.heading("Missed")
        for missed in found.missed:
            suffix = "  (warned)" if missed.warned else ""
            printer.line(Span(missed.session, "name"), f"  {missed.pattern or ''}{suffix}", indent=2, hang=4)
    _show_off(printer, "Begins elsewhere than labelled", found.onset)
    _show_off(printer, "Raised after the third iteration", found.delay)


def _score(score: Score) -> list[Cell]:
    counts = (score.true_positives, score.false_positives, score.false_negatives, score.true_negatives)
    measures = (score.precision, score.recall, score.f1, score.mcc)
    name = Span(_RULES.get(score.rule, score.rule), "strong" if score.rule == "detectors" else "")
    return [name, *(f"{count:,}" for count in counts), *("" if value is None else f"{value:.3f}" for value in measures)]


def _distances(found: Distances, good: str) -> str:
    if not found.measured:
        return ""
    return f"{found.good:,} of {found.measured:,} {good}; {found.median:g} entries off in the median, {found.largest:,} at most"


def _show_off(printer: Printer, title: str, found: Distances) -> None:
    if found.off:
        printer.heading(title)
    for each in found.off:
        entries = f"{each.entries:+,} entries" if each.entries else "within the same entry"
        printer.line(Span(each.session, "name"), f"  {each.given} for {each.labelled}: {entries}", indent=2, hang=4)
