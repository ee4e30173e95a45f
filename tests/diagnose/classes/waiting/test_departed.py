"""Somebody who is waited for has left."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.waiting.departed import diagnose_departed
from tests.diagnose.build import Call, Said, evidence

WAIT = Call("mail.wait", {"from": "nora", "seconds": 600}, status="open")
LEFT = "All counts are in. I sign off at noon; from then on ulf has the stock list."


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (LEFT, ["`nora`", "`ulf`"]),
        ("I am on leave from tomorrow. Ask Petra about invoices.", ["`nora`", "`Petra`"]),
        ("I will be out after three.", ["`nora`", "ask the user"]),
    ],
)
def test_who_takes_over(said: str, words: list[str]) -> None:
    """The message in which somebody leaves names the next one, if any."""
    told = diagnose_departed("waitsForPerson", evidence(Call("stock.get", {"id": 4}, {"n": 2}), Said(said, "nora"), WAIT))

    assert told is not None
    assert [word for word in words if word not in f"{told.cause} {told.next_step}"] == []


@pytest.mark.parametrize(
    "said",
    [
        [Said(LEFT, "nora"), Said("I am back, what is it?", "nora")],
        [Said(LEFT, "otto")],
        [Said("The shelf will be out of stock; the list has a gap.", "nora")],
        [],
    ],
)
def test_whoever_is_there_is_waited_for(said: list[Said]) -> None:
    """Nobody is said to have left who wrote since, or whose words are about something else."""
    known = evidence(Call("stock.get", {"id": 4}, {"n": 2}), *said, WAIT)

    assert diagnose_departed("waitsForPerson", known) is None
