"""The record of a session beside those of others."""

from __future__ import annotations

from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import bash, evidence, failed, read, view


def test_a_record_of_another_session_is_quoted_with_its_own_text() -> None:
    """Entries of two sessions have the same indexes and agents; each keeps its text, its failure and its place."""
    own = view(0, read("app.py", "ours = 1"))
    other = view(0, read("app.py", "theirs = 2")).model_copy(update={"session": "t", "status": "error"})
    found = Evidence([own], related=[other])

    assert [found.quote(each).text for each in (own, other)] == ["1    ours = 1", "1    theirs = 2"]
    assert [found.source(each).split("Read")[0] for each in (own, other)] == ["your ", "another session's "]
    assert [found.has_failed(each) for each in (own, other)] == [False, True]


def test_a_call_counts_once_in_each_round() -> None:
    """The headline counts rounds, so the cause does not count more of them."""
    pair = [failed("mvn -q site", "zorg"), bash("ls target", "classes")]
    known = evidence(pair[0], *pair * 3, loop=7)
    assert known.finding is not None
    cycle = Evidence(known.entries, known.finding.model_copy(update={"period": 2, "count": 3}))

    assert (known.times(known.recent[0]), cycle.times(known.recent[0])) == (4, 3)


def test_without_a_finding_the_calls_before_the_last_ones_count_too() -> None:
    """They failed in the same words. Another failure of the same call is not counted."""
    other, call = failed("mvn -q site", "first of all"), failed("mvn -q site", "zorg")
    known = evidence(other, *[call] * 20, found=False)

    assert known.times(known.recent[-1]) == 20
