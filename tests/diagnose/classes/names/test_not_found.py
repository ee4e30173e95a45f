"""Names that no record has: numbers of one kind are not replaced by those of another, and a time is no missing name."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, evidence

ACCOUNT = Call("get_account", {"phone": "5551"}, '{"account": "K1", "router_ids": ["R2001", "R2002", "R2003"]}')


def _asked(number: str) -> Call:
    return Call("get_item", {"item": number}, f"Error: Tariff with ID {number} not found", "error")


def test_a_number_of_another_kind_is_not_offered() -> None:
    """Letters before a number say its kind. Guessed numbers are told, with those that worked."""
    worked = [Call("get_item", {"item": each}, f'{{"id": "{each}"}}') for each in ("R2001", "T3001")]
    told = diagnose(evidence(ACCOUNT, *worked, _asked("T3007"), _asked("T3008"), _asked("T3009"), loop=3))

    assert told is not None
    assert told.kind == "notFound"
    assert "R200" not in told.next_step
    assert "`T3008` and `T3007` failed too" in told.cause
    assert "worked with `T3001`" in told.cause


def test_what_is_taken_at_a_time_is_a_known_name() -> None:
    """It exists, so nobody is sent to look for another spelling."""
    call = Call("book_room", {"room": "R12", "date": "2031-03-04"}, "Error: room R12 not available on date 2031-03-04", "error")
    told = diagnose(evidence(call, call, call))

    assert told is not None
    assert "there is no" not in told.cause
    assert "`R12` is not to be had at `2031-03-04`" in told.cause
    assert "available then" in told.next_step
