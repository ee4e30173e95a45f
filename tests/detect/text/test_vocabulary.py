"""What names and words are taken to mean."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
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
        ("cancel_reservation", "", "", "mutation"),
        ("modifyPendingOrder", "", "", "mutation"),
        ("toggle_airplane_mode", "", "", "mutation"),
        ("get_change_log", "", "", "query"),
        ("find_book", "", "", "query"),
        ("recommend_book", "", "", "other"),
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
        ("schedule_wakeup", "", "", "sleep"),
        ("Bash", "", "aws rds describe-db-instances --db-instance-identifier a", "query"),
        ("Bash", "", "aws rds create-db-instance --describe get", "other"),
        ("Bash", "", "kubectl -n staging get pods -l app=get", "query"),
        ("Bash", "", "kubectl -n staging scale deploy/a --replicas=2", "other"),
        ("Bash", "", "docker exec db status", "other"),
        ("Bash", "", "make deploy TENANT=acme", "mutation"),
        ("Bash", "", "npm run release -- --dry-run", "mutation"),
        ("Bash", "", "make bootstrap VERSION=release", "other"),
        ("buscar_articulos", "", "", "query"),
        ("Bash", "", "sed -n 1,40p a.py", "query"),
        ("Bash", "", "cd src && sed -nE '/def/p' a.py | head", "query"),
        ("Bash", "", "sed -n -i p a.py", "mutation"),
        ("Bash", "", "sed -ni p a.py", "mutation"),
        ("Bash", "", "sed -n --in-place=.old p a.py", "mutation"),
        ("Bash", "", "sed s/a/b/ a.py", "mutation"),
        ("Bash", "", "sed -n p a.py > b.py", "other"),
        ("Bash", "", "curl -sS https://example.org/health | jq .status", "query"),
        ("Bash", "", "curl -XGET -H 'Accept: a/b' http://localhost:1/-d", "query"),
        ("Bash", "", "curl --request HEAD https://example.org", "query"),
        ("Bash", "", "curl -sX PUT https://example.org", "mutation"),
        ("Bash", "", "curl --request=DELETE https://example.org", "mutation"),
        ("Bash", "", "curl -sd a=b https://example.org", "mutation"),
        ("Bash", "", "curl --data-binary @a https://example.org", "mutation"),
        ("Bash", "", "curl -fsSLO https://example.org/a.tgz", "mutation"),
        ("Bash", "", "curl", "mutation"),
    ],
)
def test_what_a_call_does(action: str, verb: str, command: str, meaning: str) -> None:
    """Commands are read first, then the verb in the input, then the name; what is not known may change anything."""
    assert vocabulary.classify(action, verb, command) == meaning


_PIECES = (
    "ls", "cd x", "git", " status", " -C a", "rm", " y", "sleep 5", "SLEEP 5", "\u017fleep 5", "timeout /t 3", "echo sleep 3",
    "docker", " ps", "sed", "curl", " -n", "make", "x" * 90, "&&", ";", "|",
    "\n", "\x1c", " ", ">", "2>&1", "/dev/null", "&", "a;b", "a&&sleep 2",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=9), st.booleans())
def test_what_may_change_something_is_seen_without_reading_all_of_a_command(parts: list[str], long: bool) -> None:
    """The short look at a command never says otherwise than reading it does, wherever its words and marks meet."""
    command = ("z " * 998 if long else "") + "".join(parts)
    assume(vocabulary.surely_changes(command))
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


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("Page: Sign in | X\nTo continue reading, sign in or start a trial.", True),
        ("Please enable JavaScript to run this app", True),
        ("Complete the CAPTCHA", True),
        ("The user can sign in with a token.", False),
        ("Continue with step 3", False),
    ],
)
def test_a_wall_is_told_from_a_page_about_signing_in(text: str, wall: bool) -> None:
    """Only a page that asks whoever reads it to sign in, or to prove something, stands before all others."""
    assert vocabulary.is_wall(text) is wall


@pytest.mark.parametrize(
    ("error", "own"),
    [
        ("EXECUTION TIMED OUT: cancelled because it took more than 30 seconds", True),
        ("Command timed out after 120s", True),
        ("connect ETIMEDOUT 10.0.0.1:443", False),
        ("504 Gateway Timeout", False),
    ],
)
def test_a_limit_of_the_call_is_told_from_one_of_the_network(error: str, own: bool) -> None:
    """Waiting for a better moment cures the second alone."""
    assert vocabulary.is_own_limit(error) is own


@pytest.mark.parametrize(
    ("given", "far"),
    [
        ({"url": "https://example.org/a"}, True),
        ({"url": "http://localhost:3000"}, False),
        ({"url": "http://127.0.0.1/x"}, False),
        ({"url": "http://web:8080/"}, False),
        ({"path": "https://example.org"}, False),
    ],
)
def test_a_page_of_another_machine(given: object, far: bool) -> None:
    """What is written here may change what a local server shows, and no other."""
    from ctxmgr.types.finding import Observation

    start = Observation(seq=0, session="s", id="a", at=None, kind="start", action="fetch_url", input=given)
    assert vocabulary.fetches(start) is far


@pytest.mark.parametrize(
    ("action", "called"),
    [
        ("transfer_to_human_agents", True), ("transferToHuman", True), ("hand_off_to_human", True), ("human_handoff", True),
        ("mcp__desk__escalate_to_supervisor", True), ("transfer_call_to_operator", True), ("transfer_to_billing_agent", False),
        ("transfer_manager_files_to_archive", False), ("assign_manager_to_project", False), ("return_to_user", False),
        ("ask_human", False), ("handle_person", False), ("transfer_to", False), ("", False),
    ],
)  # fmt: skip
def test_a_conversation_that_goes_to_a_person(action: str, called: bool) -> None:
    """Staff must be who gets it; a thing that goes to a person, or a person who is moved, is no end of a run."""
    assert vocabulary.calls_a_person(action) is called
