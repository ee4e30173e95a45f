"""What is said of the arguments of a refused call, and when nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxmgr.diagnose import contrast
from tests.diagnose.build import Call, Said, evidence, failed
from tests.diagnose.related.test_alternatives import THRICE, answer, refused


def booking(people: int, price: int) -> dict[str, Any]:
    """Return the arguments of a booking."""
    return {
        "user": "ann_1",
        "passengers": [{"name": f"p{n}"} for n in range(people)],
        "pay": [{"id": "card_7", "amount": price}],
    }


def test_a_sum_for_one_of_several_is_named() -> None:
    """The wanted sum is the given one times the passengers."""
    told = answer(*refused("book", booking(3, 1625), "payment does not add up, total price is 4,875, but paid 1625"))

    assert "`4,875` is 3 times `1625`" in told.cause
    assert "3 `passengers`" in told.cause
    assert "`4,875`" in told.next_step


@pytest.mark.parametrize(("people", "wanted"), [(2, 4875), (3, 4874), (1, 1625)])
def test_another_sum_is_not_explained_by_a_list(people: int, wanted: int) -> None:
    """Without such a list, or with a remainder, nothing is said."""
    told = answer(*refused("book", booking(people, 1625), f"payment does not add up, total price is {wanted}, but paid 1625"))

    assert " times `1625`" not in told.cause


@pytest.mark.parametrize(("left", "said"), [(39, True), (57, False), (80, False)])
def test_less_left_than_the_call_takes_is_named(left: int, said: bool) -> None:
    """The newest answer says how much there is of what is too little."""
    profile = Call("get_user", {}, f'{{"cards": [{{"id": "gift_card_71", "amount": {left}}}]}}')
    given = {"pay": [{"payment_id": "gift_card_71", "amount": 57}]}
    told = answer(profile, *refused("book", given, "Not enough balance in gift_card_71"))

    assert ("The call has `amount 57` for `gift_card_71`" in told.cause) == said


def test_a_value_of_another_kind_is_named() -> None:
    """The user's phone number is no customer id."""
    failing = refused("get_customer", {"customer_id": "555-123"}, "no customer with ID '555-123'")
    told = answer(Said("My phone number is 555-123."), *failing)

    assert "`555-123` is the user's phone number" in told.cause
    assert "`customer_id`" in told.next_step
    told = answer(Said("My customer number is 555-123."), *failing)
    assert "is the user's" not in told.cause


def test_an_argument_gets_one_of_the_offered_values() -> None:
    """An answer in any language that lists values in quotes, and names the argument in its words."""
    message = "Estado de pago inválido. Use 'al contado', 'credito' o 'cuotas'."
    told = answer(*refused("create_order", {"metodo": "x9", "estado_pago": "pendiente"}, message))

    assert "`pendiente` as `estado_pago`" in told.cause
    assert "`al contado`, `credito` and `cuotas`" in told.next_step
    told = answer(*refused("create_order", {"metodo": "x9", "estado_pago": "credito"}, message))
    assert "the call gives" not in told.cause
    told = answer(*[failed("order --estado-pago pendiente", message)] * THRICE)
    assert "the call gives" not in told.cause


def test_what_an_earlier_call_may_have_used_up_is_named() -> None:
    """Only a call that changes something, worked, and had it."""
    first = {"pay": [{"payment_id": "certificate_48", "amount": 55}]}
    failing = refused(
        "update_booking", {"pay": [{"payment_id": "certificate_48", "amount": 9}]}, "method certificate_48 not found"
    )
    told = answer(Call("create_booking", first, "booked"), *failing)
    assert "Your create_booking call at 10:00 had `certificate_48` too, and worked" in told.cause
    for other in (Call("get_booking", first, "booked"), Call("create_booking", first, "refused", "error")):
        assert "used it up" not in answer(other, *failing).cause


_PROFILE = '{"id": "ada_7", "payment_methods": {"certificate_48": {"amount": 150.0}, "gift_card_71": {"amount": 35.0}}}'


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (_PROFILE, True),
        ('{"id": "ada_7", "payment_methods": [{"id": "certificate_48"}, {"id": "gift_card_71"}]}', True),
        (_PROFILE.replace("ada_7", "bob_1"), False),
        (_PROFILE.replace("gift_card_71", "credit_card_78"), False),
        (_PROFILE.replace("payment_methods", "passengers"), False),
    ],
    ids=["object", "list", "another customer", "it is listed", "another kind"],
)
def test_what_an_answer_lists_in_place_of_what_is_not_found_is_named(profile: str, said: bool) -> None:
    """What belongs to the same customer, under the name that the error gives the thing."""
    given = {"user_id": "ada_7", "pay": [{"payment_id": "credit_card_78"}]}
    failing = refused("book", given, "Error: Payment method credit_card_78 not found")
    told = answer(Call("get_user", {}, profile), *failing)

    listed = "lists `payment_methods`: `certificate_48` and `gift_card_71`. `credit_card_78` is not among them."
    assert (listed in told.cause) == said
    assert ("Take one of `certificate_48` and `gift_card_71` that the user agrees to" in told.next_step) == said


