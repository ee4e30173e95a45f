"""A rule of the data that a write breaks: rule and value are told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.refusals import constraint_broken
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Said, edit, evidence, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "only one folder",
        evidence(Said("Only change files in src/."), *[edit("tests/test_a.py", "a", "b")] * THRICE),
        ["Only change files in src/."],
        ["Leave that alone"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, constraint_broken.KIND, cause, step)
