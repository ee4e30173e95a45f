"""The record of a session beside those of others."""

from __future__ import annotations

from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import read, view


def test_a_record_of_another_session_is_quoted_with_its_own_text() -> None:
    """Entries of two sessions have the same indexes and agents; each keeps its text, its failure and its place."""
    own = view(0, read("app.py", "ours = 1"))
    other = view(0, read("app.py", "theirs = 2")).model_copy(update={"session": "t", "status": "error"})
    found = Evidence([own], related=[other])

    assert [found.quote(each).text for each in (own, other)] == ["1    ours = 1", "1    theirs = 2"]
    assert [found.source(each).split("Read")[0] for each in (own, other)] == ["your ", "another session's "]
    assert [found.has_failed(each) for each in (own, other)] == [False, True]
