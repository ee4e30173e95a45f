"""Times, spans, amounts and verdicts as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctxmgr.cli.views.layout import Span, Symbols
from ctxmgr.cli.views.safe_text import safe
from ctxmgr.log.ids import format_time, parse_time

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SHORTEST = 8


def ago(ts: str | None, now: float) -> str:
    """Return how long before ``now`` (seconds since 1970) a moment was: "3 min ago"; after a month the date."""
    moment = parse_time(ts)
    if moment is None:
        return safe(ts)
    passed = now - moment
    if passed < -_MINUTE:
        return "in the future"
    if passed < 5:
        return "just now"
    for unit, name, upto in ((1, "s", _MINUTE), (_MINUTE, "min", _HOUR), (_HOUR, "h", 2 * _DAY), (_DAY, "d", 31 * _DAY)):
        if passed < upto:
            return f"{int(passed // unit)} {name} ago"
    return day(ts)


def duration(seconds: float | None) -> str:
    """Return a span of time, to about three digits: "85 ms", "4.2 s", "2 min 5 s", "34 min", "3 h 20 min"."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for big, small, names in ((_DAY, _HOUR, ("d", "h")), (_HOUR, _MINUTE, ("h", "min")), (_MINUTE, 1, ("min", "s"))):
        if whole >= big:
            first, rest = divmod(whole, big)
            if first >= 10:
                return f"{whole / big:,.0f} {names[0]}"
            return f"{first} {names[0]}" + (f" {rest // small} {names[1]}" if rest >= small else "")
    return f"{whole} s"


def clock(ts: str | None) -> str:
    """Return the time of day in UTC ("14:03:22"), or the text itself when it is no time."""
    moment = parse_time(ts)
    return safe(ts) if moment is None else format_time(moment)[11:19]


def day(ts: str | None) -> str:
    """Return the date in UTC ("2026-01-22"), or "" when it is no time."""
    moment = parse_time(ts)
    return "" if moment is None else format_time(moment)[:10]


def when(ts: str | None, terminal: bool) -> Span:
    """Return a date with its time for a column of `TIME_STEPS`; where no person watches, the time as it was recorded."""
    return Span(f"{day(ts)} {clock(ts)}".strip() if terminal else ts or "", keep="bare")


def amount(number: float | None) -> str:
    """Return a count of tokens or things in three digits: "950", "1.2 k", "34 M"."""
    return _scaled(number, 1000, ("", " k", " M", " G", " T"))


def size(number: float | None) -> str:
    """Return a number of bytes: "12 B", "1.2 kB", "34 MB"."""
    return _scaled(number, 1000, (" B", " kB", " MB", " GB", " TB"))


def _scaled(number: float | None, step: int, units: tuple[str, ...]) -> str:
    if number is None or not abs(number) < 1e18:
        return "" if number is None else safe(number, limit=20)
    value = float(number)
    for unit in units[:-1]:
        if abs(value) < step - 0.5:
            return f"{value:.1f}{unit}" if unit.strip(" B") and abs(value) < 9.95 else f"{value:.0f}{unit}"
        value /= step
    return f"{value:,.0f}{units[-1]}"


def plural(number: int, noun: str) -> str:
    """Return "1 entry", "2,000 entries"."""
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else many}"


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return for each id a prefix that no other of them shares; ids that people chose (no UUIDs) stay whole."""
    ordered = sorted(set(ids))
    shorts: dict[str, str] = {}
    for place, name in enumerate(ordered):
        if len(name) < 24 or name.count("-") < 4 or " " in name:
            shorts[name] = name
            continue
        shared = 0
        for other in (*ordered[max(place - 1, 0) : place], *ordered[place + 1 : place + 2]):
            common = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), len(other))
            shared = max(shared, common)
        shorts[name] = name[: max(_SHORTEST, shared + 1)].rstrip("-") if shared + 1 < len(name) else name
    return shorts


_VERDICT_STYLE = {"loop+hung": "loop"}


def status_sign(symbols: Symbols, status: str | None) -> str:
    """Return the one-cell sign of an entry's status; a dot when the status is not known."""
    signs = {
        "ok": symbols.ok, "error": symbols.error, "denied": symbols.denied, "interrupted": symbols.interrupted,
        "open": symbols.open,
    }  # fmt: skip
    return signs.get(status or "", symbols.unknown)


def status_span(printer: Printer, status: str) -> Span:
    """Return a status for a table; a pipe gets the bare word."""
    return Span(f"{status_sign(printer.symbols, status)} {status}" if printer.terminal else status, status)


def verdict_style(verdict: str) -> str:
    """Return the colour of a verdict or severity."""
    return _VERDICT_STYLE.get(verdict, verdict)


def verdict_sign(symbols: Symbols, verdict: str) -> str:
    """Return the sign of a verdict: a tick for healthy, a cross for a loop or stall, an open circle for a warning."""
    return {"healthy": symbols.healthy, "warn": symbols.open}.get(verdict, symbols.error)
