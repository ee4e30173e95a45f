"""The life of a finding: raised, grown, resolved; and how further rounds of an identical loop are counted.

Once a repetition or a cycle stands, each further round looks like the last one to every detector. A detector's memory of
steps that repeat with a period consists of the last ``window`` rounds and of counters far beyond their thresholds. So it is
enough to show it the last ``window`` rounds once something else happens. That way, a step of a standing loop costs one
comparison. The work of seven detectors would cost ten times as much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.detect.interface import Sighting
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep, loop_reason
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.detect.text.comparison import event_text, plain
from ctxmgr.log.codec import fingerprint
from ctxmgr.types.finding import Finding, FindingKind, Observation, Scope, Severity

# Two reports of one loop must have one identity, also in another process, because recovery counts its attempts by it. If the
# calls differ from round to round, they can't be the identity, so a fact of the kind takes their place.
_SUBJECT = {
    "recoveryLoop": "loopIdentity", "escalatingFailure": "task", "contextLoop": "", "unknownTool": "tools",
    "editRevert": "file", "hung": "", "nearDuplicate": "about", "stagnation": "about", "chanting": "said",
}  # fmt: skip
"""For kinds with varying steps, the fact that distinguishes one loop from another."""
MAX_MEMBERS = 5000
"""Number of first and of last members of a loop that are kept if there are more than three times as many."""
_WENT_ON = 2
"""Rounds after a continuation that show that it did not help. The round during which it was given is no proof."""
_ERROR_LEAVE = 3
"""Factor on the steps after which a loop counts as left, for loops that rest on an error."""
_NEW_STEPS = 2
"""Successful steps never made before that show that the agent has left the loop."""
_ANSWERED = 2
"""State of the talk since the last round: what the user asked was answered. 1: it was asked."""
_ENDED_BY_SUCCESS = frozenset({"repetition", "cycle", "errorRepetition", "nearDuplicate", "trivialChange", "denied"})
"""Kinds of loops of failures, and of refusals in words, that end when the same is done with other arguments.

