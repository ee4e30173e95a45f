"""The design's rulings on what is the same, and on what is progress."""

from __future__ import annotations

import pytest

from tests.detect.scenario import Scenario


@pytest.mark.requirement("R-07", "FR-001")
def test_the_same_action_and_input_type_alone_is_no_loop() -> None:
    """Action and input type repeat ten times; inputs and results differ; nothing is raised (the type is only told)."""
    story = Scenario()
    for number in range(10):
        story.call("Read", {"path": f"src/part{number}.py"}, f"text of part {number}")

    assert story.found() == []


@pytest.mark.requirement("R-07")
def test_the_same_call_with_news_each_time_is_no_loop() -> None:
    """Action and input repeat; each result is new; nothing is raised."""
    story = Scenario()
    for number in range(10):
        story.call("next_ticket", {"queue": "open"}, f"ticket {number}: {'abcdefghij'[number] * 5}")

    assert story.found() == []


@pytest.mark.requirement("R-09")
def test_only_entries_and_results_are_progress() -> None:
    """Heartbeats for ten minutes do not hide a stall; a new result ends it; waiting for a person is none."""
    story = Scenario()
    story.call("Bash", {"command": "ls"}, "a")
    for _ in range(60):
        story.say("heartbeat", wait=10)
    assert [finding.kind for finding in story.stalls(after=1)] == ["hung"]

    story.call("Bash", {"command": "pwd"}, "/")
    assert story.stalls(after=1) == []

    story.say("waiting")
    assert story.stalls(after=3_600) == []


@pytest.mark.requirement("R-09")
@pytest.mark.parametrize("sign", ["heartbeat", "tool_call_update"])
def test_a_log_that_ends_with_a_sign_of_life_does_not_end_in_a_stall(sign: str) -> None:
    """Whoever made the open call was still there when the log ended; only a clock can say that it took too long."""
    story = Scenario()
    story.open("run_tests", {"command": "pytest"}, timeout_ms=1_200_000)
    story.say(sign, agent="main")

    assert story.stalls() == []
    assert len(story.stalls(after=1_300)) == 1


@pytest.mark.requirement("R-09")
def test_a_parent_whose_child_went_on_is_not_where_the_log_ends() -> None:
    """The launching call is open because its child worked; the child's own open call is the stall."""
    story = Scenario()
    story.open("Task", {"prompt": "look"})
    story.call("Read", {"path": "a"}, "text", agent="child")
    assert story.stalls() == []

    inner = story.open("Bash", {"command": "make"}, agent="child")
    assert [finding.members for finding in story.stalls()] == [[inner]]
