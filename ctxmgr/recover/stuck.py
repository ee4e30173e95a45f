"""A finding becomes a request: what the stuck handler asks the context manager for."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.errors import NotFound, NotStuck
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import ContextRequest, Pattern

_WEIGHT = {"loop": 2, "hung": 1, "warn": 0}


def worst(findings: Sequence[Finding], wanted: str | None = None) -> Finding | None:
    """Return the finding to answer: the named one, else the latest unresolved loop, else the latest stall.

    Raises:
        NotFound: no finding has the wanted id.
    """
    if wanted is not None:
        named = [finding for finding in findings if finding.id.startswith(wanted)]
        if len(named) != 1:
            raise NotFound(f"no single finding {wanted!r}", "'ctxmgr detect' lists the findings with their ids")
        return named[0]
    open_ones = [finding for finding in findings if finding.resolved is None and finding.severity != "warn"]
    ranked = sorted(enumerate(open_ones), key=lambda pair: (_WEIGHT[pair[1].severity], pair[0]))
    return ranked[-1][1] if ranked else None


def request_for(session: str, finding: Finding | None, *, force: bool) -> ContextRequest:
    """Return the stuck handler's request for a finding.

    Raises:
        NotStuck: nothing is wrong and no continuation was insisted on.
    """
    if finding is None and not force:
        raise NotStuck(
            f"session {session!r} is healthy: no loop and no stall",
            "'--force' gives a continuation all the same; 'ctxmgr request' asks for context explicitly",
        )
    if finding is None:
        reason, goal = "a continuation was asked for", "go on with the task from its present state"
    elif finding.severity == "hung":
        reason, goal = finding.reason, "resume the task past the point where it stopped"
    else:
        reason, goal = finding.reason, "go on with the task without repeating the loop"
    return ContextRequest(session=session, type="INTROSPECT_AGENT_CONTEXT", source="stuckHandler", reason=reason, goal=goal)


def identity_of(finding: Finding) -> str:
    """Return what is equal for the same loop in whatever rotation: the key of the attempt cap."""
    return str(finding.evidence.get("identity") or finding.id)


def pattern_of(finding: Finding) -> Pattern:
    """Return the part of a finding that a continuation carries."""
    return Pattern(
        finding=finding.id,
        identity=identity_of(finding),
        kind=finding.kind,
        period=finding.period,
        count=finding.count,
        members=finding.members,
        start=finding.first,
        last_progress=finding.last_progress,
        reason=finding.reason,
    )
