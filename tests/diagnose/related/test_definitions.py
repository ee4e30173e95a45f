"""What the record says of the thing that a refused call names: its own object, those like it, or what the error calls it."""

from __future__ import annotations

import json

import pytest

from ctxmgr.diagnose.related.definitions import find_definitions, find_rules_on_values
from tests.diagnose.build import Call, Said, evidence, failed

USER = {
    "user_id": "ann_lee_1",
    "name": {"first": "Ann", "last": "Lee"},
    "reservations": [{"payment_id": "gift_card_71", "amount": 897}],
    "payment_methods": {
        "gift_card_71": {"source": "gift_card", "amount": 39, "id": "gift_card_71"},
        "gift_card_72": {"source": "gift_card", "amount": 203, "id": "gift_card_72"},
    },
}
LOOK = Call("get_user", {"user_id": "ann_lee_1"}, json.dumps(USER))
OWN = '"gift_card_71": {"source": "gift_card", "amount": 39, "id": "gift_card_71"}'


def shown(*steps: Call) -> list[str]:
    """Return the texts that describe what the last call names."""
    known = evidence(*steps, found=False)
    return [each.quote.text for each in find_definitions(known, [known.recent[-1]]) if each.quote is not None]


def pay(name: str, message: str) -> Call:
    """Return a refused payment."""
    return Call("book_flight", {"payments": [{"payment_id": name, "amount": 57}]}, message, "error")


def test_the_object_of_the_named_thing_is_shown() -> None:
    """The object under its name counts, not one that refers to it, which has other numbers."""
    assert shown(LOOK, pay("gift_card_71", "Not enough balance in gift_card_71")) == [OWN]


def test_a_thing_may_be_named_by_the_words_of_its_name_alone() -> None:
    """An error that says "gift card" is about the argument that is one."""
    assert shown(LOOK, pay("gift_card_71", "gift card balance is not enough")) == [OWN]
    assert shown(LOOK, pay("gift_card_71", "balance is not enough")) == []


def test_without_an_object_of_its_own_those_like_it_are_shown() -> None:
    """Names of the same form say what there is instead."""
    (found,) = shown(LOOK, pay("gift_card_99", "Payment method gift_card_99 not found"))
    assert "gift_card_71" in found
    assert "gift_card_72" in found


def test_what_the_error_calls_it_by_its_kind_is_shown_last() -> None:
    """No card is recorded, but the payment methods are."""
    (found,) = shown(LOOK, pay("card_7x8", "Payment method card_7x8 not found"))
    assert found.startswith('"payment_methods": {"gift_card_71"')


def test_the_change_that_took_it_is_shown_too() -> None:
    """A certificate that an earlier booking used up is there no more, whatever the profile says."""
    spent = Call("update_booking", {}, '{"paid": [{"payment_id": "gift_card_71", "amount": 39}]}')
    assert shown(LOOK, spent, pay("gift_card_71", "gift_card_71 not found")) == [
        '{"payment_id": "gift_card_71", "amount": 39}',
        OWN,
    ]


@pytest.mark.parametrize(
    "last",
    [
        failed("pay gift_card_71", "gift_card_71 not found"),
        Call("book_flight", {"payment_id": "gift_card_71"}, "gift_card_71 booked"),
    ],
    ids=["command", "success"],
)
def test_only_a_refused_call_of_a_tool_is_explained(last: Call) -> None:
    """The output of a command may be anything, and a call that worked names nothing that is missing."""
    assert shown(LOOK, last) == []


KEYS = Call(
    "list_keys", {}, json.dumps([{"alias": "ledger-pii", "tier": "regulated"}, {"alias": "mail-1", "tier": "standard"}])
)
RULE = "the regulated tier is behind a policy, only sessions of custodian-rotator get through there"


def rules(*steps: Call | Said) -> list[str]:
    """Return the rules on the thing that the last call names."""
    known = evidence(*steps, found=False)
    return [each.line for each in find_rules_on_values(known, [known.recent[-1]])]


def rotate(name: str) -> Call:
    """Return a refused rotation."""
    return Call("rotate", {"alias": name}, "explicit deny", "error")


def test_a_rule_on_a_value_of_the_refused_thing_is_shown() -> None:
    """The call names the key, an answer its tier, and another agent who may use keys of that tier."""
    assert rules(KEYS, Said(f"Morning. Mind: {RULE}.", "platform"), rotate("ledger-pii")) == [f"Mind: {RULE}."]


@pytest.mark.parametrize(
    "steps",
    [
        (KEYS, Said(f"{RULE}.", "platform"), rotate("mail-1")),  # of another tier
        (KEYS, Said("Three keys are in the regulated tier since October.", "platform"), rotate("ledger-pii")),  # no rule
        (Said(f"{RULE}.", "platform"), rotate("ledger-pii")),  # no answer shows its tier
        (KEYS, *[Said(f"{RULE} {day}.", "platform") for day in ("today", "now", "too", "also")], rotate("ledger-pii")),
    ],
)
def test_other_sentences_are_no_rule_on_it(steps: tuple[Call | Said, ...]) -> None:
    """It needs the value, the words of a rule, and few who speak of it."""
    assert rules(*steps) == []
