"""Access rules: a table of them, a verdict with its reasons, and what other rules would have done."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import plural, when
from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.access import AccessExplanation, AccessRule, Replay, Replayed, RulesChanged

_RULES = (
    Column("PRIORITY", right=True), Column("AGENT", give=2, least=10), Column("TYPE"), Column("PATTERN", give=3, least=12),
    Column("PERMISSION"),
)  # fmt: skip
_READS = (
    Column("TIME", give=4, least=10, steps=TIME_STEPS), Column("AGENT", give=3, least=8), Column("COMMAND", give=3, least=8),
    Column("TYPE"), Column("RESOURCE", fill=True, least=16),
)  # fmt: skip
_STYLES = {"read": "ok", "write": "open", "none": "error"}


def show_rules(printer: Printer, rules: Sequence[AccessRule]) -> None:
    """Show rules in the order in which they count."""
    if not rules:
        printer.hint("No access rules: an agent (--as) may nothing. A team's usual ones: ctxmgr access load default")
        return
    printer.table(
        _RULES,
        (
            [rule.priority, rule.agent, rule.resource_type, rule.pattern, Span(rule.permission, _STYLES[rule.permission])]
            for rule in rules
        ),
    )


def show_change(printer: Printer, change: RulesChanged) -> None:
    """Show what a change of the rules did."""
    show_rules(printer, change.rules)
    printer.hint(f"{change.added} added, {change.changed} changed, {change.removed} removed")


def show_verdict(printer: Printer, found: AccessExplanation) -> None:
    """Show yes or no with the reason in one line."""
    symbols = printer.symbols
    sign, word, style = (symbols.healthy, "yes", "ok") if found.allowed else (symbols.error, "no", "error")
    printer.line(Span(f"{sign} {word}" if printer.terminal else word, style), Span(f"  {found.reason}"), hang=4)


def show_explanation(printer: Printer, found: AccessExplanation) -> None:
    """Show the verdict, the rule that decides, the ones that lost, and what would grant it."""
    show_verdict(printer, found)
    if found.rule is not None:
        printer.heading("The rule that decides")
        show_rules(printer, [found.rule])
    if found.shadowed:
        printer.heading("Rules that lost")
        for lost in found.shadowed:
            rule = lost.rule
            printer.line(
                Span(f"{rule.permission} ", _STYLES[rule.permission]),
                Span(f"{rule.agent} {rule.resource_type} {rule.pattern} (priority {rule.priority})"),
                Span(f"  {lost.reason}", "dim"),
                indent=2, hang=4,
            )  # fmt: skip
    if found.would_grant:
        printer.heading("Any of these would grant it")
        for rule in found.would_grant:
            write = " --write" if rule.permission == "write" else ""
            printer.line(
                Span(
                    f"ctxmgr access allow {quote(rule.agent)} {rule.resource_type} {quote(rule.pattern)}{write}"
                    f" --priority {rule.priority}"
                ),
                indent=2, hang=4,
            )  # fmt: skip


def show_replay(printer: Printer, found: Replay, *, replayed: bool) -> None:
    """Show the past reads that other rules would have answered otherwise."""
    if not replayed:
        printer.line("The rules can be used. Hold them against past reads with --replay.")
        return
    for title, reads, style in (("Would be blocked", found.blocked, "error"), ("Would be let through", found.opened, "warn")):
        if reads:
            printer.heading(title)
            printer.table(_READS, (_row(printer, read, style) for read in reads))
    changed = len(found.blocked) + len(found.opened)
    printer.hint(f"{plural(found.reads, 'past read')}: {len(found.blocked)} would be blocked, {len(found.opened)} let through"
                 if changed else f"{plural(found.reads, 'past read')}, all answered as before")  # fmt: skip


def _row(printer: Printer, read: Replayed, style: str) -> list[str | Span]:
    return [when(read.at, printer.terminal), read.agent, read.command, read.resource.type, Span(read.resource.path, style)]
