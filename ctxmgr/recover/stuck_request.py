"""Turn a finding into a request to the context manager."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.errors import NotFound, NotStuck
from ctxmgr.recover.evidence.brief import finding_span, loop_size
from ctxmgr.recover.evidence.quotes import citable_ids, clip_middle
from ctxmgr.recover.injection import suspicion
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import ContextRequest, Pattern

_WEIGHT = {"loop": 2, "hung": 1, "warn": 0}
_REASON = 1_000


def worst_finding(findings: Sequence[Finding], wanted: str | None = None, *, warned: bool = False) -> Finding | None:
    """Return the finding to answer: the named one, else the latest unresolved loop, else the latest stall.

    If loops contain each other (two agents that play ping-pong, a launcher and what it launches), it is the one that began
    first, because the others follow from it.

    ``warned``: without a loop or stall, return the latest lasting warning. Whoever asks for recovery knows more than the
    detectors; by themselves, they interrupt nobody for a warning.

    Raises:
        NotFound: no finding has the wanted id.
    """
    if wanted is not None:
        named = [finding for finding in findings if finding.id.startswith(wanted)]
        if not wanted or len(named) != 1:
            raise NotFound(f"no single finding {wanted!r}", "'ctxmgr detect' lists the findings with their ids")
        return named[0]
    ranked = sorted(enumerate(unresolved_findings(findings)), key=lambda pair: (_WEIGHT[pair[1].severity], pair[0]))
    if not ranked:
        lasting = [finding for finding in findings if finding.resolved is None]
        return lasting[-1] if warned and lasting else None
    return next(iter(concurrent_loops(findings, ranked[-1][1])), ranked[-1][1])


def concurrent_loops(findings: Sequence[Finding], finding: Finding) -> list[Finding]:
    """Return the unresolved loops that run at the same time as a loop, including itself, the one that began first first."""
    began, ended = finding_span(finding)
    loops = [each for each in unresolved_findings(findings) if each.severity == finding.severity == "loop"]
    spans = sorted(((finding_span(each), each) for each in loops), key=lambda pair: pair[0][0])
    return [each for (first, last), each in spans if first <= ended and began <= last]


def unresolved_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that last and are more than a warning."""
    return [finding for finding in findings if finding.resolved is None and finding.severity != "warn"]


def other_findings(findings: Sequence[Finding], finding: Finding | None) -> list[Finding]:
    """Return the unresolved findings besides the one that is answered."""
    return [each for each in unresolved_findings(findings) if finding is None or each.id != finding.id]


def build_request(session: str, finding: Finding | None, *, force: bool, amiss: Sequence[str] = ()) -> ContextRequest:
    """Return the stuck handler's request for a finding.

    Args:
        session: its id.
        finding: the loop or stall, if there is one.
        force: the caller insists on a continuation.
        amiss: reasons not to call the session healthy, although they are no finding (ruling 28).

    Raises:
        NotStuck: nothing is wrong, and the caller does not insist on a continuation.
    """
    if finding is None and not amiss and not force:
        raise NotStuck(
            f"no loop and no stall found in session {session!r}",
            "'--force' gives a continuation all the same; 'ctxmgr request' asks for context explicitly",
        )
    if finding is None and amiss:
        reason, goal = f"no loop was found, but {', and '.join(amiss)}", "go on with the task past what fails"
    elif finding is None:
        reason, goal = "a continuation was asked for though nothing is wrong", "go on with the task from its present state"
    elif finding.kind == "hung":
        reason, goal = "the run has stopped making progress", "resume the task past the point where it stopped"
    else:
        sure = "is" if finding.severity == "loop" else "may be"
        reason = f"the run {sure} in a loop: {finding.kind}, {loop_size(finding)}"
        goal = "go on with the task without repeating the loop"
    return ContextRequest(session=session, type="INTROSPECT_AGENT_CONTEXT", source="stuckHandler", reason=reason, goal=goal)


def loop_identity(finding: Finding) -> str:
    """Return a key that is equal for all rotations of one loop. The cap on attempts counts by it.

    A recovery loop has the key of the loop that came back after its answers, so it gets no fresh attempts.
    """
    return str(finding.evidence.get("loopIdentity") or finding.evidence.get("identity") or finding.id)


def build_pattern(finding: Finding, members: list[str]) -> Pattern:
    """Return the part of a finding that a continuation carries; ``members`` are those that it cites.

    The finding's sentence quotes calls. If it reads like an order, it is withheld.
    """
    why = suspicion(finding.reason)
    return Pattern(
        finding=finding.id, identity=loop_identity(finding), kind=finding.kind, period=finding.period, count=finding.count,
        members=members, start=_citable(finding.first), last_progress=_citable(finding.last_progress),
        reason=clip_middle(finding.reason, _REASON) if why is None else f"{finding.kind}; what it quotes is withheld: it {why}",
    )  # fmt: skip


def _citable(name: str | None) -> str | None:
    return next(iter(citable_ids([name])), None) if name else None
