"""Draw context keys, runs of agents, needs and context packages."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span, date_span, plural, short_ids

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.context_package import AssembleResponse, BudgetRow, Decision, ItemExplanation, RequestedItem
    from ctxmgr.types.project_state import AgentNeed, ContextKey, Execution, KeyChange, LoggedKeyChange


_BUDGET = (
    Column("BUDGET"), Column("TOKENS", right=True), Column("", optional=True),
    Column("ITEMS", right=True, optional=True),
)  # fmt: skip
_ITEMS = (
    Column("GOT"), Column("ITEM", give=2, least=16), Column("TOKENS", right=True), Column("OF", right=True, optional=True),
    Column("NEED", give=4, least=8, optional=True), Column("WHY", fill=True, least=20),
)  # fmt: skip
_NEEDS = (
    Column("AGENT", give=2, least=8), Column("PATTERN", give=1, least=12), Column("NEED"), Column("PRIORITY", right=True),
    Column("MAX TOKENS", right=True, optional=True), Column("AS", optional=True),
)  # fmt: skip
_REQUESTED = (
    Column("STATUS"), Column("ITEM", give=2, least=16), Column("GOT"), Column("TOKENS", right=True),
    Column("WHY", fill=True, least=16),
)  # fmt: skip
_GOT = {"full": "ok", "summary": "open", "truncated": "warn", "omitted": "error"}
# Width of a bar of the budget in cells, and maximum number of lines of an item on a terminal.
_BAR = 30
_MAX_LINES = 12


def show_package(printer: Printer, made: AssembleResponse, *, yaml: bool) -> None:
    """Write the package itself as YAML, or show what is in it and why."""
    if yaml:
        _write_yaml(printer, made)
        return
    package = made.package
    meta = package.metadata
    head = [f"context version {meta.version}"] if meta.version is not None else []
    head += [f"task {meta.task_id}"] if meta.task_id is not None else []
    head += ["not recorded" if made.id is None else f"package {made.id}"]
    printer.line(Span(f"Context for {meta.assembled_for}", "strong"), Span("".join(f"  {part}" for part in head), "dim"))
    printer.line(
        f"{meta.total_tokens:,} of {meta.token_budget:,} tokens in {plural(len(package.artifacts), 'item')}",
        Span(
            f"  counted by {meta.counter}" + (f", within a factor of {meta.error_band:g}" if meta.error_band > 1 else ""), "dim"
        ),
    )
    _show_budget(printer, made.budget, meta.token_budget)
    if made.decisions:
        printer.line()
        # A duplicate was asked for twice. It is shown only where it was served.
        printer.table(_ITEMS, [_item(one) for one in made.decisions if one.rule != "duplicate"])
    _show_context(printer, made)
    for title, rows in (
        ("Held already", [f"{one.source}/{one.name}" for one in package.held]),
        ("Missing", [f"{one.source}/{one.name}" if one.source else one.name for one in package.missing]),
        ("Warnings", package.warnings),
    ):
        if rows:
            printer.heading(title)
            for row in rows:
                printer.line(row, indent=2, hang=2)
    printer.hint("The package itself: the same command with --format yaml, or into a file.")


def _write_yaml(printer: Printer, made: AssembleResponse) -> None:
    from ctxmgr.context.packages import render

    text = render(made.package)
    if printer.terminal:
        printer.block(text.removesuffix("\n"))
        return
    sys.stdout.flush()
    # Written as bytes: the encoding of the stream may lack characters of the package, and an escape would change them.
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:
        sys.stdout.write(text)
    else:
        binary.write(text.encode("utf-8"))
        binary.flush()


def _show_budget(printer: Printer, rows: Sequence[BudgetRow], budget: int) -> None:
    signs = printer.symbols
    table: list[list[Any]] = []
    for row in rows:
        # At least one cell, so that the smallest part is visible.
        filled = min(_BAR, max(round(_BAR * row.tokens / max(budget, 1)), 1 if row.tokens else 0))
        bar = [Span(signs.bar * filled, "dim" if row.name == "left" else "open"), Span(signs.thin * (_BAR - filled), "dim")]
        table.append([row.name, f"{row.tokens:,}", bar, "" if row.items is None else f"{row.items:,}"])
    printer.line()
    printer.table(_BUDGET, table)


def _item(made: Decision) -> list[Any]:
    return [
        Span(made.got, _GOT[made.got]), Span(f"{made.source}/{made.name}", keep="middle"), f"{made.tokens:,}",
        "" if made.got == "full" else f"{made.asked_tokens:,}", made.need,
        f"{made.reason} ({made.because})" if made.because else made.reason,
    ]  # fmt: skip


def _show_context(printer: Printer, made: AssembleResponse) -> None:
    keys = ", ".join(made.package.project_context)
    task = ", ".join(made.package.task_context)
    pairs = [("Project context", keys), ("Task context", task)]
    if keys or task:
        printer.line()
        printer.pairs(pairs, indent=0)


def show_request_response(printer: Printer, items: Sequence[RequestedItem]) -> None:
    """Show each requested item with its content, and for a missing one names that are similar."""
    if printer.terminal:
        printer.table(_REQUESTED, [_item_row(item) for item in items])
    for item in items:
        if item.status == "success" and item.content is not None:
            printer.rule(f"{item.source}/{item.name}", Span(f"  {item.included}", "dim"))
            left = printer.block(item.content.removesuffix("\n"), most=_MAX_LINES)
            if left:
                printer.line(Span(f"{printer.symbols.ellipsis} {plural(left, 'more line')}; all of it with --json", "dim"))
        elif not printer.terminal:
            printer.rule(f"{item.source}/{item.name}", f"  {item.status}")
    for item in items:
        # Suggestions go to stderr, where a program that reads the items can't take them for items.
        if item.suggestions:
            printer.hint(f"{item.source}/{item.name}: did you mean {', '.join(item.suggestions)}?")


def _item_row(item: RequestedItem) -> list[Any]:
    style = {"success": "ok", "missing": "error", "noRoom": "warn"}[item.status]
    return [
        Span(item.status, style), Span(f"{item.source}/{item.name}" if item.source else item.name, keep="middle"),
        item.included or "", "" if item.tokens is None else f"{item.tokens:,}", item.reason or "",
    ]  # fmt: skip


def show_item_explanation(printer: Printer, answer: ItemExplanation) -> None:
    """Show what became of an item, one line each: asked for, served, rule and reason."""
    made = answer.decisions[0] if answer.decisions else None
    printer.line(Span(answer.item, "strong"), Span(f"  in package {answer.package} for {answer.agent}", "dim"))
    printer.pairs(
        [
            ("asked", answer.asked or "nothing asked for it"), ("by", made.because if made else None),
            ("got", Span(answer.got, _GOT.get(answer.got, "dim"))), ("rule", answer.rule), ("reason", answer.reason),
            ("need", None if made is None else f"{made.need}, priority {made.priority}"),
            ("tokens", None if made is None else f"{made.tokens:,} of {made.asked_tokens:,}, {made.cost:,} with its framing"),
        ]
    )  # fmt: skip
    for other in answer.decisions[1:]:
        printer.line(Span(f"{other.source}/{other.name}  ", "dim"), f"{other.got}: {other.reason} ({other.because})", indent=2)


def show_needs(printer: Printer, needs: Sequence[AgentNeed]) -> None:
    """Show the needs of agents, one per row."""
    if not needs:
        printer.hint("No needs here. Say what an agent needs: ctxmgr context need add AGENT 'OWNER/*'")
        return
    printer.table(
        _NEEDS,
        (
            [
                Span(one.agent, "name"), one.pattern, one.need, one.priority,
                "" if one.max_tokens is None else f"{one.max_tokens:,}", "summary" if one.use_summary else "",
            ]
            for one in needs
        ),
    )  # fmt: skip


def show_removed_needs(printer: Printer, needs: Sequence[AgentNeed]) -> None:
    """Show the needs that were removed."""
    for one in needs:
        printer.line(Span("removed  ", "dim"), f"{one.agent} {one.pattern} ({one.need})")


_KEYS = (
    Column("KEY", give=2, least=10), Column("VALUE", fill=True, least=12), Column("TYPE", give=6, least=7, optional=True),
    Column("BY", give=4, least=6, optional=True), Column("TIME", give=5, least=10, optional=True, steps=TIME_STEPS),
    Column("DESCRIPTION", give=6, least=10, optional=True),
)  # fmt: skip
_RUNS = (
    Column("ID", give=1, least=13), Column("AGENT", give=2, least=12), Column("STATUS"), Column("TASK", give=3, least=6),
    Column("SPRINT", give=5, least=5, optional=True), Column("STARTED", give=5, least=16, steps=TIME_STEPS),
    Column("TOOK", right=True), Column("CONTEXT", right=True, optional=True), Column("ERROR", fill=True, least=10),
)  # fmt: skip
_STYLES = {"started": "open", "completed": "ok", "failed": "error"}


def value_text(value: Any) -> str:
    """Return a JSON value in one line, and text unchanged."""
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
                date_span(key.updated_at, printer.terminal), Span(key.description or "", "dim"),
            ]
            for key in keys
        ),
    )  # fmt: skip


def show_changes(printer: Printer, changes: Sequence[KeyChange]) -> None:
    """Show the values that were set, and those that they replaced."""
    for change in changes:
        before = [] if change.created else [Span(value_text(change.old_value), "dim"), f" {printer.symbols.arrow} "]
        printer.line(Span(f"{change.key}  ", "strong"), *before, value_text(change.new_value), hang=4)


_CHANGES = (
    Column("TIME", give=4, least=10, steps=TIME_STEPS), Column("KEY", give=2, least=10), Column("OLD", give=3, least=8),
    Column("NEW", fill=True, least=12), Column("BY", give=4, least=6),
)  # fmt: skip


def show_context_log(printer: Printer, changes: Sequence[LoggedKeyChange]) -> None:
    """Show past changes of context keys, one per row."""
    if not changes:
        printer.hint("No value was set yet. Set one: ctxmgr context set current_sprint S1-01")
        return
    printer.table(
        _CHANGES,
        (
            [
                date_span(change.at, printer.terminal), Span(change.key, "strong"),
                Span("" if change.created else value_text(change.old_value), "dim"), value_text(change.new_value),
                Span(change.by or "", "name"),
            ]
            for change in changes
        ),
    )  # fmt: skip


def show_executions(printer: Printer, runs: Sequence[Execution]) -> None:
    """Show the runs of agents, one per row."""
    if not runs:
        printer.hint("No executions here. Record one: ctxmgr execution record AGENT started --task TASK")
        return
    shorts = short_ids(run.id for run in runs) if printer.terminal and len(runs) > 1 else {}
    printer.table(
        _RUNS,
        (
            [
                shorts.get(run.id, run.id), Span(run.agent, "name"), Span(run.status, _STYLES[run.status]), run.task or "",
                run.sprint or "", date_span(run.started_at, printer.terminal), _took(run.duration_seconds),
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
