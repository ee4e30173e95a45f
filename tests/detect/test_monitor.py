"""The life of a finding and what the session as a whole decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.monitor import Monitor, detect
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep
from ctxmgr.types.finding import FindingKind, Observation, find_verdict
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


def test_a_different_answer_ends_a_loop_at_once() -> None:
    """A new successful answer to the repeated question is progress."""
    story = stuck()
    story.call("Bash", {"command": "pytest -q tests/x.py"}, "all passed")
    assert story.found()[0].resolved == "progress"


def test_two_other_steps_end_a_loop_and_one_does_not() -> None:
    """One look elsewhere is no way out; when the call comes back the loop has gone on, after two steps it was left."""
    story = stuck()
    story.call("Read", {"path": "a"}, "text a")
    assert story.found()[0].resolved is None
    story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    assert [(finding.count, finding.resolved) for finding in story.found()] == [(4, None)]
    story.call("Read", {"path": "b"}, "text b")
    story.call("Read", {"path": "c"}, "text c")
    assert [(finding.count, finding.resolved) for finding in story.found()] == [(4, "progress")]


def test_checking_after_real_edits_is_leaving_the_loop() -> None:
    """An edit between makes the check a new question, so edits lead out although the check still fails."""
    story = stuck()
    for number in range(2):
        story.call("Edit", {"path": "x.py", "new": number}, "applied")
        story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    assert [(finding.count, finding.resolved) for finding in story.found()] == [(3, "progress")]


def test_the_same_loop_coming_back_is_a_new_finding_on_new_evidence() -> None:
    """After a loop was left, three new rounds are wanted, and the identity is the same."""
    story = stuck()
    for path in "ab":
        story.call("Read", {"path": path}, path)
    for _ in range(2):
        story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    assert len(story.found()) == 1
    story.call("Bash", {"command": "pytest -q tests/x.py"}, "1 failed")
    first, second = story.found()
    assert (first.resolved, second.resolved) == ("progress", None)
    assert first.id != second.id
    assert first.evidence["identity"] == second.evidence["identity"]
    assert not set(first.members) & set(second.members)


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


def test_a_replay_after_a_broken_stream_is_not_counted_twice() -> None:
    """Steps that come again after a retry are skipped, while a loop that goes on beyond the replay is found."""
    story = Scenario()
    story.say("message")
    for _ in range(2):
        story.call("Read", {"path": "a"}, "text")
    story.say("retry")
    for _ in range(2):
        story.call("Read", {"path": "a"}, "text")
    assert story.found() == []
    story.call("Read", {"path": "a"}, "text")
    assert len(story.found()) == 1


def test_members_belong_to_one_description() -> None:
    """What is found as a repetition is not reported as a cycle or an error repetition as well."""
    story = Scenario()
    for _ in range(30):
        story.fail("Bash", {"command": "deploy"}, "PermissionError: the key file is locked")
    assert [(finding.kind, finding.count) for finding in story.found()] == [("repetition", 30)]


def test_a_loop_beside_another_agents_loop_is_its_own_finding() -> None:
    """Two agents that loop alike are two findings with the scopes to tell them apart."""
    story = Scenario()
    for _ in range(3):
        for agent in ("one", "two"):
            story.call("Read", {"path": "a"}, "text", agent=agent)
    assert [finding.scope.agent for finding in story.found()] == ["one", "two"]


def test_without_any_results_inputs_alone_are_compared_with_doubt() -> None:
    """A log that records no results needs one round more and is believed less; a first result ends that."""
    story = Scenario()
    for _ in range(3):
        story.open("Read", {"path": "a"})
    assert story.found() == []
    story.open("Read", {"path": "a"})
    (finding,) = story.found()
    assert finding.confidence < 0.7
    assert "no results" in finding.reason
    story.close("e0", "text")
    assert story.found()[0].resolved == "progress"


def _reads_again(story: Scenario, action: str = "Read", what: dict[str, str] | None = None, *, spoken: bool = True) -> None:
    """Ask once more without a recorded answer, after a thought that differs from the last."""
    if spoken:
        story.say("thought", {"text": f"reading once more, at {len(story.observations)}"}, agent="main")
    story.open(action, what or {"path": "a"})


def test_without_results_a_read_of_what_nobody_changed_has_a_known_answer() -> None:
    """An agent that went on between reads the same for the third time: a loop, though the log holds no result."""
    story = Scenario()
    for _ in range(2):
        _reads_again(story)
    assert story.found() == []
    _reads_again(story)
    (finding,) = story.found()
    assert (finding.kind, finding.severity, finding.count) == ("repetition", "loop", 3)
    assert finding.confidence < 0.7


def test_without_results_three_calls_in_flight_at_once_are_no_loop() -> None:
    """Nobody spoke between, so none of them may have been answered yet."""
    story = Scenario()
    for _ in range(3):
        _reads_again(story, spoken=False)
    assert story.found() == []


@pytest.mark.parametrize(("action", "what"), [("Bash", {"command": "python try.py"}), ("read_inbox", {"room": "a"})])
def test_without_results_what_may_have_changed_needs_one_round_more(action: str, what: dict[str, str]) -> None:
    """A program that is run again, or an inbox that is looked at again, may have brought something new."""
    story = Scenario()
    for _ in range(3):
        _reads_again(story, action, what)
    assert story.found() == []


def test_without_results_another_agents_change_makes_the_question_new() -> None:
    """Each read follows an edit by someone else, so its answer is not known."""
    story = Scenario()
    for number in range(3):
        _reads_again(story)
        story.open("Edit", {"path": "a", "old": number, "new": number + 1}, agent="editor")
    assert [finding for finding in story.found() if finding.scope.agent == "main"] == []


def test_without_results_work_given_anew_makes_the_question_new() -> None:
    """Whoever gets another task may have to read again; the same task a second time is no other one."""
    fresh, again = Scenario(), Scenario()
    for number in range(4):
        fresh.open("delegate", {"to": "main", "task": f"task {number}"}, agent="planner")
        again.open("delegate", {"to": "main", "task": f"task {number % 2}"}, agent="planner")
        if number:
            _reads_again(fresh)
            _reads_again(again)
    assert [finding for finding in fresh.found() if finding.scope.agent == "main"] == []
    _reads_again(again)
    assert [finding.kind for finding in again.found() if finding.scope.agent == "main"] == ["repetition"]


def test_calls_left_open_among_recorded_results_are_unknown() -> None:
    """Missing results in a log that records results are neither progress nor a loop."""
    story = Scenario()
    story.call("Read", {"path": "b"}, "text")
    for _ in range(6):
        story.open("Read", {"path": "a"})
    assert story.found() == []


def test_late_results_count_in_the_order_they_come() -> None:
    """Results that arrive after another call began are compared all the same."""
    story = Scenario()
    for _ in range(3):
        slow = story.open("board", {"owner": "me"})
        story.call("work", {"on": "x"}, "done")
        story.close(slow, "frozen")
    assert [finding.kind for finding in story.found()] == ["cycle"]


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
