"""The state of one agent in one process: its steps, detectors and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.detect.finding_lifecycle import FastForward, OpenFinding, continues, may_stand, rounds_kept
from ctxmgr.detect.interface import Detector, Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep
from ctxmgr.detect.text import vocabulary
from ctxmgr.types.finding import Observation

_RECENT = 4
"""Number of newest findings with which a new sighting is compared."""


class DetectorDispatch(NamedTuple):
    """The detectors that see a step.

    Attributes:
        all: every one of them, each with a flag: it sees the step even while it remembers nothing.
        if_asleep: those for which that flag is set.
    """

    all: list[tuple[Detector, bool]]
    if_asleep: list[tuple[Detector, bool]]


class DispatchTable:
    """Cache of the detectors that see a step, with one row for each combination of flags (see `Wake`)."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self._detectors = detectors
        self._known: dict[int, DetectorDispatch] = {}

    def detectors_for(self, flags: int) -> DetectorDispatch:
        """Return the detectors that see a step with these flags."""
        plan = self._known.get(flags)
        if plan is not None:
            return plan
        shown: list[tuple[Detector, bool]] = []
        for detector in self._detectors:
            # A detector that counts repeats must also see the step that breaks them: the same question with a new answer.
            wanted = detector.wake | Wake.AGAIN if detector.wake & Wake.REPEATED else detector.wake
            if detector.watchful or flags & wanted:
                shown.append((detector, bool(flags & detector.wake)))
        plan = self._known[flags] = DetectorDispatch(shown, [(detector, woken) for detector, woken in shown if woken])
        return plan


def is_any_awake(detectors: Sequence[Detector]) -> bool:
    """Whether any of the detectors remembers something."""
    for detector in detectors:  # noqa: SIM110 - a generator costs more than the whole loop
        if detector.state:
            return True
    return False


@dataclass(slots=True)
class _Batch:
    """The calls with one ``step`` value. ``taken`` is the step in which the detectors saw them."""

    calls: list[Call]
    open: int
    taken: ObservedStep | None = None


class _Mark(NamedTuple):
    """A saved state to return to. Detectors that were asleep get back their initial state."""

    number: int
    states: tuple[Any, ...]
    cases: tuple[tuple[OpenFinding, tuple[Any, ...]], ...]