`interleaved` had successes in between."""


class OpenFinding:
    """One loop of one agent.

    Attributes:
        steps: number of steps in the loop (rounds times period).
        resolved: what ended it; None while it lasts.
        raised: id and index of the record that raised it; raisings: the same for each severity it reached.
        answered: a continuation was given for it; back: it went on nevertheless.
        is_listed: its monitor has added it to the findings.
        last_progress: the session's last achievement before its first member.
    """

    __slots__ = (
        "_answered_at",
        "_by_query",
        "_changed_course",
        "_corrected",
        "_dropped",
        "_error",
        "_exchange",
        "_facts",
        "_indexes",
        "_left_after",
        "_members",
        "_novel",
        "_outside",
        "_outside_before",
        "_session",
        "_succeeded",
        "_succeeded_before",
        "_total",
        "_touched",
        "_unlisted",
        "agent",
        "answered",
        "back",
        "confidence",
        "identity",
        "is_listed",
        "key",
        "kind",
        "last_progress",
        "period",
        "process",
        "raised",
        "raisings",
        "resolved",
        "round",
        "severity",
        "steps",
    )  # fmt: skip

    def __init__(self, sighting: Sighting, session: str, left_after: int) -> None:
        start = sighting.steps[-1].calls[-1].start
        self.kind: FindingKind = sighting.kind
        self.key = sighting.key
        self.period = sighting.period
        self.agent = None if sighting.everyone else start.agent
        self.process, self._session = start.process, session
        self.confidence = sighting.confidence
        self.round = sighting.steps[-sighting.period :]
        self._error = sighting.error
        self._facts = sighting.facts
        # A ping-pong is seen at the first message of its last round: five messages of two agents are three rounds.
        self._unlisted = max(0, sighting.rounds * sighting.period - len(sighting.steps))
        self._total = sighting.total
        self.severity: Severity = sighting.severity
        self.answered = self.back = self.is_listed = False
        self._answered_at = 0
        self._corrected = self._changed_course = False
        self._exchange = 0
        self.identity = self._identity()
        self._dropped = 0
        self._members: list[str] = []
        self._indexes: list[int | None] = []
        self._by_query: dict[int, ObservedStep] = {}
        self.steps = 0
        self.resolved: str | None = None
        self._outside: frozenset[int] = frozenset()
        self._outside_before: frozenset[int] = frozenset()
        self._novel: frozenset[int] = frozenset()
        self._touched = False
        self._succeeded = self._succeeded_before = False
        leave = left_after if sighting.error is None else left_after * _ERROR_LEAVE
        self._left_after = leave if sighting.leave is None else sighting.leave
        for step in sighting.steps:
            self._append(step)
        at = sighting.at or start
        self.raised = (at.id, at.index)
        self.raisings: list[tuple[Severity, str, int | None]] = [(self.severity, *self.raised)]
        self.last_progress = sighting.steps[0].first.start.progress
        if sighting.over:
            self._resolve()

    def _identity(self) -> str:
        if self._error is not None:
            return fingerprint([self.agent, "error", self._error])
        about = dict(self._facts).get(_SUBJECT.get(self.kind, ""))
        if self.kind in _SUBJECT:
            return fingerprint([self.agent, self.kind, about])
        # A round may be detected at any of its steps, so its smallest rotation stands for all of them.
        questions = [sorted(_question(call) for call in step.calls) for step in self.round]
        return fingerprint([self.agent, min(questions[turn:] + questions[:turn] for turn in range(len(questions)))])

    def _has_followed(self) -> bool:
        """Whether the agent was told to change course and has done so since. It may still come back."""
        return self._corrected and (self._changed_course or bool(self._outside - self._outside_before))

    def _append(self, step: ObservedStep) -> None:
        for call in step.calls:
            self._members.append(call.start.id)
            self._indexes.append(call.start.index)
        self._exchange = 0
        self._by_query[step.query] = step
        self.steps += 1
        if len(self._members) > 3 * MAX_MEMBERS:
            self._forget_the_middle()
        if len(self._by_query) > MAX_MEMBERS:
            del self._by_query[next(iter(self._by_query))]

    def _forget_the_middle(self) -> None:
        """Keep only the first and the last members of an endless loop, so that memory does not grow with it."""
        self._dropped += len(self._members) - 2 * MAX_MEMBERS
        del self._members[MAX_MEMBERS:-MAX_MEMBERS]
        del self._indexes[MAX_MEMBERS:-MAX_MEMBERS]

    def mark(self) -> tuple[Any, ...]:
        """Return what `restore` needs to take back later steps: lengths and values as they are now, for `restore` alone."""
        place = len(self._members) + self._dropped
        success = (self._succeeded, self._succeeded_before)
        return place, self.steps, self._outside, self._novel, self._touched, self.resolved, success

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Take back everything since the mark."""
        length, self.steps, self._outside, self._novel, self._touched, self.resolved, success = mark
        self._succeeded, self._succeeded_before = success
        del self._members[length - self._dropped :]
        del self._indexes[length - self._dropped :]

    def extend(self, step: ObservedStep, sighting: Sighting) -> bool:
        """Add a step that continues the pattern. Return whether that raised the severity."""
        self._append(step)
        self._continue()
        self._facts = sighting.facts  # the newest facts, which count everything seen so far
        self._total = sighting.total
        if sighting.over:
            self._resolve()
        if self.severity != "warn" or sighting.severity == "warn":
            return False
        self.escalate(sighting)
        return True

    def go_on(self, start: Observation) -> None:
        """Add a step that exactly equals one of its own, as `extend` would. The case is no longer a warning."""
        self._members.append(start.id)
        self._indexes.append(start.index)
        self._exchange = 0
        self.steps += 1
        if len(self._members) > 3 * MAX_MEMBERS:
            self._forget_the_middle()
        self._continue()

    def _continue(self) -> None:
        """Note that the loop goes on: steps outside of it were no way out."""
        self._outside = self._novel = frozenset()
        self._touched = self._changed_course = False
        self._doubt_success()

    def look_back(self, first: ObservedStep, past: Sequence[ObservedStep]) -> None:
        """Take the agent's steps since the loop's first one: a success among the failures did not end it, nor may another."""
        own = {member.action for member in self.round if member.is_refused}
        self._succeeded_before = any(step.number > first.number and step.action in own and not step.is_refused for step in past)

    def _doubt_success(self) -> None:
        """Note that the trouble goes on: a success in between was of something else, and so may be the next one."""
        self._succeeded_before = self._succeeded_before or self._succeeded
        self._succeeded = False

    def _has_succeeded(self, step: ObservedStep) -> bool:
        """Whether a step does with other arguments what failed in the loop. The agent may still come back to the failure."""
        own = [member for member in self.round if member.action == step.action]
        if (
            self.kind not in _ENDED_BY_SUCCESS
            or self._succeeded_before
            or not own
            or not all(member.is_refused for member in own)
        ):
            return False
        # A pipe hides the exit code of what failed before it.
        if step.is_refused or (vocabulary.is_shell(step.action) and vocabulary.tells_trouble(step.answer())):
            return False
        return any(call.tries_again(other) for call in step.calls for member in own for other in member.calls)

    def continues(self, sighting: Sighting) -> bool:
        """Whether the sighting is of this loop, which the agent left for other work and has now resumed.

        A loop that was answered and then left is not raised again on old evidence, unless the answers themselves go round.
        """
        return (
            (self.kind, self.key) == (sighting.kind, sighting.key)
            and (self.resolved == "progress" or (self.resolved == "answered" and self.kind == "recoveryLoop"))
            and self.overlaps(sighting)
        )

    def reopen(self) -> None:
        """Make a resolved case active again."""
        self.resolved = None
        self._continue()

    def answer(self) -> None:
        """Note that a continuation was given for it."""
        self.tell()
        self.answered, self.back = True, False
        self._answered_at = self.steps

    def tell(self) -> None:
        """Note that a program or a continuation told the agent to change course."""
        self._corrected, self._changed_course = True, False
        self._outside_before = self._outside  # steps of before are no answer to it

    def speak(self) -> None:
        """Note that the agent said something that is not part of the loop."""
        self._changed_course = self._corrected

    def converse(self, *, asks: bool) -> None:
        """Note words since the last round: the user asks for something (``asks``), or an agent answers."""
        self._exchange = max(1, self._exchange) if asks else _ANSWERED if self._exchange else 0

    def is_left(self, *, completed: bool) -> bool:
        """Whether the run had left the loop when it ended: for new work if it ``completed``, else for other talk."""
        return bool(self._novel) if completed else self._exchange == _ANSWERED

    def came_back(self) -> bool:
        """Whether the loop has just gone on for two more rounds after it was answered."""
        if not self.answered or self.back or self.steps - self._answered_at < _WENT_ON * self.period:
            return False
        self.back = True
        return True

    def escalate(self, sighting: Sighting) -> None:
        """Raise the severity. It stays the same finding."""
        start = sighting.steps[-1].calls[-1].start
        self.severity = sighting.severity
        self.confidence = sighting.confidence
        self.raisings = [*self.raisings, (self.severity, start.id, start.index)]
        # The step may be a member already. Look only at the newest members, because an endless loop has many.
        if start.id not in self._members[-256:]:
            self._append(sighting.steps[-1])

    def miss(self) -> None:
        """Take an event of the kind that the case rests on, but which does not continue the pattern."""
        # Events have no question by which they could be distinguished, so each one counts.
        self._outside |= {len(self._outside)}
        if len(self._outside) >= max(2, self._left_after):
            self._resolve()

    def _resolve(self) -> None:
        self.resolved = "answered" if self.answered or self._corrected else "progress"

    def adopt(self, other: OpenFinding) -> None:
        """Take over the steps of a case that describes the same loop better. Keep the time at which this case was raised."""
        self.round, self._members, self._indexes = other.round, other._members, other._indexes
        self._dropped = other._dropped
        self._by_query, self.steps = other._by_query, other.steps
        self.last_progress = other.last_progress

    def overlaps(self, sighting: Sighting) -> bool:
        """Whether the sighting is about steps that are already part of this case."""
        mine = set(self._members[-256:])
        return any(call.start.id in mine for step in sighting.steps for call in step.calls)

    @property
    def is_spoken(self) -> bool:
        """Whether the case rests on events, not on calls."""
        return self.round[-1].first.start.kind == "event"

    def is_last(self, record: str) -> bool:
        """Whether the record is the newest member."""
        return self._members[-1] == record

    def note(self, step: ObservedStep, meaning: str, *, is_new: bool) -> bool:
        """Take a step that did not continue the pattern. Return whether it still belongs to the loop.

        A new successful answer to one of the loop's questions ends it at once. So do two successful steps that the agent
        never made before, and enough different steps of any kind outside of it. After a change of the world (``meaning`` is
        mutation), asking again is no repetition.

        Args:
            step: the step.
            meaning: what the step does to the world.
            is_new: the agent had not asked this before.
        """
        repeats_error, member = False, None
        if self._error is not None and step.failed:
            repeats_error = fingerprints.error_core(step.first.error()) == self._error
        else:  # a loop of equal questions: the same answer continues it, a new one ends it
            member = self._by_query.get(step.query)
        if repeats_error or (member is not None and step.same(member)):
            self._resume(step)
            return True
        if member is not None and not step.failed:
            self._resolve()
            return False
        if self._has_succeeded(step):
            self._succeeded = True
        elif any(step.action == other.action for other in self.round) and step.is_refused:
            self._doubt_success()
        self._outside |= {step.query}
        if is_new and not step.failed:
            self._novel |= {step.query}
        weight = len(self._outside)
        if meaning in ("mutation", "other") and not step.failed:
            # From now on, the same question is about a changed world. After one such success, an error counts as left behind.
            self._touched = True
            if self._error is not None:
                weight += _ERROR_LEAVE
        if weight >= self._left_after or len(self._novel) >= _NEW_STEPS:
            self._resolve()
        return False

    def _resume(self, step: ObservedStep) -> None:
        self._doubt_success()
        # After a change of the world, asking again is honest: it neither leaves the loop nor prolongs it.
        if not self._touched:
            self._outside = self._novel = frozenset()
            self._changed_course = False
            self._append(step)

    def end_reason(self, outside: str | None) -> str | None:
        """Return what ended the case; None while it lasts. ``outside``: what may have ended it besides the agent's steps."""
        if self.resolved or outside or not self._succeeded:
            return self.resolved or outside or ("answered" if self._has_followed() else None)
        return "answered" if self.answered or self._corrected else "progress"

    def finding(self, resolved: str | None = None) -> Finding:
        """Return the case as a finding. ``resolved``: what ended it from outside of the agent's own steps."""
        # A detector keeps only a window of steps, so it may have counted more rounds than it handed over.
        rounds = self._total or (self.steps + self._unlisted) // self.period
        step = self.round[-1]
        answer = "" if step.first.finish is None else step.answer()
        evidence: dict[str, Any] = {
            **dict(self._facts),
            "identity": self.identity,
            "indexes": {
                "first": self._indexes[0],
                "last": self._indexes[-1],
                "raisedAt": self.raised[1],
                "lastProgress": None if self.last_progress is None else self.last_progress.index,
                "members": list(self._indexes),
            },
            "raised": [{"severity": severity, "id": name, "index": index} for severity, name, index in self.raisings],
            "steps": [
                {"action": call.start.action, "inputType": call.start.input_type, "input": call.start.input}
                for member in self.round
                for call in member.calls
                if call.start.kind != "event"
            ],
        }
        if step.first.finish is not None:
            evidence["error" if step.failed else "result"] = fingerprints.both_ends(answer, 300)
        if self._error is not None:
            evidence["error"] = fingerprints.both_ends(answer, 300)
            evidence["distinctInputs"] = len(self._by_query)
        return Finding(
            id=fingerprint([self._session, self.kind, self.agent, self.process, self.identity, self.raised[0]]),
            kind=self.kind,
            severity=self.severity,
            period=self.period,
            count=rounds,
            first=self._members[0],
            last=self._members[-1],
            raised_at=self.raised[0],
            resolved=self.end_reason(resolved),
            members=list(self._members),
            last_progress=None if self.last_progress is None else self.last_progress.id,
            scope=Scope(agent=self.agent, process=self.process),
            confidence=self.confidence,
            reason=loop_reason(self.kind, self.agent, self.round, rounds, len(self._by_query), dict(self._facts)),
            evidence=evidence,
        )


