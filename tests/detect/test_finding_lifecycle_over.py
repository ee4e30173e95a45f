"""Loops that are over: what failed was done with other arguments, or the run was passed on or ended with a farewell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.detect.scenario import Scenario

Given = dict[str, Any]


def _patch(path: str, line: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{line}\n+new\n*** End Patch"


SUCCESSES: dict[str, tuple[str, Given, str, Given, str]] = {
    "another card": ("pay", {"amount": 5, "card": "x"}, "card declined", {"amount": 5, "card": "y"}, "paid, receipt 77"),
    "another id": ("get_order", {"order_id": "U-1"}, "no such order", {"order_id": "O-1"}, "2 items"),
    "the text as it stands": (
        "Edit", {"file_path": "/repo/a.py", "old_string": "teh cat", "new_string": "z"}, "String to replace not found in file.",
        {"file_path": "/repo/a.py", "old_string": "the cat", "new_string": "z"}, "The file has been updated.",
    ),
    "the file where it is": ("Read", {"path": "app.py"}, "no such file", {"path": "src/app.py"}, "import os"),
    "another way to start it": (
        "Bash", {"command": "pytest -q"}, "No module named 'lxml'", {"command": "python -m pytest -q"}, "12 passed",
    ),
    "an option more": (
        "Bash", {"command": "cd /repo && git commit"}, "error: Terminal is dumb, but EDITOR unset",
        {"command": "cd /repo && git commit -m 'Fix it'"}, "1 file changed",
    ),
    "another page of the server": ("WebFetch", {"url": "http://a.org/x"}, "404", {"url": "http://a.org/y"}, "a page"),
    "a tag": ("Bash", {"command": "docker build ."}, "no name", {"command": "docker build -t app ."}, "built"),
    "a patch": (
        "apply_patch", {"input": _patch("src/a.py", "teh")}, "context not found", {"input": _patch("src/a.py", "the")}, "Done",
    ),
    "a patch in a command": (
        "shell", {"command": ["apply_patch", _patch("a.py", "teh")]}, "context not found",
        {"command": ["apply_patch", _patch("a.py", "the")]}, "Done",
    ),
    "a setting": ("Bash", {"command": "./run.sh"}, "LANG is empty", {"command": "LANG=C ./run.sh | tail -3"}, "ready"),
}  # fmt: skip

OTHERS: dict[str, tuple[str, Given, str, Given, str]] = {
    "another file": ("Read", {"path": "app.py"}, "no such file", {"path": "src/other.py"}, "import os"),
    "another program": ("Bash", {"command": "pytest -q"}, "No module named 'lxml'", {"command": "ls"}, "a.py"),
    "another script": ("Bash", {"command": "python a.py"}, "No module named 'lxml'", {"command": "python b.py"}, "hello"),
    "one test of all": ("Bash", {"command": "pytest"}, "2 failed", {"command": "pytest -q tests/test_b.py"}, "1 passed"),
    "a patch of another file": (
        "apply_patch", {"input": _patch("a.py", "teh")}, "context not found", {"input": _patch("b.py", "the")}, "Done",
    ),
    "a patch of another file in a command": (
        "shell", {"command": ["apply_patch", _patch("a.py", "teh")]}, "context not found",
        {"command": ["apply_patch", _patch("b.py", "the")]}, "Done",
    ),
    "another script on the input": (
        "Bash", {"command": "python - <<EOF\nimport lxml; run()\nEOF"}, "No module named 'lxml'",
        {"command": "python - <<EOF\nprint(1); run()\nEOF"}, "1",
    ),
    "a dry run": ("Bash", {"command": "git push"}, "rejected", {"command": "git push --dry-run"}, "would push"),
    "a part of all tests": ("Bash", {"command": "pytest"}, "2 failed", {"command": "pytest -k fast"}, "1 passed"),
    "another server": ("WebFetch", {"url": "http://a.org/x"}, "404", {"url": "http://b.org/y"}, "a page"),
    "another mail": ("send", {"to": "ann", "text": "hi"}, "no such user", {"to": "bob", "text": "you"}, "sent"),
    "a failure behind a pipe": (
        "Bash", {"command": "make"}, "cannot find -lm", {"command": "make 2>&1 | tail -2"}, "x" * 400 + " fatal: no rule",
    ),
    "a success in name": ("pay", {"card": "x"}, "card declined", {"card": "y"}, "The payment failed."),
}  # fmt: skip


def _failing(action: str, given: Given, error: str, rounds: int = 4) -> Scenario:
    story = Scenario()
    for _ in range(rounds):
        story.fail(action, given, error)
    return story


def _ends(story: Scenario) -> list[str | None]:
    return [finding.resolved for finding in story.found()]


@pytest.mark.parametrize("case", SUCCESSES)
def test_a_success_with_other_arguments_ends_a_loop_of_failures(case: str) -> None:
    """What failed four times succeeded at last, so nobody must be told to try it again."""
    action, given, error, other, answer = SUCCESSES[case]
    story = _failing(action, given, error)
    assert _ends(story) == [None]
    story.call(action, other, answer)
    assert _ends(story) == ["progress"]
    story.say("message", {"text": "It is done."}, agent="main")
    assert _ends(story) == ["progress"]


@pytest.mark.parametrize("case", OTHERS)
def test_a_success_of_something_else_ends_none(case: str) -> None:
    """The same action on another file, another program, or one that says that it did not work, shows nothing."""
    action, given, error, other, answer = OTHERS[case]
    story = _failing(action, given, error)
    story.call(action, other, answer)
    assert _ends(story) == [None]


def test_a_loop_that_goes_on_after_a_success_is_still_found() -> None:
    """The failure comes back, so the success was of something else. A later success proves nothing either."""
    story = _failing("get_order", {"order_id": "U-1"}, "no such order")
    for number in range(2):
        story.call("get_order", {"order_id": f"O-{number}"}, "2 items")
        if not number:
            assert _ends(story) == ["progress"]
            story.fail("get_order", {"order_id": "U-1"}, "no such order")
        assert _ends(story) == [None]


def test_a_success_among_the_failures_of_a_loop_makes_no_end_of_it() -> None:
    """Other orders were found all the time, so one more is no way out."""
    story = Scenario()
    for number in range(5):
        story.fail("get_order", {"order_id": "U-1"}, "no such order")
        story.call("get_order", {"order_id": f"O-{number}"}, f"{number} items")
    assert _ends(story) == [None]


def test_another_failure_of_the_action_after_a_success_leaves_the_loop() -> None:
    """The success of the action was not its last word."""
    story = Scenario()
    for number in range(4):
        story.fail("get_order", {"order_id": "U-1"}, "no such order")
        story.call("Read", {"path": f"{number}.md"}, f"page {number}")
    story.fail("get_order", {"order_id": "U-1"}, "no such order")
    assert [(each.kind, each.resolved) for each in story.found()] == [("errorRepetition", None)]
    story.call("get_order", {"order_id": "O-1"}, "2 items")
    assert _ends(story) == ["progress"]
    story.fail("get_order", {"order_id": "O-2"}, "not yours to see")
    assert _ends(story) == [None]


def test_a_success_after_a_correction_counts_as_its_answer() -> None:
    """An agent that was told of its loop and then succeeded has followed the advice."""
    story = _failing("pay", {"card": "x"}, "card declined")
    story.say("nudge", {"text": "Try another card."})
    story.call("pay", {"card": "y"}, "paid")
    assert _ends(story) == ["answered"]


def test_a_loop_of_two_calls_ends_with_the_failing_one() -> None:
    """The read between the failing edits is no part of what had to succeed."""
    story = Scenario()
    for _ in range(4):
        story.call("Read", {"path": "a.py"}, "the cat")
        story.fail("Edit", {"path": "a.py", "old": "teh"}, "not found in file")
    assert None in _ends(story)
    story.call("Edit", {"path": "a.py", "old": "the"}, "updated")
    assert None not in _ends(story)


def test_a_run_that_was_passed_to_a_person_is_not_stuck() -> None:
    """The loop is over, and silence after the transfer is no stall. Any later call opens the question again."""
    story = _failing("book", {"flight": "A"}, "not available")
    story.call("transfer_to_human_agents", {"summary": "x"}, "Transfer successful")
    assert _ends(story) == ["end"]
    assert not story.stalls(600)
    story.fail("book", {"flight": "A"}, "not available")
    assert _ends(story) == [None]


@pytest.mark.parametrize("action", ["transfer_to_billing_agent", "assign_ticket", "ask_human", "transfer_to_human_agents"])
def test_work_that_goes_to_somebody_else_ends_no_run(action: str) -> None:
    """Only a transfer of the conversation to a person ends it, and only one that succeeded."""
    story = _failing("book", {"flight": "A"}, "not available")
    if action == "transfer_to_human_agents":
        story.fail(action, {"summary": "x"}, "nobody is there")
    else:
        story.call(action, {"summary": "x"}, "done")
    assert _ends(story) == [None]


def test_a_farewell_of_a_program_that_plays_the_user_ends_a_suspicion_and_no_loop() -> None:
    """It expects nothing more of the run. Its other words are no end (ruling 8), and neither is a farewell before more work."""
    suspicion, loop = Scenario(), _failing("book", {"flight": "A"}, "not available")
    for number in range(4):
        suspicion.fail("book", {"flight": f"A{number}"}, "not available at all today")
    for story in (suspicion, loop):
        story.say("user_message", {"text": "Please go on.", "synthetic": True})
        assert _ends(story) == [None]
        story.say("user_message", {"text": "Thanks, that's all. Bye!", "synthetic": True})

    assert [finding.severity for finding in suspicion.found()] == ["warn"]
    assert _ends(suspicion) == ["end"]
    assert _ends(loop) == [None]
    suspicion.fail("book", {"flight": "A"}, "not available at all today")
    assert _ends(suspicion) == [None]


def _searched_in_vain(*, go_on: bool) -> Scenario:
    story = Scenario()
    for _ in range(3):
        story.say("user_message", {"text": "It was in June, I think.", "synthetic": True}, agent="user")
        story.say("message", {"text": "Let me look once more."}, agent="main")
        story.call("search", {"id": "9"}, "nothing is registered")
    story.say("message", {"text": "There is nothing."}, agent="main")
    if go_on:
        story.say("user_message", {"text": "Could you give me their phone number?", "synthetic": True}, agent="user")
        story.say("message", {"text": "It is 555-0101."}, agent="main")
    story.say("user_message", {"text": "That's all. Thank you. ###STOP###", "synthetic": True}, agent="user")
    return story


def test_a_farewell_after_other_talk_ends_a_loop() -> None:
    """The agent had left it: it helped with what the user asked next. A farewell to the loop itself shows nothing."""
    left, given_up = (_searched_in_vain(go_on=go_on) for go_on in (True, False))
    assert [_ends(left), _ends(given_up)] == [["end"], [None]]
    left.call("search", {"id": "9"}, "nothing is registered")
    assert _ends(left) == [None]


def test_words_before_the_last_round_are_no_other_talk() -> None:
    """The user asked, and was answered, before the loop went on."""
    story = _searched_in_vain(go_on=True)
    story.call("search", {"id": "9"}, "nothing is registered")
    story.say("message", {"text": "There still is nothing."}, agent="main")
    story.say("user_message", {"text": "Bye.", "synthetic": True}, agent="user")
    assert _ends(story) == [None]


def _submitted(*more: tuple[str, str]) -> Scenario:
    story = Scenario()
    for command, answer in (*[("submit flag{a wise man}", "Wrong flag!")] * 4, *more):
        story.call("submit", {"command": command}, answer)
    return story


def test_what_words_refused_is_over_when_it_is_accepted_in_quotes() -> None:
    """The call never failed by its status, and the shell split its argument."""
    assert _ends(_submitted(("submit 'flag{a wise man}'", "Accepted."))) == ["progress"]
    assert _ends(_submitted(("submit flag{a\\ wise\\ man}", "Accepted."))) == ["progress"]


@pytest.mark.parametrize("more", [("submit 'flag{a wise man}'", "Wrong flag, too!"), ("submit flag{b}", "Accepted.")])
def test_another_refusal_or_another_command_ends_no_refusals(more: tuple[str, str]) -> None:
    """The same is refused in quotes as well; what another command says shows nothing."""
    assert _ends(_submitted(more)) == [None]


@pytest.mark.parametrize(
    ("outcome", "works_on", "ends"),
    [("completed", True, "end"), ("failed", True, None), ("completed", False, None)],
)
def test_a_session_that_was_completed_after_other_work_is_not_stuck(outcome: str, works_on: bool, ends: str | None) -> None:
    """Its agent had gone on to something new. An agent that only gave up, or whose run was cut off, was stuck to the end."""
    story = _submitted()
    if works_on:
        story.call("cat", {"command": "cat notes.txt"}, "an idea")
    story.end(outcome)
    assert _ends(story) == [ends]
    story.call("submit", {"command": "submit flag{a wise man}"}, "Wrong flag!")
    assert _ends(story) == [None]


def test_two_programs_that_thank_each_other_are_a_loop() -> None:
    """A farewell ends no loop of messages, of which it may be a part."""
    story = Scenario()
    story.call("book", {"flight": "A"}, "booked")
    for _ in range(4):
        story.say("message", {"text": "You are welcome, goodbye."}, agent="main")
        story.say("user_message", {"text": "Thanks, goodbye!", "synthetic": True})
    assert _ends(story) == [None]
