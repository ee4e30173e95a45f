"""The rules that hold for every detector (see `ctxmgr.detect.interface`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from ctxmgr.detect.detectors.repeated_calls import RepetitionDetector
from ctxmgr.detect.interface import Detector
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep
from ctxmgr.types.finding import Finding, Observation

START = 1_760_000_000.0  # seconds since 1970; any fixed time, so that every run of the tests sees the same


class Scenario:
    """A session under construction; time advances by ``pace`` seconds before each call unless ``wait`` is given."""

    def __init__(self, *, agent: str = "main", process: str | None = "p1", pace: float = 2.0, timed: bool = True) -> None:
        self.agent, self.process, self.pace = agent, process, pace
        self.clock = START
        self.observations: list[Observation] = []
        self._timed = timed
        self._starts: dict[str, Observation] = {}

    def _add(self, **fields: Any) -> Observation:
        observation = Observation(seq=2 * len(self.observations), session="s", at=self.clock if self._timed else None, **fields)
        self.observations.append(observation)
        return observation

    def open(self, action: str, given: Any = None, *, wait: float | None = None, **fields: Any) -> str:
        """Begin a call and leave it open; return its id."""
        self.clock += self.pace if wait is None else wait
        index = len(self._starts)
        fields = {"agent": self.agent, "process": self.process, **fields}
        entry = fields.pop("id", f"e{index}")
        self._starts[entry] = self._add(
            kind="start", id=entry, index=index, action=action, input=given, input_type="shape", **fields
        )
        return entry

    def close(self, entry: str, output: Any = "", *, status: str = "ok", took: float = 0.0, error: Any = None) -> None:
        """Add the result of a call, ``took`` seconds later."""
        self.clock += took
        start = self._starts[entry]
        self._add(
            kind="finish", id=entry, index=start.index, agent=start.agent, process=start.process, action=start.action,
            input=start.input, input_type=start.input_type, step=start.step, turn=start.turn, meta=start.meta,
            parent=start.parent, timeout_ms=start.timeout_ms, status=status, output=output, error=error,
        )  # fmt: skip

    def call(
        self, action: str, given: Any = None, output: Any = "", *, status: str = "ok", took: float = 0.0, **fields: Any
    ) -> str:
        """Add a call with its result; return its id."""
        entry = self.open(action, given, **fields)
        self.close(entry, output, status=status, took=took)
        return entry

    def fail(self, action: str, given: Any, message: str, **fields: Any) -> str:
        """Add a call that ends in an error; return its id."""
        entry = self.open(action, given, **fields)
        self.close(entry, None, status="error", error={"type": "ToolError", "message": message})
        return entry

    def say(
        self, kind: str, data: Any = None, *, agent: str | None = None, wait: float = 1.0, process: str | None = None
    ) -> str:
        """Add an event; return its id."""
        self.clock += wait
        return self._add(kind="event", id=f"v{len(self.observations)}", type=kind, data=data, agent=agent, process=process).id

    def end(self, outcome: str | None = None) -> None:
        """End the process."""
        self._add(kind="end", id="", process=self.process, data=outcome)

    def watched(self, settings: DetectSettings | None = None, **options: Any) -> tuple[Monitor, list[tuple[str, Finding]]]:
        """Return a monitor that observed everything, and the (record id, finding) pairs that it raised."""
        monitor = Monitor(settings, **options)
        raised = [(observation.id, finding) for observation in self.observations for finding in monitor.observe(observation)]
        return monitor, raised

    def found(self, settings: DetectSettings | None = None) -> list[Finding]:
        """Return all loops ever raised, in their final state."""
        return [finding for finding in self.watched(settings)[0].findings(live=True) if finding.kind != "hung"]

    def stalls(self, after: float | None = None, settings: DetectSettings | None = None) -> list[Finding]:
        """Return the stalls, judged ``after`` seconds after the last record (None: at the end of the log)."""
        now = None if after is None else self.clock + after
        return [finding for finding in self.watched(settings)[0].findings(now) if finding.kind == "hung"]


def _read(story: Scenario, number: int) -> None:
    story.call("Read", {"path": f"elsewhere/{number}.py"}, f"text of {number}")


def _edit(story: Scenario, number: int) -> None:
    story.call("Edit", {"path": f"new/{number}.py", "old": f"v{number}", "new": f"w{number}"}, f"changed {number}")


NEW_WORK: dict[str, Callable[[Scenario, int], None]] = {"reads": _read, "edits": _edit}
"""Kinds of new work; each function adds one step that was never made before."""


class DetectorConformance:
    """The contract of every detector; a subclass defines `detector`, and `round`, which adds one round of its pattern."""

    detector: type[Detector]
    rounds = 3
    leaves_at_once = False
    """Whether a single step of another kind ends the loop; most detectors need two."""
    outside = 0
    """Number of rounds at the beginning that are not members of the finding."""

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Add one round of the pattern and return the id of its last call."""
        raise NotImplementedError

    def indexes(self, members: int) -> list[int | None]:
        """Return the entry indexes of so many members; None for events, which have no index."""
        return list(range(members))

    def _watch(self, story: Scenario, settings: DetectSettings | None = None) -> tuple[Monitor, list[tuple[str, Any]]]:
        return story.watched(settings, detectors=(self.detector,))

    def test_is_quiet_on_healthy_work(self) -> None:
        """Varied work with some checks between raises nothing."""
        story = Scenario()
        for number in range(20):
            story.call("Read", {"path": f"src/m{number}.py"}, f"code {number}")
            story.call("Edit", {"path": f"src/m{number}.py", "old": "a", "new": "b"}, "applied")
            # The same call with another result each time: a check between changes is no loop (ruling 7).
            story.fail("Bash", {"command": "pytest -q"}, f"{40 - number} failed")
        assert self._watch(story)[1] == []

    def test_raises_when_the_last_needed_round_is_complete(self) -> None:
        """The finding is raised by the very record that completes the threshold, and no earlier."""
        story = Scenario()
        last = [self.round(story, number) for number in range(self.rounds)]
        raised = self._watch(story)[1]
        assert [record for record, _ in raised] == [last[-1]]
        assert raised[0][1].raised_at == last[-1]
        assert raised[0][1].kind == self.detector.kind

    def test_one_finding_grows_with_the_loop(self) -> None:
        """A loop that goes on stays one finding, whose members and count grow while raisedAt stays."""
        story = Scenario()
        last = [self.round(story, number) for number in range(self.rounds + 4)]
        monitor, raised = self._watch(story)
        (finding,) = monitor.findings(live=True)
        assert len(raised) == 1
        assert (finding.id, finding.raised_at) == (raised[0][1].id, raised[0][1].raised_at)
        assert finding.count == self.rounds + 4 - self.outside
        assert finding.last == last[-1] == finding.members[-1]
        assert finding.evidence["indexes"]["members"] == self.indexes(len(finding.members))
        assert finding.resolved is None

    @pytest.mark.parametrize(("event", "reason"), [("user_message", "user"), ("interrupt", "interrupt")])
    def test_a_person_resets_it(self, event: str, reason: str) -> None:
        """A human message or an interrupt, and only that, forgets the evidence at once and closes what was found."""
        story = Scenario()
        for number in range(self.rounds - 1):
            self.round(story, number)
        story.say(event)
        for number in range(self.rounds - 1):
            self.round(story, number)
        assert self._watch(story)[1] == []
        self.round(story, self.rounds)
        story.say(event)
        (finding,) = self._watch(story)[0].findings(live=True)
        assert finding.resolved == reason

    @pytest.mark.parametrize("event", ["nudge", "compaction", "continuation", "message", "heartbeat", "retry"])
    def test_a_program_does_not_reset_it(self, event: str) -> None:
        """A nudge, a compaction, a continuation or a retry leaves the evidence standing."""
        story = Scenario()
        for number in range(self.rounds - 1):
            self.round(story, number)
        story.say("message")
        story.say(event)
        self.round(story, self.rounds)
        assert len(self._watch(story)[1]) == 1

    def test_agents_and_processes_are_kept_apart(self) -> None:
        """Three agents, or three processes, that each do the same thing once are no loop."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number, agent=f"agent-{number}")
        for number in range(self.rounds):
            self.round(story, number, process=f"process-{number}")
        assert self._watch(story)[1] == []

    def test_the_work_of_another_agent_does_not_hide_it(self) -> None:
        """A loop is found though another agent's healthy calls lie between its rounds."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
            story.call("Read", {"path": f"doc{number}"}, f"text {number}", agent="other")
        assert len(self._watch(story)[1]) == 1

    def standing(self, story: Scenario) -> list[str | None]:
        """Return for each finding what resolved it, None while it lasts."""
        return [finding.resolved for finding in self._watch(story)[0].findings(live=True)]

    @pytest.mark.parametrize("work", sorted(NEW_WORK))
    def test_two_new_steps_end_it(self, work: str) -> None:
        """Two new steps outside of the pattern end the loop; after one it still lasts."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        NEW_WORK[work](story, 0)
        assert self.standing(story) == (["progress"] if self.leaves_at_once else [None])
        NEW_WORK[work](story, 1)
        assert self.standing(story) == ["progress"]

    def test_it_lasts_again_when_it_goes_on(self) -> None:
        """A loop that was left and is taken up again lasts, as the same finding or as another one."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        for number in range(2):
            NEW_WORK["reads"](story, number)
        for number in range(self.rounds, 2 * self.rounds):
            self.round(story, number)
        assert None in self.standing(story)

    def test_another_way_after_an_answer_ends_it(self) -> None:
        """After a nudge, one step of another kind counts as an answer."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        story.say("nudge", {"text": "try something else"})
        assert self.standing(story) == [None]
        NEW_WORK["reads"](story, 0)
        assert self.standing(story) == ["answered"]

    def test_asking_often_changes_nothing(self) -> None:
        """Findings are the same whether they are asked for after every record or once, and in every replay."""
        story = Scenario()
        for number in range(self.rounds + 2):
            self.round(story, number)
        story.call("Read", {"path": "elsewhere"}, "new")
        asked = Monitor(detectors=(self.detector,))
        for observation in story.observations:
            asked.observe(observation)
            asked.findings(live=True)
        assert asked.findings(live=True) == self._watch(story)[0].findings(live=True)

    def test_odd_content_is_harmless(self) -> None:
        """Lists for objects, huge numbers, NaN, surrogates and deep nesting neither raise nor look alike."""
        deep: Any = "x"
        for _ in range(3000):
            deep = [deep]
        story = Scenario()
        # Foreign logs hold all of these; 10**5000 has more digits than Python converts, and 3000 levels exceed its recursion.
        oddities: list[Any] = [None, [], {}, 10**5000, math.nan, "\ud800", deep, {1: 2, "a": {3}}, b"\xff"]
        # Each value comes twice, so that equal ones meet and NaN meets itself.
        for number, odd in enumerate(oddities * 2):
            story.call("Odd", odd, odd, meta=odd)
            story.open("Odd", odd, id=f"odd{number}", step=number, timeout_ms=-1.0)
            story.close(f"odd{number}", odd, status="error", error=odd)
            story.say("message", odd)
        monitor, raised = self._watch(story)
        assert raised == []
        assert monitor.findings() is not None

    def test_its_state_is_a_value(self) -> None:
        """Restoring an earlier state undoes every step since."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        steps = [
            ObservedStep((Call.from_observations(start, finish),), number)
            for number, (start, finish) in enumerate(zip(story.observations[::2], story.observations[1::2], strict=True))
        ]
        detector = self.detector(DetectSettings())
        for place, step in enumerate(steps[:-1]):
            detector.take(step, steps[:place])
        state = detector.state
        first = detector.take(steps[-1], steps[:-1])
        detector.state = state
        assert first is not None
        assert detector.take(steps[-1], steps[:-1]) == first

    def test_it_has_an_opinion_on_every_step(self) -> None:
        """For every step the detector returns what it compared, how far it counted, and why that was not enough."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        story.call("Read", {"path": "elsewhere"}, "new")
        last = max(each.index for each in story.observations if each.index is not None)
        for index in range(last + 1):
            monitor = Monitor(detectors=(self.detector,), explain=index)
            for observation in story.observations:
                monitor.observe(observation)
            (opinion,) = monitor.explain(index)
            assert opinion.detector == self.detector.kind
            assert opinion.threshold >= 1
            assert opinion.why

    def test_it_can_be_switched_off(self) -> None:
        """A disabled kind raises nothing, and neither does an exempt action."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        assert self._watch(story, DetectSettings(disabled=frozenset({self.detector.kind})))[1] == []
        exempt = frozenset(observation.action for observation in story.observations if observation.action)
        if not exempt:
            return  # a detector of messages has no actions to exempt
        assert self._watch(story, DetectSettings(exempt_actions=exempt))[1] == []


