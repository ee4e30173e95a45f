"""The life of a finding: raised, grown, resolved; and how further rounds of an identical loop are counted.

Once a repetition or a cycle stands, each further round looks like the last one to every detector. What a detector
remembers of steps that repeat with a period is made of the last ``window`` rounds and of counters that have long passed
their thresholds, so it is enough to show it the last ``window`` rounds when something else happens at last. That is what
makes a step of a standing loop cost a comparison instead of the work of seven detectors, ten times as much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.detect.interface import Sighting
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep, loop_reason
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.comparison import event_text, plain
from ctxmgr.log.codec import fingerprint
from ctxmgr.types.finding import Finding, FindingKind, Observation, Scope, Severity

# Two reports of one loop must get one identity, also in another process: recovery counts its attempts by it. Where the
# calls differ from round to round they can't be that identity, so one fact of the kind stands for them.
_SUBJECT = {
    "recoveryLoop": "loopIdentity", "escalatingFailure": "task", "contextLoop": "", "unknownTool": "tools",
    "editRevert": "file", "hung": "", "nearDuplicate": "about", "stagnation": "about", "chanting": "said",
}  # fmt: skip
"""Of kinds whose steps vary, the fact that tells one loop from another."""
MAX_MEMBERS = 5000
"""How many of the first and of the last members of a loop are kept when there are more than three times as many."""
_WENT_ON = 2
"""Rounds after a continuation that show that it did not help: the one under way when it was given is no proof."""
_ERROR_LEAVE = 3
"""How many times further away the work must have moved from an error before the error counts as left behind."""
_NEW_STEPS = 2
"""Successful steps that were never made before by which an agent has left whatever it was in."""


class OpenFinding:
    """One loop of one agent.

    Attributes:
        steps: number of steps seen in the loop (rounds times period).
        resolved: what ended it, None while it lasts.
        raised: id and index of the record that raised it; raisings: the same for each severity it reached.
        answered: a continuation was given for it; back: it went on all the same.
        is_listed: its monitor has put it among the findings.
        last_progress: what the session had last achieved when its first member happened.
    """

    __slots__ = (
        "_answered_at",
        "_by_query",
        "_changed_course",
        "_corrected",
        "_dropped",
        "_error",
        "_facts",
        "_indexes",
        "_left_after",
        "_members",
        "_novel",
        "_outside",
        "_session",
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
        # A ping-pong is seen at the first word of its last round: five words of two agents are three rounds.
        self._unlisted = max(0, sighting.rounds * sighting.period - len(sighting.steps))
        self._total = sighting.total
        self.severity: Severity = sighting.severity
        self.answered = self.back = self.is_listed = False
        self._answered_at = 0
        self._corrected = self._changed_course = False
        self.identity = self._identity()
        self._dropped = 0
        self._members: list[str] = []
        self._indexes: list[int | None] = []
        self._by_query: dict[int, ObservedStep] = {}
        self.steps = 0
        self.resolved: str | None = None
        self._outside: frozenset[int] = frozenset()
        self._novel: frozenset[int] = frozenset()
        self._touched = False
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
        # The same round may be caught at any of its steps, so the least rotation stands for all of them.
        questions = [sorted(_question(call) for call in step.calls) for step in self.round]
        return fingerprint([self.agent, min(questions[turn:] + questions[:turn] for turn in range(len(questions)))])

    def _has_followed(self) -> bool:
        """Whether the agent was told and has done, or said, something else since; it may still come back."""
        return self._corrected and (self._changed_course or bool(self._outside))

    def _append(self, step: ObservedStep) -> None:
        for call in step.calls:
            self._members.append(call.start.id)
            self._indexes.append(call.start.index)
        self._by_query[step.query] = step
        self.steps += 1
        if len(self._members) > 3 * MAX_MEMBERS:
            self._forget_the_middle()
        if len(self._by_query) > MAX_MEMBERS:
            del self._by_query[next(iter(self._by_query))]

    def _forget_the_middle(self) -> None:
        """Keep the first and the last members of an endless loop: memory must not grow with it."""
        self._dropped += len(self._members) - 2 * MAX_MEMBERS
        del self._members[MAX_MEMBERS:-MAX_MEMBERS]
        del self._indexes[MAX_MEMBERS:-MAX_MEMBERS]

    def mark(self) -> tuple[Any, ...]:
        """Return what `restore` needs to take back later steps: lengths and values as they are now, for `restore` alone."""
        return len(self._members) + self._dropped, self.steps, self._outside, self._novel, self._touched, self.resolved

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Take back what was added since the mark."""
        length, self.steps, self._outside, self._novel, self._touched, self.resolved = mark
        del self._members[length - self._dropped :]
        del self._indexes[length - self._dropped :]

    def extend(self, step: ObservedStep, sighting: Sighting) -> bool:
        """Take one more step for which the pattern held; return whether that made the matter worse."""
        self._append(step)
        self._continue()
        self._facts = sighting.facts  # the newest ones: they count what was seen so far
        self._total = sighting.total
        if sighting.over:
            self._resolve()
        if self.severity != "warn" or sighting.severity == "warn":
            return False
        self.escalate(sighting)
        return True

    def go_on(self, start: Observation) -> None:
        """Take one more step that is to the letter one of its own, as `extend` would; it is no warning any more."""
        self._members.append(start.id)
        self._indexes.append(start.index)
        self.steps += 1
        if len(self._members) > 3 * MAX_MEMBERS:
            self._forget_the_middle()
        self._continue()

    def _continue(self) -> None:
        """Note that it goes on: whatever was done aside was no way out."""
        self._outside = self._novel = frozenset()
        self._touched = self._changed_course = False

    def continues(self, sighting: Sighting) -> bool:
        """Whether the sighting is of this loop, which the agent had left for other work and has taken up again.

        One that was answered and then left is not raised on old evidence, but where the answers themselves go round.
        """
        return (
            (self.kind, self.key) == (sighting.kind, sighting.key)
            and (self.resolved == "progress" or (self.resolved == "answered" and self.kind == "recoveryLoop"))
            and self.overlaps(sighting)
        )

    def reopen(self) -> None:
        """Take it up again."""
        self.resolved = None
        self._continue()

    def answer(self) -> None:
        """Note that a continuation was given for it."""
        self.tell()
        self.answered, self.back = True, False
        self._answered_at = self.steps

    def tell(self) -> None:
        """Note that the agent was told to change its way, by a program or by a continuation."""
        self._corrected, self._changed_course = True, False

    def speak(self) -> None:
        """Note that the agent said something that is no part of it."""
        self._changed_course = self._corrected

    def came_back(self) -> bool:
        """Whether it has just gone on for two more rounds after it was answered."""
        if not self.answered or self.back or self.steps - self._answered_at < _WENT_ON * self.period:
            return False
        self.back = True
        return True

    def escalate(self, sighting: Sighting) -> None:
        """Raise the severity in place: it stays the same finding."""
        start = sighting.steps[-1].calls[-1].start
        self.severity = sighting.severity
        self.confidence = sighting.confidence
        self.raisings = [*self.raisings, (self.severity, start.id, start.index)]
        # The step may have been appended already; the newest members are enough to see that, and an endless loop has many.
        if start.id not in self._members[-256:]:
            self._append(sighting.steps[-1])

    def miss(self) -> None:
        """Take an event of the kind the case rests on that did not continue the pattern."""
        # Events have no question by which two of them could be told apart, so each counts.
        self._outside |= {len(self._outside)}
        if len(self._outside) >= max(2, self._left_after):
            self._resolve()

    def _resolve(self) -> None:
        self.resolved = "answered" if self.answered or self._corrected else "progress"

    def adopt(self, other: OpenFinding) -> None:
        """Take over the steps of a case that describes the same loop better, keeping when this one was raised."""
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
        """Whether it rests on events, not on calls."""
        return self.round[-1].first.start.kind == "event"

    def is_last(self, record: str) -> bool:
        """Whether the record is the newest member."""
        return self._members[-1] == record

    def note(self, step: ObservedStep, meaning: str, *, is_new: bool) -> bool:
        """Take a step that did not continue the pattern; return whether it still belongs to the loop.

        A new successful answer to one of its questions ends a loop at once; so do two successful steps that the agent never
        made before, and enough different steps outside it of any kind.
        A change of the world (``meaning`` is mutation) in between means that asking again is no repetition.

        Args:
            step: what was done.
            meaning: what that does to the world.
            is_new: whether the agent had not asked that before.
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
        self._outside |= {step.query}
        if is_new and not step.failed:
            self._novel |= {step.query}
        weight = len(self._outside)
        if meaning in ("mutation", "other") and not step.failed:
            # From now on asking again is asking about a changed world; an error is left behind by one success of this kind.
            self._touched = True
            if self._error is not None:
                weight += _ERROR_LEAVE
        if weight >= self._left_after or len(self._novel) >= _NEW_STEPS:
            self._resolve()
        return False

    def _resume(self, step: ObservedStep) -> None:
        # Once the world was changed, asking again is honest: it neither leaves the loop nor prolongs it.
        if not self._touched:
            self._outside = self._novel = frozenset()
            self._changed_course = False
            self._append(step)

    def end_reason(self, outside: str | None) -> str | None:
        """Return what ended it, None while it lasts; ``outside`` is what may have ended it besides the agent's own steps."""
        return self.resolved or outside or ("answered" if self._has_followed() else None)

    def finding(self, resolved: str | None = None) -> Finding:
        """Return the case as it stands; ``resolved`` fills in what ended it from outside the agent's own steps."""
        # A detector may have counted more rounds than the steps it handed over (it keeps a window of them).
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
    """Return what was asked, or said, as a text that is equal in every run of the program."""
    start = call.start
    if start.kind == "event":
        return fingerprint([start.agent, start.type, plain(event_text(start) or "")])
    return fingerprint([start.action, start.input])