def _question(call: Call) -> str:
    """Return a question, or the words of an event, as a text that is equal in every run of the program."""
    start = call.start
    if start.kind == "event":
        return fingerprint([start.agent, start.type, plain(event_text(start) or "")])
    return fingerprint([start.action, start.input])


_MAX_KEPT = 4096
"""Maximum steps that may have to be shown again. If a wide window needs more, the loop is watched step by step."""


class FastForward:
    """The steps of a standing loop that the detectors have not seen yet.

    Attributes:
        case: the loop.
        count: number of these steps.
    """

    def __init__(self, case: OpenFinding, past: Sequence[ObservedStep], settings: DetectSettings) -> None:
        self.case = case
        self.count = 0
        self._past = list(past)
        self._round = list(past[-case.period :])
        self._gap = _shortest_gap(settings, self._round)
        self._shown_again = rounds_kept(case, settings)
        self._window = settings.window
        # The steps to show again, preceded by as long a past as the scope would hold.
        self._kept: deque[tuple[Observation, Observation]] = deque(maxlen=self._shown_again + 2 * self._window)
        self._started, self._ended = past[-1].started, past[-1].ended

    def take(self, start: Observation, finish: Observation | None, world: int) -> bool:
        """Take one more step if it exactly equals the next step of the round. Return whether it does."""
        case = self.case
        model = self._round[self.count % len(self._round)]
        # After a continuation, every step must be looked at: two more rounds mean that the loop is back.
        if finish is None or (case.answered and not case.back) or world != model.world or not repeats(model, start, finish):
            return False
        if not _follows(self._started, self._ended, start.at, finish.at, self._gap):
            return False
        self._started, self._ended = start.at, finish.at
        self._kept.append((start, finish))
        self.count += 1
        case.go_on(start)
        return True

    @property
    def last(self) -> ObservedStep:
        """A step that equals the newest one."""
        return self._round[(self.count - 1) % len(self._round)]

    def unseen(self) -> tuple[list[ObservedStep], list[ObservedStep]]:
        """Return the steps that the detectors must see now, and the steps before them, oldest first."""
        steps = self._steps()
        shown = min(self.count, self._shown_again)
        cut = len(steps) - shown
        return steps[cut:], steps[:cut]

    def past_steps(self, steps: Sequence[ObservedStep]) -> list[ObservedStep]:
        """Return the past that the scope would hold if the steps had been added one by one; ``steps`` are the last ones.

        The scope lets its past grow to twice the window, and then cuts it to the window. Detectors that read all of the past
        find more in a longer one, so its length must be the same here.
        """
        width = self._window
        length = len(self._past) + self.count
        if length > 2 * width:
            length = width + (length - 2 * width - 1) % (width + 1)
        return list(steps[-length:])

    def _steps(self) -> list[ObservedStep]:
        number = self._past[-1].number + 1 + self.count - len(self._kept)
        first = self.count - len(self._kept)
        made: list[ObservedStep] = []
        for place, (start, finish) in enumerate(self._kept):
            model = self._round[(first + place) % len(self._round)]
            made.append(ObservedStep((Call(start, finish, model.query),), number + place, model.world))
        return [*self._past, *made] if not first else made


