"""Twins that differ by one fact: the same call again is a loop, or it is not."""

from __future__ import annotations

import pytest

from ctxmgr.detect.settings import DetectSettings
from tests.detect.scenario import Scenario


def test_a_new_answer_is_progress() -> None:
    """Fifty identical calls that page through new answers are no loop; the same with one answer are."""
    paging, stuck = Scenario(), Scenario()
    for page in range(50):
        paging.call("next_chunk", {"job": 7}, f"chunk {page}")
        stuck.call("next_chunk", {"job": 7}, "chunk 0", wait=1)
    assert paging.found() == []
    assert [finding.count for finding in stuck.found()] == [50]


def test_order_of_keys_is_no_difference() -> None:
    """Inputs that differ in the order of their keys alone are equal, at every depth."""
    story = Scenario()
    story.call("find", {"in": {"x": 1, "y": 2}, "for": "z"}, "none")
    story.call("find", {"for": "z", "in": {"y": 2, "x": 1}}, "none")
    story.call("find", {"in": {"y": 2, "x": 1}, "for": "z"}, "none")
    assert len(story.found()) == 1


def test_what_an_agent_says_about_a_command_does_not_hide_it() -> None:
    """A command is the same command when only its description is reworded."""
    story = Scenario()
    for words in ("list files", "look again", "check the folder"):
        story.call("Bash", {"command": "ls", "description": words}, "a b")
    assert len(story.found()) == 1


@pytest.mark.parametrize(
    "answers",
    [
        ["1 failed in 0.19s", "1 failed in 0.23s", "1 failed in 1.02s"],
        ["Wall time: 0.05 seconds\nok", "Wall time: 0.07 seconds\nok", "Wall time: 1.50 seconds\nok"],
        [{"ok": True, "durationMs": 3}, {"durationMs": 9, "ok": True}, {"ok": True, "durationMs": 4}],
        ["wrote /tmp/tmpab12cd34", "wrote /tmp/tmpzz98yy77", "wrote /tmp/tmpqq11ww22"],
    ],
)
def test_noise_in_results_does_not_hide_it(answers: list[object]) -> None:
    """Durations and random names are blurred before results are compared."""
    story = Scenario()
    for answer in answers:
        story.call("Bash", {"command": "pytest -q"}, answer)
    assert len(story.found()) == 1


@pytest.mark.parametrize(
    "answers",
    [
        ["[1s] compiling", "[2s] compiling", "[3s] compiling"],
        [{"id": "m_1", "ts": 1}, {"id": "m_2", "ts": 2}, {"id": "m_3", "ts": 3}],
        ["2026-01-01T10:00:00Z tick", "2026-01-01T10:00:02Z tick", "2026-01-01T10:00:04Z tick"],
        ["line 10: bad", "line 20: bad", "line 30: bad"],
    ],
)
def test_counters_ids_and_times_are_the_news_of_a_read(answers: list[object]) -> None:
    """What a read answers is new when its ids, its clock times or its counters are."""
    story = Scenario()
    for answer in answers:
        story.call("read_messages", {"room": 1}, answer)
    assert story.found() == []


def test_fresh_receipts_do_not_hide_a_duplicate_delivery() -> None:
    """Sending one text three times is a loop though every receipt has its own ids."""
    story = Scenario()
    for number in range(3):
        story.call("send_message", {"to": "room", "text": "hi"}, {"ok": True, "messageId": f"m{number}"})
    assert len(story.found()) == 1


def test_acknowledged_work_on_many_targets_is_no_loop() -> None:
    """Forty different moves with one constant acknowledgement are batch work."""
    story = Scenario()
    for number in range(40):
        story.call("Bash", {"command": f"mv in/{number}.pdf out/"}, "")
    assert story.found() == []


def test_spaced_polls_are_patience_and_tight_polls_are_not() -> None:
    """The same "still running" thirty seconds apart is waiting, two seconds apart it is spinning."""
    spaced, tight, inside = Scenario(pace=30), Scenario(pace=2), Scenario(pace=1)
    for _ in range(8):
        spaced.call("job_output", {"job": 3}, "still running")
        tight.call("job_output", {"job": 3}, "still running")
        inside.call("job_output", {"job": 3}, "still running", took=20)
    assert spaced.found() == []
    assert inside.found() == []
    assert len(tight.found()) == 1


def test_a_slow_agent_that_repeats_itself_is_still_repeating() -> None:
    """Twenty seconds of thinking between identical reads is no patience; five minutes is."""
    slow, idle = Scenario(pace=20), Scenario(pace=300)
    for story in (slow, idle):
        for _ in range(4):
            story.call("Read", {"path": "a"}, "text")
    assert len(slow.found()) == 1
    assert idle.found() == []


