"""What the detectors found, drawn so that a loop or a stall is seen at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.brief import brief, command, error_text, pretty, telling_end
from ctxmgr.cli.views.evidence import Entries, place, seconds
from ctxmgr.cli.views.humane import clock, duration, plural
from ctxmgr.cli.views.lane import draw_lanes
from ctxmgr.cli.views.layout import Cell, Span
from ctxmgr.cli.views.stall import draw_stall
from ctxmgr.cli.views.status import verdict_sign, verdict_style

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding, SessionVerdict
    from ctxmgr.types.view import EntryView

_ENDED_BY = {
    "progress": "over: it made progress",
    "user": "over: a person spoke",
    "interrupt": "over: a person interrupted it",
    "answered": "over: the recovery was followed",
    "process": "over: a later process took on",
    "end": "over: the session ended",
}
_EXCERPT = 300
_PAST = 3


def show_findings(printer: Printer, verdicts: Sequence[SessionVerdict], entries: Entries, store: str | None = None) -> None:
    """Show the findings of each session; one without any that lasts takes one line.

    Args:
        printer: where to.
        verdicts: the sessions with their findings.
        entries: those of the entries they name that are at hand, by id.
        store: the one that was named, if any.
    """
    if not verdicts:
        printer.hint("No sessions to look at yet: 'ctxmgr import' reads the logs on this machine.")
        return
    # Foreign logs may give two sessions' entries one id; an entry speaks only for its own session.
    at_hand: dict[str, dict[str, EntryView]] = {}
    for name, entry in entries.items():
        at_hand.setdefault(entry.session, {})[name] = entry
    parted = True
    for verdict in verdicts:
        own = at_hand.get(verdict.session, {})
        if verdict.verdict == "healthy":
            if not parted:
                printer.line()
            _healthy(printer, verdict, own)
            parted = True
            continue
        if verdict is not verdicts[0]:
            printer.line()
        parted = False
        printer.rule(
            Span(verdict.verdict, verdict_style(verdict.verdict)), "  ", Span(verdict.session, "strong"),
            Span(f"  {', '.join([plural(len(verdict.findings), 'finding'), *verdict.notes])}", "dim"),
        )  # fmt: skip
        for place_, finding in enumerate(sorted(verdict.findings, key=lambda each: each.resolved is not None)):
            if place_:
                printer.line()
            _finding(printer, finding, own)
        if verdict.verdict != "warn":
            printer.line()
            printer.line(Span("next  ", "dim"), _recovery(verdict.session, store), indent=2)
    if len(verdicts) > 1:
        stuck = sum(verdict.verdict not in ("healthy", "warn") for verdict in verdicts)
        printer.line()
        printer.line(Span(f"{stuck:,} of {plural(len(verdicts), 'session')} stuck", "loop" if stuck else "healthy"))


def _recovery(session: str, store: str | None) -> str:
    return command("recover", "--session", session, *(["--store", store] if store is not None else []))


def _healthy(printer: Printer, verdict: SessionVerdict, entries: Entries) -> None:
    past = f"  {plural(len(verdict.findings), 'past finding')}, all over" if verdict.findings else ""
    look = "warn" if verdict.notes else "healthy"
    sign = verdict_sign(printer.symbols, look)
    printer.line(
        Span(f"{sign} {verdict.summary or verdict.verdict}", look), "  ", Span(verdict.session), Span(past, "dim"), hang=2
    )
    for finding in verdict.findings[-_PAST:] if printer.terminal else verdict.findings:
        printer.line(*_headline(printer, finding, entries), indent=2, hang=2)


def _headline(printer: Printer, finding: Finding, entries: Entries) -> list[str | Span]:
    over = finding.resolved is not None
    style = "dim" if over else verdict_style(finding.severity)
    rounds = f" of {finding.period} steps" if finding.period > 1 else ""
    kind = "" if finding.kind == "hung" else f" {finding.kind}{rounds} {printer.symbols.times}{finding.count:,}"
    first, last = (place(finding, entries, name, getattr(finding, name)) for name in ("first", "last"))
    raised = place(finding, entries, "raisedAt", finding.raised_at)
    if finding.kind == "hung":
        silent = seconds(finding, "stalledSeconds")
        said = f"  silent for {duration(silent)}" if silent is not None else ""
        where = f"{said}, last seen {raised}" if said else f"  last seen {raised}"
        state = "still silent"
    else:
        where = f"  {first} {printer.symbols.arrow} {last}" if first != last else f"  {first}"
        where += f", raised at {raised}"
        state = "still going"
    ended = _ENDED_BY.get(finding.resolved or "", f"over: {finding.resolved}")
    if finding.evidence.get("ended") is True and not over:
        state = "the log ends here"
    sign = verdict_sign(printer.symbols, finding.severity)
    agent = f"  {finding.scope.agent}" if finding.scope.agent else ""
    return [
        Span(f"{sign} {finding.severity.upper()}", style), Span(kind, "strong"),
        Span(agent, "name"), where, Span(f", {ended if over else state}", "ok" if over else style),
    ]  # fmt: skip


def _finding(printer: Printer, finding: Finding, entries: Entries) -> None:
    printer.line(*_headline(printer, finding, entries), hang=2)
    printer.line(finding.reason, indent=2)
    if finding.kind == "hung" or finding.period == 0:
        draw_stall(printer, finding, entries)
    else:
        draw_lanes(printer, finding, entries)
    printer.line()
    progress: Cell = _progress(printer, finding, entries)
    name = Span(finding.id, "dim")
    printer.pairs([*_excerpts(printer, finding, entries), ("last progress", progress), ("finding", name)])


def _progress(printer: Printer, finding: Finding, entries: Entries) -> list[str | Span]:
    if finding.last_progress is None:
        return ["none before this"]
    where = place(finding, entries, "lastProgress", finding.last_progress)
    entry = entries.get(finding.last_progress)
    if entry is None:
        return [where]
    told = brief(entry.input).strip()
    when = f"  {clock(entry.ts)}" if entry.ts else ""
    room = printer.width - 34 - printer.cells(printer.safe(entry.action))
    return [
        where,
        " ",
        Span(entry.action, "name"),
        f" {printer.fit(told, max(room, 12), telling_end(told))}",
        Span(when, "dim"),
    ]


def _excerpts(printer: Printer, finding: Finding, entries: Entries) -> list[tuple[str, Cell]]:
    """Return what the calls answered: the shared error or result, from the evidence or else from the last member."""
    texts = {name: finding.evidence.get(name) for name in ("error", "result")}
    last = next((entries[member] for member in reversed(finding.members) if member in entries), None)
    if last is not None and not any(texts.values()) and finding.kind != "hung":
        if last.error is not None or last.status == "error":
            texts["error"] = error_text(last.error) or pretty(last.output)
        elif last.output is not None:
            texts["result"] = pretty(last.output)
    found: list[tuple[str, Cell]] = []
    for name, text in texts.items():
        told = text if isinstance(text, str) else error_text(text)
        if told.strip():
            found.append((name, Span(printer.fit(told.strip(), _EXCERPT), "error" if name == "error" else "")))
    return found
