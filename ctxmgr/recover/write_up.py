"""Write the context down: summary, sections ready for a prompt, and their estimated size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ctxmgr.recover.brief import Brief
from ctxmgr.recover.quoting import brief_input, call, outcome, quoted, words
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Alternative, Context, ContextRequest, DoNotRepeat, Fact, Section

COUNTER = "chars/4"


def count_tokens(text: str) -> int:
    """Estimate tokens of prose as a quarter of its characters, rounded up (ruling 17)."""
    return math.ceil(len(text) / 4)


def write_up(
    request: ContextRequest,
    finding: Finding | None,
    brief: Brief,
    facts: Sequence[Fact],
    steps: Sequence[DoNotRepeat],
    alternatives: Sequence[Alternative],
) -> Context:
    """Return the context that the target is given."""
    summary = _summary(request, finding, brief)
    sections = [
        section
        for section in (
            _section("Task", _task(request, brief)),
            _section("What is known", [f"- {fact.text} [{fact.label}{_refs(fact.entries)}]" for fact in facts]),
            _section("State when this was written", _state(brief)),
            _section(
                "Do not do again",
                [f"- {step.action} {brief_input(step.input)}: tried {step.times} times, {step.outcome}" for step in steps],
            ),
            _section("Try instead", [f"- {item.text} ({item.basis})" for item in alternatives]),
        )
        if section is not None
    ]
    size = count_tokens(summary + "".join(f"{section.title}{section.text}" for section in sections))
    return Context(summary=summary, facts=list(facts), sections=sections, token_count=size, counter=COUNTER)


def _section(title: str, lines: Sequence[str]) -> Section | None:
    return Section(title=title, text="\n".join(lines)) if lines else None


def _refs(entries: Sequence[str]) -> str:
    if not entries:
        return ""
    shown = ", ".join(entries[:3])
    return f"; {shown}{f' and {len(entries) - 3} more' if len(entries) > 3 else ''}"


def _summary(request: ContextRequest, finding: Finding | None, brief: Brief) -> str:
    parts: list[str] = []
    if brief.goal is not None:
        parts.append(f"The task was {quoted(words(brief.goal), 200)}.")
    if finding is not None:
        parts.append(finding.reason.rstrip(".") + ".")
        if brief.last_success is not None:
            parts.append(f"The last step that worked was @{brief.last_success.index}, {call(brief.last_success, 100)}.")
        parts.append("Nothing since then brought anything new. Take another way; do not repeat what is listed.")
    else:
        parts.append(f"Context was asked for: {quoted(request.reason, 200)}.")
        if brief.last_success is not None:
            parts.append(f"The latest step that worked is @{brief.last_success.index}, {call(brief.last_success, 100)}.")
    return " ".join(parts)


def _task(request: ContextRequest, brief: Brief) -> list[str]:
    lines = [f"- goal of this request: {quoted(request.goal)}"]
    if brief.goal is not None:
        lines.append(f"- first words of a person: {quoted(words(brief.goal), 1_200)}")
    newest = brief.latest_words[-1] if brief.latest_words else None
    if newest is not None and (brief.goal is None or newest.id != brief.goal.id):
        lines.append(f"- latest words of a person: {quoted(words(newest), 1_200)}")
    if request.additional_context:
        lines.append(f"- from the requester: {quoted(request.additional_context, 1_200)}")
    return lines


def _state(brief: Brief) -> list[str]:
    lines = [f"- the history holds {brief.total} actions"]
    if brief.members:
        last = brief.members[-1]
        lines.append(f"- last of them in question: @{last.index} by {last.agent}: {call(last)} -> {outcome(last, 200)}")
    lines += [f"- {event.agent or 'somebody'} said before it: {quoted(words(event), 200)}" for event in brief.said[-2:]]
    return lines
