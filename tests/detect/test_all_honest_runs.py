"""Good runs of the kinds that a watchdog stops by mistake, and beside them the same runs when they are truly stuck.

Written from what people report, before the rules were looked at. Each is asked at every record and again at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.detect.scenario import Scenario

Tell = Callable[[Scenario], Any]
STILL = "Build 4711: running, step {} of 9"


def each(count: int, tell: Callable[[Scenario, int], Any]) -> Tell:
    """Return a story that tells something so many times, with the number of the time."""

    def told(story: Scenario) -> None:
        for number in range(count):
            tell(story, number)

    return told


def then(*parts: Tell) -> Tell:
    """Return a story of several parts."""

    def told(story: Scenario) -> None:
        for part in parts:
            part(story)

    return told


def user(text: str) -> Tell:
    """Return a person's words."""
    return lambda story: story.say("user_message", {"text": text}, agent="user")


def agent(text: str) -> Tell:
    """Return the agent's words."""
    return lambda story: story.say("message", {"text": text}, agent="main")


def call(action: str, given: Any, output: Any, **fields: Any) -> Tell:
    """Return one call."""
    return lambda story: story.call(action, given, output, **fields)


def fail(action: str, given: Any, message: str, **fields: Any) -> Tell:
    """Return one failed call."""
    return lambda story: story.fail(action, given, message, **fields)


def event(kind: str, data: Any = None) -> Tell:
    """Return an event of the agent."""
    return lambda story: story.say(kind, data, agent="main")


FIXED = then(
    user("The parser drops the last line, please fix it."),
    call("Read", {"path": "parser.py"}, "def parse(lines): ..."),
    call("Edit", {"path": "parser.py", "old": "[:-1]", "new": ""}, "edited"),
    call("Bash", {"command": "pytest -q"}, "12 passed"),
    agent("Fixed: the slice cut off the last line. All 12 tests pass."),
)