def test_polls_without_times_need_more_rounds() -> None:
    """Where the log cannot show whether a poll waited, ten identical answers are wanted."""
    few, many = Scenario(timed=False), Scenario(timed=False)
    for number in range(10):
        if number < 9:
            few.call("wait_for_job", {"job": 3}, "pending")
        many.call("wait_for_job", {"job": 3}, "pending")
    assert few.found() == []
    assert len(many.found()) == 1


def test_sleeping_alone_is_a_loop() -> None:
    """A bare sleep over and over asks nothing and waits for nothing."""
    story = Scenario()
    for _ in range(3):
        story.call("Bash", {"command": "sleep 60"}, "", took=60)
    assert len(story.found()) == 1


def test_growing_waits_after_a_rate_limit_are_back_off() -> None:
    """Rate-limit errors with doubling waits are no loop; at a constant tight pace they are."""
    backing_off, hammering = Scenario(), Scenario()
    for wait in (1, 2, 4, 8, 16):
        backing_off.fail("http_get", {"url": "u"}, "429 Too Many Requests", wait=wait)
        hammering.fail("http_get", {"url": "u"}, "429 Too Many Requests", wait=1)
    assert backing_off.found() == []
    assert len(hammering.found()) == 1


def test_a_command_that_times_out_again_and_again_is_a_loop() -> None:
    """Three time-outs of one command are no patience, however long each took."""
    story = Scenario(pace=30)
    for _ in range(3):
        story.fail("Bash", {"command": "python train.py"}, "command timed out after 30 s")
    assert len(story.found()) == 1


def test_key_presses_may_repeat() -> None:
    """Pressing one key five times is how screens are scrolled; ten times is a loop."""
    story = Scenario()
    for _ in range(5):
        story.call("press_key", {"key": "Down"}, "ok")
    assert story.found() == []
    for _ in range(5):
        story.call("press_key", {"key": "Down"}, "ok")
    assert len(story.found()) == 1


def test_identities_from_before_a_compaction_decide() -> None:
    """Stubs that replaced different results are not equal; where one identity is missing the outputs decide."""
    different, partial = Scenario(), Scenario()
    for number in range(3):
        different.call("Read", {"path": "a"}, "[gone]", meta={"output_identity": f"i{number}"})
        partial.call("Read", {"path": "a"}, "text", meta={"output_identity": "i"} if number == 0 else None)
    assert different.found() == []
    assert len(partial.found()) == 1


def test_a_batch_is_one_step_in_any_order() -> None:
    """The same parallel calls three times are a repetition of period 1, whatever their order within the batch."""
    story = Scenario()
    for turn, order in enumerate(("abc", "cab", "bca")):
        for name in order:
            story.call("Read", {"path": name}, f"text {name}", step=turn)
    (finding,) = story.found()
    assert (finding.kind, finding.period, finding.count, len(finding.members)) == ("repetition", 1, 3, 9)


def test_identical_calls_within_one_batch_are_one_step() -> None:
    """Three equal calls issued together are one step, not three rounds."""
    story = Scenario()
    for _ in range(3):
        story.call("Read", {"path": "a"}, "text", step="one")
    assert story.found() == []


def test_a_batch_that_grows_different_is_no_repetition() -> None:
    """A batch is compared complete: what looked like the third round may turn out to be more."""
    story = Scenario()
    story.call("Read", {"path": "a"}, "text", step=1)
    story.call("Read", {"path": "a"}, "text", step=2)
    first, second = story.open("Read", {"path": "a"}, step=3), story.open("Read", {"path": "b"}, step=3)
    story.close(first, "text")
    story.close(second, "other")
    assert story.found() == []


def test_a_call_without_its_result_does_not_count_yet() -> None:
    """The third identical call is counted when its result is seen, and only if that is the same."""
    story = Scenario()
    story.call("Read", {"path": "a"}, "text")
    story.call("Read", {"path": "a"}, "text")
    last = story.open("Read", {"path": "a"})
    assert story.found() == []
    story.close(last, "text")
    assert [finding.raised_at for finding in story.found()] == [last]


def test_thresholds_are_settings() -> None:
    """A higher threshold is honoured to the call."""
    story = Scenario()
    for _ in range(4):
        story.call("Read", {"path": "a"}, "text")
    assert story.found(DetectSettings(repeat_rounds=5)) == []
    assert len(story.found(DetectSettings(repeat_rounds=4))) == 1