@pytest.mark.parametrize(
    ("message", "known"),
    [("Error: no seats are left on this flight", True), ("Internal Server Error", False), ("Error 52", False)],
)
def test_what_an_answer_states_is_not_called_unknown(message: str, known: bool) -> None:
    """An answer that says what is wrong stands beside the cause; one that only says that something is does not explain it."""
    told = answer(*refused("book", {"flight": "x"}, message))

    assert told.cause.startswith("The book call fails" if known else "Not known why the book call fails")


@pytest.mark.parametrize(("given", "said"), [({"name": "Ada", "email": None, "note": None}, True), ({"name": "Ada"}, False)])
def test_arguments_without_a_value_are_named(given: dict[str, object], said: bool) -> None:
    """A tool that stumbles over a missing value says not which; the advice on a program's own code is of no use there."""
    told = answer(*refused("reserve", given, "Error: 'NoneType' object has no attribute 'strip'"))

    assert ("The call gives no value for `email` and `note`" in told.cause) == said
    assert told.next_step.startswith("Leave `email` and `note` out") == said
    assert ("traceback" in told.next_step) != said


@pytest.mark.parametrize("message", ["Error: Ticket 'T-1001' no existe", "ticket T-1001 not found", "No such ticket: T-1001"])
def test_a_value_of_the_user_that_is_not_known_is_put_to_the_user(message: str) -> None:
    """Any other value is a guess; the agent's own value is none of the user's."""
    told = answer(Said("My claim is T-1001."), *refused("get_ticket", {"ticket": "T-1001"}, message))
    assert told.next_step.startswith("Tell the user that `T-1001` is not found")
    assert "Change one thing" not in told.next_step

    told = answer(Said("How is my claim?"), *refused("get_ticket", {"ticket": "T-1001"}, message))
    assert "Tell the user that `T-1001`" not in told.next_step
    told = answer(Said("My claim is T-1001."), *refused("get_ticket", {"ticket": "T-1001"}, "T-1001: the service is down"))
    assert "Tell the user that `T-1001`" not in told.next_step


_CUSTOMER = '{"customer_id": "C1", "line_ids": ["L1001", "L1002"], "name": "Plan P10"}'


def test_what_no_call_has_looked_up_is_named() -> None:
    """Of the kinds that a look-up of this session takes, and only what an answer refers to."""
    looks = [Call("get_customer", {"phone": "555"}, _CUSTOMER), Call("get_line", {"id": "L1001"}, '{"status": "active"}')]
    tests = [Call("run_speed_test", {}, "Speed test: no connection.")] * THRICE
    told = contrast(evidence(*looks, *tests, loop=THRICE))
    assert told is not None
    assert "Look up `L1002` with get_line: no call has asked for it yet." in told.next_step

    told = contrast(evidence(*looks, Call("get_line", {"id": "L1002"}, "{}"), *tests, loop=THRICE))
    assert told is not None
    assert "Look up" not in told.next_step


@pytest.mark.parametrize(
    ("used", "plan", "said"),
    [
        ("15.1", "P20", True),
        ("15.0", "P20", True),
        ("8.7", "P20", False),
        ("15.1", "P30", False),
        ("many", "P20", False),
    ],
)
def test_a_use_beyond_its_limit_is_named(used: str, plan: str, said: bool) -> None:
    """The limit of another thing says nothing of it."""
    line = Call("get_line", {"id": "L1002"}, f'{{"line_id": "L1002", "plan_id": "P20", "data_used_gb": "{used}"}}')
    limit = Call("get_plan", {"id": plan}, f'{{"plan_id": "{plan}", "data_limit_gb": 15.0}}')
    tests = [Call("run_speed_test", {}, "Speed test: no connection.")] * THRICE
    told = contrast(evidence(line, limit, *tests, loop=THRICE))

    assert told is not None
    assert ("`data_limit_gb` is only `15`." in told.cause) == said