class WarningConformance(DetectorConformance):
    """The contract of detectors that warn first: a warning and the loop that it becomes are one finding."""

    loop_after = 4
    """Rounds after the warning at which it becomes a loop."""

    def _watch(self, story: Scenario, settings: DetectSettings | None = None) -> tuple[Monitor, list[tuple[str, Any]]]:
        monitor, raised = super()._watch(story, settings)
        return monitor, [(record, finding) for record, finding in raised if len(finding.evidence["raised"]) == 1]

    def test_a_warning_becomes_a_loop_in_place(self) -> None:
        """The finding keeps its id and its raisedAt, and lists both records."""
        story = Scenario()
        for number in range(self.rounds + self.loop_after):
            self.round(story, number)
        first, second = (finding for _, finding in story.watched(None, detectors=(self.detector,))[1])
        assert (first.id, first.raised_at) == (second.id, second.raised_at)
        assert (first.severity, second.severity) == ("warn", "loop")
        assert [each["severity"] for each in second.evidence["raised"]] == ["warn", "loop"]
        assert second.evidence["raised"][0]["id"] == first.raised_at


class SpokenConformance(DetectorConformance):
    """The contract of detectors of events, whose rounds are events."""

    def indexes(self, members: int) -> list[int | None]:
        """Events have no index."""
        return [None] * members

    def test_its_state_is_a_value(self) -> None:
        """Restoring an earlier state undoes every event since."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        detector = self.detector(DetectSettings())
        for event in story.observations[:-1]:
            detector.hear(event)
        state = detector.state
        first = detector.hear(story.observations[-1])
        detector.state = state
        second = detector.hear(story.observations[-1])
        assert first is not None
        assert second is not None
        seen, again = ([step.first.start for step in sighting.steps] for sighting in (first, second))
        assert (first.key, first.facts, seen) == (second.key, second.facts, again)


class SessionConformance(SpokenConformance):
    """The contract of detectors that follow all agents together."""

    def test_agents_and_processes_are_kept_apart(self) -> None:
        """One instance follows the whole session."""
        # Such a detector sees all agents in one, so there is nothing to keep apart.
        assert self.detector.session_wide

    def test_it_has_an_opinion_on_every_step(self) -> None:
        """For any agent's step it says why that was not part of its pattern."""
        story = Scenario()
        story.call("Read", {"path": "a"}, "text")
        monitor = Monitor(detectors=(self.detector, RepetitionDetector), explain=0)
        for observation in story.observations:
            monitor.observe(observation)
        assert [opinion.detector for opinion in monitor.explain(0)] == [self.detector.kind, "repetition"]
