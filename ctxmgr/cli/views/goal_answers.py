"""Show the answers of goal commands: a proposed plan, a verdict on an action, a resume, probes, a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import brief, plural
from ctxmgr.cli.views.goal import bar, leaves, mark, show_actions, verdict
from ctxmgr.cli.views.layout import Column, Span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.goal import (
        Block,
        Claim,
        Comparison,
        GoalAnswer,
        GoalPlan,
        GoalState,
        Probe,
        ProbeView,
        RecordAnswer,
        RecoverAnswer,
        ResumeAnswer,
        Size,
    )

_CHANGED = 5
_TYPES = {"A": "repetition", "B": "alternation", "C": "failed attempts"}


def show_plan(printer: Printer, plan: GoalPlan) -> None:
    """Show a plan that does not count yet."""
    printer.line(Span(plan.goal, "strong"))
    for task in plan.tasks:
        _planned(printer, task.title, task.done, 2)
        for part in task.subtasks:
            _planned(printer, part.title, part.done, 6)
    subtasks = sum(len(task.subtasks) for task in plan.tasks)
    by = f"the model {plan.model}" if plan.by == "model" else "rules"
    printer.line(Span(f"{plural(len(plan.tasks), 'task')}, {plural(subtasks, 'subtask')}; split by {by}", "dim"))


def _planned(printer: Printer, title: str, done: bool, indent: int) -> None:
    symbols = printer.symbols
    sign = Span(f"{symbols.healthy} ", "ok") if done else Span(f"{symbols.open} ", "dim")
    printer.line(sign, Span(title, "dim" if done else ""), indent=indent, hang=2)


def show_change(printer: Printer, found: GoalAnswer) -> None:
    """Say what was done, and where that leaves us."""
    state = found.state
    nodes = {node.id: node for task in state.goal.tasks for node in (task, *task.subtasks)}
    for name in found.changed[:_CHANGED]:
        node = nodes.get(name)
        if node is not None and not (name == state.current and node.status in ("pending", "in_progress")):
            status = Span(f"  {node.status}" + (f": {node.reason}" if node.reason and node.status != "blocked" else ""), "dim")
            printer.line(mark(printer, node, False), Span(f" {node.id}  ", "dim"), node.description, status, hang=2)
    if found.message:
        printer.line(found.message)
    show_where(printer, state)


def show_where(printer: Printer, state: GoalState) -> None:
    """Show the current step and the progress, in two lines."""
    steps = leaves(state.goal)
    done = sum(step.status == "done" for step in steps)
    where, block = _current(state)
    if block is not None:
        printer.line(Span(f"{printer.symbols.denied} ", "hung"), *where, hang=2)
        printer.line(Span(f"blocked: {block.reason}", "hung"), indent=2, hang=2)
        if state.next is not None:
            printer.line(Span(f"'ctxmgr goal next' goes on with {state.next}", "dim"), indent=2, hang=2)
    elif where:
        printer.line(Span(f"{printer.symbols.tip} ", "open"), *where, hang=2)
    elif state.goal.status == "done":
        printer.line(Span(f"{printer.symbols.healthy} ", "ok"), "the goal is reached")
    else:
        why = state.goal.block.reason if state.goal.block is not None else "no step can be worked on"
        printer.line(Span(f"{printer.symbols.denied} {why}", "hung"), hang=2)
    if state.next_step and where and block is None:
        printer.line(Span(f"next: {state.next_step}", "dim"), indent=2, hang=2)
    if steps:
        printer.line(
            *bar(printer, state.goal.percent, 20), Span(f"  {done:,} of {plural(len(steps), 'step')} done", "dim"), indent=2
        )


def _current(state: GoalState) -> tuple[list[Span], Block | None]:
    """Return the current step with its task before it, and what blocks it."""
    if state.current == state.goal.id:
        return [Span(state.goal.description, "strong")], state.goal.block
    for task in state.goal.tasks:
        for node in (task, *task.subtasks):
            if node.id == state.current:
                above = [] if node is task else [Span(f"{task.description}: ")]
                tries = node.attempts[-1].number if node.attempts else 0
                failed = " failed" if node.status == "failed" else ""
                behind = [Span(f"  attempt {tries}{failed}", "dim")] if tries > 1 or failed else []
                waiting = [] if state.active or node.block is not None else [Span("  not begun", "dim")]
                line = [Span(f"{node.id}  ", "dim"), *above, Span(node.description, "strong"), *behind, *waiting]
                return line, node.block or task.block
    return [], None


def show_record(printer: Printer, action: str, found: RecordAnswer) -> None:
    """Say whether an action was allowed, and if not why and what to do instead."""
    symbols = printer.symbols
    if found.allowed:
        word = "recorded" if found.entry else "allowed"
        where = f"  {found.node}" + (f", attempt {found.attempt}" if found.attempt else "") if found.node else ""
        printer.line(Span(f"{symbols.healthy} ", "ok"), f"{word}: {action}", Span(where, "dim"), hang=2)
        return
    kind = _TYPES.get(found.type or "", "")
    printer.line(Span(f"{symbols.denied} refused: {action}", "loop"), Span(f"  {kind}" if kind else "", "dim"), hang=2)
    if found.reason:
        printer.line(found.reason, indent=2, hang=2)
    if found.hint:
        printer.line(Span(f"{symbols.arrow} {found.hint}", "dim"), indent=2, hang=2)


def show_resume(printer: Printer, found: ResumeAnswer) -> None:
    """Show where we are, what is known for sure, and what is in flight."""
    state, symbols = found.state, printer.symbols
    printer.rule("resumed ", Span(state.goal.description, "strong"))
    show_where(printer, state)
    if found.took_over:
        before = found.previous.owner if found.previous is not None and found.previous.owner else "the earlier owner"
        printer.line(Span(f"taken over from {before}; what it still writes is refused", "dim"), indent=2, hang=2)
    if found.replayed:
        printer.line(Span(f"{plural(found.replayed, 'record')} read from the history beyond the saved state", "dim"), indent=2)
    for name in found.rebuilt:
        printer.line(Span(f"{name} was damaged: it is set aside, and made anew from the history", "warn"), indent=2, hang=2)
    if found.in_flight:
        printer.heading("In flight: effect unknown, look before you do it again")
        show_actions(printer, found.in_flight)
    for basis, title in (
        ("refuted", "Not so on disk"),
        ("verified", "Seen on disk"),
        ("assumed", "Only assumed from the history"),
    ):
        claims = [claim for claim in found.claims if claim.basis == basis]
        if claims:
            printer.heading(title)
            for claim in claims:
                _claim(printer, claim)
    if state.blocked_actions:
        printer.line()
        printer.line(
            Span(f"{symbols.denied} {plural(len(state.blocked_actions), 'blocked action')}: see 'ctxmgr goal tree'", "hung")
        )


def _claim(printer: Printer, claim: Claim) -> None:
    symbols = printer.symbols
    sign, style = {
        "verified": (symbols.healthy, "ok"), "refuted": (symbols.error, "error"), "assumed": (symbols.unknown, "dim"),
    }[claim.basis]  # fmt: skip
    printer.line(Span(f"{sign} ", style), claim.text, indent=2, hang=2)


def show_recovery(printer: Printer, found: RecoverAnswer) -> None:
    """Show what is wrong, what not to repeat, what to try instead, and where that leaves the goal."""
    continuation, symbols = found.continuation, printer.symbols
    pattern = continuation.loop or continuation.stall
    printer.line(Span(f"{symbols.error} {continuation.reason}", "loop" if pattern else ""), hang=2)
    if pattern is not None:
        printer.line(pattern.reason, indent=2)
    if continuation.do_not_repeat:
        printer.heading("Do not repeat")
        for each in continuation.do_not_repeat:
            times = Span(f"  {symbols.times}{each.times:,}", "dim")
            printer.line(
                Span(f"{symbols.denied} ", "hung"), f"{each.action}  {brief(each.input).strip()}", times, indent=2, hang=2
            )
            if each.outcome:
                printer.line(Span(f"{symbols.arrow} {each.outcome}", "dim"), indent=4, hang=2)
    if continuation.alternatives:
        printer.heading("Try instead")
        for option in continuation.alternatives:
            printer.line(f"{symbols.arrow} {option.text}", indent=2, hang=2)
    if found.state is None:
        printer.line()
        printer.line(Span("shown only: the goal is as it was", "dim"))
        return
    printer.heading("The goal")
    show_where(printer, found.state)


def show_probes(printer: Printer, probes: Sequence[ProbeView]) -> None:
    """Show what probes look for, and what they last saw."""

    def row(probe: ProbeView) -> list[str | Span]:
        sign, style = verdict(printer, probe.ok)
        return [Span(sign, style), probe.name, _probe_text(probe), Span(probe.detail or "not asked yet", "dim")]

    columns = [
        Column(""), Column("probe", give=1), Column("looks for", give=2, least=16, fill=True), Column("saw", give=3, least=10),
    ]  # fmt: skip
    if probes:
        printer.table(columns, map(row, probes))
    else:
        printer.hint("no probes yet: 'ctxmgr goal probe add NAME --exists PATH'")


def _probe_text(probe: Probe) -> str:
    if probe.kind == "command":
        return " ".join(probe.argv) + (f"  (exit code {probe.code})" if probe.code else "")
    return f"{probe.path} exists" if probe.kind == "fileExists" else f"{probe.path} contains {probe.text!r}"


def show_comparison(printer: Printer, found: Comparison) -> None:
    """Show the sizes beside each other, and whether the brief holds what the next step needs."""

    def row(name: str, size: Size, chars: float | None, tokens: float | None) -> list[str]:
        saved = "" if chars is None or tokens is None else f"{chars:.1f} % of characters, {tokens:.1f} % of tokens"
        return [name, f"{size.messages:,}", f"{size.chars:,}", f"{size.tokens:,}", saved]

    columns = [
        Column(""), Column("messages", right=True), Column("characters", right=True), Column("tokens", right=True),
        Column("the brief saves", give=1, least=10),
    ]  # fmt: skip
    printer.table(
        columns,
        [
            row("brief", found.brief, None, None),
            row("last ten messages", found.last_ten, found.saved_chars_of_last_ten, found.saved_tokens_of_last_ten),
            row("whole history", found.history, found.saved_chars, found.saved_tokens),
        ],
    )
    printer.line(Span(f"tokens counted by: {found.counter}", "dim"))
    if not found.facts:
        return
    held = sum(fact.held for fact in found.facts)
    printer.line(
        f"{held} of {plural(len(found.facts), 'fact')} that the next step needs {'is' if held == 1 else 'are'} in the brief"
    )
    for fact in found.facts:
        if not fact.held:
            printer.line(Span(f"{printer.symbols.error} ", "error"), f"missing: {fact.kind}: {fact.text}", indent=2, hang=2)
