"""What a small model was worth in recoveries, as tables of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.llm.trial import MODES, Outcome


def rates(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one row for each mode: how often the form held, the model's own answer counted, and it was right."""
    lines = [
        "| mode | runs | valid in form | model asked | own answer counted | of these right | fell back | median seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for mode in MODES:
        of = [outcome for outcome in outcomes if outcome.mode == mode]
        if not of:
            continue
        valid, asked = sum(not outcome.faults for outcome in of), sum(outcome.asked for outcome in of)
        own, right = sum(outcome.own for outcome in of), sum(outcome.right for outcome in of)
        back, median = sum(bool(outcome.failure) for outcome in of), statistics.median(outcome.seconds for outcome in of)
        lines.append(f"| {mode} | {len(of)} | {valid} | {asked} | {own} | {right} | {back} | {median:.1f} |")
    return lines


def single(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one row for each run."""
    lines = ["| history | answer stands in | mode | seconds | outcome |", "| --- | --- | --- | --- | --- |"]
    words = {"same": "the question's words", "other": "other words", "none": "no entry"}
    for each in outcomes:
        cells = [each.history.name, words[each.history.wording], each.mode, f"{each.seconds:.1f}", _told(each)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _told(outcome: Outcome) -> str:
    if outcome.faults:
        return "FAULT: " + _cell("; ".join(outcome.faults))
    if not outcome.asked:
        return "rules; no model was asked"
    if outcome.failure:
        return "fallback: " + _cell(outcome.failure)
    added = ", ".join(sorted(outcome.added)) or "nothing"
    return f"the model's answer, {'right' if outcome.right else 'not right'}; it added {added}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:200]
