"""What looks like a loop and is none: different subtasks, revisions, broken streams, and ways that were changed."""

from __future__ import annotations

import pytest

from tests.detect.scenario import Scenario


def _attempts(*results: dict[str, object]) -> list[str]:
    story = Scenario()
    for data in results:
        story.say("subtask_result", data, agent="main")
    return [finding.severity for finding in story.found() if finding.kind == "escalatingFailure"]


@pytest.mark.parametrize(
    "names",
    [
        ({"subtask": "parse"}, {"subtask": "print"}),
        ({"task": "build", "subtask": "parse"}, {"task": "build", "subtask": "print"}),
        ({"task": "build", "name": "parse"}, {"task": "build", "name": "print"}),
        ({"subtask": {"id": 1}}, {"subtask": {"id": 2}}),
        ({"input": {"subtask": "parse"}}, {"input": {"subtask": "print"}}),
        ({"input": {"goal": "parse it"}}, {"input": {"goal": "print it"}}),
        ({"input": {"file": "a.py"}}, {"input": {"file": "b.py"}}),
    ],
)
def test_attempts_belong_to_one_subtask_only_if_it_is_the_same(names: tuple[dict[str, object], dict[str, object]]) -> None:
    """Two subtasks that fail once each are no two attempts of one; the same one that fails twice is."""
    one, two = ({**name, "status": "failed"} for name in names)
    assert _attempts(one, two) == []
    assert _attempts(one, two, one) == ["loop"]


def test_contents_that_alternate_are_honest_when_each_is_a_new_revision() -> None:
    """A switch that is written on and off makes new revisions; the same two contents with one receipt go to and fro."""
    switch, stuck, dated, tested = Scenario(), Scenario(), Scenario(), Scenario()
    for number in range(12):
        content = {"path": "flag.json", "content": f'{{"on": {number % 2}}}'}
        switch.call("write_file", content, {"ok": True, "version": number})
        stuck.call("write_file", content, "written")
        tested.call("write_file", content, "written")
        tested.fail("Bash", {"command": "make test"}, f"failure {number}")
        dated.call("write_file", content, f"written at 10:00:{number:02d}")
    assert switch.found() == []
    assert [finding.kind for finding in stuck.found()] == ["editRevert"]
    assert [finding.kind for finding in tested.found()] == ["editRevert"]
    assert [finding.kind for finding in dated.found()] == ["editRevert"]


def test_an_edit_that_is_undone_goes_to_and_fro_whatever_its_revision() -> None:
    """An edit names what it undoes, so its receipt is no news."""
    story = Scenario()
    for number in range(6):
        old, new = ("x = 1", "x = 2") if number % 2 == 0 else ("x = 2", "x = 1")
        story.call("Edit", {"path": "a.py", "old": old, "new": new}, f"revision {number}")
    assert [finding.kind for finding in story.found()] == ["editRevert"]


def test_what_an_attempt_did_that_is_made_again_does_not_count() -> None:
    """The calls before a retry are taken back, even if the new attempt makes others first."""
    story = Scenario()
    story.call("Read", {"path": "b"}, "text b")
    for _ in range(2):
        story.call("Read", {"path": "a"}, "text")
    story.say("retry")
    for _ in range(2):
        story.call("Read", {"path": "a"}, "text")
    assert story.found() == []
    story.call("Read", {"path": "a"}, "text")
    assert [finding.count for finding in story.found()] == [3]


def test_only_the_attempt_is_taken_back() -> None:
    """What was done before it began still counts: a retry is no new beginning."""
    story = Scenario()
    for _ in range(2):
        story.call("Read", {"path": "a"}, "text")
    story.say("turn_end", agent="main")
    story.call("Read", {"path": "b"}, "text b")
    story.say("retry")
    story.call("Read", {"path": "a"}, "text")
    assert [finding.count for finding in story.found()] == [3]


def test_failures_of_an_attempt_that_is_made_again_do_not_count() -> None:
    """Nor do errors, pieces of text, or a suspicion that rests on them."""
    story, words, suspected = Scenario(), Scenario(), Scenario()
    for _ in range(4):
        story.fail("book", {"seat": 1}, "Error: flight HAT030 is not available")
        story.say("retry")
        words.say("agent_message_chunk", {"text": "I will read the file again. " * 6}, agent="main")
        words.say("retry")
    for number in range(4):
        suspected.fail("book", {"seat": number}, "Error: flight HAT030 is not available")
    assert [finding.resolved for finding in suspected.found()] == [None]
    suspected.say("retry")
    assert story.found() == words.found() == []
    assert [finding.resolved for finding in suspected.found()] == ["retry"]


def test_a_loop_that_stands_is_not_taken_back() -> None:
    """A broken stream is no way out of a loop that was found."""
    story = Scenario()
    for _ in range(5):
        story.call("Read", {"path": "a"}, "text")
    story.say("retry")
    assert [finding.resolved for finding in story.found()] == [None]


@pytest.mark.parametrize("event", ["nudge", "continuation"])
def test_who_was_told_and_changed_its_way_has_left_the_loop(event: str) -> None:
    """One other call, or words instead of one, after being told resolve it; going back to it takes that back."""
    acts, speaks = Scenario(), Scenario()
    for story in (acts, speaks):
        for _ in range(3):
            story.call("Read", {"path": "a"}, "text")
        story.say(event, None, agent="system")
        assert [finding.resolved for finding in story.found()] == [None]
    acts.call("Grep", {"pattern": "x"}, "a.py:1")
    speaks.say("message", {"text": "I stop here and ask."}, agent="main")
    for story in (acts, speaks):
        assert [finding.resolved for finding in story.found()] == ["answered"]
        story.call("Read", {"path": "a"}, "text")
        assert [finding.resolved for finding in story.found()] == [None]


def test_words_alone_do_not_resolve_a_loop() -> None:
    """Who was not told, and only says so, has not changed its way."""
    story = Scenario()
    for _ in range(3):
        story.call("Read", {"path": "a"}, "text")
    story.say("message", {"text": "I will try something else."}, agent="main")
    assert [finding.resolved for finding in story.found()] == [None]


def test_a_call_ends_what_was_said_before_the_first_call() -> None:
    """What an agent said before it acted at all is its own, though such events name no process."""
    story = Scenario()
    for _ in range(3):
        story.say("message", {"text": "I will begin now."}, agent="main")
    assert [finding.resolved for finding in story.found()] == [None]
    story.call("Read", {"path": "a"}, "text")
    assert [finding.resolved for finding in story.found()] == ["progress"]


def test_the_same_words_while_others_work_are_no_monologue() -> None:
    """Who asks for the next piece with the same words each time gets another piece each time."""
    story = Scenario()
    for number in range(6):
        story.say("message", {"text": "Please go on."}, agent="planner")
        story.call("Edit", {"path": "a", "old": f"{number}", "new": f"{number + 1}"}, "applied", agent="coder")
        story.say("message", {"text": f"Part {number} is done."}, agent="coder")
    assert story.found() == []
