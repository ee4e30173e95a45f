"""Names that are in another place than the one that is asked."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, evidence, failed

LISTED = "NAMESPACE   NAME    READY\nprod        web-1   1/1"


@pytest.mark.parametrize(("asked", "is_told"), [("--namespace=shop", True), ("--namespace=prod", False), ("-n prod", False)])
def test_the_place_that_was_asked_is_no_other_one(asked: str, is_told: bool) -> None:
    """However the option is written, its own place is not told as another one."""
    call = failed(f"kubectl logs web-1 {asked}", 'Error from server (NotFound): pods "web-1" not found')
    told = diagnose(evidence(bash("kubectl get pods -A", LISTED), call, call, call))

    assert told is not None
    assert (told.kind == "existsElsewhere") == is_told