def test_a_limit_to_which_something_was_added_is_not_told() -> None:
    """What stands beside the use counts, and so does a change of the same thing since."""
    line = '{"line_id": "L1002", "plan_id": "P20", "data_used_gb": 15.1, "data_limit_gb": 15.0}'
    tests = [Call("run_speed_test", {}, "Speed test: no connection.")] * THRICE
    more = Call("get_line", {"id": "L1002"}, line.replace("15.1,", '15.1, "data_refueling_gb": 2.0,'))
    since = [Call("get_line", {"id": "L1002"}, line), Call("refuel_data", {"line_id": "L1002", "gb": 2}, "added")]
    for steps in ([more], since):
        told = contrast(evidence(*steps, *tests, loop=THRICE))
        assert told is not None
        assert "is only `15`" not in told.cause
    told = contrast(evidence(since[0], *tests, loop=THRICE))
    assert told is not None
    assert "is only `15`" in told.cause


def _line(name: str, phone: str) -> Call:
    return Call("get_line", {"id": name}, f'{{"line_id": "{name}", "phone_number": "{phone}"}}')


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ([_line("L1001", "555-123-2001")], True),
        ([_line("L1001", "555-123-2002")], False),
        ([_line("L1002", "555-123-2002"), _line("L1001", "555-123-2001")], False),
        ([_line("L1001", "2026-11-01")], False),
    ],
    ids=["another's", "the user's", "both", "a date"],
)
def test_what_has_another_phone_number_than_the_user_is_told(looks: list[Call], said: bool) -> None:
    """It belongs to somebody else, unless the user's own was looked up as well."""
    customer = Call("get_customer", {"phone": "555-123-2002"}, '{"customer_id": "C1001", "phone_number": "555-123-2002"}')
    tests = [Call("run_speed_test", {}, "Speed test: no connection.")] * THRICE
    told = contrast(evidence(Said("My phone number is 555-123-2002."), customer, *looks, *tests, loop=THRICE))

    assert told is not None
    assert ("for `L1001`; the user named `555-123-2002`." in told.cause) == said
    assert told.next_step.startswith("Look up the one that has `555-123-2002`") == said


@pytest.mark.parametrize(
    ("look", "message", "said"),
    [
        ({"family": "Poaceae"}, "refused by the office", True),
        ({"family": "Apiaceae"}, "refused by the office", False),
        ({"family": "Apiaceae"}, "count does not agree", True),
    ],
    ids=["the same thing", "another thing", "a count"],
)
def test_a_list_that_was_not_read_to_its_end_is_told(look: dict[str, str], message: str, said: bool) -> None:
    """If it is about the thing of the call, or if the call is refused for a count."""
    page = Call("list_sheets", look, '{"items": ["s1"], "has_more": true, "next_cursor": "c2h0"}')
    told = answer(page, *refused("close_family", {"family": "Poaceae"}, message))

    assert ("holds only a part of the list" in told.cause) == said
    assert ("`c2h0`" in told.next_step) == said


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        ([("Z-0451", "bank.example"), ("Z-0877", "bank.example")], True),
        ([("Z-0451", "bank.example"), ("Z-0877", "dev.example")], False),
        ([("Z-0451", "bank.example"), ("Z-0877", "bank.example"), ("Z-0878", "bank.example")], False),
        ([("Z-0451", None), ("Z-0877", None)], False),
    ],
    ids=["two of one name", "other names", "three", "no names"],
)
def test_a_change_to_one_of_two_things_of_one_name_is_told(zones: list[tuple[str, str | None]], said: bool) -> None:
    """The look asks about the other one, perhaps. Of more than two a list says it better."""
    listed = json.dumps({"zones": [{"zoneId": zone, "name": name} for zone, name in zones]})
    change = Call("dns.upsert_record", {"zone": "bank.example", "name": "status"}, '{"ok": true, "zoneId": "Z-0451"}')
    probe = Call("probe.resolve", {"name": "status.bank.example"}, '{"rcode": "NXDOMAIN"}')
    told = contrast(evidence(Call("dns.list_zones", {}, listed), probe, change, probe, change, probe, loop=1))

    assert told is not None
    assert ("lists `bank.example` twice, as `Z-0451` and as `Z-0877`" in told.cause) == said
    assert told.next_step.startswith("See which `bank.example` is meant; if it is `Z-0877`") == said


@pytest.mark.parametrize(
    ("said", "offered"),
    [
        ("unknown shipping method, use 'standard' or 'express'", True),
        ('{"code": "BAD_METHOD", "field": "method", "detail": "unknown method"}', False),  # members, and no choices
    ],
)
def test_the_members_of_a_structured_error_are_no_choices(said: str, offered: bool) -> None:
    """A list of words in quotes is a choice where no word is the name of a member or its value."""
    told = answer(*refused("ship", {"method": "fast"}, said))

    assert ("The answer offers" in told.cause) == offered
