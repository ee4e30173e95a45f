"""The project's shared state: context keys, what a change replaced, and the runs of agents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ctxmgr.cli.views.formatting import short_ids, when
from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.project import ContextKey, Execution, KeyChanged

_KEYS = (
    Column("KEY", give=2, least=10), Column("VALUE", fill=True, least=12), Column("TYPE", give=6, least=7, optional=True),
    Column("BY", give=4, least=6, optional=True), Column("TIME", give=5, least=10, optional=True, steps=TIME_STEPS),
    Column("DESCRIPTION", give=6, least=10, optional=True),
)  # fmt: skip
_RUNS = (
    Column("ID", give=4, least=8), Column("AGENT", give=2, least=12), Column("STATUS"), Column("TASK", give=3, least=6),
    Column("SPRINT", give=5, least=5, optional=True), Column("STARTED", give=5, least=10, steps=TIME_STEPS),
    Column("TOOK", right=True), Column("CONTEXT", right=True, optional=True), Column("ERROR", fill=True, least=10),
)  # fmt: skip
_STYLES = {"started": "open", "completed": "ok", "failed": "error"}


def value_text(value: Any) -> str:
    """Return a JSON value in one line; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_keys(printer: Printer, keys: Sequence[ContextKey]) -> None:
    """Show context keys with their values."""
    if not keys:
        printer.hint("No context yet. Set a key: ctxmgr context set current_sprint S1-01")
        return
    printer.table(
        _KEYS,
        (
            [
                Span(key.key, "strong"), value_text(key.value), Span(key.type, "dim"), key.updated_by or "",
                when(key.updated_at, printer.terminal), Span(key.description or "", "dim"),
            ]
            for key in keys
        ),
    )  # fmt: skip


def show_changes(printer: Printer, changes: Sequence[KeyChanged]) -> None:
    """Show what was set, and what it replaced."""
    for change in changes:
        before = [] if change.created else [Span(value_text(change.old_value), "dim"), f" {printer.symbols.arrow} "]
        printer.line(Span(f"{change.key}  ", "strong"), *before, value_text(change.new_value), hang=4)


def show_executions(printer: Printer, runs: Sequence[Execution]) -> None:
    """Show runs of agents, one a row."""
    if not runs:
        printer.hint("No executions here. Record one: ctxmgr execution record AGENT started --task TASK")
        return
    shorts = short_ids(run.id for run in runs) if printer.terminal and len(runs) > 1 else {}
    printer.table(
        _RUNS,
        (
            [
                shorts.get(run.id, run.id), Span(run.agent, "name"), Span(run.status, _STYLES[run.status]), run.task or "",
                run.sprint or "", when(run.started_at, printer.terminal), _took(run.duration_seconds),
                "" if run.context_version is None else f"v{run.context_version}", run.error or "",
            ]
            for run in runs
        ),
    )  # fmt: skip


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {rest:02}s"
