"""A setting that the environment lacks: its name and where it stands are told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.environment import environment_missing
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Said, evidence, failed, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "poetry",
        evidence(Said("Run it with poetry run, as always."), *[failed("python -m pytest", "No module named pytest")] * THRICE),
        ["poetry run"],
        ["poetry run python -m pytest"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, environment_missing.KIND, cause, step)
