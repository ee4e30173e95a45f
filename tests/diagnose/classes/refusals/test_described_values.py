"""Values are compared with what an earlier answer describes: limits, a type, a list, or words about the form."""

from __future__ import annotations

import json

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.types.view import EntryStatus
from tests.diagnose.build import Call, evidence, read, require_told

_POINT = {"type": "int16", "unit": "0.1 degC", "min": 50, "max": 300}
_DESCRIBED = Call("describe", {"id": "unit-1"}, json.dumps({"id": "unit-1", "points": {"heat": _POINT}}))


def _write(value: object, message: str = "write refused (exception 03)", status: EntryStatus = "error") -> Call:
    return Call("point_write", {"device": "unit-1", "point": "heat", "value": value}, message, status)


def test_a_value_is_told_in_the_unit_of_its_description() -> None:
    """16.5 degrees are 165 where a unit is a tenth of a degree."""
    known = evidence(_DESCRIBED, *[_write(16.5)] * 3)

    require_told(
        known, "schemaRefused", ["`value` `16.5`", "of `heat`: type `int16`", "max `300`"],
        ["`value` as a whole number of at least 50 and at most 300", "`165` for `16.5`"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("about", "value", "wanted"),
    [
        ({"min": 50, "max": 300}, 12, "a number of at least 50 and at most 300"),
        ({"maximum": 8}, 9, "a number of at most 8"),
        ({"type": "integer", "minimum": 1}, 1.5, "a whole number of at least 1"),
        ({"min": 0, "step": 15}, 20, "in steps of 15"),
        ({"allowed": ["low", "high"]}, "middle", "one of `low` and `high`"),
        ({"maxLength": 4}, "abcde", "at most 4 characters"),
    ],
)
def test_what_is_described_under_an_arguments_name_holds(about: dict[str, object], value: object, wanted: str) -> None:
    """Limits, types, steps, lists and lengths."""
    listed = Call("form_describe", {}, json.dumps({"fields": [{"name": "level", **about}]}))
    found = diagnose(evidence(listed, *[Call("form_send", {"level": value}, "rejected", "error")] * 3))

    assert found is not None
    assert wanted in found.next_step


@pytest.mark.parametrize(
    "steps",
    [
        (_DESCRIBED, *[_write(165)] * 3),  # it fits
        (_DESCRIBED, _write(16.5, "ok", "ok"), *[_write(17.5)] * 3),  # such a value was taken
        (Call("describe", {"id": "unit-1"}, json.dumps({"points": {"fan": _POINT}})), *[_write(16.5)] * 3),  # of another point
        (Call("point_read", {"point": "heat"}, json.dumps({"heat": {"value": 9, "ts": 1}})), *[_write(16.5)] * 3),  # no limits
        (Call("metrics", {}, json.dumps({"heat": {"min": 9, "max": 14, "avg": 11}})), *[_write(16.5)] * 3),  # measured
    ],
)
def test_nothing_is_said_without_a_misfit(steps: tuple[Call, ...]) -> None:
    """A description of another thing, a value that fits, and one that was accepted before say nothing."""
    found = diagnose(evidence(*steps))

    assert found is None or "says of" not in found.cause


_WINDOWS = "NORD  no lift. window: one ISO 8601 interval, start/duration, at least two hours. cut-off 17:00.\n"
_OTHERS = "SUED  window: two ISO 8601 times with from and to.\n"


def _book(message: str) -> Call:
    return Call("pickup_book", {"carrier": "NORD", "window": "9 to 12"}, message, "error")


def test_words_about_an_argument_that_the_refusal_names_are_told() -> None:
    """Of two descriptions, the one beside the call's own carrier is meant."""
    known = evidence(read("carriers.txt", _WINDOWS + _OTHERS), *[_book("pickup.window: value not understood")] * 3)

    require_told(known, "schemaRefused", ["`window: one ISO 8601 interval, start/duration, at least two hours`"], ["`window`"])


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (_WINDOWS, "depot closed"),  # nothing about this argument
        ("NORD  window: 2 m wide\n", "pickup.window: value not understood"),  # no form
        (_WINDOWS.replace("NORD", "OST") + _OTHERS, "pickup.window: value not understood"),  # two, and of other carriers
    ],
)
def test_other_words_say_nothing(page: str, message: str) -> None:
    """The refusal names the argument, the words are about its form, and there is one description of it."""
    found = diagnose(evidence(read("carriers.txt", page), *[_book(message)] * 3))

    assert found is None or "says of it" not in found.cause