HONEST: dict[str, tuple[Tell, float | None]] = {
    "poll a build until it is done": (
        then(
            each(9, lambda story, n: story.call("get_build", {"id": 4711}, STILL.format(n), wait=30)),
            call("get_build", {"id": 4711}, "Build 4711: passed"),
            agent("The build passed."),
        ),
        600,
    ),
    "poll a job whose answer does not change for long": (
        then(
            each(14, lambda story, _: story.call("job_status", {"job": "j1"}, {"status": "RUNNING"}, wait=60)),
            call("job_status", {"job": "j1"}, {"status": "DONE"}),
        ),
        60,
    ),
    "sleep and look, in turns": (
        each(6, lambda story, n: (
            story.call("Bash", {"command": "sleep 20"}, "", took=20),
            story.call("Bash", {"command": "tail -1 train.log"}, f"epoch {n} loss {0.9 - n / 20:.2f}"),
        )),
        30,
    ),
    "wait for a person's approval over night": (
        then(
            call("Bash", {"command": "terraform plan"}, "3 to add, 1 to destroy"),
            event("waiting", {"text": "May I apply this plan?"}),
        ),
        40_000,
    ),
    "ask a question and wait": (then(FIXED, agent("Shall I also update the changelog?")), 7_200),
    "ask by a tool and wait": (
        then(
            call("Read", {"path": "a.md"}, "text"),
            lambda story: story.open("AskUserQuestion", {"question": "Which database?"}),
        ),
        9_000,
    ),
    "a long build with its own limit": (
        then(
            call("Read", {"path": "Makefile"}, "all: ..."),
            lambda story: story.open("Bash", {"command": "make world"}, timeout_ms=3_600_000),
        ),
        3_000,
    ),
    "a long build that tells what it does": (
        then(
            lambda story: story.open("Bash", {"command": "cargo build"}, id="b"),
            each(7, lambda story, n: story.say("tool_call_update", {"text": f"Compiling crate {n}"}, agent="main", wait=60)),
            lambda story: story.close("b", "Finished release"),
            agent("Built."),
        ),
        900,
    ),
    "finished, and thanked for it": (then(FIXED, user("Thank you, that's all for now!")), 300),
    "finished, and thanked at length": (
        then(FIXED, user("Perfect. Everything seems to be working now. Thanks so much for your help, have a great day!")),
        300,
    ),
    "finished, and left by a command": (then(FIXED, user("/exit")), 600),
    "finished, and told goodbye": (then(FIXED, user("Great work, bye")), 86_400),
    "finished with a harness's word": (then(FIXED, user("No, I am good. ###STOP###")), 300),
    "finished with an agent's word and no end": (FIXED, 86_400),
    "finished by a submit": (then(FIXED, call("submit", {}, "submitted")), 86_400),
    "only greeted and left": (then(user("hi"), agent("Hello! What shall we do?")), 86_400),
    "a retry that works at last": (
        then(
            each(4, lambda story, n: story.fail(
                "fetch", {"url": "https://api.test/x"}, "429 Too Many Requests", wait=2.0 ** (n + 1)
            )),
            call("fetch", {"url": "https://api.test/x"}, {"ok": True}, wait=32),
            agent("Fetched."),
        ),
        600,
    ),
    "a flaky test that passes the third time": (
        then(
            fail("Bash", {"command": "pytest tests/net.py"}, "1 failed: timed out"),
            call("Read", {"path": "net.py"}, "code"),
            fail("Bash", {"command": "pytest tests/net.py"}, "1 failed: timed out"),
            call("Edit", {"path": "net.py", "old": "t=1", "new": "t=5"}, "edited"),
            call("Bash", {"command": "pytest tests/net.py"}, "1 passed"),
        ),
        60,
    ),
    "tests that fail less and less": (
        each(7, lambda story, n: (
            story.call("Edit", {"path": f"m{n}.py", "old": "a", "new": "b"}, "edited"),
            story.fail("Bash", {"command": "pytest -q"}, f"{7 - n} failed, {40 + n} passed"),
        )),
        30,
    ),
    "pages by a cursor": (
        each(12, lambda story, n: story.call(
            "list_issues", {"cursor": f"c{n}"}, {"items": [n * 2, n * 2 + 1], "next": f"c{n + 1}"}
        )),
        30,
    ),
    "pages without a cursor": (
        each(12, lambda story, n: story.call("next_page", {}, f"rows {n * 50} to {n * 50 + 49}")), 30,
    ),
    "a long file in pieces": (
        each(15, lambda story, n: story.call("Read", {"path": "big.log", "offset": n * 200, "limit": 200}, f"piece {n}")), 30,
    ),
    "one receipt for each of many files": (
        each(20, lambda story, n: story.call("Write", {"path": f"out/{n}.json", "content": f"{{{n}}}"}, "ok")), 30,
    ),
    "one check over many files, all well": (
        each(20, lambda story, n: story.call("Bash", {"command": f"ruff check pkg/m{n}.py"}, "All checks passed!")), 30,
    ),
    "many downloads, some of them gone": (
        each(12, lambda story, n: (
            story.fail("download", {"url": f"https://x.test/{n}"}, f"404 Not Found: /{n}")
            if n % 4 == 3 else story.call("download", {"url": f"https://x.test/{n}"}, f"{1000 + n} bytes")
        )),
        30,
    ),
    "edit and test, with one status between": (
        each(6, lambda story, n: (
            story.call("Edit", {"path": "a.py", "old": f"{n}", "new": f"{n + 1}"}, "edited"),
            story.call("Bash", {"command": "git status --short"}, " M a.py"),
            story.call("Bash", {"command": "pytest -q"}, f"{n} passed, {6 - n} failed"),
        )),
        30,
    ),
    "a child agent that works for long": (
        then(
            lambda story: story.open("Task", {"description": "review"}, id="t"),
            each(8, lambda story, n: story.call("Read", {"path": f"{n}.py"}, f"code {n}", agent="child", parent="t", wait=100)),
        ),
        60,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HONEST))
def test_no_alarm_on_honest_work(name: str) -> None:
    """Nothing is claimed while it runs, nor at its end, nor when the log is all there will be."""
    tell, after = HONEST[name]
    story = Scenario()
    tell(story)
    _, raised = story.watched()
    assert [finding.reason for _, finding in raised if finding.severity != "warn"] == []
    assert [each.reason for each in story.stalls(after) if each.severity == "hung" and each.resolved is None] == []


STUCK: dict[str, tuple[Tell, float]] = {
    "a person asks and nobody answers": (then(FIXED, user("Now do the same for the writer.")), 300),
    "a question after thanks": (then(FIXED, user("Thanks! Can you also fix the writer?")), 300),
    "thanks, and one more thing": (then(FIXED, user("Great, thank you. Next, rename parse to read_lines.")), 300),
    "thanks ahead of the work": (then(FIXED, user("Please go ahead with the release. Thank you!")), 300),
    "an assent that has thanks in it": (then(agent("Shall I apply it?"), user("Yes, thanks")), 300),
    "stop talking, go on": (then(FIXED, user("Don't stop here, finish the changelog")), 300),
    "a request about an exit": (then(FIXED, user("make it exit with 2 on errors")), 300),
    "a build beyond its limit": (lambda story: story.open("Bash", {"command": "make"}, timeout_ms=60_000), 100),
    "silence after a result": (call("Read", {"path": "a"}, "text"), 300),
}


@pytest.mark.parametrize("name", sorted(STUCK))
def test_what_is_stuck_is_still_found(name: str) -> None:
    """What sounds alike and waits for the agent is a stall all the same."""
    tell, after = STUCK[name]
    story = Scenario()
    tell(story)
    assert [each.severity for each in story.stalls(after) if each.resolved is None] == ["hung"]
