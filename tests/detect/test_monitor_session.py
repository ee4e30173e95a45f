"""What detectors, cases and continuations make of a whole session."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.detect.detectors import DETECTORS
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import session_observations
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import InvalidInput
from tests.detect.scenario import Scenario


def loop(story: Scenario, rounds: int = 3) -> None:
    """Read one file over and over."""
    for _ in range(rounds):
        story.call("Read", {"path": "a"}, "text")


def leave(story: Scenario, mark: str) -> None:
    """Do something else, twice."""
    for number in range(2):
        story.call("Read", {"path": f"{mark}{number}"}, f"{mark} text {number}")


def kinds(story: Scenario) -> list[str]:
    """Return the kinds of all loops found, in the order in which they were raised."""
    return [finding.kind for finding in story.found()]


def test_a_loop_that_stops_after_a_continuation_was_answered() -> None:
    """A recorded continuation about a loop, and the agent going elsewhere, resolve it as answered."""
    story = Scenario()
    loop(story)
    identity = story.found()[0].evidence["identity"]
    story.say("continuation", {"answers": [identity]})
    leave(story, "b")
    assert [finding.resolved for finding in story.found()] == ["answered"]


def test_a_step_of_before_the_answer_does_not_follow_it() -> None:
    """Being asked for help is no way out: what the agent did outside of the loop before the answer ends nothing."""
    story = Scenario()
    loop(story)
    story.call("Bash", {"command": "git status"}, "clean")
    identity = story.found()[0].evidence["identity"]
    story.say("continuation", {"answers": [identity]})
    assert [finding.resolved for finding in story.found()] == [None]
    leave(story, "b")
    assert [finding.resolved for finding in story.found()] == ["answered"]


def test_an_answer_to_another_loop_does_not_count() -> None:
    """A continuation that names a different loop leaves this one to be resolved by what the agent does."""
    story = Scenario()
    loop(story)
    story.say("continuation", {"answers": ["something else"]})
    leave(story, "b")
    assert [finding.resolved for finding in story.found()] == ["progress"]


def test_an_answered_loop_that_was_left_is_not_raised_on_old_evidence() -> None:
    """One more identical call after the answer is no loop; three are, and a finding of their own."""
    story = Scenario()
    loop(story)
    story.say("continuation", None)
    leave(story, "b")
    loop(story, 1)
    assert [finding.resolved for finding in story.found()] == ["answered"]
    loop(story, 2)
    first, second = story.found()
    assert (first.evidence["identity"], second.resolved) == (second.evidence["identity"], None)
    assert first.id != second.id


@pytest.mark.requirement("FR-019")
def test_a_loop_that_outlives_two_answers_is_a_recovery_loop() -> None:
    """When a loop is back after its second continuation, recovering this way is what goes round."""
    story = Scenario()
    loop(story)
    for mark in "bc":
        assert "recoveryLoop" not in kinds(story)
        story.say("continuation", None)
        leave(story, mark)
        loop(story)
    (finding,) = [finding for finding in story.found() if finding.kind == "recoveryLoop"]
    assert finding.scope.agent is None
    assert finding.raised_at == story.observations[-1].id
    assert finding.evidence["cameBack"] == 2


def test_a_loop_that_goes_on_regardless_counts_as_back() -> None:
    """It need not stop in between: two more rounds after each continuation show that it did not help."""
    story = Scenario()
    loop(story)
    for _ in range(2):
        story.say("continuation", None)
        loop(story, 2)
    assert "recoveryLoop" in kinds(story)


def test_stored_continuations_name_the_loop_they_answer() -> None:
    """The replay of a log takes the identity from the continuation record."""
    record: dict[str, Any] = {"kind": "continuation", "id": "c", "session": "s", "loop": {"identity": "x"}, "stall": None}
    (observation,) = session_observations([record, {"kind": "note"}])
    assert observation.data == {"answers": ["x"], "asked": False}


def test_agents_that_repeat_themselves_to_each_other_play_ping_pong() -> None:
    """The third identical request after two identical refusals is one finding about both, and no monologue beside it."""
    story = Scenario()
    for number in range(3):
        story.say("message", {"text": "Please build step 3."}, agent="planner")
        if number < 2:
            story.say("message", {"text": "I need the design first."}, agent="coder")
    (finding,) = story.found()
    assert (finding.kind, finding.count, finding.raised_at) == ("pingPong", 3, story.observations[-1].id)
    assert finding.evidence["agents"] == ["coder", "planner"]


def test_a_productive_dialogue_is_none() -> None:
    """Two agents that talk about one item after the other say something new each time."""
    story = Scenario()
    for number in range(8):
        story.say("message", {"text": f"Please build step {number}."}, agent="planner")
        story.say("message", {"text": f"Step {number} is done."}, agent="coder")
    assert story.found() == []


def test_work_between_makes_it_a_new_talk() -> None:
    """The same request and the same report after real work is how reviews go."""
    story = Scenario()
    for number in range(6):
        story.say("message", {"text": "Fix the review comments."}, agent="planner")
        story.call("Edit", {"path": "a", "old": number, "new": number + 1}, "applied", agent="coder")
        story.say("message", {"text": "Fixed."}, agent="coder")
    assert "pingPong" not in kinds(story)


def test_what_another_agent_changed_makes_a_question_new() -> None:
    """Reading a record again after someone else may have changed it is no repetition; without that it is."""
    shared, alone = Scenario(), Scenario()
    for _ in range(4):
        for story in (shared, alone):
            story.call("get_record", {"id": 1}, "unchanged")
        shared.call("toggle_switch", {}, "done", agent="customer")
        alone.call("look_around", {}, "done", agent="customer", status="error")
    assert [finding for finding in shared.found() if finding.scope.agent == "main"] == []
    assert [finding.kind for finding in alone.found() if finding.scope.agent == "main"] == ["repetition"]


def test_a_reply_counts_to_whoever_was_spoken_to_before_it_ever_acted() -> None:
    """A customer's first act and words answer what it was told before: a read from before them is no part of a later loop."""
    story = Scenario(agent="clerk")
    story.call("get_line", {"id": 2}, "active")
    story.say("message", {"text": "Please look at your phone."}, agent="clerk")
    story.call("check_phone", {}, "no signal", agent="customer")
    story.say("message", {"text": "It says: no signal."}, agent="customer")
    reads = [story.call("get_line", {"id": 2}, "active") for _ in range(3)]

    (finding,) = story.found()
    assert (finding.first, finding.raised_at) == (reads[0], reads[2])


