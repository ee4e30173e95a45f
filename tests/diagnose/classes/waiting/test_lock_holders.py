"""A database is locked by a transaction that a call of the record began and nobody ended."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, evidence, failed, require_told

OPEN = Call("sql.open", {"path": "/srv/ledger.sqlite", "session": "w-7"}, {"session": "w-7"}, agent="clerk")
BEGIN = Call("sql.run", {"session": "w-7", "text": "BEGIN IMMEDIATE"}, {"ok": True}, agent="clerk")
ADD = Call("sql.run", {"session": "w-7", "text": "update posts set sum = 4"}, {"changes": 1}, agent="clerk")
LOCKED = failed("sqlite3 ledger.sqlite 'delete from drafts'", "Error: database is locked")


def test_another_agents_transaction_and_what_it_waits_for() -> None:
    """Waiting can't help if that agent waits for an answer of the stuck one."""
    known = evidence(OPEN, BEGIN, ADD, Said("Sum changed. I commit once you confirm the sum.", "clerk"), LOCKED, LOCKED, LOCKED)

    require_told(known, "waitingOnLock", ["Clerk holds it", "`w-7`", "no commit"], ["Answer clerk", "once you confirm the sum"])


def test_an_own_transaction() -> None:
    """The agent can end it itself."""
    mine = [call._replace(agent="main") for call in (OPEN, BEGIN, ADD)]

    require_told(evidence(*mine, LOCKED, LOCKED), "waitingOnLock", ["You hold it yourself"], ["Commit that transaction"])


@pytest.mark.parametrize(
    "calls",
    [
        (OPEN, BEGIN, Call("sql.run", {"session": "w-7", "text": "commit"}, {"ok": True}, agent="clerk")),
        (OPEN, BEGIN, Call("sql.run", {"session": "w-7", "text": "update a set b = 1; COMMIT;"}, {"ok": True}, agent="clerk")),
        (OPEN._replace(given={"path": "/srv/other.sqlite", "session": "w-7"}), BEGIN),
        (BEGIN._replace(action="Bash", given={"command": "sqlite3 ledger.sqlite 'begin immediate; select 1'"}),),
        (OPEN, BEGIN._replace(given={"session": "w-7", "text": "select 'begin' from words"})),
    ],
)
def test_a_transaction_that_holds_nothing(calls: tuple[Call, ...]) -> None:
    """It was committed, is of another database, or ended with its command."""
    found = diagnose(evidence(*calls, LOCKED, LOCKED, LOCKED))

    assert found is not None
    assert "transaction" not in found.cause


def test_another_session_of_the_agent_may_commit() -> None:
    """Its commit does not end this transaction."""
    other = Call("sql.run", {"session": "w-8", "text": "commit"}, {"ok": True}, agent="clerk")

    require_told(evidence(OPEN, BEGIN, other, LOCKED, LOCKED), "waitingOnLock", ["Clerk holds it"], ["Ask clerk to commit"])
