"""Models of records: each has the fields of the schema, and the first wrong one is named as it was written."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.log.record_schema import RECORDS
from ctxmgr.types.record_models import MODELS, check_whole

ENTRY: dict[str, Any] = {"v": 1, "kind": "entry", "session": "s", "id": "e", "agent": "a", "action": "b"}


def test_there_is_a_model_of_each_kind() -> None:
    """With its fields by the names on the wire, beside those that all have."""
    for kind, fields in RECORDS.items():
        names = {field.alias for field in MODELS[kind].model_fields.values()}
        assert names == {*fields, "v", "kind", "session", "ts"}, kind


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agent": None}, "agent: "), ({"id": ""}, "id: "), ({"inputType": 5}, "inputType: "), ({"v": 2}, "v: "),
        ({"v": True}, "v: "),
        ({"session": ""}, "session: "), ({"error": {"type": 1}}, "error.type: "), ({"kind": ""}, "kind: "),
        ({"status": "odd"}, "status: "), ({"status": []}, "status: "),
        ({"durationMs": "x"}, "durationMs: "), ({"ts": 5}, "ts: "),
    ],
)  # fmt: skip
def test_the_first_wrong_field_is_named(change: dict[str, Any], said: str) -> None:
    """By its name in the record."""
    with pytest.raises(InvalidInput) as refused:
        check_whole({**ENTRY, **change})
    assert refused.value.message.startswith(f"not a record of log format 1: {said}")


def test_what_is_not_known_passes() -> None:
    """Keys of one's own, and kinds of a later version, are nobody's fault; the record itself comes back."""
    for record in ({**ENTRY, "x-own": [1]}, {**ENTRY, "kind": "novel", "agent": None}):
        assert check_whole(record) is record
