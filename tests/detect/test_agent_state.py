"""The steps of one agent: when its loop has ended, is left, comes back, or is only replayed."""

from __future__ import annotations

import pytest

from tests.detect.scenario import Scenario
from tests.detect.test_monitor import stuck


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


def test_late_results_count_in_the_order_they_come() -> None:
    """Results that arrive after another call began are compared all the same."""
    story = Scenario()
    for _ in range(3):
        slow = story.open("board", {"owner": "me"})
        story.call("work", {"on": "x"}, "done")
        story.close(slow, "frozen")
    assert [finding.kind for finding in story.found()] == ["cycle"]
