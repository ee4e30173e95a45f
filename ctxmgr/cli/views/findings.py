"""Draw findings: the rounds of a loop, the silence of a stall."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.cli.views.layout import (
    GAP,
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
    status_sign,
    verdict_sign,
    verdict_style,
)
from ctxmgr.log.fast_json import json_array, json_object
from ctxmgr.log.ids import parse_time, time_or_none

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding, SessionVerdict
    from ctxmgr.types.view import EntryView

Entries = Mapping[str, "EntryView"]
"""The loaded entries among those that a finding names, by id."""


def place(finding: Finding, entries: Entries, name: str, record: str | None) -> str:
    """Return the place of a record that a finding names: "@12", else its id, else ""."""
    if record is None:
        return ""
    if record in entries:
        return f"@{entries[record].index}"
    index = json_object(finding.evidence.get("indexes")).get(name)
    return f"@{index}" if is_index(index) else record


def member_places(finding: Finding, entries: Entries) -> list[str]:
    """Return the index of each member in the session as text, or a question mark if it is unknown."""
    indexes = json_array(json_object(finding.evidence.get("indexes")).get("members"))
    places: list[str] = []
    for number, member in enumerate(finding.members):
        if member in entries:
            places.append(str(entries[member].index))
        else:
            known = number < len(indexes) and is_index(indexes[number])
            places.append(str(indexes[number]) if known else "?")
    return places


def steps(finding: Finding, name: str = "steps") -> list[dict[str, Any]]:
    """Return the calls in the evidence under this name."""
    return [json_object(step) for step in json_array(finding.evidence.get(name))]


def seconds(finding: Finding, name: str) -> float | None:
    """Return a number of seconds from the evidence, or None."""
    return as_seconds(finding.evidence.get(name))


def as_seconds(value: Any) -> float | None:
    """Return a value as a finite number of seconds, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value) if math.isfinite(value) else None


