"""Shapes of each pattern that must be found, and their twins that differ in one fact and must not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.detect.scenario import Scenario

Once = Callable[[Scenario, int], object]


def _said(*words: str) -> Once:
    return lambda s, n: [s.say("message", {"text": word}, agent="main") for word in words]


def _reads(period: int, new: int | None = None) -> Once:
    return lambda s, n: [s.call("Read", {"path": f"f{p}"}, f"new {n}" if p == new else f"text {p}") for p in range(period)]


def _check(spacing: float) -> Once:
    return lambda s, n: s.call("check_status", {"id": 4}, "status: pending", wait=spacing)


FOUND: dict[str, tuple[int, Once]] = {
    "a poll without a pause": (14, _check(1.0)),
    "the same failure after eight edits": (
        8,
        lambda s, n: (
            s.call("Edit", {"path": "a", "old": f"{n}", "new": f"{n + 1}"}, "ok"),
            s.fail("Bash", {"command": "pytest -q"}, "FAILED test_x - AssertionError: 3 != 4"),
        ),
    ),
    "a round of nine": (3, _reads(9)),
    "a round of twelve": (3, _reads(12)),
    "a round of questions of which one is pending": (
        3,
        lambda s, n: [
            s.call("get", {"of": part}, "pending" if part == 3 else f"state of {part}", wait=8.0) for part in range(7)
        ],
    ),
    "two agents that loop side by side": (
        4,
        lambda s, n: (s.call("Read", {"path": "a"}, "x", agent="one"), s.call("Grep", {"p": "z"}, "none", agent="two")),
    ),
    "blanks in a command": (5, lambda s, n: s.call("Bash", {"command": "ls -la" + " " * n + " src"}, "a.py")),
    "another explanation for one search": (
        4,
        lambda s, n: s.call("code_search", {"query": "total", "explanation": f"look for it, {n}"}, "a.py:1"),
    ),
    "another request id": (4, lambda s, n: s.call("search", {"q": "x", "requestId": f"r{n}"}, "no hits")),
    "one question in other words": (
        9,
        lambda s, n: s.call("web_search", {"query": f"torque of the bolt {'abcdefghi'[n]}"}, "1. Home\n2. Paint\n3. Brochure"),
    ),
    "a view that does not move": (
        9,
        lambda s, n: s.call(
            "browser_scroll", {"direction": "down", "pixels": 100 * n}, "at 2210 of 2210, the footer: Imprint, Terms"
        ),
    ),
    "two messages in turn": (3, _said("I will check the file.", "Tell me if you want that.")),
    "three messages in turn": (3, _said("I am done.", "The task is complete.", "Thank you.")),
    "three agents in turn": (
        4,
        lambda s, n: [
            s.say("message", {"text": f"Not before {other} has agreed."}, agent=agent)
            for agent, other in (("one", "two"), ("two", "three"), ("three", "one"))
        ],
    ),
    "compactions around the same reads": (
        4,
        lambda s, n: (_reads(2)(s, n), s.say("compaction", agent="main")),
    ),
    "other tools that do not exist": (4, lambda s, n: s.fail(f"magic_{n}", {"n": n}, f"Unknown tool: magic_{n}")),
    "an error told as an answer": (12, lambda s, n: s.call("get_plan", {"id": f"P{n}"}, f"Error: Plan with ID P{n} not found")),
    "one piece of work that is handed over in vain": (
        4,
        lambda s, n: s.fail(
            "Task", {"subtask_id": "m3", "prompt": f"Write it, try {n}."}, f"failed: column {'abcd'[n]} is missing"
        ),
    ),
}

HONEST: dict[str, tuple[int, Once]] = {
    "a poll with pauses between": (14, _check(30.0)),
    "a poll beside another question": (
        8,
        lambda s, n: (_check(8.0)(s, n), s.call("get_log", {"id": 4}, "still building", wait=8.0)),
    ),
    "failures that fall": (
        10,
        lambda s, n: (
            s.call("Edit", {"path": "a", "old": f"{n}", "new": f"{n + 1}"}, "ok"),
            s.fail("Bash", {"command": "pytest -q"}, f"{12 - n} failed"),
        ),
    ),
    "a round of nine with one piece of news": (5, _reads(9, new=3)),
    "two agents that read the same": (
        8,
        lambda s, n: [s.call("Read", {"path": f"a{n}"}, f"text {n}", agent=agent) for agent in ("one", "two")],
    ),
    "many tickets": (20, lambda s, n: s.call("create_ticket", {"title": f"bug {n}"}, "created")),
    "searches that miss": (8, lambda s, n: s.call("Grep", {"pattern": f"word{n}", "path": "src"}, "No matches found")),
    "a view that moves": (
        12,
        lambda s, n: s.call(
            "browser_scroll", {"direction": "down", "pixels": 400}, f"at {400 * n} of 9000, heading {n} and text"
        ),
    ),
    "messages about new items": (8, lambda s, n: _said(f"Item {n} is next.", f"The file of item {n} comes first.")(s, n)),
    "agents in turn about new items": (
        5,
        lambda s, n: [
            s.say("message", {"text": f"Item {n} is with {agent}."}, agent=agent) for agent in ("one", "two", "three")
        ],
    ),
    "compactions between new work": (
        6,
        lambda s, n: (s.call("Read", {"path": f"a{n}"}, f"text {n}"), s.say("compaction", agent="main")),
    ),
    "a file that is called like a tool": (5, lambda s, n: s.fail("Read", {"path": f"tool{n}.py"}, f"tool{n}.py not found")),
    "pieces of work that fail once each": (
        4,
        lambda s, n: s.fail("Task", {"subtask_id": f"m{n}", "prompt": "Write it."}, f"failed: column {'abcd'[n]} is missing"),
    ),
}


def _alarms(times: int, once: Once) -> list[str]:
    story = Scenario()
    for number in range(times):
        once(story, number)
    return [finding.kind for finding in story.found() if finding.severity != "warn"]


@pytest.mark.parametrize("name", FOUND)
def test_is_found(name: str) -> None:
    """It goes round."""
    assert _alarms(*FOUND[name]) != []


@pytest.mark.parametrize("name", HONEST)
def test_is_no_loop(name: str) -> None:
    """It looks alike, and is work."""
    assert _alarms(*HONEST[name]) == []
