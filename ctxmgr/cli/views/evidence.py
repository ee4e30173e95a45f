"""Show the evidence of a finding: its indexes, steps and numbers, and a loop drawn as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.cli.views.layout import GAP, Span, brief, end_to_keep, plural, status_sign

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.finding import Finding
    from ctxmgr.types.view import EntryView


Entries = Mapping[str, "EntryView"]
"""The entries at hand among those that a finding names, by id."""


def place(finding: Finding, entries: Entries, name: str, record: str | None) -> str:
    """Return where a record that a finding names stands: "@12", else its id, else ""."""
    if record is None:
        return ""
    if record in entries:
        return f"@{entries[record].index}"
    index = mapping(finding.evidence.get("indexes")).get(name)
    return f"@{index}" if is_index(index) else record


def member_places(finding: Finding, entries: Entries) -> list[str]:
    """Return for each member its index in the session as text, or a question mark."""
    listed = mapping(finding.evidence.get("indexes")).get("members")
    indexes = cast("list[Any]", listed) if isinstance(listed, list) else []
    places: list[str] = []
    for number, member in enumerate(finding.members):
        if member in entries:
            places.append(str(entries[member].index))
        else:
            known = number < len(indexes) and is_index(indexes[number])
            places.append(str(indexes[number]) if known else "?")
    return places


def steps(finding: Finding, name: str = "steps") -> list[dict[str, Any]]:
    """Return the calls that the evidence lists under a name."""
    listed = finding.evidence.get(name)
    return [mapping(step) for step in cast("list[Any]", listed)] if isinstance(listed, list) else []


def seconds(finding: Finding, name: str) -> float | None:
    """Return a span of time in the evidence, or None."""
    return as_seconds(finding.evidence.get(name))


def as_seconds(value: Any) -> float | None:
    """Return a value as a finite number of seconds, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value) if math.isfinite(value) else None


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one when it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def is_index(value: Any) -> bool:
    """Whether a value can be an entry's place in its session."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


_PLAIN_ROUNDS = 8
_MIN_INPUT_WIDTH = 22
_VARIANTS = 5
_ROWS = 24
_ROUND = "round"


@dataclass(frozen=True, slots=True)
class LoopStep:
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


def loop_steps(finding: Finding, entries: Entries) -> list[LoopStep]:
    """Return the steps of a loop, a row each; calls that one model response issued together are steps of their own."""
    named = steps(finding)
    period = max(finding.period, 1)
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
    """Draw a loop: rounds beside each other, the middle ones left out when they do not fit."""
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
    columns = chosen(rounds, (room + len(GAP)) // (wide + len(GAP)) if printer.terminal else _PLAIN_ROUNDS)
    elided = f"{printer.symbols.dots} {rounds - len(columns) + 1:,} more {printer.symbols.dots}"
    # Chosen again, now that it is known that the mark for the rounds left out needs room too.
    if printer.terminal and None in columns:
        columns = chosen(rounds, (room - len(elided)) // (wide + len(GAP)) + 1)
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


def chosen(rounds: int, slots: int) -> list[int | None]:
    """Return the rounds to show in so many columns, a None in place of the middle ones that are left out."""
    if rounds <= max(slots, 3):
        return list(range(rounds))
    # More of the first rounds than of the last: how a loop began says more about its cause.
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
    """List the inputs of a step that was tried with different ones."""
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
