"""The value that a validator wants is worked out whatever its pattern and its place hold."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.errors.refusals import Violation
from ctxmgr.diagnose.errors.wanted_values import derive_value, find_value
from tests.diagnose.build import Call, evidence, require_told


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^a{99999999999}$", "^(a"])
def test_a_hostile_pattern_is_not_run(pattern: str) -> None:
    """A pattern that `re` would run for ever, or refuses to compile, leaves the refusal without a value."""
    refused = {"errors": [{"path": "name", "message": f'does not match pattern "{pattern}"'}]}
    call = Call("save", {"name": "A" * 40 + "!"}, refused, "error")

    assert diagnose(evidence(call, call, call)) is not None
    assert derive_value(evidence(call), Violation(("name",), "form", pattern), call.given) == ""


def test_a_position_before_the_first_is_none() -> None:
    """Positions below 0 are of nobody's list, and raise nothing."""
    assert find_value({"items": ["a"]}, ("items", 0)) == "a"
    assert find_value({"items": ["a"]}, ("items", -5)) is find_value({}, ("items",))


PLANS: Any = {
    "plans": [
        {"region": "eu-north", "keys": {"small": "PL-01AF", "large": "PL-02B7"}},
        {"region": "us", "keys": {"tiny": "none"}},
    ]
}
OLD = [{"region": "eu-west", "key": "PL-77AA"}]


def lease(key: str, why: str = "/plan_key: '{}' does not match '^PL-[0-9A-F]{{4}}$'", **more: str) -> Call:
    """Return a call with a key that its schema refuses."""
    return Call("lease.create", {"plan_key": key, **more}, {"type": "SchemaError", "message": why.format(key)}, "error")


@pytest.mark.parametrize(
    "why", ["/plan_key: '{}' does not match '^PL-[0-9A-F]{{4}}$'", "'{}' does not match '^PL-[0-9A-F]{{4}}$'"]
)
def test_a_refused_value_is_taken_from_the_record_by_its_pattern(why: str) -> None:
    """Of several values with the wanted pattern, the one is named beside which the call's other words stand."""
    known = evidence(
        Call("plans.list", {}, PLANS),
        Call("leases.old", {}, OLD),
        lease("eu-north", why, size="large"),
        lease("eu-north-large", why),
        lease("eu-north-large", why),
    )

    require_told(known, "schemaRefused", ["plan_key"], ["`PL-02B7`, which your plans.list"])


def test_several_values_with_the_wanted_pattern_are_a_choice() -> None:
    """Nothing says which of them is meant."""
    known = evidence(Call("plans.list", {}, PLANS), lease("x1"), lease("x2"), lease("x2"))

    require_told(known, "schemaRefused", ["plan_key"], ["one of `PL-01AF` and `PL-02B7`"])


def test_any_word_matches_a_pattern_without_a_fixed_beginning() -> None:
    """Then only a value with the name of the refused one counts."""
    loose = "/plan_key: '{}' does not match '^[0-9A-F]{{4}}$'"
    known = evidence(
        Call("plans.list", {}, {"plans": [{"port": "8080", "plan_key": "01AF"}]}), lease("x1", loose), lease("x2", loose)
    )

    require_told(known, "schemaRefused", ["plan_key"], ["`01AF`, which your plans.list"])
