"""One error in many disguises, and the failures that only look like it."""

from __future__ import annotations

import pytest

from tests.detect.scenario import Scenario

LOCKED = "PermissionError: the key file is locked"


def test_one_cause_behind_many_commands() -> None:
    """Different commands that fail with one specific error are one finding that counts them all."""
    story = Scenario()
    for number in range(10):
        story.fail("Bash", {"command": f"./tool --mode {number}"}, f"Traceback\n  line {number}\n{LOCKED}")
    (finding,) = story.found()
    assert (finding.kind, finding.count, finding.evidence["distinctInputs"]) == ("errorRepetition", 10, 10)
    assert "same error 10 times from 10 different calls" in finding.reason


def test_varied_tries_are_suspected_before_they_are_blamed() -> None:
    """Four different calls with one error are a warning, the fifth is a loop; one call alone is a loop at its third."""
    tries, same = Scenario(), Scenario()
    for number in range(4):
        tries.fail("book", {"seat": number}, "Error: flight HAT030 is not available")
    assert [finding.severity for finding in tries.found()] == ["warn"]
    tries.fail("book", {"seat": 4}, "Error: flight HAT030 is not available")
    assert [finding.severity for finding in tries.found()] == ["loop"]

    for _ in range(3):
        same.fail("book", {"seat": 0}, "Error: flight HAT030 is not available")
    assert [finding.severity for finding in same.found()] == ["loop"]


def test_the_error_may_come_from_different_actions() -> None:
    """The cause counts, not the action that ran into it."""
    story = Scenario()
    for action in ("upload", "fetch_item", "list_items", "rename"):
        story.fail(action, {"to": action}, "401 Unauthorized: the token has expired")
    assert len(story.found()) == 1


def test_errors_that_name_different_things_are_exploration() -> None:
    """Missing files with different names are different answers."""
    story = Scenario()
    for number in range(8):
        story.fail("Read", {"path": f"p{number}"}, f"FileNotFoundError: no file p{number}")
    assert story.found() == []


def test_an_error_that_says_nothing_proves_nothing() -> None:
    """A bare exit code under different commands need not have one cause."""
    story = Scenario()
    for number in range(8):
        story.fail("Bash", {"command": f"grep -r word{number}"}, "Exit code 1")
    assert story.found() == []


def test_a_failing_check_with_only_reading_between() -> None:
    """A check that fails alike three times while nothing was changed is found at the third failure."""
    story = Scenario()
    failures: list[str] = []
    for number in range(3):
        failures.append(story.fail("Bash", {"command": "cargo test"}, "1 failed"))
        story.call("Read", {"path": f"m{number}.rs"}, f"code {number}")
    (finding,) = story.found()
    assert (finding.kind, finding.raised_at) == ("errorRepetition", failures[2])
    assert finding.members == failures


def test_a_change_between_two_checks_starts_the_count_again() -> None:
    """A check that fails alike after each of four different edits is work."""
    story = Scenario()
    for number in range(4):
        story.fail("Bash", {"command": "cargo test"}, "1 failed")
        story.call("Read", {"path": "m.rs"}, f"code {number}")
        story.call("Edit", {"path": "m.rs", "new": number}, "applied")
    assert story.found() == []


def test_a_different_failure_of_the_same_check_is_news() -> None:
    """Failures that fall from run to run are progress."""
    story = Scenario()
    for number in range(6):
        story.fail("Bash", {"command": "cargo test"}, f"{9 - number} failed")
        story.call("Read", {"path": f"m{number}.rs"}, f"code {number}")
    assert story.found() == []


def test_refusals_are_not_failures_of_the_call() -> None:
    """A person who refuses four different commands is answering, not failing."""
    story = Scenario()
    for number in range(5):
        entry = story.open("Bash", {"command": f"rm {number}"})
        story.close(entry, "The request was refused by the operator", status="denied")
    assert story.found() == []


def test_trouble_of_the_infrastructure_is_not_the_agents_doing() -> None:
    """Five different requests that meet an overloaded server are no loop."""
    story = Scenario()
    for number in range(5):
        story.fail("http_get", {"url": f"u{number}"}, "503 Service Unavailable: the server is overloaded")
    assert story.found() == []


def test_waiting_for_a_server_to_come_up_is_patience() -> None:
    """A refused connection asked again after sleeps of different length is waiting."""
    story = Scenario()
    for number in range(5):
        story.fail("Bash", {"command": "curl -s localhost:80/health"}, "connection refused")
        story.call("Bash", {"command": f"sleep {number + 1}"}, "")
    assert story.found() == []


def test_an_error_that_returns_after_other_work_is_a_new_story() -> None:
    """The same error far apart, with varied calls between, is not one streak."""
    story = Scenario()
    for number in range(4):
        story.fail("Edit", {"path": f"f{number}"}, "ToolError: read the target before you change it")
        for other in range(8):
            story.call("Read", {"path": f"r{number}.{other}"}, f"text {number} {other}")
    assert story.found() == []


@pytest.mark.parametrize(
    "error",
    [
        "Error executing tool {action}: {file} not found", "{action} failed: {file} does not exist",
        "{action}: {file} does not exist",
        "{action}ME does not exist", "Tool {action} failed because {file} was not found", "{action}: {file}: command not found",
    ],
)  # fmt: skip
def test_a_missing_file_is_no_missing_tool(error: str) -> None:
    """A tool that tells of a file which is not there is there itself."""
    for action in ("Read", "read_config"):
        story = Scenario()
        for number in range(3):
            story.fail(action, {"path": f"a{number}.py"}, error.format(action=action, file=f"a{number}.py"))
        assert "unknownTool" not in {finding.kind for finding in story.found()}


@pytest.mark.parametrize(
    "error",
    [
        "Tool '{action}' is not available", "Tool {action} was not found in the registry", "tool: {action} not found",
        "Error: no tool named {action}", "{action} does not exist", "Function `{action}` not found",
        "{action}: no such function",
        "'{action}' is not a valid tool", "{action}: tool not found", "The tool you called ({action}) does not exist",
    ],
)  # fmt: skip
def test_a_missing_tool_is_told_in_many_words(error: str) -> None:
    """However it is said, three calls of tools that do not exist are a loop."""
    story = Scenario()
    for number in range(3):
        story.fail("find_it", {"query": number}, error.format(action="find_it"))
    assert "unknownTool" in {finding.kind for finding in story.found()}