def rounds_kept(case: OpenFinding, settings: DetectSettings) -> int:
    """Return after how many steps of a loop the detectors remember nothing else."""
    return settings.window * case.period


def may_stand(case: OpenFinding, settings: DetectSettings) -> bool:
    """Whether further steps of a loop look the same to all detectors."""
    return (
        case.kind in ("repetition", "cycle")
        and case.severity == "loop"
        # The busy detector counts over its own window, which the replayed rounds must cover too.
        and settings.busy_window <= settings.window
        and rounds_kept(case, settings) <= _MAX_KEPT
    )


def continues(step: ObservedStep, past: Sequence[ObservedStep], period: int, settings: DetectSettings) -> bool:
    """Whether the last step of ``past`` exactly equals the step a round before it, and followed as quickly."""
    if len(past) <= period or not is_plain(step) or step.calls[0].finish is None:
        return False
    model, last = past[-1 - period], past[-2]
    return (
        is_plain(model)
        and model.world == step.world == last.world
        and repeats(model, step.calls[0].start, step.calls[0].finish)
        and _follows(last.started, last.ended, step.started, step.ended, _shortest_gap(settings, (step,)))
    )


def is_plain(step: ObservedStep) -> bool:
    """Whether texts alone suffice to compare a step: no batch, no task, no change, no transient trouble."""
    if len(step.calls) != 1 or step.traits or step.transient:
        return False
    start, finish = step.calls[0].start, step.calls[0].finish
    return finish is not None and _is_plain(start.input) and _is_plain(finish.output, 0) and _is_plain(finish.error)