_MAX_KEPT = 4096
"""Steps that may have to be shown again. Where a wide window would need more, the loop is watched step by step."""


class FastForward:
    """The steps of a standing loop that the detectors were not shown yet.

    Attributes:
        case: the loop.
        count: how many steps it took.
    """

    def __init__(self, case: OpenFinding, past: Sequence[ObservedStep], settings: DetectSettings) -> None:
        self.case = case
        self.count = 0
        self._past = list(past)
        self._round = list(past[-case.period :])
        self._gap = _shortest_gap(settings, self._round)
        self._shown_again = rounds_kept(case, settings)
        self._window = settings.window
        # What is shown again, and before it a past as long as the scope would hold.
        self._kept: deque[tuple[Observation, Observation]] = deque(maxlen=self._shown_again + 2 * self._window)
        self._started, self._ended = past[-1].started, past[-1].ended

    def take(self, start: Observation, finish: Observation | None, world: int) -> bool:
        """Take one more step if it is the next of the round to the letter; return whether it is."""
        case = self.case
        model = self._round[self.count % len(self._round)]
        # After a continuation each step must be looked at: two more rounds say that the loop is back.
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
        """A step like the newest one."""
        return self._round[(self.count - 1) % len(self._round)]

    def unseen(self) -> tuple[list[ObservedStep], list[ObservedStep]]:
        """Return the steps that the detectors are to be shown now, and those before them, oldest first."""
        steps = self._steps()
        shown = min(self.count, self._shown_again)
        cut = len(steps) - shown
        return steps[cut:], steps[:cut]

    def past_steps(self, steps: Sequence[ObservedStep]) -> list[ObservedStep]:
        """Return the past that the scope would hold if each step had been added singly; ``steps`` are the last ones.

        The scope lets it grow to twice the window and cuts it to the window then. Detectors that read all of it find more
        in a longer one, so its length must be the same here.
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
    """Return how many steps of a loop must go by before the detectors remember nothing else."""
    return settings.window * case.period


def may_stand(case: OpenFinding, settings: DetectSettings) -> bool:
    """Whether the further steps of a loop are alike for all detectors."""
    return (
        case.kind in ("repetition", "cycle")
        and case.severity == "loop"
        # The busy detector counts over its own window, which the replayed rounds must cover too.
        and settings.busy_window <= settings.window
        and rounds_kept(case, settings) <= _MAX_KEPT
    )


def continues(step: ObservedStep, past: Sequence[ObservedStep], period: int, settings: DetectSettings) -> bool:
    """Whether a step, the last of ``past``, is to the letter the one a round before it, and as short after the last one."""
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
    """Whether a step can be compared by its texts alone: no batch, no task, no change, no trouble that may pass."""
    if len(step.calls) != 1 or step.traits or step.transient:
        return False
    start, finish = step.calls[0].start, step.calls[0].finish
    return finish is not None and _is_plain(start.input) and _is_plain(finish.output, 0) and _is_plain(finish.error)


def _is_plain(value: object, depth: int = 1) -> bool:
    """Whether a value is None, a text or (at depth 1) an object of texts: such are equal in JSON if they are in Python."""
    if value is None or type(value) is str:
        return True
    if not depth or type(value) is not dict:
        return False
    return all(type(key) is str and type(item) is str for key, item in cast("dict[Any, Any]", value).items())


def repeats(model: ObservedStep, start: Observation, finish: Observation) -> bool:
    """Whether an entry asks and answers what a plain step did."""
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
    """Whether a step follows another so soon that no detector takes that for patience (see `polling.is_patient`)."""
    if started is None or begins is None:
        return True
    idle = begins - (started if ended is None else ended)
    inside = 0.0 if ends is None else ends - begins
    return idle < gap and inside < gap


def _shortest_gap(settings: DetectSettings, steps: Sequence[ObservedStep]) -> float:
    return min(settings.poll_gap, *(settings.for_action(step.action).poll_gap for step in steps))
