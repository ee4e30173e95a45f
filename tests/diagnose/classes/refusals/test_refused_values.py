"""What is said of a value that an answer refuses."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, evidence


def test_the_example_of_the_answer_is_shown() -> None:
    """A form that has a name alone is shown as the answer shows it."""
    said = "start must be an RFC 3339 date-time with offset, for example 2026-01-31T09:00:00+01:00"
    told = diagnose(evidence(*[Call("create_event", {"start": "12.11.2026 14:00"}, {"message": said}, "error")] * 3))

    assert told is not None
    assert "as in `2026-01-31T09:00:00+01:00`" in told.next_step
