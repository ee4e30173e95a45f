"""The one continuation request as a page that a person can read and paste."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import amount, plural, short_ids
from ctxmgr.cli.views.layout import Span
from ctxmgr.cli.views.one_line import brief, command

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.operations import PlanView
    from ctxmgr.types.route import Continuation, Pattern

_CITED = 6
"""Entries named after a statement on a terminal."""

_QUOTE_LINES = 2
"""Lines of a quote on a terminal."""

_SOURCES = {"agentRequest": "an agent asked", "stuckHandler": "the run is stuck", "reviewMerge": "a review completed"}


def show_continuation(
    printer: Printer, continuation: Continuation, indexes: Mapping[str, int] | None = None, plan: PlanView | None = None
) -> None:
    """Show what is wrong, why and what to do next; then the evidence; then what is recorded of the answer.

    ``indexes`` gives the places of cited entries in the session; entries without one are cited by id. On a terminal a
    quote takes at most two lines: the cited entry holds the rest.
    """
    cite = _Citations(printer, continuation, indexes or {})
    _answer(printer, continuation)
    _recipient(printer, continuation)
    _text(printer, "Task", continuation.goal)
    if continuation.diagnosis is None:
        _text(printer, "Where things stand", continuation.context.summary)
    _facts(printer, continuation, cite)
    _repeats(printer, continuation, cite)
    _alternatives(printer, continuation, cite)
    if continuation.context.unanswered:
        printer.heading("Not in this history")
        for text in continuation.context.unanswered:
            printer.line(f"{printer.symbols.arrow} {text}", indent=2, hang=2, most=_QUOTE_LINES)
    for section in continuation.context.sections:
        _text(printer, section.title, section.text)
    if continuation.context.held:
        printer.heading("Held already")
        for held in continuation.context.held:
            printer.line(f"{held.hash}{cite(held.entries)}", Span(f"  given in {held.given}", "dim"), indent=2, hang=2)
    _record(printer, continuation, cite)
    if plan is not None:
        _plan(printer, plan)


def _answer(printer: Printer, continuation: Continuation) -> None:
    """Show what leads the page: what is wrong, why, and what to do next."""
    found = continuation.diagnosis
    pattern = continuation.loop or continuation.stall
    if pattern is not None:
        printer.line(Span(f"{printer.symbols.error} ", "error"), pattern.reason)
    if found is not None:
        printer.line()
        printer.line(Span("Cause      ", "strong"), found.cause, indent=2, hang=11)
        printer.line(Span("Next step  ", "strong"), found.next_step, indent=2, hang=11)
        if found.check:
            printer.line(Span("Then check ", "strong"), found.check, indent=2, hang=11)
    if pattern is not None or found is not None:
        printer.line()


def _recipient(printer: Printer, continuation: Continuation) -> None:
    """Show who continues, why, and where the text for that agent is."""
    printer.rule("continue with ", Span(continuation.target, "strong"), Span(f"  {continuation.request_type}", "dim"))
    printer.line(continuation.target_reason)
    context = continuation.context
    size = f"{amount(context.token_count)} tokens by {context.counter}"
    since = f", only what is new since {context.diff_of}" if context.diff_of else ""
    again = "" if continuation.snapshot is None else " --last"
    printer.line("Its text: ", Span(f"ctxmgr recover{again} --prompt", "name"), f"  ({size}{since})")
    printer.line(Span("For a program: --json; 'data.continuation.returnTo' holds exactly one request.", "dim"))


def _alternatives(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.alternatives:
        return
    printer.heading("Try instead")
    for option in continuation.alternatives:
        why = f"  ({option.basis})" if option.basis else ""
        printer.line(f"{printer.symbols.arrow} {option.text}", Span(f"{why}{cite(option.entries)}", "dim"), indent=2, hang=2)


def _record(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    """Show how the answer came about and where it is kept."""
    by = "the model" if continuation.by == "model" else "the rules"
    if continuation.fallback:
        by += " (the model had no answer that counts)"
    others = [name for name in continuation.candidates if name != continuation.target]
    pattern = continuation.loop or continuation.stall
    shown = command("snapshot", "show", continuation.snapshot) if continuation.snapshot else None
    notes = plural(len(continuation.notes), "note") if continuation.notes else None
    kept = f"{notes}: {' '.join(continuation.notes)}" if notes else None
    printer.heading("About this answer")
    printer.pairs([
        ("session", continuation.session), ("asked by", _SOURCES.get(continuation.source, continuation.source)),
        ("reason", continuation.reason),
        ("finding", None if pattern is None else _pattern(printer, pattern, loop=pattern is continuation.loop)),
        ("started at", pattern and pattern.start and cite.name(pattern.start)),
        ("last progress", pattern and pattern.last_progress and cite.name(pattern.last_progress)),
        ("not sent to", ", ".join(others)), ("routed by", _routing(continuation) if others else None),
        ("written by", by), ("model", _model(continuation)), ("attempt", _attempt(continuation)),
        ("kept as", continuation.id if shown or kept else "not recorded: this is a plan"), ("evidence", shown), ("notes", kept),
    ])  # fmt: skip


def _attempt(continuation: Continuation) -> str | None:
    """Return which attempt at a trouble it is; None of a question, which is none."""
    told_again = "told again: nobody went on since it was recorded" if continuation.told_again else None
    if continuation.source != "stuckHandler" or not (continuation.loop or continuation.stall):
        return told_again
    return f"{continuation.attempts}, {told_again}" if told_again else str(continuation.attempts)


def _routing(continuation: Continuation) -> str:
    return "the routing table" if continuation.routing == "table" else "what the history shows"


def _model(continuation: Continuation) -> str | None:
    """Return which model was asked, how, and what that took."""
    use = continuation.model
    if use is None:
        return None
    took = f"{plural(use.requests, 'request')}, {plural(use.tool_calls, 'tool call')}, {use.seconds:.1f} s"
    tokens = f", {amount(use.input_tokens + use.output_tokens)} tokens" if use.input_tokens or use.output_tokens else ""
    return f"{use.name} ({use.mode}; {took}{tokens})" + (f": {use.failure}" if use.failure else "")


def _plan(printer: Printer, plan: PlanView) -> None:
    printer.heading("What a recovery would do")
    only = " (fixed by the request)" if plan.fixed else ""
    printer.pairs([
        ("candidates", ", ".join(plan.candidates) + only),
        ("model", plan.model or "none: nothing leaves this machine"),
        ("would be sent", plan.sends),
        ("first prompt", f"{amount(plan.prompt_tokens)} tokens, estimated" if plan.prompt else None),
    ], indent=2)  # fmt: skip
    if plan.prompt:
        printer.block(plan.prompt, indent=2)


class _Citations:
    """Writes entry ids after a statement: in a pipe whole, on a terminal as short as they stay unambiguous."""

    def __init__(self, printer: Printer, continuation: Continuation, indexes: Mapping[str, int]) -> None:
        self._indexes = indexes
        cited = [*continuation.context.facts, *continuation.do_not_repeat, *continuation.alternatives]
        ids = [name for each in cited for name in each.entries]
        for pattern in (continuation.loop, continuation.stall):
            ids += [] if pattern is None else [*pattern.members, pattern.start or "", pattern.last_progress or ""]
        self._names = short_ids(ids) if printer.terminal else {}
        self._most = _CITED if printer.terminal else None
        self._ellipsis = printer.symbols.ellipsis

    def name(self, entry: str) -> str:
        return f"@{self._indexes[entry]}" if entry in self._indexes else self._names.get(entry, entry)

    def __call__(self, entries: Sequence[str]) -> str:
        if not entries:
            return ""
        shown = [self.name(entry) for entry in entries[: self._most]]
        more = f" {self._ellipsis} {len(entries):,} in all" if len(shown) < len(entries) else ""
        return f"  [{' '.join(shown)}{more}]"


def _text(printer: Printer, title: str, text: str) -> None:
    if text.strip():
        printer.heading(title)
        printer.block(text.strip("\n"), indent=2)


def _pattern(printer: Printer, pattern: Pattern, *, loop: bool) -> str:
    rounds = f" of {pattern.period} steps" if pattern.period > 1 else ""
    return f"{pattern.kind}{rounds}" + (f" {printer.symbols.times}{pattern.count:,}" if loop else "")


def _facts(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.context.facts:
        return
    printer.heading("What is known")
    wide = max(len(fact.label) for fact in continuation.context.facts)
    for fact in continuation.context.facts:
        label = Span(fact.label.ljust(wide) + "  ", fact.label)
        printer.line(label, fact.text, Span(cite(fact.entries), "dim"), indent=2, hang=wide + 2)
        if fact.quote is not None:
            printer.line(Span(fact.quote, "dim"), indent=wide + 4, most=_QUOTE_LINES)


def _repeats(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.do_not_repeat:
        return
    printer.heading("Do not repeat")
    for each in continuation.do_not_repeat:
        asked = brief(each.input).strip()
        times = f"  {printer.symbols.times}{each.times:,}"
        printer.line(
            Span(f"{printer.symbols.error} ", "error"), Span(each.action, "name"), f"  {asked}", Span(times, "strong"),
            Span(cite(each.entries), "dim"), indent=2, hang=2,
        )  # fmt: skip
        if each.outcome:
            printer.line(f"{printer.symbols.arrow} {each.outcome}", indent=4, hang=2, most=_QUOTE_LINES)
