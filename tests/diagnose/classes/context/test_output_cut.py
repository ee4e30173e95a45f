"""Outputs that are cut."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, evidence


@pytest.mark.parametrize(
    ("shown", "start"), [("first ,lines shown", "in parts"), ("first 1,200 lines shown", "from line 1201 on")]
)
def test_a_notice_without_a_number_names_no_line(shown: str, start: str) -> None:
    """A comma alone is no number of lines."""
    call = Call("Read", {"file_path": "app.py"}, f"import os\n[output truncated: {shown}]")
    told = diagnose(evidence(call, call, call))

    assert told is not None
    assert told.kind == "outputCut"
    assert start in told.next_step
