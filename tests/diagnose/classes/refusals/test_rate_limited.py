"""A service that takes no more requests: when it takes the next one is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.refusals import rate_limited
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, evidence, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "minutes and seconds",
        evidence(*[Call("fetch", {"url": "/x"}, "Rate limit reached, please try again in 2m30s.", "error")] * THRICE),
        ["150 seconds"],
        ["150 seconds"],
    ),
    (
        "a quota that is used up",
        evidence(*[Call("ask", {"q": "x"}, "Error code: 429 - {'code': 'insufficient_quota'}", "error")] * THRICE),
        ["used up"],
        ["Tell the user"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, rate_limited.KIND, cause, step)
