"""Write the one sentence that describes a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.step import Step, call_text
from ctxmgr.detect.text.fingerprints import one_line


def who(agent: str | None) -> str:
    """Return how a sentence names the agent."""
    return one_line(agent, 40) if agent else "the agent"


def loop_reason(
    kind: str, agent: str | None, round_: Sequence[Step], rounds: int, inputs: int, facts: Mapping[str, Any] | None = None
) -> str:
    """Return the sentence for a loop.

    Args:
        kind: kind of the finding.
        agent: whose loop it is.
        round_: the steps of one round.
        rounds: how often it was seen.
        inputs: number of different calls, for kinds whose inputs vary.
        facts: further evidence of the kind.
    """
    step = round_[-1]
    if step.first.start.kind == "event" and kind == "errorRepetition":
        message = _Case("", step, rounds, inputs, facts or {}).fact("said")
        return f"{who(agent)} got the same error from its provider {rounds} times ({message})"
    describe_kind = _DESCRIBERS.get(kind)
    if describe_kind is not None:
        return describe_kind(_Case(who(agent), step, rounds, inputs, facts or {}))
    if kind == "errorRepetition" and inputs > 1:
        return f"{who(agent)} got the same error {rounds} times from {inputs} different calls{_said(step)}"
    what = " then ".join(_step(member) for member in round_[:4])
    if len(round_) > 4:
        what += f" and {len(round_) - 4} more steps"
    if len(round_) > 1:
        return f"{who(agent)} went round {rounds} times through {what}, with the same results each time"
    if step.first.finish is None:
        return f"{who(agent)} called {what} {rounds} times; the log holds no results to tell whether anything changed"
    noun = "error" if step.failed else "result"
    return f"{who(agent)} ran {what} {rounds} times and got the same {noun} each time{_said(step)}"


class _Case(NamedTuple):
    """The parts of a sentence about a loop."""

    name: str
    step: Step
    rounds: int
    inputs: int
    facts: Mapping[str, Any]

    @property
    def call(self) -> str:
        """Return the last step in a few words."""
        return _step(self.step)

    def fact(self, name: str) -> str:
        """Return a fact as one printable line."""
        value = self.facts.get(name, "")
        return one_line(", ".join(str(each) for each in cast("list[object]", value)) if isinstance(value, list) else str(value))


def _near(case: _Case) -> str:
    if "linesRead" in case.facts:
        return f"{case.name} read lines of {case.fact('about')} {case.rounds} times in a row that it had all read before"
    what = f"{case.name} asked {case.rounds} times for nearly the same, last {case.call}"
    return f"{what}, and got the same result{_said(case.step)}"


def _monologue(case: _Case) -> str:
    if case.facts.get("empty"):
        return f"{case.name} gave {case.rounds} empty answers in a row without doing anything"
    return f"{case.name} said the same {case.rounds} times without doing anything ({case.fact('said')})"


def _chant(case: _Case) -> str:
    if "characters" in case.facts:
        return (
            f"{case.name} wrote {case.facts['characters']} characters in {case.facts['seconds']:.0f} s without doing anything"
        )
    return f"{case.name} repeats one phrase over and over in its own text ({case.fact('said')})"


def _context(case: _Case) -> str:
    if case.step.first.start.type == "compaction":
        return f"the context of {case.name} was compacted {case.rounds} times without new work between"
    return f"{case.name} was told {case.rounds} times that the context is full"


def _climbing(case: _Case) -> str:
    climbed = ", and the failure has climbed to the task above it" if case.facts.get("level") == "task" else ""
    return f"{case.rounds} attempts of {case.fact('task') or 'a subtask'} failed{climbed}"


def _lack_of_progress(case: _Case) -> str:
    if "sleptSeconds" in case.facts:
        slept = f"{case.facts['sleptSeconds']:.0f} s in all"
        return f"{case.name} slept {case.rounds} times in a row, {slept}, without looking at anything"
    if "ignoredUpdates" in case.facts:
        return f"{case.facts['ignoredUpdates']} progress updates were rejected because nothing had changed"
    if "window" in case.facts:
        new = f"{case.facts['newSteps']} of its last {case.facts['window']} steps were new"
        return f"{case.name} is busy but makes no progress: {new}"
    return f"{case.rounds} progress reports said that there is no progress or a loop"


_DESCRIBERS: dict[str, Callable[[_Case], str]] = {
    "interleaved": lambda case: (
        f"{case.name} came back to {case.call} {case.rounds} times and got the same "
        f"{'error' if case.step.failed else 'result'} while nothing changed{_said(case.step)}"
    ),
    "stagnation": lambda case: (
        f"{case.name} asked {case.rounds} questions of {one_line(case.step.action, 40)} and got one and the same answer"
        f"{_said(case.step)}"
    ),
    "nearDuplicate": _near,
    "trivialChange": lambda case: (
        f"{case.name} ran {case.call} {case.rounds} times and only trifles in its "
        f"{'error' if case.step.failed else 'result'} changed{_said(case.step)}"
    ),
    "unknownTool": lambda case: f"{case.name} called tools that do not exist {case.rounds} times ({case.fact('tools')})",
    "denied": lambda case: f"{case.name} asked {case.rounds} times for what it was refused, last {case.call}{_said(case.step)}",
    "monologue": _monologue,
    "chanting": _chant,
    "contextLoop": _context,
    "escalatingFailure": _climbing,
    "editRevert": lambda case: f"{case.name} made and undid the same change of {case.fact('file')} {case.rounds} times",
    "recoveryLoop": lambda case: (
        f"a loop came back {case.fact('cameBack')} times after it was answered: recovering this way does not help"
    ),
    "pingPong": lambda case: f"{case.fact('agents')} gave each other the same words {case.rounds} times",
    "hung": _lack_of_progress,
}


def _step(step: Step) -> str:
    if len(step.calls) == 1:
        return call_text(step.first.start)
    return f"{len(step.calls)} calls at once ({', '.join(call_text(call.start) for call in step.calls[:3])})"


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
