"""Failures in a row with one cause: what the input put into an error does not make it another error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.text.fingerprints import without_input
from tests.detect.scenario import Scenario

Try = Callable[[Scenario, int], object]

STUCK: dict[str, tuple[int, Try]] = {
    "edits of one file": (
        12, lambda s, n: s.fail(
            "Edit", {"path": "src/a.py", "old_string": f"total {n}", "new_string": "x"},
            "String to replace not found in file.",
        ),
    ),
    "a generic error": (12, lambda s, n: s.fail("update_plan", {"plan_id": f"P{n}"}, "Plan not found")),
    "an error that quotes a text": (
        10, lambda s, n: s.fail("get_plan", {"plan_id": f"P{1006 + n}"}, f"Plan with ID P{1006 + n} not found"),
    ),
    "an error that quotes a number": (
        10, lambda s, n: s.fail("get_order", {"order": 70 + n}, f"Error: order {70 + n} does not exist"),
    ),
    "an error that quotes a nested value": (
        10, lambda s, n: s.fail("move", {"to": [{"shelf": f"s-{n}"}]}, f"InvalidTarget: shelf s-{n} is unknown"),
    ),
    "a refused login at every path": (20, lambda s, n: s.fail("http_get", {"url": f"/api/{n}"}, "401 Unauthorized")),
    "a refused login that names each path": (
        20, lambda s, n: s.fail("http_get", {"url": f"/api/v1/item{n}"}, f"GET /api/v1/item{n}: HTTP 401"),
    ),
    "edits with reads between": (
        12, lambda s, n: (
            s.fail("Edit", {"path": "a", "old": f"{n}", "new": "x"}, "String to replace not found in file."),
            s.call("Read", {"path": "a", "offset": n}, f"text {n}"),
        ),
    ),
    "the provider refuses": (3, lambda s, n: s.say("error", {"text": "API Error: 401 invalid x-api-key"}, agent="main")),
}  # fmt: skip

HONEST: dict[str, tuple[int, Try]] = {
    "searches that miss": (30, lambda s, n: s.fail("Grep", {"pattern": f"word{n}", "path": "src"}, "No matches found")),
    "commands that miss": (30, lambda s, n: s.fail("Bash", {"command": f"grep -r word{n} src"}, "Exit code 1")),
    "files that are not there": (
        30, lambda s, n: s.fail("Read", {"file_path": f"src/m{n}.py"}, f"File does not exist: src/m{n}.py"),
    ),
    "modules that are not there": (
        30, lambda s, n: s.fail("Bash", {"command": f"python -c 'import m{n}'"}, f"ModuleNotFoundError: no module m{n}"),
    ),
    "tests that fail differently": (
        30, lambda s, n: s.fail("Bash", {"command": f"pytest -k t{n}"}, f"test_x{n * 3}: AssertionError: {n} != {n * 5}"),
    ),
    "compile errors that change": (30, lambda s, n: s.fail("make", {"n": 1}, f"m.c:{n * 3}: error: expected {'x' * n}")),
    "edits of a file that moves": (
        12, lambda s, n: s.fail("Edit", {"path": "a", "old": "x", "new": "y"}, f"no match; the file now says: {'z' * n}"),
    ),
    "failures with successes of the same action between": (
        12, lambda s, n: (
            s.fail("get_plan", {"plan_id": f"P{n}"}, "Plan not found"),
            s.call("get_plan", {"plan_id": f"Q{n}"}, f"plan Q{n}"),
        ),
    ),
    "an overloaded provider": (4, lambda s, n: s.say("error", {"text": "API Error: 529 overloaded"}, agent="main")),
    "errors of the provider between words": (
        6, lambda s, n: (
            s.say("error", {"text": "API Error: 500 internal"}, agent="main"),
            s.say("message", {"text": f"Part {n} is done."}, agent="main"),
        ),
    ),
}  # fmt: skip


def _story(times: int, once: Try) -> Scenario:
    story = Scenario()
    for number in range(times):
        once(story, number)
    return story


@pytest.mark.parametrize("name", STUCK)
def test_one_cause_behind_different_calls_is_found(name: str) -> None:
    """One finding, about all of the failures."""
    times, once = STUCK[name]
    (finding,) = _story(times, once).found()
    assert (finding.kind, finding.severity, finding.count) == ("errorRepetition", "loop", times)


@pytest.mark.parametrize("name", HONEST)
def test_honest_failures_are_no_loop(name: str) -> None:
    """Looking for things that are not there, and failing at something else each time, is at most a suspicion."""
    assert [finding for finding in _story(*HONEST[name]).found() if finding.severity != "warn"] == []


def test_a_lower_threshold_finds_errors_that_quote_their_input_too() -> None:
    """What is left of the errors is compared whatever the other thresholds are."""
    story = _story(*STUCK["an error that quotes a text"])
    assert [finding.severity for finding in story.found(DetectSettings(error_varied_rounds=3))] == ["loop"]
    assert story.found(DetectSettings(failing_rounds=20, failing_loop_rounds=20)) == []


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4))
def test_taking_out_the_input_never_fails(parts: list[str]) -> None:
    """Whatever the input holds, what it put in is gone from the error, and the same words are left."""
    left = without_input("plan <" + "> <".join(parts) + "> gone", {"parts": parts, "n": 1})
    assert left.startswith(("plan", "§"))


def test_only_whole_words_of_the_input_are_taken_out() -> None:
    """A short input that is part of a longer word or number by chance stays."""
    assert without_input("3 of 35 failed in a35", {"n": 3, "name": "a"}) == "§ of 35 failed in a35"


@pytest.mark.parametrize("action", ["provider", "vendor"])
def test_an_action_may_be_called_like_the_provider(action: str) -> None:
    """After an error of the provider, the failures of an action count whatever it is called."""
    story = Scenario()
    story.say("error", {"text": "API Error: 401 invalid x-api-key"}, agent="main")
    for number in range(20):
        story.fail(action, {"row": number, "text": f"text {number}"}, f"row {number} is locked by the ledger")
    assert [finding.kind for finding in story.found()] == ["errorRepetition"]


@pytest.mark.parametrize("note", ["no permission is asked for", "nothing is asked for"])
def test_plain_words_of_the_input_stay_in_the_error(note: str) -> None:
    """A word that half of the notes share with the error does not make two causes of one."""
    story = Scenario()
    for number in range(20):
        given = {"row": number, "note": f"{note} by {number}" if number % 2 else f"it is {number}"}
        story.fail("save_row", given, f"permission denied for row {number}")
    assert [finding.kind for finding in story.found()] == ["errorRepetition"]
