"""The verdict on a session: from its findings, unresolved ones first, and in words."""

from __future__ import annotations

import pytest

from ctxmgr.types.finding import Finding, Scope, Severity, Verdict, find_verdict, verdict_summary


def finding(severity: Severity, resolved: str | None = None) -> Finding:
    """Return a finding of this severity."""
    return Finding(
        id="f", kind="hung" if severity == "hung" else "repetition", severity=severity, period=1, count=3, first="a", last="c",
        raised_at="c", resolved=resolved, members=["a", "b", "c"], last_progress=None, scope=Scope(agent="x", process=None),
        confidence=1.0, reason="r", evidence={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        ([], "healthy"), (["warn"], "warn"), (["warn", "loop"], "loop"), (["hung", "warn"], "hung"), (["loop", "loop"], "loop"),
        (["hung", "warn", "loop"], "loop+hung"),
    ],
)  # fmt: skip
def test_the_most_severe_finding_decides(severities: list[Severity], verdict: Verdict) -> None:
    """A loop of one agent and a stall of another hide neither each other."""
    assert find_verdict([finding(each) for each in severities]) == verdict


def test_what_is_over_counts_only_where_that_is_asked_for() -> None:
    """The verdict speaks of what lasts."""
    findings = [finding("loop", "progress"), finding("warn")]

    assert find_verdict(findings) == "warn"
    assert find_verdict(findings, ever=True) == "loop"
    assert find_verdict([finding("hung", "end")]) == "healthy"


@pytest.mark.parametrize(
    ("verdict", "notes", "words"),
    [
        ("healthy", [], "healthy"),
        ("healthy", ["3 failures in a row"], "no loop found, 3 failures in a row"),
        ("loop", ["ended in an error"], "loop, ended in an error"),
        ("warn", [], "warn"),
    ],
)
def test_healthy_is_said_only_where_nothing_is_wrong(verdict: Verdict, notes: list[str], words: str) -> None:
    """What is wrong though it is no finding takes the place of the word (ruling 28)."""
    assert verdict_summary(verdict, notes) == words
