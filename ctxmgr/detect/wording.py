"""The one sentence of a finding: what a person reads at two in the morning."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.detect.normal import one_line
from ctxmgr.detect.step import Step, asked


def who(agent: str | None) -> str:
    """Return how a sentence names the agent."""
    return one_line(agent, 40) if agent else "the agent"


def loop_reason(kind: str, agent: str | None, round_: Sequence[Step], rounds: int, inputs: int) -> str:
    """Return the sentence for a loop.

    Args:
        kind: kind of the finding.
        agent: whose loop it is.
        round_: the steps of one round.
        rounds: how often it was seen.
        inputs: number of different calls, for kinds whose inputs vary.
    """
    step = round_[-1]
    if kind == "errorRepetition" and inputs > 1:
        return f"{who(agent)} got the same error {rounds} times from {inputs} different calls{_said(step)}"
    what = " then ".join(_step(each) for each in round_[:4])
    if len(round_) > 4:
        what += f" and {len(round_) - 4} more steps"
    if len(round_) > 1:
        return f"{who(agent)} went round {rounds} times through {what}, with the same results each time"
    if step.first.finish is None:
        return f"{who(agent)} called {what} {rounds} times; the log holds no results to tell whether anything changed"
    noun = "error" if step.failed else "result"
    return f"{who(agent)} ran {what} {rounds} times and got the same {noun} each time{_said(step)}"


def _step(step: Step) -> str:
    if len(step.calls) == 1:
        return asked(step.first.start)
    return f"{len(step.calls)} calls at once ({', '.join(asked(call.start) for call in step.calls[:3])})"


def _said(step: Step) -> str:
    text = one_line(step.answer())
    return f" ({text})" if text else ""


def duration(seconds: float) -> str:
    """Return a span of time for people: seconds up to two minutes, then minutes, then hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
