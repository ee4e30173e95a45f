"""Settings files of projects for people: whether each is trusted, what it grants, and the commands that go with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.layout import Span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.trust import TrustView

_NAME = 14


def show_trust(printer: Printer, rows: Sequence[TrustView]) -> None:
    """Show every file with what it grants; all values are the project's and pass the printer's filter."""
    for row in rows:
        state = Span("trusted", "ok") if row.trusted else Span("not trusted", "warn")
        printer.line(state, "  ", row.path, hang=2)
        for name, value in row.grants.items():
            printer.line("  ", Span("grants".ljust(_NAME), "dim"), f"{name} = {json.dumps(value, default=str)}", hang=_NAME + 2)
        for command in row.commands:
            word = "may run" if command.trusted and row.trusted else "may not run"
            told = f"{' '.join(command.argv)}  (probe {command.probe} in {command.folder})"
            printer.line("  ", Span(word.ljust(_NAME), "dim"), told, hang=_NAME + 2)
        if row.trusted and not row.grants:
            printer.hint(f"{row.path} grants nothing: it needs no trust")
    if not rows:
        printer.hint("no file is trusted")
