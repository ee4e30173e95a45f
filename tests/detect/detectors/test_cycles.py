"""Rounds of several steps: found at any period, and only when nothing in them is new."""

from __future__ import annotations

import pytest

from ctxmgr.detect.settings import DetectSettings
from tests.detect.scenario import Scenario


def go_round(story: Scenario, period: int, steps: int, start: int = 0) -> None:
    """Take steps through a cycle of the given period."""
    for number in range(start, start + steps):
        story.call("Read", {"path": f"f{number % period}"}, f"text {number % period}")


@pytest.mark.requirement("SC-002")
@pytest.mark.parametrize("period", range(2, 13))
def test_every_period_is_found_at_its_third_round(period: int) -> None:
    """A cycle is raised by the last step of its third round, with its primitive period."""
    story = Scenario()
    go_round(story, period, 3 * period - 1)
    assert story.found() == []
    go_round(story, period, 1, 3 * period - 1)
    (finding,) = story.found()
    assert (finding.kind, finding.period, finding.count) == ("cycle", period, 3)
    assert len(finding.evidence["steps"]) == period


def test_a_period_beyond_the_longest_is_left_alone() -> None:
    """Two passes over a batch of fifteen are work."""
    story = Scenario()
    go_round(story, 15, 30)
    assert story.found() == []


def test_the_identity_does_not_depend_on_where_the_cycle_is_entered() -> None:
    """A cycle entered at another place has the same identity, the key of the attempt cap."""
    one, other = Scenario(), Scenario()
    go_round(one, 4, 12)
    go_round(other, 4, 12, start=3)
    assert one.found()[0].evidence["identity"] == other.found()[0].evidence["identity"]


def test_one_new_answer_in_each_round_is_progress() -> None:
    """A long cycle in which one member brings something new each round is work."""
    story = Scenario()
    for number in range(8):
        go_round(story, 6, 6)
        story.call("Bash", {"command": "pytest"}, f"{8 - number} failed")
    assert story.found() == []


def test_an_answer_that_swings_to_and_fro_is_news() -> None:
    """A board that alternates between two states changes at every look."""
    story = Scenario()
    for number in range(12):
        story.call("board", {"owner": "me"}, f"state {number % 2}")
    assert story.found() == []


def test_a_poll_with_a_pause_is_patience() -> None:
    """Poll and sleep in turn are patience even with one constant answer; without the sleep they are not."""
    paced, tight = Scenario(), Scenario()
    for _ in range(6):
        paced.call("job_output", {"job": 3}, "still running")
        paced.call("Bash", {"command": "sleep 5"}, "")
        tight.call("job_output", {"job": 3}, "still running")
        tight.call("Bash", {"command": "ls"}, "a")
    assert paced.found() == []
    assert len(tight.found()) == 1


def test_edits_between_make_checks_different_rounds() -> None:
    """Edit and test with a new edit each time is work, though the test fails alike; the same edit again is a cycle."""
    working, stuck = Scenario(), Scenario()
    for number in range(5):
        working.call("Edit", {"path": "a", "new": number}, "applied")
        working.fail("Bash", {"command": "pytest"}, "1 failed")
        stuck.call("Edit", {"path": "a", "new": 0}, "applied")
        stuck.fail("Bash", {"command": "pytest"}, "1 failed")
    assert working.found() == []
    assert [(finding.kind, finding.period) for finding in stuck.found()] == [("cycle", 2)]


def test_two_dead_ends_taken_in_turn_are_a_cycle() -> None:
    """Two commands that fail alternately, each with its own error, are one cycle and no error repetition."""
    story = Scenario()
    for _ in range(4):
        story.fail("Bash", {"command": "npm install"}, "EACCES: permission denied")
        story.fail("Bash", {"command": "yarn"}, "EPERM: operation not permitted")
    assert [finding.kind for finding in story.found()] == ["cycle"]


