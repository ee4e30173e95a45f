"""The rules that hold for every detector: one battery, run for each of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ctxmgr.detect import DETECTORS
from ctxmgr.detect.busy import BusyDetector
from ctxmgr.detect.chanting import ChantingDetector
from ctxmgr.detect.context_loop import ContextLoopDetector
from ctxmgr.detect.cycle import CycleDetector
from ctxmgr.detect.denied import DeniedDetector
from ctxmgr.detect.edit_revert import EditRevertDetector
from ctxmgr.detect.error_repetition import ErrorRepetitionDetector
from ctxmgr.detect.escalating_failure import EscalatingFailureDetector
from ctxmgr.detect.interface import Detector
from ctxmgr.detect.interleaved import InterleavedDetector
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.monologue import MonologueDetector
from ctxmgr.detect.near_duplicate import NearDuplicateDetector
from ctxmgr.detect.no_progress import NoProgressDetector
from ctxmgr.detect.ping_pong import PingPongDetector
from ctxmgr.detect.recovery_loop import RecoveryLoopDetector
from ctxmgr.detect.repetition import RepetitionDetector
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.sleep_budget import SleepBudgetDetector
from ctxmgr.detect.stagnation import StagnationDetector
from ctxmgr.detect.step import Call, Step
from ctxmgr.detect.trivial_change import TrivialChangeDetector
from ctxmgr.detect.unknown_tool import UnknownToolDetector
from tests.detect.scenario import Scenario


class DetectorContract:
    """What a detector must do; a subclass says how its pattern looks."""

    detector: type[Detector]
    rounds = 3
    outside = 0
    """Rounds before the first that is a member."""

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Add one round of the pattern and return the id of its last call."""
        raise NotImplementedError

    def indexes(self, members: int) -> list[int | None]:
        """Return the places of that many members; events have none."""
        return list(range(members))

    def _watch(self, story: Scenario, settings: DetectSettings | None = None) -> tuple[Monitor, list[tuple[str, Any]]]:
        return story.watched(settings, detectors=(self.detector,))

    def test_is_quiet_on_healthy_work(self) -> None:
        """Varied work with some checks between raises nothing."""
        story = Scenario()
        for number in range(20):
            story.call("Read", {"path": f"src/m{number}.py"}, f"code {number}")
            story.call("Edit", {"path": f"src/m{number}.py", "old": "a", "new": "b"}, "applied")
            story.fail("Bash", {"command": "pytest -q"}, f"{40 - number} failed")
        assert self._watch(story)[1] == []

    @pytest.mark.requirement("FR-001", "FR-005", "SC-002")
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

    @pytest.mark.requirement("FR-006", "SC-013")
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
        oddities: list[Any] = [None, [], {}, 10**5000, math.nan, "\ud800", deep, {1: 2, "a": {3}}, b"\xff"]
        for number, odd in enumerate(oddities * 2):
            story.call("Odd", odd, odd, meta=odd)
            story.open("Odd", odd, id=f"odd{number}", step=number, timeout_ms=-1.0)
            story.close(f"odd{number}", odd, status="error", error=odd)
            story.say("message", odd)
        monitor, raised = self._watch(story)
        assert raised == []
        assert monitor.findings() is not None

    def test_its_state_is_a_value(self) -> None:
        """Putting back an earlier state takes back every step since."""
        story = Scenario()
        for number in range(self.rounds):
            self.round(story, number)
        steps = [
            Step((Call.of(start, finish),), number)
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
        """Whatever a step was, the detector says what it compared, how far it counted and why that was not enough."""
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
            return  # what is said is no action
        assert self._watch(story, DetectSettings(exempt_actions=exempt))[1] == []


class TestRepetition(DetectorContract):
    detector = RepetitionDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One call with one answer."""
        return story.call("Grep", {"pattern": "handler"}, "no match", **fields)


class TestCycle(DetectorContract):
    detector = CycleDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Look here, look there, look elsewhere."""
        story.call("Read", {"path": "a.py"}, "text a", **fields)
        story.call("Read", {"path": "b.py"}, "text b", **fields)
        return story.call("Grep", {"pattern": "x"}, "a.py:1", **fields)


class TestErrorRepetition(DetectorContract):
    detector = ErrorRepetitionDetector
    rounds = 4

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another command, the same cause."""
        return story.fail("Bash", {"command": f"./tool --try {number}"}, "PermissionError: key file is locked", **fields)


class WarningContract(DetectorContract):
    """What holds for detectors that warn first: going from warning to loop is the same finding again."""

    def _watch(self, story: Scenario, settings: DetectSettings | None = None) -> tuple[Monitor, list[tuple[str, Any]]]:
        monitor, raised = super()._watch(story, settings)
        return monitor, [(record, finding) for record, finding in raised if len(finding.evidence["raised"]) == 1]

    def test_a_warning_becomes_a_loop_in_place(self) -> None:
        """The finding keeps its id and its raisedAt, and lists both records."""
        story = Scenario()
        for number in range(self.rounds + 4):
            self.round(story, number)
        first, second = (finding for _, finding in story.watched(None, detectors=(self.detector,))[1])
        assert (first.id, first.raised_at) == (second.id, second.raised_at)
        assert (first.severity, second.severity) == ("warn", "loop")
        assert [each["severity"] for each in second.evidence["raised"]] == ["warn", "loop"]
        assert second.evidence["raised"][0]["id"] == first.raised_at


class TestInterleaved(WarningContract):
    detector = InterleavedDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Something new, then the same failing call."""
        story.call("Look", {"at": f"{number} {fields}"}, f"seen {number}", agent="aside")
        if number:
            story.call("Read", {"path": f"d{number}"}, f"text {number}", **fields)
        return story.fail("Bash", {"command": "make check"}, "target out of date", **fields)

    def indexes(self, members: int) -> list[int | None]:
        """Every third entry from the second on is the failing call; the first round has no read."""
        return [1, *(1 + 3 * number for number in range(1, members))]


class TestStagnation(DetectorContract):
    detector = StagnationDetector
    rounds = 6

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another pattern in the same file, the same line."""
        return story.call("Grep", {"pattern": f"total|v{number}", "path": "deck.rs"}, "118: cumulative tokens", **fields)


class TestNearDuplicate(DetectorContract):
    detector = NearDuplicateDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Search for the same with a counter in it."""
        return story.call("search", {"q": "handler", "attempt": number}, "no match", **fields)


class TestTrivialChange(DetectorContract):
    detector = TrivialChangeDetector
    rounds = 15

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Fetch the same report but for its clock."""
        return story.call("fetch_report", {"n": 1}, f"10:00:{number:02d} all quiet", **fields)


class TestUnknownTool(DetectorContract):
    detector = UnknownToolDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another call of a tool that is not there."""
        return story.fail("magic", {"n": number}, "Tool magic not found", **fields)


class TestDenied(DetectorContract):
    detector = DeniedDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Ask for the same and be refused."""
        entry = story.open("Bash", {"command": "rm -rf build"}, **fields)
        story.close(entry, "not permitted", status="denied")
        return entry


class TestEditRevert(DetectorContract):
    detector = EditRevertDetector
    rounds = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Change a line and change it back."""
        story.call("Edit", {"path": "a.py", "old": "x = 1", "new": "x = 2"}, "ok", **fields)
        return story.call("Edit", {"path": "a.py", "old": "x = 2", "new": "x = 1"}, "ok", **fields)


class TestEscalatingFailure(WarningContract):
    detector = EscalatingFailureDetector
    rounds = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another failed attempt at one subtask."""
        return story.fail("run_cmd", {"n": number}, f"failed {number}", task="goal/task/sub", **fields)


class TestBusy(DetectorContract):
    detector = BusyDetector
    rounds = 56
    outside = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One of two known calls, as before."""
        return story.call("Read", {"path": f"m{(number * number) % 2}"}, "text", **fields)

    def indexes(self, members: int) -> list[int | None]:
        """Leave out the first calls of all, which are new."""
        return list(range(2, members + 2))


class TestSleepBudget(DetectorContract):
    detector = SleepBudgetDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Sleep a little longer each time."""
        return story.call("Bash", {"command": f"sleep {60 + number}"}, "", **fields)


class SpokenContract(DetectorContract):
    """What holds for detectors of events too; their rounds are events."""

    def indexes(self, members: int) -> list[int | None]:
        """Events have no place among the entries."""
        return [None] * members

    def test_its_state_is_a_value(self) -> None:
        """Putting back an earlier state takes back every event since."""
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


class TestMonologue(SpokenContract):
    detector = MonologueDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Say that all is well."""
        return story.say("message", {"text": "All is well."}, agent=fields.get("agent", "main"), process=fields.get("process"))


class TestChanting(SpokenContract):
    detector = ChantingDetector
    rounds = 10

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One more sentence of the chant."""
        return story.say(
            "agent_message_chunk",
            {"text": "I will read the file again. "},
            agent=fields.get("agent", "main"),
            process=fields.get("process"),
        )


class TestContextLoop(SpokenContract):
    detector = ContextLoopDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another compaction."""
        return story.say("compaction", None, agent=fields.get("agent", "main"), process=fields.get("process"))

    def test_a_program_does_not_reset_it(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nudges, messages and continuations between compactions leave the evidence standing."""
        for event in ("nudge", "continuation", "message", "heartbeat", "retry"):
            super().test_a_program_does_not_reset_it(event)


class TestNoProgress(SpokenContract):
    detector = NoProgressDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Report that there is no progress."""
        return story.say(
            "ledger", {"is_progress_being_made": False}, agent=fields.get("agent", "main"), process=fields.get("process")
        )


class SessionContract(SpokenContract):
    """What holds for detectors that follow all agents together."""

    def test_agents_and_processes_are_kept_apart(self) -> None:
        """One instance follows the whole session."""
        assert self.detector.session_wide

    def test_it_has_an_opinion_on_every_step(self) -> None:
        """Of any agent's step it says why that was no part of its pattern."""
        story = Scenario()
        story.call("Read", {"path": "a"}, "text")
        monitor = Monitor(detectors=(self.detector, RepetitionDetector), explain=0)
        for observation in story.observations:
            monitor.observe(observation)
        assert [opinion.detector for opinion in monitor.explain(0)] == [self.detector.kind, "repetition"]


class TestRecoveryLoop(SessionContract):
    detector = RecoveryLoopDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another answer to the same loop."""
        return story.say("continuation", {"answers": ["one loop"]})


class TestPingPong(SessionContract):
    detector = PingPongDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Refuse, and ask the same again."""
        fields = {"agent": "main", **fields}
        if number:
            story.say(
                "message",
                {"text": "Not without the design."},
                agent=f"{fields['agent']}'s coder",
                process=fields.get("process"),
            )
        return story.say("message", {"text": "Please build it."}, **fields)


def test_every_detector_inherits_the_battery() -> None:
    """No detector is registered without its contract test."""
    found = {
        each.detector
        for base in (DetectorContract, WarningContract, SpokenContract, SessionContract)
        for each in base.__subclasses__()
        if hasattr(each, "detector")
    }
    assert found == set(DETECTORS)
