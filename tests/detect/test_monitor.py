"""The life of a finding and what the session as a whole decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep
from ctxmgr.types.finding import FindingKind, Observation, find_verdict
from tests.builders import detect
from tests.detect.scenario import Scenario


def stuck(rounds: int = 3) -> Scenario:
    """Return a session that reads one file over and over after a real step."""
    story = Scenario()
    story.call("Read", {"path": "plan.md"}, "the plan")
    for _ in range(rounds):
        story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    return story


def test_a_finding_carries_its_evidence() -> None:
    """Kind, period, count, ids, places, last progress, scope, the repeated step and a sentence are all there."""
    (finding,) = stuck(5).found()
    assert (finding.kind, finding.severity, finding.period, finding.count) == ("repetition", "loop", 1, 5)
    assert (finding.first, finding.raised_at, finding.last, finding.last_progress) == ("e1", "e3", "e5", "e0")
    assert finding.members == ["e1", "e2", "e3", "e4", "e5"]
    assert (finding.scope.agent, finding.scope.process) == ("main", "p1")
    assert finding.evidence["indexes"] == {
        "first": 1, "last": 5, "raisedAt": 3, "lastProgress": 0, "members": [1, 2, 3, 4, 5],
    }  # fmt: skip
    assert finding.evidence["steps"] == [{"action": "Bash", "inputType": "shape", "input": {"command": "pytest -q tests/x.py"}}]
    assert finding.evidence["result"] == "1 failed"
    assert finding.reason == 'main ran Bash "pytest -q tests/x.py" 5 times and got the same result each time (1 failed)'


def test_recorded_text_is_tamed_in_the_sentence() -> None:
    """Long, many-lined and control characters never reach the reason."""
    story = Scenario()
    for _ in range(3):
        story.call("Bash", {"command": "echo \x1b[31m" + "x\n" * 500}, "\x07" + "y" * 5000)
    reason = story.found()[0].reason
    assert reason.isprintable()
    assert len(reason) < 300


def test_an_ended_process_does_not_resolve_its_loop() -> None:
    """A loop that still ran when its process ended is unresolved; a later process resolves it."""
    story = stuck()
    story.end()
    assert story.found()[0].resolved is None
    story.call("Read", {"path": "a"}, "text", process="p2")
    assert story.found()[0].resolved == "process"


def test_a_new_human_turn_without_a_message_resets() -> None:
    """A changed turn is a person who spoke, also where the log holds no message."""
    story = Scenario()
    for turn in range(5):
        story.call("status", {}, "active", turn=turn)
    assert story.found() == []


def test_a_synthetic_user_message_is_a_nudge() -> None:
    """A user message that says itself that a program wrote it resets nothing."""
    story = Scenario()
    for _ in range(3):
        story.call("Read", {"path": "a"}, "text")
        story.say("user_message", {"text": "go on", "synthetic": True})
    assert len(story.found()) == 1


@pytest.mark.parametrize(
    ("kind", "data", "resolved"),
    [
        ("nudge", {"text": "try another way"}, "answered"),
        ("user_message", {"text": "try another way", "synthetic": True}, None),
    ],
)
def test_only_a_nudge_corrects(kind: str, data: dict[str, Any], resolved: str | None) -> None:
    """An agent that does something else after a nudge has heeded it; what one program says to another asks for nothing."""
    story = Scenario()
    for _ in range(3):
        story.call("Read", {"path": "a"}, "text")
    story.say(kind, data)
    story.call("Read", {"path": "b"}, "other text")
    (finding,) = story.found()
    assert finding.resolved == resolved


def test_an_interrupted_call_is_a_person_stepping_in() -> None:
    """A result with status interrupted resets like the interrupt itself."""
    story = stuck(2)
    call = story.open("Bash", {"command": "make"})
    story.close(call, status="interrupted")
    story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    assert story.found() == []


def test_a_loop_beside_another_agents_loop_is_its_own_finding() -> None:
    """Two agents that loop alike are two findings with the scopes to tell them apart."""
    story = Scenario()
    for _ in range(3):
        for agent in ("one", "two"):
            story.call("Read", {"path": "a"}, "text", agent=agent)
    assert [finding.scope.agent for finding in story.found()] == ["one", "two"]


def test_calls_left_open_among_recorded_results_are_unknown() -> None:
    """Missing results in a log that records results are neither progress nor a loop."""
    story = Scenario()
    story.call("Read", {"path": "b"}, "text")
    for _ in range(6):
        story.open("Read", {"path": "a"})
    assert story.found() == []


def test_the_verdict_speaks_of_what_lasts() -> None:
    """Unresolved loops and stalls make the verdict; resolved ones only when asked for."""
    story = stuck()
    story.open("Bash", {"command": "make"})
    monitor, _ = story.watched()
    assert find_verdict(monitor.findings()) == "loop+hung"
    story.say("user_message")
    monitor, _ = story.watched()
    assert find_verdict(monitor.findings()) == "healthy"
    assert find_verdict(monitor.findings(), ever=True) == "loop"


def test_a_result_without_its_call_is_passed_over() -> None:
    """A finish whose start was never seen, and a repeated record, change nothing."""
    story = stuck()
    doubled = [observation for observation in story.observations for _ in range(2)]
    stray = Observation("finish", 99, "unknown", "s", action="Bash", status="ok")
    assert detect([stray, *doubled], live=True) == detect(story.observations, live=True)


class _Listener:
    """A detector of events, as monologues need it."""

    kind: FindingKind = "monologue"
    wake = Wake.ALWAYS
    watchful = True
    session_wide = False
    hears = frozenset({"message"})

    def __init__(self, settings: DetectSettings) -> None:
        self.state: tuple[Observation, ...] = ()

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Forget what was said: the agent acted."""
        self.state = ()
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """See a loop in three messages."""
        self.state = (*self.state, event)
        if len(self.state) < 3:
            return None
        steps = tuple(ObservedStep((Call.from_observations(each, None),)) for each in self.state)
        return Sighting("monologue", "talk", 1, steps, 3, 0.5)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Have none."""
        return Opinion("monologue", "", 0, 3, "it acted")

    def reset(self) -> None:
        """Forget everything."""
        self.state = ()


def test_a_detector_may_listen_to_events() -> None:
    """What is said reaches the detectors of the agent that said it, and may raise a finding."""
    story = Scenario()
    story.call("Read", {"path": "a"}, "text")
    for _ in range(3):
        story.say("message", {"text": "hm"}, agent="main")
        story.say("message", {"text": "hm"}, agent="other")
    _, raised = story.watched(None, detectors=(_Listener,))
    assert [(finding.kind, finding.scope.agent) for _, finding in raised] == [("monologue", "main"), ("monologue", "other")]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_observations = st.lists(
    st.builds(
        Observation,
        kind=st.sampled_from(["start", "finish", "event", "end"]),
        seq=st.integers(0, 9),
        id=st.sampled_from(["", "a", "b", "c"]),
        session=st.just("s"),
        index=st.none() | st.integers(0, 3),
        process=st.sampled_from([None, "p", "q"]),
        agent=st.sampled_from([None, "x", "y"]),
        at=st.none() | st.floats(0, 1e10),
        turn=st.none() | st.integers(0, 1),
        step=st.none() | st.integers(0, 1),
        parent=st.sampled_from([None, "a", "b"]),
        action=st.sampled_from(["", "Task", "Bash", "ask_user"]),
        input=_json,
        status=st.sampled_from([None, "ok", "error", "denied", "interrupted", "odd"]),
        output=_json,
        error=st.none() | st.dictionaries(st.sampled_from(["type", "message"]), _json),
        timeout_ms=st.none() | st.floats(),
        type=st.sampled_from([None, "", "retry", "message", "user_message", "waiting", "progress"]),
        data=_json,
        meta=_json,
    ),
    max_size=30,
)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(_observations, st.none() | st.floats(0, 1e10))
def test_no_sequence_of_observations_raises(observations: list[Any], now: float | None) -> None:
    """Whatever comes in whatever order, the monitor answers, and twice the same."""
    first, second = Monitor(), Monitor()
    for observation in observations:
        first.observe(observation)
        second.observe(observation)
        second.findings(now)
    assert [finding.id for finding in first.findings(now)] == [finding.id for finding in second.findings(now)]