class AgentScope:
    """Turns calls into steps, shows each step to every detector, and opens a finding for the tightest description.

    A step enters when its result is known, in the order of the results. So a call that stays open delays nothing and counts
    for nothing. A parallel batch enters when all its calls so far are answered. If a later member follows, the step is taken
    back and entered again, complete.

    Attributes:
        is_explained: opinions may be asked for, so the detectors see every step at once.
        call: the call made from the last entry; None if that entry was only counted.
    """

    def __init__(self, session: str, settings: DetectSettings, detectors: Sequence[Detector], doubt: float = 1.0) -> None:
        self.session = session
        self.is_explained = False
        self._fast_forward: FastForward | None = None
        self._candidate: OpenFinding | None = None
        self._repeated = 0
        self._settings = settings
        self._detectors = detectors
        self._watchful = [detector for detector in detectors if detector.watchful]
        self._dispatch = DispatchTable(detectors)
        self._asleep = True
        self._listeners: dict[str, list[Detector]] = {}
        for detector in detectors:
            for kind in detector.hears:
                self._listeners.setdefault(kind, []).append(detector)
        self._doubt = doubt
        self._seen: dict[int, ObservedStep] = {}
        self._latest: dict[str, ObservedStep] = {}
        self.came_back: list[OpenFinding] = []
        self.changes = self.others_changes = 0
        self.writings = self.others_writings = 0
        self.heard = self._known_changes = 0
        self.spoke_since = self.foreseen = False
        self.opinions: list[tuple[ObservedStep, Opinion]] | None = None
        self._steps: list[ObservedStep] = []
        self.call: Call | None = None
        self._number = 0
        self._batches: dict[str | int, _Batch] = {}
        self._boundary = 0
        self._attempt: _Mark | None = None
        self._replay: list[ObservedStep] = []
        self._turn: str | int | None = None
        self.active: list[OpenFinding] = []
        self.cases: list[OpenFinding] = []
        self._before_last: _Mark | None = None
        self._is_fresh, self._remembers = True, False
        self._blank = tuple(detector.state for detector in detectors)  # sleeping detectors get this back

    def begin(self, start: Observation) -> None:
        """Take the start of an entry."""
        if start.turn is not None:
            # A new turn number is a message from a person, even in logs without the message itself.
            if self._turn is not None and self._turn != start.turn:
                self.reset("user")
            self._turn = start.turn
        if start.step is None:
            return
        batch = self._batches.get(start.step)
        if batch is None:
            # Batches come in order, so a batch whose calls are all answered will hardly get another: memory stays bounded.
            done = [key for key, old in self._batches.items() if not old.open]
            for key in done:
                del self._batches[key]
            batch = self._batches[start.step] = _Batch([], 0)
            self.set_boundary()
        batch.open += 1

    def end(self, start: Observation, finish: Observation | None, call: Call | None = None) -> list[OpenFinding]:
        """Take an entry's result (None: the log records none), or the call that another scope made of it. Return new cases."""
        self.call = None
        self._is_fresh = False
        if self._fast_forward is not None:
            if self._fast_forward.take(start, finish, self._count_changes(start)):
                self._number += 1
                return []
            self._catch_up()
        call = self.call = call or Call.from_observations(start, finish)
        if start.step is None and not self._settings.exempt_actions:
            return self._take((call,))
        batch = None if start.step is None else self._batches.get(start.step)
        if batch is None:
            return self._enter((call,), amend=False)
        batch.calls.append(call)
        batch.open -= 1
        if batch.open > 0:
            return []
        # Logs that write each call of a batch with its result close the batch after every call. The step then entered too
        # early: take it back, and enter it again with the late member. After another step, the late call is a step itself.
        amend = batch.taken is not None and bool(self._steps) and self._steps[-1] is batch.taken
        calls = tuple(batch.calls) if amend or batch.taken is None else (call,)
        raised = self._enter(calls, amend=amend)
        batch.taken = self._steps[-1] if self._steps and self._steps[-1].calls is calls else None
        return raised

    def _enter(self, calls: tuple[Call, ...], *, amend: bool) -> list[OpenFinding]:
        if self._settings.exempt_actions and any(call.start.action in self._settings.exempt_actions for call in calls):
            return []
        withdrawn: list[OpenFinding] = []
        if amend and self._before_last is not None:
            # Findings of the incomplete step keep their identity and time if the complete step raises them again.
            withdrawn = [case for case in self.active if case.raised[0] == self._steps[-1].calls[-1].start.id]
            self._restore(self._before_last)
            self.active = [case for case in self.active if case not in withdrawn]
        if calls[0].start.step is not None:
            self._before_last = self._mark()
        raised = self._take(calls)
        for old in withdrawn:
            again = next((case for case in raised if case.key == old.key), None)
            if again is None:
                old.resolved = "progress"
                continue
            old.adopt(again)
            raised.remove(again)
            self.cases.remove(again)
            self.active[self.active.index(again)] = old
        return raised

    def _count_changes(self, start: Observation) -> int:
        """Return how many changes by others, and messages to the agent, may have made a question a new one."""
        # A page on another machine does not change because a file was written here.
        written = self.others_writings if self.others_writings and vocabulary.fetches(start) else 0
        return self.others_changes - written + self.heard

    def _take(self, calls: tuple[Call, ...]) -> list[OpenFinding]:
        step = ObservedStep(calls, self._number, self._count_changes(calls[0].start))
        step.foreseen = self.foreseen
        if self._replay:
            # After a retry, the same steps are expected again and not counted. The first different step ends that.
            if step.same(self._replay[0]):
                del self._replay[0]
                return []
            self._replay = []
        if self._attempt is None:
            self._attempt = self._mark()
        past = self._steps
        flags = self._wake_flags(step)
        plan = self._dispatch.detectors_for(flags)
        shown = plan.if_asleep if self._asleep else plan.all
        sightings = self._show(step, shown) if shown else None
        if self.opinions is not None:
            self.opinions += [(step, detector.opinion(step, past)) for detector in self._detectors]
        raised = self._update_cases(step, sightings or [], is_new=not flags & Wake.AGAIN) if self.active or sightings else []
        past.append(step)
        self._seen[step.query] = self._latest[step.action] = step
        self._number += 1
        # Cutting only at twice the window keeps the average cost of a step constant.
        if len(past) > 2 * self._settings.window:
            self._trim()
        if self.active and not self.is_explained:
            self._count_repeats(step)
        return raised

    def _count_repeats(self, step: ObservedStep) -> None:
        """Count consecutive steps in which only the one active loop went on; after enough of them, begin to fast-forward."""
        case = self.active[0]
        if len(self.active) > 1 or not case.is_last(step.calls[-1].start.id) or not may_stand(case, self._settings):
            self._candidate = None
        elif case is not self._candidate or not continues(step, self._steps, case.period, self._settings):
            self._candidate, self._repeated = case, 0
        else:
            self._repeated += 1
            # One round more than the detectors remember, since only then does all of their state come from this loop.
            if self._repeated >= rounds_kept(case, self._settings) + case.period:
                self._fast_forward = FastForward(case, self._steps, self._settings)

    def _catch_up(self) -> None:
        """Show the detectors the fast-forwarded steps, because now something else happens."""
        still, self._fast_forward, self._candidate = self._fast_forward, None, None
        if still is None or not still.count:
            return
        unseen, before = still.unseen()
        self._steps = before
        self._index()
        for step in unseen:
            plan = self._dispatch.detectors_for(self._wake_flags(step))
            self._show(step, plan.if_asleep if self._asleep else plan.all)
            self._steps.append(step)
            self._seen[step.query] = self._latest[step.action] = step
        self._steps = still.past_steps(self._steps)
        self._index()

    def _show(self, step: ObservedStep, shown: Sequence[tuple[Detector, bool]]) -> list[Sighting]:
        """Show a step to the detectors of a plan that want to see it. Return their sightings."""
        sightings: list[Sighting] = []
        for detector, woken in shown:
            if woken or detector.state:
                sighting = detector.take(step, self._steps)
                if sighting is not None and not self._is_off(sighting.kind, step.action):
                    sightings.append(sighting)
        self._asleep = not is_any_awake(self._detectors)
        return sightings

    def _is_off(self, kind: str, action: str) -> bool:
        return bool(self._settings.actions) and kind in self._settings.for_action(action).disabled

    def _wake_flags(self, step: ObservedStep) -> int:
        """Return what in a step may interest a detector (see `Wake`), at the cost of a few lookups."""
        flags = step.traits | Wake.ALWAYS
        before = self._seen.get(step.query)
        if before is not None:
            flags |= self._flags_again(step, before)
        if self._steps and len(self._steps[-1].calls) > 1:
            flags |= Wake.IN_BATCH
        if step.failed:
            # No ECHO: detectors that wake on it ignore failed steps, and a comparison of answers is expensive.
            return flags | Wake.FAILED
        before = self._latest.get(step.action)
        return flags | Wake.ECHO if before is not None and step.echoes(before) else flags

    def _flags_again(self, step: ObservedStep, before: ObservedStep) -> int:
        distance = step.number - before.number
        # `_find_similar` may see twice the window (see `_trim`). The result must not depend on when the past was cut.
        if distance > self._settings.window:
            return 0
        flags = Wake.AGAIN | Wake.REPEATED if step.same(before) else Wake.AGAIN
        if distance == 1:
            flags |= Wake.NEXT
        return flags | Wake.NEAR if distance <= self._settings.max_period else flags

    def _trim(self) -> None:
        past = self._steps
        del past[: len(past) - self._settings.window]
        self._index()

    def _index(self) -> None:
        self._seen = {step.query: step for step in self._steps}
        self._latest = {step.action: step for step in self._steps}

    def _update_cases(
        self, step: ObservedStep, sightings: Sequence[Sighting], *, is_new: bool = False, spoken: bool = False
    ) -> list[OpenFinding]:
        """Extend or end the cases, and open a new one for the tightest sighting that no case covers.

        Messages and thoughts (``spoken``) are no steps, so they end no case that rests on steps.
        """
        belongs_to_loop = belongs_to_warning = False
        raised: list[OpenFinding] = []
        for case in self.active:
            match = next((seen for seen in sightings if seen.kind == case.kind and seen.key == case.key), None)
            if match is not None:
                if case.extend(step, match):
                    raised.append(case)
                if case.came_back():
                    self.came_back.append(case)
            elif spoken or not case.note(step, step.meaning(self._settings.pollers), is_new=is_new):
                continue
            if case.severity == "warn":
                belongs_to_warning = True
            else:
                belongs_to_loop = True
        if any(case.resolved for case in self.active):
            self.active = [case for case in self.active if case.resolved is None]
        # A step that belongs to a loop opens no other one: a looser description would only repeat it.
        opened = None if belongs_to_loop else self._open_tightest(step, sightings, proofs_only=belongs_to_warning)
        return raised if opened is None else [*raised, opened]

    def _open_tightest(self, step: ObservedStep, sightings: Sequence[Sighting], *, proofs_only: bool) -> OpenFinding | None:
        """Open, reopen or escalate one case: of the first sighting, in the order of DETECTORS, that says more than is known.

        One suspicion about a step is enough, so with ``proofs_only`` another one is left out.
        """
        for sighting in sightings:
            if proofs_only and sighting.severity == "warn":
                continue
            recent = self.cases[-_RECENT:]
            left = next((case for case in recent if case.continues(sighting)), None)
            if left is not None:
                left.reopen()
                left.extend(step, sighting)
                self.active.append(left)
                return left
            rival = next((case for case in reversed(recent) if case.overlaps(sighting)), None)
            if rival is None:
                # The remaining sightings describe the same steps more loosely.
                return self._open(sighting)
            # The agent was warned of these very steps. The suspicion is now proved.
            if rival.severity == "warn" and sighting.severity != "warn" and rival.resolved is None:
                rival.escalate(sighting)
                return rival
        return None

    def _open(self, sighting: Sighting) -> OpenFinding:
        case = OpenFinding(sighting, self.session, self._settings.left_after)
        case.confidence = round(case.confidence * self._doubt, 2)
        case.look_back(sighting.steps[0], self._steps)
        self.active.append(case)
        self.cases.append(case)
        return case

    def hear(self, event: Observation) -> list[OpenFinding]:
        """Show an event to the detectors that listen to its kind. Return the cases that it raised."""
        if self._fast_forward is not None:
            self._catch_up()
        self._is_fresh = False
        if self._attempt is None:
            self._attempt = self._mark()
        raised: list[OpenFinding] = []
        listeners = self._listeners.get(event.type or "", ())
        if self.others_changes != self._known_changes:
            self._known_changes = self.others_changes
            for detector in listeners:
                if detector.kind == "monologue":
                    detector.reset()  # others have worked since, so a repetition is no monologue
        for detector in listeners:
            sighting = detector.hear(event)
            if sighting is not None:
                raised += self._update_cases(sighting.steps[-1], [sighting], spoken=True)
            elif self.active:
                self._end_spoken(detector.kind)
        # If all detectors slept, only those that have just seen the event can have woken.
        self._asleep = not is_any_awake(listeners if self._asleep and not self._remembers else self._detectors)
        return raised

    def _end_spoken(self, kind: str) -> None:
        """End a finding that rests on events when its detector no longer hears the pattern."""
        for case in [case for case in self.active if case.kind == kind and case.is_spoken]:
            case.miss()
            if case.resolved is not None:
                self.active.remove(case)

    def answer(self, identity: str | None) -> None:
        """Note that a continuation was given, for the loop with this identity or, if it is None, for all active cases."""
        for case in self.active:
            if identity is None or case.identity == identity:
                case.answer()

    def tell(self) -> None:
        """Note that the agent was told to change course."""
        for case in self.active:
            case.tell()

    def speak(self) -> None:
        """Note that the agent said something new."""
        for case in self.active:
            # For a case about messages, another message is part of the pattern and no new course.
            if not case.is_spoken:
                case.speak()

    def converse(self, *, asks: bool) -> None:
        """Note words since the last round of each loop: the user asks for something, or an agent answers."""
        for case in self.active:
            case.converse(asks=asks)

    def last_changed_the_world(self) -> bool:
        """Whether the newest step may have changed what other agents see."""
        last = self._fast_forward.last if self._fast_forward is not None else self._steps[-1] if self._steps else None
        return last is not None and last.changes(self._settings.pollers)

    @property
    def has_acted(self) -> bool:
        """Whether the agent has made a step. Messages do not count."""
        return self._number > 0

    @property
    def is_awake(self) -> bool:
        """Whether a detector remembers something, so that it needs to see all steps."""
        return is_any_awake(self._watchful)

    def think(self, step: ObservedStep) -> list[Opinion]:
        """Return the current opinion of each detector on a step."""
        self._catch_up()
        return [detector.opinion(step, self._steps) for detector in self._detectors]

    def covers(self, record: str) -> bool:
        """Whether a record is the newest member of an unresolved case."""
        return any(case.is_last(record) for case in self.active)

    def set_boundary(self) -> None:
        """Mark the beginning of an attempt; `replay` takes back everything after it."""
        self._boundary = self._number
        self._attempt = None

    def replay(self) -> None:
        """Take back all steps of the current attempt, because its stream broke and the attempt is repeated.

        A proved loop is evidence and stays; otherwise a loop whose stream breaks now and then would never be found. In that
        case the same steps are expected again and not counted twice.
        """
        self._catch_up()
        if any(case.severity != "warn" for case in self.active):
            self._replay = [step for step in self._steps if step.number >= self._boundary]
            return
        mark = self._attempt
        if mark is None:
            return
        before = {id(case) for case, _ in mark.cases}
        for case in self.active:
            if id(case) not in before:
                case.resolved = "retry"
        self.active = [case for case in self.active if id(case) in before]
        self._restore(mark)

    def reset(self, why: str) -> None:
        """Forget all evidence and close the cases, because a person spoke. Repeated calls cost next to nothing."""
        if self._is_fresh:
            return
        for case in self.active:
            case.resolved = why
        self.active = []
        self._fast_forward = self._candidate = None
        self._steps.clear()
        self._seen.clear()
        self._latest.clear()
        self._replay = []
        if not self._asleep:
            for detector in self._detectors:
                if detector.state:
                    detector.reset()
            # Compactions are remembered across a message, which does not make the context smaller.
            self._asleep, self._remembers = True, is_any_awake(self._detectors)
        self.set_boundary()
        self._before_last = None
        self._is_fresh = True

    def _mark(self) -> _Mark:
        return _Mark(
            self._number,
            self._blank if self._asleep and not self._remembers else tuple(detector.state for detector in self._detectors),
            tuple((case, case.mark()) for case in self.active) if self.active else (),
        )

    def _restore(self, mark: _Mark) -> None:
        while self._steps and self._steps[-1].number >= mark.number:
            self._steps.pop()
        self._index()
        self._number = mark.number
        for detector, state in zip(self._detectors, mark.states, strict=True):
            detector.state = state
        self._asleep = not is_any_awake(self._detectors)
        for case, case_mark in mark.cases:
            case.restore(case_mark)
        # Cases resolved after the mark are active again.
        resumed = [case for case, _ in mark.cases if case.resolved is None and case not in self.active]
        self.active = resumed + self.active
