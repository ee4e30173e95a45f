"""Where to look next when the record holds no cause."""

from __future__ import annotations

from ctxmgr.diagnose import contrast
from tests.diagnose.build import Call, evidence


def test_a_log_that_was_read_is_gone_by() -> None:
    """Its error is named, and nobody is sent to read it."""
    log = Call("tail_logs", {"service": "api"}, "ERROR: column p.locale does not exist\n  Position: 31")
    told = contrast(
        evidence(log, *[Call("http_get", {"path": "/api/payslips"}, "HTTP/1.1 500 Internal Server Error", "error")] * 3)
    )

    assert told is not None
    assert "column p.locale does not exist" in told.next_step
    assert "Only the log" not in told.next_step
