"""The value that a validator wants is worked out whatever its pattern and its place hold."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.errors.refusals import Violation
from ctxmgr.diagnose.errors.wanted_values import derive_value, find_value
from tests.diagnose.build import Call, evidence


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^a{99999999999}$", "^(a"])
def test_a_hostile_pattern_is_not_run(pattern: str) -> None:
    """A pattern that `re` would run for ever, or refuses to compile, leaves the refusal without a value."""
    refused = {"errors": [{"path": "name", "message": f'does not match pattern "{pattern}"'}]}
    call = Call("save", {"name": "A" * 40 + "!"}, refused, "error")

    assert diagnose(evidence(call, call, call)) is not None
    assert derive_value(evidence(call), evidence(call).entries[0], Violation(("name",), "form", pattern), call.given) == ""


def test_a_position_before_the_first_is_none() -> None:
    """Positions below 0 are of nobody's list, and raise nothing."""
    assert find_value({"items": ["a"]}, ("items", 0)) == "a"
    assert find_value({"items": ["a"]}, ("items", -5)) is find_value({}, ("items",))
