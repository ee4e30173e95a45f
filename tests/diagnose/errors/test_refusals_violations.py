"""What validators say is read alike, whichever they are."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.errors.refusals import find_violations


@pytest.mark.parametrize(
    ("said", "shown", "kind"),
    [
        ('[{"instancePath":"/items/0/qty","params":{"type":"integer"},"message":"must be integer"}]', "items[0].qty", "type"),
        ("Unknown parameter in Batch.Set: \"Value\", must be one of: Name, TTL", "Batch.Set.Value", "unexpected"),
        ("Missing required parameter in Batch: \"Name\"", "Batch.Name", "required"),
        ("unknown variant `fast`, expected one of `slow`, `medium`", "fast", "choice"),
        ("json: cannot unmarshal string into Go struct field Job.spec.retries of type int", "spec.retries", "type"),
        ('{"errors": {"start_date": ["This field is required."]}}', "start_date", "required"),
        ('Unknown name \\"colour\\" at \'event.meta\': Cannot find field.', "event.meta.colour", "unexpected"),
    ],
)  # fmt: skip
def test_validators_share_one_shape(said: str, shown: str, kind: str) -> None:
    """Whatever the validator, its place and its demand are read."""
    found = find_violations(None, said)

    assert [(each.readable_path, each.kind) for each in found] == [(shown, kind)]


@pytest.mark.parametrize("place", ["²", "٣", "9" * 5_000, "9" * 190])
def test_a_position_in_other_digits_is_none(place: str) -> None:
    """Digits that are no position of a list raise nothing."""
    assert find_violations({"errors": [{"path": f"items.{place}", "message": "is required"}]}, "") == []
