"""The life of a finding: raised once, grown while the loop lasts, resolved when it is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxmgr.detect import normal
from ctxmgr.detect.interface import Sighting
from ctxmgr.detect.step import Step
from ctxmgr.detect.wording import loop_reason
from ctxmgr.types.finding import Finding, FindingKind, Scope
from ctxmgr.wire import fingerprint

_ERROR_LEAVE = 3
"""How many times further away the work must have moved from an error before the error counts as left behind."""


class Case:
    """One loop of one agent.

    Attributes:
        steps: number of steps seen in the loop (rounds times period).
        resolved: what ended it, None while it lasts.
    """

    __slots__ = (
        "_by_query", "_error", "_indexes", "_left_after", "_members", "_off", "_session", "_touched", "agent",
        "confidence", "first_at", "identity", "key", "kind", "last_progress", "period", "process", "raised", "resolved",
        "round", "steps",
    )  # fmt: skip

    def __init__(self, sighting: Sighting, session: str, past: Sequence[Step], left_after: int) -> None:
        start = sighting.steps[-1].calls[-1].start
        self.kind: FindingKind = sighting.kind
        self.key = sighting.key
        self.period = sighting.period
        self.agent, self.process, self._session = start.agent, start.process, session
        self.confidence = sighting.confidence
        self.round = sighting.steps[-sighting.period :]
        self._error = sighting.error
        self.identity = self._identity()
        self._members: list[str] = []
        self._indexes: list[int | None] = []
        self._by_query: dict[int, Step] = {}
        self.steps = 0
        self.resolved: str | None = None
        self._off: frozenset[int] = frozenset()
        self._touched = False
        self._left_after = left_after if sighting.error is None else left_after * _ERROR_LEAVE
        for step in sighting.steps:
            self._append(step)
        self.raised = (start.id, start.index)
        self.first_at = sighting.steps[0].started
        self.last_progress = _progress_before(sighting.steps[0].number, past)

    def _identity(self) -> str:
        if self._error is not None:
            return fingerprint([self.agent, "error", self._error])
        asked_ = [sorted(fingerprint([call.start.action, call.start.input]) for call in step.calls) for step in self.round]
        return fingerprint([self.agent, min(asked_[turn:] + asked_[:turn] for turn in range(len(asked_)))])

    def _append(self, step: Step) -> None:
        for call in step.calls:
            self._members.append(call.start.id)
            self._indexes.append(call.start.index)
        self._by_query[step.query] = step
        self.steps += 1

    def mark(self) -> tuple[Any, ...]:
        """Return what `restore` needs to take back later steps."""
        return len(self._members), self.steps, self._off, self._touched, self.resolved

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Take back what was added since the mark."""
        length, self.steps, self._off, self._touched, self.resolved = mark
        del self._members[length:]
        del self._indexes[length:]

    def extend(self, step: Step) -> None:
        """Take one more step for which the pattern held."""
        self._append(step)
        self._off = frozenset()
        self._touched = False

    def adopt(self, other: Case) -> None:
        """Take over the steps of a case that describes the same loop better, keeping when this one was raised."""
        self.round, self._members, self._indexes = other.round, other._members, other._indexes
        self._by_query, self.steps = other._by_query, other.steps

    def overlaps(self, sighting: Sighting) -> bool:
        """Whether the sighting speaks of steps that are already part of this case."""
        mine = set(self._members[-256:])
        return any(call.start.id in mine for step in sighting.steps for call in step.calls)

    def note(self, step: Step, meaning: str) -> bool:
        """Take a step that did not continue the pattern; return whether it still belongs to the loop.

        A new successful answer to one of its questions ends a loop at once; so do enough different steps outside it.
        A change of the world (``meaning`` is mutation) in between means that asking again is no repetition.
        """
        if self._error is not None and step.failed:
            if normal.error_core(step.first.error()) == self._error:
                self._resume(step)
                return True
        else:
            member = self._by_query.get(step.query)
            if member is not None:
                if step.same(member):
                    self._resume(step)
                    return True
                if not step.failed:
                    self.resolved = "progress"
                    return False
        self._off |= {step.query}
        weight = len(self._off)
        if meaning in ("mutation", "other") and not step.failed:
            self._touched = True
            if self._error is not None:
                weight += _ERROR_LEAVE
        if weight >= self._left_after:
            self.resolved = "progress"
        return False

    def _resume(self, step: Step) -> None:
        if not self._touched:
            self._off = frozenset()
            self._append(step)

    def finding(self, resolved: str | None = None) -> Finding:
        """Return the case as it stands; ``resolved`` fills in what ended it from outside the agent's own steps."""
        rounds = self.steps // self.period
        step = self.round[-1]
        answer = "" if step.first.finish is None else step.answer()
        evidence: dict[str, Any] = {
            "identity": self.identity,
            "indexes": {
                "first": self._indexes[0],
                "last": self._indexes[-1],
                "raisedAt": self.raised[1],
                "lastProgress": None if self.last_progress is None else self.last_progress[1],
                "members": list(self._indexes),
            },
            "steps": [
                {"action": call.start.action, "inputType": call.start.input_type, "input": call.start.input}
                for each in self.round
                for call in each.calls
            ],
        }
        if step.first.finish is not None:
            evidence["error" if step.failed else "result"] = normal.one_line(answer, 300)
        if self._error is not None:
            evidence["error"] = normal.one_line(answer, 300)
            evidence["distinctInputs"] = len(self._by_query)
        return Finding(
            id=fingerprint([self._session, self.kind, self.agent, self.process, self.identity, self.raised[0]]),
            kind=self.kind,
            severity="loop",
            period=self.period,
            count=rounds,
            first=self._members[0],
            last=self._members[-1],
            raised_at=self.raised[0],
            resolved=self.resolved or resolved,
            members=list(self._members),
            last_progress=None if self.last_progress is None else self.last_progress[0],
            scope=Scope(agent=self.agent, process=self.process),
            confidence=self.confidence,
            reason=loop_reason(self.kind, self.agent, self.round, rounds, len(self._by_query)),
            evidence=evidence,
        )


def _progress_before(number: int, past: Sequence[Step]) -> tuple[str, int | None] | None:
    """Return id and index of the last successful call before the loop."""
    for step in reversed(past):
        if step.number < number and not step.failed:
            return step.calls[-1].start.id, step.calls[-1].start.index
    return None
