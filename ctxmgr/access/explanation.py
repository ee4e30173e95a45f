"""Explain why an access is allowed or denied, and which rules would grant it."""

from __future__ import annotations

from ctxmgr.access.patterns import ANY, PRIORITIES, agent_fault, parse_pattern, quoted
from ctxmgr.access.precedence import Ranked, RuleIndex, counts, grants, winner
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import DEFAULT_PRIORITY, AccessExplanation, AccessRule, Asked, Resource, Shadowed


def explain(matching: list[Ranked], agent: str, asked: Asked, resource: Resource) -> AccessExplanation:
    """Return the explanation for an agent, given all the rules that speak to it of the resource.

    Raises:
        InvalidInput: something else than read or write is asked for.
    """
    decided = winner(matching, asked)
    allowed = grants(decided)
    lost = sorted((ranked for ranked in matching if ranked is not decided), key=_order)
    return AccessExplanation(
        agent=agent,
        permission=asked,
        resource=resource,
        allowed=allowed,
        rule=None if decided is None else decided.rule,
        reason=_reason(decided, agent, asked, resource),
        shadowed=[Shadowed(rule=ranked.rule, reason=_why_lost(ranked, decided, asked)) for ranked in lost],
        would_grant=[] if allowed else _granting(matching, decided, agent, asked, resource),
    )


def _order(ranked: Ranked) -> tuple[tuple[int, int, int], str, str]:
    return ranked.rank, ranked.rule.pattern, ranked.rule.permission


def _worded(rule: AccessRule) -> str:
    who = "any agent" if rule.agent == ANY else f"agent {quoted(rule.agent)}"
    return f"{rule.permission} on {rule.resource_type} {quoted(rule.pattern)} for {who} at priority {rule.priority}"


def _reason(decided: Ranked | None, agent: str, asked: Asked, resource: Resource) -> str:
    if fault := agent_fault(agent):
        return f"denied: agent {quoted(agent)} {fault}, so nobody may ask by that name and no rule can grant it"
    if decided is None:
        what = f"{resource.type} {quoted(resource.path)}"
        return f"denied: no rule lets agent {quoted(agent)} {asked} {what}, and what no rule grants is denied"
    rule = decided.rule
    if not grants(decided):
        return f"denied by {_worded(rule)}: remove that rule, or {_ways_past(decided)}"
    because = ", since write grants read" if rule.permission != asked else ""
    return f"allowed by {_worded(rule)}{because}"


def _ways_past(blocking: Ranked) -> str:
    priority, specificity, any_agent = blocking.rank
    ways: list[str] = []
    if priority > PRIORITIES[0]:
        ways.append(f"a priority below {priority}")
    if (specificity, any_agent) > (-3, 0):
        ways.append(f"priority {priority} and a more specific pattern or agent")
    return f"outrank it by a rule with {', or with '.join(ways)}" if ways else "change it, for nothing comes before it"


def _why_lost(lost: Ranked, decided: Ranked | None, asked: Asked) -> str:
    if decided is None or not counts(lost.rule, asked):
        return f"grants {lost.rule.permission}, which is not {asked}"
    priority, specificity, _ = lost.rank
    if priority != decided.rank[0]:
        return f"priority {priority} comes after {decided.rank[0]}"
    if specificity != decided.rank[1]:
        return f"its pattern is less specific than {quoted(decided.rule.pattern)}"
    if lost.rank != decided.rank:
        return f"a rule for any agent comes after one for agent {quoted(decided.rule.agent)}"
    if grants(lost) == grants(decided):
        return "says the same at the same rank"
    return "at the same rank none wins"


def _granting(matching: list[Ranked], decided: Ranked | None, agent: str, asked: Asked, resource: Resource) -> list[AccessRule]:
    """Return rules that would each, added alone, allow it: for the one thing first, then for all of its owner.

    A rule for everything is offered only where nothing narrower can name the resource. It is the same
    whether a rule joins or replaces the one with its key, since that one grants too and lost. Where nobody may ask by that
    name no rule helps.
    """
    found: list[AccessRule] = []
    for pattern in dict.fromkeys((f"{resource.agent}/{resource.name}", f"{resource.agent}/*", ANY)):
        if (pattern == ANY and found) or not _names(pattern, resource):
            continue
        for priority in _priorities(decided):
            rule = AccessRule(agent=agent, resource_type=resource.type, pattern=pattern, permission=asked, priority=priority)
            if _would_grant(rule, matching, resource):
                found.append(rule)
                break
    return found


def _names(pattern: str, resource: Resource) -> bool:
    """Whether a pattern is one, and says exactly what it was put together from."""
    try:
        parts = parse_pattern(pattern)
    except InvalidInput:
        return False
    if parts.form == "exact":
        return (parts.agent, parts.name) == (resource.agent, resource.name)
    return parts.form == "all" or (parts.form == "agent" and parts.agent == resource.agent)


def _priorities(decided: Ranked | None) -> list[int]:
    """Return the priorities worth trying: the usual one, that of the rule in the way, and the one before it."""
    if decided is None:
        return [DEFAULT_PRIORITY]
    blocking = decided.rule.priority
    return [DEFAULT_PRIORITY, blocking, max(blocking - 1, PRIORITIES[0])]


def _would_grant(rule: AccessRule, matching: list[Ranked], resource: Resource) -> bool:
    if agent_fault(rule.agent) is not None:
        return False
    index = RuleIndex([*(ranked.rule for ranked in matching), rule])
    # The permission of a suggested rule is the one that was asked for.
    return grants(winner(index.matching(rule.agent, resource.type, resource.agent, resource.name), rule.permission))