def is_index(value: Any) -> bool:
    """Whether a value is valid as an entry's index in its session."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


# Maximum number of rounds to show in a pipe.
_PLAIN_ROUNDS = 8
_MIN_INPUT_WIDTH = 22
_VARIANTS = 5
_ROWS = 24
_ROUND = "round"


@dataclass(frozen=True, slots=True)
class LoopStep:
    """One step of the round, with its place in each round.

    Attributes:
        action, input: the call in brief. ``variants`` holds (place, input) of each round if the inputs differ.
        places: per round, the index in the session as text. statuses: per round, the status, None if the entry is not loaded.
    """

    action: str
    input: str
    variants: list[tuple[str, str]]
    places: list[str]
    statuses: list[str | None]


def loop_steps(finding: Finding, entries: Entries) -> list[LoopStep]:
    """Return the steps of a loop, one per row. Calls that one model response issued together are separate steps."""
    named = steps(finding)
    period = max(finding.period, 1)
    # A step of the detector may hold several calls of one response. Then a round has more calls than ``period``.
    calls = len(named) if len(named) >= period else period
    calls = max(1, min(calls, len(finding.members)))
    places = member_places(finding, entries)
    rows: list[LoopStep] = []
    for number in range(calls):
        found = [(place, entries.get(member)) for place, member in zip(
            places[number::calls], finding.members[number::calls], strict=True
        )]  # fmt: skip
        inputs = [(place, brief(entry.input)) for place, entry in found if entry is not None]
        step = named[number] if number < len(named) else {}
        first = next((entry for _, entry in found if entry is not None), None)
        action = first.action if first is not None else step.get("action")
        differ = len({text for _, text in inputs}) > 1
        rows.append(
            LoopStep(
                action=action if isinstance(action, str) else finding.kind,
                input="" if differ else inputs[0][1] if inputs else brief(step.get("input")),
                variants=inputs if differ else [],
                places=[place for place, _ in found],
                statuses=[None if entry is None else entry.status for _, entry in found],
            )
        )
    return rows


def draw_loop(printer: Printer, finding: Finding, entries: Entries) -> None:
    """Draw a loop with its rounds side by side. The middle rounds are left out if they do not fit."""
    rows = loop_steps(finding, entries)
    if not rows or not rows[0].places:
        return
    shown = rows[:_ROWS]
    rounds = len(rows[0].places)
    wide = max(len(place) for row in shown for place in row.places) + len(printer.symbols.ok) + 1
    wide = max(wide, len(f"{rounds}"))
    actions = [printer.fit(row.action, max(8, printer.width // 4)) for row in shown]
    left = max(len(_ROUND) if rounds > 1 else 0, *(printer.cells(action) for action in actions))
    width = min(max(len(row.input) for row in shown), _MIN_INPUT_WIDTH)
    room = printer.width - 2 - left - len(GAP) - (width + len(GAP) if width else 0)
    columns = rounds_to_show(rounds, (room + len(GAP)) // (wide + len(GAP)) if printer.terminal else _PLAIN_ROUNDS)
    elided = f"{printer.symbols.dots} {rounds - len(columns) + 1:,} more {printer.symbols.dots}"
    # Choose again, because the mark for the missing rounds needs room too.
    if printer.terminal and None in columns:
        columns = rounds_to_show(rounds, (room - len(elided)) // (wide + len(GAP)) + 1)
        elided = f"{printer.symbols.dots} {rounds - len(columns) + 1:,} more {printer.symbols.dots}"
    printer.line()
    if rounds > 1:
        titles = [elided if column is None else f"{column + 1}".rjust(wide) for column in columns]
        printer.line(Span(GAP.join([_ROUND.ljust(left), *titles]), "dim"), indent=2)
    for row, action in zip(shown, actions, strict=True):
        _row(printer, row, action + " " * (left - printer.cells(action)), columns, wide, len(elided))
    if len(rows) > _ROWS:
        printer.line(Span(f"and {plural(len(rows) - _ROWS, 'more step')} in each round", "dim"), indent=2)
    _legend(printer, shown)
    _variants(printer, shown)


def rounds_to_show(rounds: int, slots: int) -> list[int | None]:
    """Return the rounds for so many columns, with one None in the place of the middle rounds that do not fit."""
    if rounds <= max(slots, 3):
        return list(range(rounds))
    # Show more of the first rounds than of the last, because the beginning of a loop says more about its cause.
    tail = max(1, (max(slots, 3) - 1) * 2 // 5)
    head = max(slots, 3) - 1 - tail
    return [*range(head), None, *range(rounds - tail, rounds)]


def _row(printer: Printer, row: LoopStep, action: str, columns: list[int | None], wide: int, gap: int) -> None:
    spans = [Span(action, "name")]
    used = 2 + printer.cells(action)
    for column in columns:
        if column is None:
            spans += [Span(GAP), Span(printer.symbols.dots.center(gap), "dim")]
        elif column < len(row.places):
            status = row.statuses[column]
            sign = status_sign(printer.symbols, status)
            place = row.places[column].rjust(wide - len(sign) - 1)
            spans += [Span(GAP), Span(f"{sign} {place}", status or "dim")]
        else:
            spans += [Span(GAP), Span(" " * wide)]
        used += len(GAP) + (gap if column is None else wide)
    if row.input:
        text = row.input.strip()
        spans += [Span(GAP), Span(printer.fit(text, printer.width - used - len(GAP), end_to_keep(text)))]
    printer.line(*spans, indent=2)


def _variants(printer: Printer, rows: list[LoopStep]) -> None:
    """List the inputs of steps whose inputs differ between rounds."""
    for row in rows:
        if not row.variants:
            continue
        most = _VARIANTS if printer.terminal else len(row.variants)
        head = row.variants if len(row.variants) <= most else [*row.variants[: most - 1], row.variants[-1]]
        printer.line()
        printer.line(Span(f"{row.action} with different inputs", "dim"), indent=2)
        wide = max(len(place) for place, _ in head) + 1
        for number, (place, text) in enumerate(head):
            if number == most - 1 and len(head) < len(row.variants):
                printer.line(Span(f"{printer.symbols.dots} {len(row.variants) - most:,} more", "dim"), indent=4)
            label = f"@{place}".rjust(wide)
            printer.line(Span(label, "dim"), GAP, printer.fit(text.strip(), printer.width - wide - 6), indent=4)


def _legend(printer: Printer, rows: list[LoopStep]) -> None:
    seen = [status for row in rows for status in row.statuses if status is not None]
    names = [name for name in ("ok", "error", "denied", "interrupted", "open") if name in seen]
    if names:
        text = "   ".join(f"{status_sign(printer.symbols, name)} {name}" for name in names)
        printer.line(Span(text, "dim"), indent=2)


_MAX_WIDTH = 96


def draw_stall(printer: Printer, finding: Finding, entries: Entries) -> None:
    """Draw the silence against its limit, then the open calls."""
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
        # The exact beginning of the silence is known only for an open call, so only then its end is known too.
        end = f"{clock(time_or_none(moment + silent))} {end}"
    printer.line(start + end.rjust(width - printer.cells(start)), indent=2)
    # The bar is the whole silence, and the limit is marked at its share, but never on the first or the last cell.
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
# Maximum length of an excerpt of an answer, in characters.
_EXCERPT = 300
# Maximum number of past findings that a healthy session shows on a terminal.
_PAST = 3


def show_findings(printer: Printer, verdicts: Sequence[SessionVerdict], entries: Entries, store: str | None = None) -> None:
    """Show the findings of each session. A session without unresolved findings takes one line.

    Args:
        printer: the printer to write to.
        verdicts: the sessions with their findings.
        entries: the loaded entries among those that the findings name, by id.
        store: the store that the user named, if any.
    """
    if not verdicts:
        printer.hint("No sessions to look at yet: 'ctxmgr import' reads the logs on this machine.")
        return
    # Foreign logs may use one id in two sessions, so a finding only gets entries of its own session.
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
        # Unresolved findings come first.
        for place_, finding in enumerate(sorted(verdict.findings, key=lambda each: each.resolved is not None)):
            if place_:
                printer.line()
            _finding(printer, finding, own)
        # A warning is not a loop, so there is nothing to recover from.
        if verdict.verdict != "warn":
            printer.line()
            printer.line(Span("next  ", "dim"), session_command("recover", verdict.session, store), indent=2)
    # With several sessions, only count the healthy ones. Otherwise the stuck ones would scroll out of sight.
    if len(verdicts) > 1:
        stuck = sum(verdict.verdict not in ("healthy", "warn") for verdict in verdicts)
        if shown:
            printer.line()
        over = sum(bool(verdict.findings) for verdict in well)
        healthy = f", {len(well):,} healthy" if well else ""
        healthy += f" ({over:,} with findings that are over)" if over else ""
        warned = sum(verdict.verdict == "warn" for verdict in verdicts)
        healthy += f", {warned:,} with a warning" if warned else ""
        healthy += f", {rest:,} with a remark" if (rest := len(verdicts) - stuck - len(well) - warned) else ""
        printer.line(Span(f"{stuck:,} of {plural(len(verdicts), 'session')} stuck{healthy}", "loop" if stuck else "healthy"))


def _head(printer: Printer, verdict: SessionVerdict) -> None:
    """Show the title and the folder of the session, as far as they are recorded."""
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
    # Nobody knows whether a loop goes on after the last record.
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
    # Without rounds, there is no table to draw.
    if finding.kind == "hung" or finding.period == 0:
        draw_stall(printer, finding, entries)
    else:
        draw_loop(printer, finding, entries)
    printer.line()
    progress: Cell = _progress(printer, finding, entries)
    name = Span(finding.id, "dim")
    printer.pairs([*_cause(finding), *_excerpts(printer, finding, entries), ("last progress", progress), ("finding", name)])


def _cause(finding: Finding) -> list[tuple[str, Cell]]:
    """Return why the calls fail and what the agent can do next, if the record shows it."""
    found = finding.diagnosis
    if found is None:
        return []
    # The label shows how certain the diagnosis is, because a mere possibility must not look like a fact.
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
    when = f"  {clock(entry.ts)} UTC" if entry.ts else ""
    room = printer.width - 34 - printer.cells(printer.safe(entry.action))
    return [
        where,
        " ",
        Span(entry.action, "name"),
        f" {printer.fit(text, max(room, 12), end_to_keep(text))}",
        Span(when, "dim"),
    ]


def _excerpts(printer: Printer, finding: Finding, entries: Entries) -> list[tuple[str, Cell]]:
    """Return the shared error or result of the calls, from the evidence or else from the last loaded member."""
    texts = {name: finding.evidence.get(name) for name in ("error", "result")}
    # The calls of some patterns share no answer. Then the last answer is what the agent saw last.
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
