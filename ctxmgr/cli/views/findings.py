"""Draw findings so that a loop or a stall is seen at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.evidence import Entries, as_seconds, draw_loop, place, seconds, steps
from ctxmgr.cli.views.layout import (
    Cell,
    Span,
    brief,
    clock,
    duration,
    end_to_keep,
    error_text,
    plural,
    pretty,
    session_command,
    verdict_sign,
    verdict_style,
)
from ctxmgr.log.ids import format_time, parse_time

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding, SessionVerdict
    from ctxmgr.types.view import EntryView

_MAX_WIDTH = 96


def draw_stall(printer: Printer, finding: Finding, entries: Entries) -> None:
    """Draw the silence against its limit, then the calls that are still open."""
    silent, limit = seconds(finding, "stalledSeconds"), seconds(finding, "limitSeconds")
    if silent is not None and silent > 0:
        printer.line()
        _time_line(printer, finding, entries, silent, limit)
    _open_calls(printer, finding, entries)


def _time_line(printer: Printer, finding: Finding, entries: Entries, silent: float, limit: float | None) -> None:
    width = min(printer.width if printer.terminal else 80, _MAX_WIDTH) - 4
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
    # The bar is the whole silence, so the limit stands at its share of it; never on the first or the last cell.
    mark = None if limit is None or limit > silent else max(1, min(round(limit / silent * (width - 2)), width - 3))
    bar = [Span(symbols.ok, "ok")]
    if mark is None:
        bar.append(Span(symbols.bar * (width - 2), "hung"))
    else:
        bar += [Span(symbols.thin * (mark - 1), "dim"), Span(symbols.limit, "strong")]
        bar.append(Span(symbols.bar * (width - 2 - mark), "hung"))
    printer.line(*bar, Span(symbols.tip, "hung"), indent=2)
    silence = f"silent for {duration(silent)}"
    allowed = "" if limit is None else f"limit {duration(limit)}"
    at = min(mark or 1, max(width - len(silence) - len(allowed) - 3, 0))
    label = " " * at + allowed
    printer.line(Span(label, "dim"), Span(silence.rjust(width - len(label)), "hung"), indent=2)


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
            Span("  " + printer.fit(asked, max(room, 12), end_to_keep(asked))),
            Span(state, "dim"),
            indent=2,
            hang=4,
        )


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
    """Show the findings of each session; a session without an unresolved one takes one line.

    Args:
        printer: the printer to write to.
        verdicts: the sessions with their findings.
        entries: the entries at hand among those that findings name, by id.
        store: the store that was named, if any.
    """
    if not verdicts:
        printer.hint("No sessions to look at yet: 'ctxmgr import' reads the logs on this machine.")
        return
    # Foreign logs may give two sessions' entries one id; an entry speaks only for its own session.
    at_hand: dict[str, dict[str, EntryView]] = {}
    for name, entry in entries.items():
        at_hand.setdefault(entry.session, {})[name] = entry
    parted = True
    well = [verdict for verdict in verdicts if verdict.verdict == "healthy" and not verdict.notes]
    shown = [verdict for verdict in verdicts if verdict.verdict != "healthy" or verdict.notes or len(verdicts) == 1]
    for verdict in shown:
        own = at_hand.get(verdict.session, {})
        if verdict.verdict == "healthy":
            if not parted:
                printer.line()
            _healthy(printer, verdict, own)
            parted = True
            continue
        if verdict is not shown[0]:
            printer.line()
        parted = False
        printer.rule(
            Span(verdict.verdict, verdict_style(verdict.verdict)), "  ", Span(verdict.session, "strong"),
            Span(f"  {', '.join([plural(len(verdict.findings), 'finding'), *verdict.notes])}", "dim"),
        )  # fmt: skip
        _head(printer, verdict)
        for place_, finding in enumerate(sorted(verdict.findings, key=lambda each: each.resolved is not None)):
            if place_:
                printer.line()
            _finding(printer, finding, own)
        if verdict.verdict != "warn":
            printer.line()
            printer.line(Span("next  ", "dim"), session_command("recover", verdict.session, store), indent=2)
    # Of many sessions the healthy ones are only counted, or the stuck ones would scroll out of sight.
    if len(verdicts) > 1:
        stuck = sum(verdict.verdict not in ("healthy", "warn") for verdict in verdicts)
        if shown:
            printer.line()
        over = sum(bool(verdict.findings) for verdict in well)
        healthy = f", {len(well):,} healthy" if well else ""
        healthy += f" ({over:,} with findings that are over)" if over else ""
        printer.line(Span(f"{stuck:,} of {plural(len(verdicts), 'session')} stuck{healthy}", "loop" if stuck else "healthy"))


def _head(printer: Printer, verdict: SessionVerdict) -> None:
    """Show what the session is about and where it worked, as far as it tells."""
    folder = (verdict.project or "").rstrip("/").rpartition("/")[2]
    if verdict.title or folder:
        place_ = Span(f"  in {folder}" if verdict.title and folder else folder, "dim")
        printer.line(printer.fit(verdict.title or "", printer.width - 8 - printer.cells(folder)), place_, indent=2)


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
        silence = f"  silent for {duration(silent)}" if silent is not None else ""
        where = f"{silence}, last seen {raised}" if silence else f"  last seen {raised}"
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
        draw_loop(printer, finding, entries)
    printer.line()
    progress: Cell = _progress(printer, finding, entries)
    name = Span(finding.id, "dim")
    printer.pairs([*_cause(finding), *_excerpts(printer, finding, entries), ("last progress", progress), ("finding", name)])


def _cause(finding: Finding) -> list[tuple[str, Cell]]:
    """Return why the calls fail and what the agent can do next, where the record shows it."""
    found = finding.diagnosis
    if found is None:
        return []
    sure = "likely cause" if found.confidence != "high" and found.kind != "unknown" else "cause"
    return [(sure, found.cause), ("next step", found.next_step), *([("check", found.check)] if found.check else [])]


def _progress(printer: Printer, finding: Finding, entries: Entries) -> list[str | Span]:
    if finding.last_progress is None:
        return ["none before this"]
    where = place(finding, entries, "lastProgress", finding.last_progress)
    entry = entries.get(finding.last_progress)
    if entry is None:
        return [where]
    text = brief(entry.input).strip()
    when = f"  {clock(entry.ts)}" if entry.ts else ""
    room = printer.width - 34 - printer.cells(printer.safe(entry.action))
    return [
        where,
        " ",
        Span(entry.action, "name"),
        f" {printer.fit(text, max(room, 12), end_to_keep(text))}",
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
        message = text if isinstance(text, str) else error_text(text)
        if message.strip():
            found.append((name, Span(printer.fit(message.strip(), _EXCERPT), "error" if name == "error" else "")))
    return found
