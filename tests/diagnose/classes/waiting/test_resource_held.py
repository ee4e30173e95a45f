"""A port that is taken: what the user said of it, and who started what holds it."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, bash, evidence, failed, read, require_told

TAKEN = "OSError: [Errno 98] Address already in use: ('0.0.0.0', 8080)"
LISTED = bash("ss -ltnp | grep 8080", 'LISTEN 0 5 0.0.0.0:8080 0.0.0.0:* users:(("java",pid=4711,fd=7))')
OTHER = bash("nohup ./metrics --port 8080 &", "[1] 900")


@pytest.mark.parametrize("before", [[LISTED], [], [OTHER]], ids=["listed", "unknown", "another program of ours"])
def test_a_port_that_must_stay_is_kept(before: list[Call]) -> None:
    """Where the user wants the port as it is, neither step nor check speak of another one."""
    call = failed("python serve.py --port 8080", TAKEN)
    told = diagnose(evidence(Said("The port must stay 8080."), *before, call, call, call))

    assert told is not None
    assert told.kind == "resourceHeld"
    assert "8081" not in f"{told.next_step} {told.check}"
    assert "ask" in told.next_step


def test_another_agents_server_is_not_ours() -> None:
    """A server that another agent left running is told as its own, and is not to be stopped."""
    begun = bash("nohup python serve.py & disown", "")._replace(agent="builder")
    call = failed("python serve.py --host 127.0.0.1", "error: address already in use: 127.0.0.1:8080")
    told = diagnose(evidence(begun, call, call, call))

    assert told is not None
    assert told.kind == "resourceHeld"
    assert "You started" not in told.cause
    assert "builder" in told.cause
    assert "kill" not in told.next_step


NOTE = """# Local services
9200 is the shared index of the QA team, do not stop it. Ports 9210 to 9219 are free for developers.
"""


def test_a_note_says_whose_the_port_is_and_which_are_free() -> None:
    """The holder is named with the note, and of its free ports one that no listing shows as taken."""
    source = read("index.js", "const port = Number(process.env.INDEX_PORT || 9200)\napp.listen(port)")
    listing = bash("ss -ltn", "LISTEN 0 5 127.0.0.1:9200 0.0.0.0:*\nLISTEN 0 5 127.0.0.1:9210 0.0.0.0:*")
    call = failed("node index.js", "Error: listen EADDRINUSE: address already in use 127.0.0.1:9200")
    known = evidence(read("docs/local.md", NOTE), source, listing, call, call, call)

    require_told(known, "resourceHeld", ["9200", "shared index of the QA team", "local.md"], ["INDEX_PORT=9211", "alone"])


def test_a_log_line_is_no_note_of_a_holder() -> None:
    """A program's own message with the port says nothing about who holds it."""
    log = bash("cat old.log", "the search service is now listening on port 9200 for all requests")
    call = failed("node index.js", "Error: listen EADDRINUSE: address already in use 127.0.0.1:9200")
    told = diagnose(evidence(log, call, call, call))

    assert told is not None
    assert "says of it" not in told.cause


def test_a_script_takes_the_port_as_its_argument() -> None:
    """The default port stands in the script, and a note in the same output says whose it is."""
    shown = bash(
        "cat HOUSE.md up.sh",
        '6060  review desk of Ines for this week, do not touch\n6070-6075  free for all\nexec serve "${1:-6060}"',
    )
    call = failed("sh up.sh", "error: address already in use")

    require_told(evidence(shown, call, call, call), "resourceHeld", ["6060", "Ines"], ["`up.sh 6070`"])
