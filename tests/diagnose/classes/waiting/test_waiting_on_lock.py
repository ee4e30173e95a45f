"""Locks that another agent holds."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, bash, evidence, failed

LOCKED = failed("sqlite3 shop.db 'delete from cart'", "Error: database is locked")
OPEN = bash("flock /tmp/shop.lock make", status="open")


@pytest.mark.parametrize(
    ("begun", "calls"),
    [
        (bash("sqlite3 shop.db .dump &", "[1] 4711"), [LOCKED] * 3),
        (bash("flock /tmp/shop.lock sleep 900 &", "[1] 4711"), [OPEN]),
    ],
    ids=["refused", "waits"],
)
@pytest.mark.parametrize("agent", ["main", "builder", "not; a name"])
def test_only_its_own_holder_is_the_agents_to_end(begun: Call, calls: list[Call], agent: str) -> None:
    """What another agent started is told as that agent's, who is to be asked."""
    told = diagnose(evidence(begun._replace(agent=agent), *calls))

    assert told is not None
    assert told.kind == "waitingOnLock"
    own = agent == "main"
    name = "you" if own else "builder" if agent == "builder" else "another agent"
    assert ("You hold it yourself" in told.cause) == own
    assert (f"Ask {name} to end" in told.next_step) == (not own)
    assert own or f"{name} holds it" in told.cause
