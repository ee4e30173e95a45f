"""Choose the one agent that continues, and refuse what the routing rules forbid (FR-017 to FR-020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxmgr.errors import InvalidInput, RecoveryRefused
from ctxmgr.recover.desk import Desk
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest
from ctxmgr.types.view import EntryView


@dataclass(frozen=True, slots=True)
class Target:
    """The chosen agent, why it, and who else was allowed."""

    agent: str
    reason: str
    candidates: list[str]


def choose(
    desk: Desk, request: ContextRequest, finding: Finding | None, agents: Sequence[str], to: str | None, attempt: int
) -> Target:
    """Return the target of a request.

    * Introspection goes back to the requester.
    * Proceeding goes to ``to``, else to the agent that history shows coming after the requester; never back to the
      requester itself: a review or merge agent forwards, it does not return.
    * A stuck agent is continued with richer context first. If it was launched by another, that one takes over; if the
      same loop comes back, the agent that handed over to it does.

    Raises:
        RecoveryRefused: the context manager would be the target, or a PROCEED would go straight back.
        InvalidInput: nobody is left to continue, or ``to`` is not among the allowed agents.
    """
    if CONTEXT_MANAGER in (to, request.requester):
        raise RecoveryRefused("the context manager never recovers itself", "name another agent with --to")
    candidates = [agent for agent in dict.fromkeys(request.return_to or agents) if agent != CONTEXT_MANAGER]
    if to is not None:
        return _named(request, candidates, to)
    if request.type == "PROCEED" and request.requester is not None:
        return _downstream(desk, request.requester, candidates)
    if request.requester is not None:
        chosen, reason = request.requester, "it asked for context and continues with it"
    elif finding is not None:
        chosen, reason = _for_finding(desk, finding, candidates, attempt)
    else:
        last = desk.newest(1)
        chosen, reason = (last[0].agent if last else ""), "it acted last"
    if chosen not in candidates:
        if request.return_to:
            raise RecoveryRefused(
                f"{chosen!r} is not among the agents that the request may be answered to", "name one of them with --to"
            )
        candidates = [chosen, *candidates]
    return Target(chosen, reason, candidates)


def _named(request: ContextRequest, candidates: list[str], to: str) -> Target:
    if request.type == "PROCEED" and to == request.requester:
        raise RecoveryRefused(f"a PROCEED request never goes straight back to {to!r}", "name a downstream agent with --to")
    if request.return_to and to not in candidates:
        raise InvalidInput(f"{to!r} is not among the agents that the request may be answered to", "check --to")
    known = to in candidates
    reason = "it was named as the target" if known else "it was named as the target; it has not acted in this session yet"
    return Target(to, reason, candidates if known else [*candidates, to])


def _downstream(desk: Desk, requester: str, candidates: list[str]) -> Target:
    others = [agent for agent in candidates if agent != requester]
    if not others:
        raise InvalidInput(
            f"no agent but {requester!r} is known in this session, so there is nobody to proceed to",
            "name the downstream agent with --to",
        )
    follower = _usual_follower(desk, requester)
    if follower in others:
        return Target(follower, f"it acted after {requester} before", others)
    return Target(others[-1], f"it is the agent that joined last beside {requester}", others)


def _usual_follower(desk: Desk, agent: str) -> str:
    """Return the agent that most often acts next after this one, the latest where several do; "" when none does."""
    counts: dict[str, tuple[int, int]] = {}
    previous: EntryView | None = None
    for entry in reversed(desk.newest(2_000)):
        if previous is not None and previous.agent == agent and entry.agent != agent:
            counts[entry.agent] = (counts.get(entry.agent, (0, 0))[0] + 1, entry.index)
        previous = entry
    return max(counts, key=lambda name: counts[name]) if counts else ""


def _for_finding(desk: Desk, finding: Finding, candidates: list[str], attempt: int) -> tuple[str, str]:
    members = desk.entries(finding.members[-3:])
    stuck = finding.scope.agent or (members[-1].agent if members else (candidates[-1] if candidates else ""))
    launcher = _launcher(desk, members)
    if launcher and launcher != stuck:
        return launcher, f"it launched {stuck}, which is stuck, and can take another way"
    if attempt > 1:
        before = desk.around(members[0].index if members else 0, 200)
        handed = next((entry.agent for entry in reversed(before) if entry.agent != stuck), None)
        if handed is not None:
            return handed, f"{stuck} came back to the same loop; {handed} acted before it"
    return stuck, "it is the agent that is stuck; it continues with the missing context"


def _launcher(desk: Desk, members: Sequence[EntryView]) -> str | None:
    for entry in members:
        parent = desk.entry(entry.parent) if entry.parent else None
        if parent is not None:
            return parent.agent
    return None
