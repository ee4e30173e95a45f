"""A poll whose answer does not move: since when is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.waiting import polling_frozen
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import bash, evidence, require_told

SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    ("done, and still polled", evidence(*[bash("gh run view 7", "status: completed")] * 5), ["completed"], ["go on"]),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, polling_frozen.KIND, cause, step)
