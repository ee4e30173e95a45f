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
        said = _Tale("", step, rounds, inputs, facts or {}).fact("said")
        return f"{who(agent)} got the same error from its provider {rounds} times ({said})"
    describe_kind = _TELLERS.get(kind)
    if describe_kind is not None:
        return describe_kind(_Tale(who(agent), step, rounds, inputs, facts or {}))
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


class _Tale(NamedTuple):
    """What a sentence is made of."""

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


def _near(tale: _Tale) -> str:
    if "linesRead" in tale.facts:
        return f"{tale.name} read lines of {tale.fact('about')} {tale.rounds} times in a row that it had all read before"
    what = f"{tale.name} asked {tale.rounds} times for nearly the same, last {tale.call}"
    return f"{what}, and got the same result{_said(tale.step)}"


def _monologue(tale: _Tale) -> str:
    if tale.facts.get("empty"):
        return f"{tale.name} gave {tale.rounds} empty answers in a row without doing anything"
    return f"{tale.name} said the same {tale.rounds} times without doing anything ({tale.fact('said')})"


def _chant(tale: _Tale) -> str:
    if "characters" in tale.facts:
        return (
            f"{tale.name} wrote {tale.facts['characters']} characters in {tale.facts['seconds']:.0f} s without doing anything"
        )
    return f"{tale.name} repeats one phrase over and over in its own text ({tale.fact('said')})"


def _context(tale: _Tale) -> str:
    if tale.step.first.start.type == "compaction":
        return f"the context of {tale.name} was compacted {tale.rounds} times without new work between"
    return f"{tale.name} was told {tale.rounds} times that the context is full"


def _climbing(tale: _Tale) -> str:
    climbed = ", and the failure has climbed to the task above it" if tale.facts.get("level") == "task" else ""
    return f"{tale.rounds} attempts of {tale.fact('task') or 'a subtask'} failed{climbed}"


def _lack_of_progress(tale: _Tale) -> str:
    if "sleptSeconds" in tale.facts:
        slept = f"{tale.facts['sleptSeconds']:.0f} s in all"
        return f"{tale.name} slept {tale.rounds} times in a row, {slept}, without looking at anything"
    if "ignoredUpdates" in tale.facts:
        return f"{tale.facts['ignoredUpdates']} progress updates were rejected because nothing had changed"
    if "window" in tale.facts:
        new = f"{tale.facts['newSteps']} of its last {tale.facts['window']} steps were new"
        return f"{tale.name} is busy but makes no progress: {new}"
    return f"{tale.rounds} progress reports said that there is no progress or a loop"


_TELLERS: dict[str, Callable[[_Tale], str]] = {
    "interleaved": lambda tale: (
        f"{tale.name} came back to {tale.call} {tale.rounds} times and got the same "
        f"{'error' if tale.step.failed else 'result'} while nothing changed{_said(tale.step)}"
    ),
    "stagnation": lambda tale: (
        f"{tale.name} asked {tale.rounds} questions of {one_line(tale.step.action, 40)} and got one and the same answer"
        f"{_said(tale.step)}"
    ),
    "nearDuplicate": _near,
    "trivialChange": lambda tale: (
        f"{tale.name} ran {tale.call} {tale.rounds} times and only trifles in its "
        f"{'error' if tale.step.failed else 'result'} changed{_said(tale.step)}"
    ),
    "unknownTool": lambda tale: f"{tale.name} called tools that do not exist {tale.rounds} times ({tale.fact('tools')})",
    "denied": lambda tale: f"{tale.name} asked {tale.rounds} times for what it was refused, last {tale.call}{_said(tale.step)}",
    "monologue": _monologue,
    "chanting": _chant,
    "contextLoop": _context,
    "escalatingFailure": _climbing,
    "editRevert": lambda tale: f"{tale.name} made and undid the same change of {tale.fact('file')} {tale.rounds} times",
    "recoveryLoop": lambda tale: (
        f"a loop came back {tale.fact('cameBack')} times after it was answered: recovering this way does not help"
    ),
    "pingPong": lambda tale: f"{tale.fact('agents')} gave each other the same words {tale.rounds} times",
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