def _is_plain(value: object, depth: int = 1) -> bool:
    """Whether a value is None, a text or (at depth 1) an object of texts. Such values are equal in JSON if equal in Python."""
    if value is None or type(value) is str:
        return True
    if not depth or type(value) is not dict:
        return False
    return all(type(key) is str and type(item) is str for key, item in cast("dict[Any, Any]", value).items())


def repeats(model: ObservedStep, start: Observation, finish: Observation) -> bool:
    """Whether an entry has the question and the answer of a plain step."""
    asked, answered = model.calls[0].start, model.calls[0].finish
    return (
        answered is not None
        and start.input == asked.input
        and start.action == asked.action
        and finish.output == answered.output
        and finish.status == answered.status
        and finish.error == answered.error
        and finish.meta is None
        and start.meta is None
        and start.task is None
        and start.step is None
    )


def _follows(started: float | None, ended: float | None, begins: float | None, ends: float | None, gap: float) -> bool:
    """Whether a step follows so soon after another that no detector takes it for patience (see `interface.is_patient`)."""
    if started is None or begins is None:
        return True
    idle = begins - (started if ended is None else ended)
    inside = 0.0 if ends is None else ends - begins
    return idle < gap and inside < gap


def _shortest_gap(settings: DetectSettings, steps: Sequence[ObservedStep]) -> float:
    return min(settings.poll_gap, *(settings.for_action(step.action).poll_gap for step in steps))
