"""What names and words are taken to mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.detect.text import vocabulary


@pytest.mark.parametrize(
    ("action", "verb", "command", "meaning"),
    [
        ("read_file", "", "", "query"),
        ("Edit", "", "", "mutation"),
        ("applyPatch", "", "", "mutation"),
        ("write_stdin", "", "", "poll"),
        ("message", "read", "", "query"),
        ("message", "reply", "", "mutation"),
        ("press_key", "", "", "gesture"),
        ("frobnicate", "", "", "other"),
        ("Bash", "", "ls -l | head", "query"),
        ("Bash", "", "git status --short && git diff", "query"),
        ("Bash", "", "cd src && rm -r x", "mutation"),
        ("Bash", "", "echo x > file", "other"),
        ("Bash", "", "pytest -q 2>&1 | tail", "other"),
        ("Bash", "", "sleep 30", "sleep"),
        ("Bash", "", "sleep 30 && tail -1 log", "paced"),
        ("Bash", "", "timeout /t 5; Start-Sleep -s 4 ||sleep 1", "sleep"),
        ("Bash", "", "ls 2>/dev/null;; git -C /x --no-pager log -1 | wc", "query"),
        ("Bash", "", "git -C /x commit -m a", "other"),
        ("Bash", "", "make && touch x", "mutation"),
        ("Bash", "", " ;\n&& ", "other"),
        ("sleep", "", "", "sleep"),
    ],
)
def test_what_a_call_does(action: str, verb: str, command: str, meaning: str) -> None:
    """Commands are read first, then the verb in the input, then the name; what is not known may change anything."""
    assert vocabulary.classify(action, verb, command) == meaning


_PIECES = (
    "ls", "cd x", "git", " status", " -C a", "rm", " y", "sleep 5", "SLEEP 5", "\u017fleep 5", "timeout /t 3", "echo sleep 3",
    "docker", " ps", "make", "x" * 90, "&&", ";", "|", "\n", "\x1c", " ", ">", "2>&1", "/dev/null", "&", "a;b", "a&&sleep 2",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=9), st.booleans())
def test_what_may_change_something_is_seen_without_reading_all_of_a_command(parts: list[str], long: bool) -> None:
    """The short look at a command never says otherwise than reading it does, wherever its words and marks meet."""
    command = ("z " * 998 if long else "") + "".join(parts)
    if vocabulary.surely_changes(command):
        assert vocabulary.classify("Bash", "", command) in ("mutation", "other")


def test_declared_pollers_come_first() -> None:
    """A configured poller is a poll whatever its name says."""
    assert vocabulary.classify("update_board", "", "", frozenset({"update_board"})) == "poll"


@pytest.mark.parametrize(("command", "sure"), [("make all", True), ("  rm -r x", True), ("ls -l", False), ("", False)])
def test_the_first_word_of_a_command_may_say_enough(command: str, sure: bool) -> None:
    """A word that starts no query settles it; anything else is left to a longer look."""
    assert vocabulary.surely_changes(command) is sure


@pytest.mark.parametrize("text", ["still running", "Status: PENDING", "build in progress", "not ready", "queued"])
def test_words_of_waiting(text: str) -> None:
    """An answer that says something is under way is recognised."""
    assert vocabulary.is_waiting(text)


@pytest.mark.parametrize("text", ["done", "3 failed", "", "x" * 5000 + " running"])
def test_words_that_are_no_waiting(text: str) -> None:
    """A result, and a long text that mentions running, is none."""
    assert not vocabulary.is_waiting(text)


@pytest.mark.parametrize(
    ("text", "transient"),
    [
        ("HTTP 429: slow down", True),
        ("upstream returned 503", True),
        ("ETIMEDOUT", True),
        ("rate_limit_error", True),
        ("order 14290 not found", False),
        ("401 Unauthorized", False),
    ],
)
def test_trouble_of_the_infrastructure(text: str, transient: bool) -> None:
    """Rate limits, time-outs and unreachable servers are transient, other failures are not."""
    assert vocabulary.is_transient(text) is transient
