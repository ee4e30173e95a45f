"""Whether a call failed is read from what its tool says, in whatever form."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.outcomes import reports_failure
from tests.diagnose.build import Call, view


@pytest.mark.parametrize(
    ("said", "failed"),
    [
        ('{"error": "no such job"}', True),
        ('{"id": 7, "errors": ["quota"]}', True),
        ('{"id": 7, "error":null}', False),
        ('{"id": 7, "error": null}', False),
        ('{"id": 7, "error" :  null}', False),
        ('{"id": 7, "errors": [], "failed": 0}', False),
        ('{"id": 7, "errors": {}}', False),
    ],
)
def test_an_error_that_is_empty_is_none(said: str, failed: bool) -> None:
    """Many servers send the member always; with a blank before it or not, null and nothing are no failure."""
    assert reports_failure(view(1, Call("get_job", {"id": 7}, said)), said) is failed
