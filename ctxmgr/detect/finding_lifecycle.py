"""The life of a finding: raised, grown, resolved."""

from __future__ import annotations

from typing import Any

from ctxmgr.detect.descriptions import loop_reason
from ctxmgr.detect.interface import Sighting
from ctxmgr.detect.step import Call, Step
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.message_text import plain, text_of
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
        "first_at",
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
        self._by_query: dict[int, Step] = {}
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
        self.first_at = sighting.steps[0].started
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

    def _append(self, step: Step) -> None:
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
        """Return what `restore` needs to take back later steps."""
        return len(self._members) + self._dropped, self.steps, self._outside, self._novel, self._touched, self.resolved

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Take back what was added since the mark."""
        length, self.steps, self._outside, self._novel, self._touched, self.resolved = mark
        del self._members[length - self._dropped :]
        del self._indexes[length - self._dropped :]

    def extend(self, step: Step, sighting: Sighting) -> bool:
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
        """Whether the sighting speaks of steps that are already part of this case."""
        mine = set(self._members[-256:])
        return any(call.start.id in mine for step in sighting.steps for call in step.calls)

    @property
    def is_spoken(self) -> bool:
        """Whether it rests on events, not on calls."""
        return self.round[-1].first.start.kind == "event"

    def is_last(self, record: str) -> bool:
        """Whether the record is the newest member."""
        return self._members[-1] == record

    def note(self, step: Step, meaning: str, *, is_new: bool) -> bool:
        """Take a step that did not continue the pattern; return whether it still belongs to the loop.

        A new successful answer to one of its questions ends a loop at once; so do two successful steps that the agent never
        made before, and enough different steps outside it of any kind.
        A change of the world (``meaning`` is mutation) in between means that asking again is no repetition.

        Args:
            step: what was done.
            meaning: what that does to the world.
            is_new: whether the agent had not asked that before.
        """
        if self._error is not None and step.failed:
            if fingerprints.error_core(step.first.error()) == self._error:
                self._resume(step)
                return True
        else:  # a loop of equal questions: the same answer continues it, a new one ends it
            member = self._by_query.get(step.query)
            if member is not None:
                if step.same(member):
                    self._resume(step)
                    return True
                if not step.failed:
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

    def _resume(self, step: Step) -> None:
        if not self._touched:
            self._outside = self._novel = frozenset()
            self._changed_course = False
            self._append(step)

    def ended_by(self, outside: str | None) -> str | None:
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
            resolved=self.ended_by(resolved),
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
        return fingerprint([start.agent, start.type, plain(text_of(start) or "")])
    return fingerprint([start.action, start.input])
