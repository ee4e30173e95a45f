"""A fact that the record shows and the call goes against: the fact is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.statements import record_fact
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import bash, evidence, failed, require_told

THRICE = 3


SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "a port that is published as another",
        evidence(
            bash("docker compose ps", "db Up 0.0.0.0:5544->5432/tcp"),
            *[failed("psql -h localhost -p 5432", "connection to server at localhost, port 5432 failed: Connection refused")]
            * THRICE,
        ),
        ["`5544`"],
        ["port 5544"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, record_fact.KIND, cause, step)