def test_a_check_that_fails_whatever_is_tried_is_warned_of() -> None:
    """Three times "cannot" with another lever pulled between is a warning; with new content written between, it is work."""
    levers, fixing = Scenario(), Scenario()
    for number in range(3):
        levers.call("can_send", {}, "It cannot send.")
        levers.call(f"toggle_{number}", {}, f"switched {number}")
        fixing.call("Bash", {"command": "make test"}, "1 failed")
        fixing.call("Edit", {"path": "a", "old": str(number), "new": str(number + 1)}, "ok")
    assert [(finding.kind, finding.severity) for finding in levers.found()] == [("interleaved", "warn")]
    assert fixing.found() == []


def test_explaining_costs_nothing_until_asked() -> None:
    """Only the entry that was named has opinions, one of each enabled detector; any other index has none."""
    story = Scenario()
    loop(story)
    quiet, asked = Monitor(), Monitor(explain=2)
    for observation in story.observations:
        quiet.observe(observation)
        asked.observe(observation)
    assert quiet.explain(2) == asked.explain(1) == []
    opinions = asked.explain(2)
    assert sorted(opinion.detector for opinion in opinions) == sorted(each.kind for each in DETECTORS)
    (seen,) = [opinion for opinion in opinions if opinion.detector == "repetition"]
    assert (seen.count, seen.threshold, seen.why) == (3, 3, "seen")
    assert [finding.id for finding in quiet.findings()] == [finding.id for finding in asked.findings()]


def test_an_action_may_have_settings_of_its_own() -> None:
    """A table for one action changes its thresholds, exempts it or makes it a poll, and leaves others alone."""
    story = Scenario()
    for _ in range(4):
        story.call("Read", {"path": "a"}, "text")
    for action in ("lint", "board"):
        for _ in range(4):
            story.call(action, {}, "same")
    table = {"actions": {"Read": {"repeat_rounds": 5}, "lint": {"exempt": True}, "board": {"disabled": ["repetition"]}}}
    assert len(story.found()) == 3
    assert story.found(DetectSettings.from_table(table)) == []


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"actions": 3}, "actions must be a table"),
        ({"actions": {"x": 3}}, "settings of the action 'x' must be a table"),
        ({"actions": {"x": {"exempt": "yes"}}}, "exempt of the action 'x' must be true or false"),
        ({"actions": {"x": {"nonsense": 1}}}, "unknown setting 'nonsense'"),
        ({"actions": {"x": {"stall_seconds": 1}}}, "stall_seconds can't be set for the single action 'x'"),
        ({"actions": {"x": {"repeat_rounds": 99}}}, "a window of 64 steps can never hold"),
        ({"disabled": ["repitition"]}, "'repitition' is no kind of finding"),
    ],
)
def test_a_wrong_table_of_an_action_is_named(table: dict[str, object], message: str) -> None:
    """Settings of single actions are checked at start-up like all others."""
    with pytest.raises(InvalidInput, match=message):
        DetectSettings.from_table(table)