def test_the_longest_period_is_a_setting() -> None:
    """A cycle longer than the configured longest period is not sought."""
    story = Scenario()
    go_round(story, 6, 18)
    assert story.found(DetectSettings(max_period=5)) == []


def _restart(story: Scenario, number: int, said: str = "FATAL: QUEUE_DSN is not set") -> None:
    story.call("get_pods", {"app": "w"}, f"w CrashLoopBackOff {number} restarts, {37 * number}s")
    story.call("get_logs", {"app": "w"}, f"10:00:{number:02d} pid={number * 7} {said}")
    story.call("scale_deployment", {"app": "w", "to": 2}, "scaled")


def test_a_round_in_which_only_numbers_grow_is_a_cycle_when_one_act_never_helps() -> None:
    """Restarts and ages grow by themselves: the sixth round with the same act and the same trouble is a cycle."""
    story = Scenario()
    for number in range(5):
        _restart(story, number)
    assert story.found() == []
    _restart(story, 5)
    (finding,) = story.found()
    assert (finding.kind, finding.period, finding.severity) == ("cycle", 3, "loop")


@pytest.mark.parametrize("case", ["no trouble is told", "no act between", "the act has news", "another trouble"])
def test_growing_numbers_are_progress_otherwise(case: str) -> None:
    """Numbers may count what was done: without an act that never helps, and trouble that stays, they are no cycle."""
    story = Scenario()
    for number in range(12):
        if case == "no trouble is told":
            story.call("get_queue", {"q": 1}, f"{40 - number} waiting in line, {37 * number}s")
            story.call("run_next", {"q": 1}, "one taken")
        elif case == "no act between":
            story.call("get_pods", {"app": "w"}, f"w failed {number} times")
            story.call("get_logs", {"app": "w"}, f"{number} failed")
        elif case == "the act has news":
            story.call("get_pods", {"app": "w"}, f"{40 - number} failed")
            story.call("retry_one", {"app": "w"}, f"retried {number}")
        else:
            _restart(story, number, said=f"FATAL: {'abcdefghijklmn'[number] * 4} is not set")
    assert story.found() == []


def look_for_news(story: Scenario, agent: str, of: str, answer: str = "no new messages") -> None:
    """Let an agent wait 20 s, and then look whether another one has written."""
    story.call("check_inbox", {"from": of}, answer, agent=agent, wait=20.0)


def test_agents_that_only_look_for_news_of_each_other_wait_in_vain() -> None:
    """Each poll is patient, and nobody is left to write: it is seen in the sixth round."""
    story = Scenario()
    for _ in range(5):
        look_for_news(story, "backend", "frontend")
        look_for_news(story, "frontend", "backend")
    assert story.found() == []
    look_for_news(story, "backend", "frontend")

    (finding,) = story.found()
    assert (finding.kind, finding.period, finding.scope.agent) == ("pingPong", 2, None)
    assert "looked for news of each other 6 times" in finding.reason


@pytest.mark.parametrize("between", ["other work", "a message", "an answer", "one who works", "another name"])
def test_agents_that_wait_for_somebody_who_may_answer_are_left_alone(between: str) -> None:
    """One of them works, writes or hears something, or they wait for a third."""
    story = Scenario()
    for number in range(12):
        look_for_news(story, "backend", "frontend" if between != "another name" else "customer")
        if between == "one who works":
            story.call("Write", {"path": f"a{number}.md"}, "written", agent="frontend")
            continue
        look_for_news(story, "frontend", "backend", f"message {number}" if between == "an answer" else "none")
        if between == "other work" and number % 3 == 2:
            story.call("Read", {"path": f"doc{number}.md"}, f"text {number}", agent="frontend")
        if between == "a message" and number % 3 == 2:
            story.say("message", {"text": f"draft {number} is ready"}, agent="frontend")

    assert [finding for finding in story.found() if finding.kind == "pingPong"] == []
