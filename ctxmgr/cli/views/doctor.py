"""What was looked at, a line each: a sign, a name, the finding, and below it what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import plural
from ctxmgr.cli.views.layout import GAP, Span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.health import Check

_STYLES = {"ok": "ok", "info": "dim", "warn": "warn", "fail": "error"}


def show_checks(printer: Printer, checks: Sequence[Check], counts: Mapping[str, int]) -> None:
    """Show every check; in a pipe the level is a word, and the count goes to the stream for talk."""
    symbols = printer.symbols
    signs = {"ok": symbols.healthy, "info": symbols.unknown, "warn": symbols.open, "fail": symbols.error}
    words = signs if printer.terminal else {level: level for level in _STYLES}
    first = max(map(len, words.values())) + len(GAP)
    second = max((len(check.name) for check in checks), default=0) + len(GAP)
    for check in checks:
        sign = Span(words[check.level].ljust(first), _STYLES[check.level])
        style = _STYLES[check.level] if check.level in ("warn", "fail") else ""
        printer.line(sign, Span(check.name.ljust(second), "dim"), Span(check.finding, style), hang=first + second)
        if check.hint:
            printer.line(" " * (first + second), Span(check.hint, "dim"), hang=first + second + 2)
    if counts.get("fail"):
        printer.hint(f"{plural(counts['fail'], 'failure')}, {plural(counts.get('warn', 0), 'warning')}")
    elif counts.get("warn"):
        printer.hint(plural(counts["warn"], "warning"))
    else:
        printer.hint("everything is in order")
