"""A loop as a table: a row for each step of a round, a column for each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctxmgr.cli.views.evidence import Entries, member_places, steps
from ctxmgr.cli.views.formatting import plural
from ctxmgr.cli.views.layout import GAP, Span
from ctxmgr.cli.views.one_line import brief, telling_end
from ctxmgr.cli.views.status import status_sign

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding

_PLAIN_ROUNDS = 8
_LEAST_INPUT = 22
_VARIANTS = 5
_ROWS = 24
_ROUND = "round"


@dataclass(frozen=True, slots=True)
class LoopDiagram:
    """One step of the round and where it happened.

    Attributes:
        action, input: what was done, in brief; ``variants`` holds (place, input) of each when the inputs differ.
        places: index in the session as text, a round each; statuses: the status beside it, None when not at hand.
    """

    action: str
    input: str
    variants: list[tuple[str, str]]
    places: list[str]
    statuses: list[str | None]


def lanes_of(finding: Finding, entries: Entries) -> list[LoopDiagram]:
    """Return the lanes of a loop; calls that one model response issued together have a lane each."""
    named = steps(finding)
    period = max(finding.period, 1)
    calls = len(named) if len(named) >= period else period
    calls = max(1, min(calls, len(finding.members)))
    places = member_places(finding, entries)
    lanes: list[LoopDiagram] = []
    for number in range(calls):
        found = [(place, entries.get(member)) for place, member in zip(
            places[number::calls], finding.members[number::calls], strict=True
        )]  # fmt: skip
        inputs = [(place, brief(entry.input)) for place, entry in found if entry is not None]
        step = named[number] if number < len(named) else {}
        first = next((entry for _, entry in found if entry is not None), None)
        action = first.action if first is not None else step.get("action")
        differ = len({text for _, text in inputs}) > 1
        lanes.append(
            LoopDiagram(
                action=action if isinstance(action, str) else finding.kind,
                input="" if differ else inputs[0][1] if inputs else brief(step.get("input")),
                variants=inputs if differ else [],
                places=[place for place, _ in found],
                statuses=[None if entry is None else entry.status for _, entry in found],
            )
        )
    return lanes


def draw_lanes(printer: Printer, finding: Finding, entries: Entries) -> None:
    """Draw a loop: rounds beside each other, the middle ones left out when they do not fit."""
    lanes = lanes_of(finding, entries)
    if not lanes or not lanes[0].places:
        return
    shown = lanes[:_ROWS]
    rounds = len(lanes[0].places)
    wide = max(len(place) for lane in shown for place in lane.places) + len(printer.symbols.ok) + 1
    wide = max(wide, len(f"{rounds}"))
    actions = [printer.fit(lane.action, max(8, printer.width // 4)) for lane in shown]
    left = max(len(_ROUND) if rounds > 1 else 0, *(printer.cells(action) for action in actions))
    told = min(max(len(lane.input) for lane in shown), _LEAST_INPUT)
    room = printer.width - 2 - left - len(GAP) - (told + len(GAP) if told else 0)
    columns = chosen(rounds, (room + len(GAP)) // (wide + len(GAP)) if printer.terminal else _PLAIN_ROUNDS)
    elided = f"{printer.symbols.dots} {rounds - len(columns) + 1:,} more {printer.symbols.dots}"
    if printer.terminal and None in columns:
        columns = chosen(rounds, (room - len(elided)) // (wide + len(GAP)) + 1)
        elided = f"{printer.symbols.dots} {rounds - len(columns) + 1:,} more {printer.symbols.dots}"
    printer.line()
    if rounds > 1:
        titles = [elided if column is None else f"{column + 1}".rjust(wide) for column in columns]
        printer.line(Span(GAP.join([_ROUND.ljust(left), *titles]), "dim"), indent=2)
    for lane, action in zip(shown, actions, strict=True):
        _row(printer, lane, action + " " * (left - printer.cells(action)), columns, wide, len(elided))
    if len(lanes) > _ROWS:
        printer.line(Span(f"and {plural(len(lanes) - _ROWS, 'more step')} in each round", "dim"), indent=2)
    _legend(printer, shown)
    _variants(printer, shown)


def chosen(rounds: int, slots: int) -> list[int | None]:
    """Return the rounds to show in so many columns, a None in place of the middle ones that are left out."""
    if rounds <= max(slots, 3):
        return list(range(rounds))
    tail = max(1, (max(slots, 3) - 1) * 2 // 5)
    head = max(slots, 3) - 1 - tail
    return [*range(head), None, *range(rounds - tail, rounds)]


def _row(printer: Printer, lane: LoopDiagram, action: str, columns: list[int | None], wide: int, gap: int) -> None:
    spans = [Span(action, "name")]
    used = 2 + printer.cells(action)
    for column in columns:
        if column is None:
            spans += [Span(GAP), Span(printer.symbols.dots.center(gap), "dim")]
        elif column < len(lane.places):
            status = lane.statuses[column]
            sign = status_sign(printer.symbols, status)
            place = lane.places[column].rjust(wide - len(sign) - 1)
            spans += [Span(GAP), Span(f"{sign} {place}", status or "dim")]
        else:
            spans += [Span(GAP), Span(" " * wide)]
        used += len(GAP) + (gap if column is None else wide)
    if lane.input:
        told = lane.input.strip()
        spans += [Span(GAP), Span(printer.fit(told, printer.width - used - len(GAP), telling_end(told)))]
    printer.line(*spans, indent=2)


def _variants(printer: Printer, lanes: list[LoopDiagram]) -> None:
    """List the inputs of a step that was tried with different ones."""
    for lane in lanes:
        if not lane.variants:
            continue
        most = _VARIANTS if printer.terminal else len(lane.variants)
        head = lane.variants if len(lane.variants) <= most else [*lane.variants[: most - 1], lane.variants[-1]]
        printer.line()
        printer.line(Span(f"{lane.action} with different inputs", "dim"), indent=2)
        wide = max(len(place) for place, _ in head) + 1
        for number, (place, text) in enumerate(head):
            if number == most - 1 and len(head) < len(lane.variants):
                printer.line(Span(f"{printer.symbols.dots} {len(lane.variants) - most:,} more", "dim"), indent=4)
            label = f"@{place}".rjust(wide)
            printer.line(Span(label, "dim"), GAP, printer.fit(text.strip(), printer.width - wide - 6), indent=4)


def _legend(printer: Printer, lanes: list[LoopDiagram]) -> None:
    seen = [status for lane in lanes for status in lane.statuses if status is not None]
    names = [name for name in ("ok", "error", "denied", "interrupted", "open") if name in seen]
    if names:
        text = "   ".join(f"{status_sign(printer.symbols, name)} {name}" for name in names)
        printer.line(Span(text, "dim"), indent=2)
