"""How a status or verdict looks: a sign, a word and a colour that mean the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.views.layout import Span, Symbols

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer

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
