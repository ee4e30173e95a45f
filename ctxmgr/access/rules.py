"""Evaluate a set of access rules, and explain the result. The order of the rules does not matter.

Rules are looked up by agent, resource type and pattern. Exactly one of the matching rules decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ctxmgr.access.patterns import (
    ANY,
    ASKED,
    PRIORITIES,
    SELF,
    agent_fault,
    check_choice,
    check_rule,
    parse_pattern,
    quote_name,
)
from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import InvalidInput
from ctxmgr.log import codec
from ctxmgr.types.access import DEFAULT_PRIORITY, AccessExplanation, AccessRule, Asked, OverriddenRule, Resource, ResourceType

# Permissions of rules that take part in each decision. Write grants read, so it counts for both (ruling 14).
_COUNTS: dict[str, frozenset[str]] = {"read": frozenset({"read", "write", "none"}), "write": frozenset({"write", "none"})}


class RankedRule(NamedTuple):
    """A rule with its rank. The lower rank takes precedence."""

    rank: tuple[int, int, int]
    rule: AccessRule


@dataclass(slots=True)
class _RuleGroup:
    """The rules for one agent and one resource type, grouped by form of pattern, so that a lookup reads few rules."""

    everything: list[RankedRule] = field(default_factory=lambda: list[RankedRule]())
    own: list[RankedRule] = field(default_factory=lambda: list[RankedRule]())
    agents: dict[str, list[RankedRule]] = field(default_factory=lambda: dict[str, list[RankedRule]]())
    exact: dict[tuple[str, str], list[RankedRule]] = field(default_factory=lambda: dict[tuple[str, str], list[RankedRule]]())

    def add(self, ranked: RankedRule) -> None:
        pattern = parse_pattern(ranked.rule.pattern)
        if pattern.form == "exact":
            self.exact.setdefault((pattern.agent, pattern.name), []).append(ranked)
        elif pattern.form == "agent":
            self.agents.setdefault(pattern.agent, []).append(ranked)
        else:
            (self.own if pattern.form == "self" else self.everything).append(ranked)

    def matching_rules(self, asker: str, owner: str, name: str) -> list[RankedRule]:
        found = [*self.everything, *self.agents.get(owner, ()), *self.exact.get((owner, name), ())]
        return [*found, *self.own] if owner == asker else found

    def forbidding_rules(self) -> Iterable[AccessRule]:
        for group in (self.everything, self.own, *self.agents.values(), *self.exact.values()):
            yield from (ranked.rule for ranked in group if ranked.rule.permission == "none")


class RuleIndex:
    """Checked rules, indexed by agent, resource type and pattern."""

    def __init__(self, rules: Iterable[AccessRule]) -> None:
        self._groups: dict[tuple[str, str], _RuleGroup] = {}
        for rule in rules:
            self._groups.setdefault((rule.agent, rule.resource_type), _RuleGroup()).add(RankedRule(rank(rule), rule))

    def matching_rules(self, asker: str, resource_type: str, owner: str, name: str) -> list[RankedRule]:
        """Return the rules that match this agent and resource, unordered; none for an invalid agent name."""
        # A name such as ``*`` would match rules that are meant for other agents.
        if agent_fault(asker) is not None:
            return []
        found: list[RankedRule] = []
        for agent in (asker, ANY):
            if (group := self._groups.get((agent, resource_type))) is not None:
                found += group.matching_rules(asker, owner, name)
        return found

    def forbidding_rules(self, asker: str, resource_type: str) -> Iterable[AccessRule]:
        """Yield the rules with permission ``none`` that match this agent and resource type."""
        for agent in (asker, ANY):
            if (group := self._groups.get((agent, resource_type))) is not None:
                yield from group.forbidding_rules()


def rank(rule: AccessRule) -> tuple[int, int, int]:
    """Return the rank of a rule: lower priority first, then the more specific pattern, then a named agent before ``*``."""
    return rule.priority, -parse_pattern(rule.pattern).specificity, int(rule.agent == ANY)


def counts(rule: AccessRule, asked: str) -> bool:
    """Whether a rule takes part in the decision about this permission."""
    return rule.permission in _COUNTS[asked]


def winner(matching: list[RankedRule], asked: str) -> RankedRule | None:
    """Return the deciding rule, or None if no rule takes part.

    At the same best rank, ``none`` wins. Among equal rules, the choice does not depend on their order.

    Raises:
        InvalidInput: ``asked`` is neither read nor write.
    """
    check_choice("permission to ask for", asked, ASKED)
    speaking = [ranked for ranked in matching if counts(ranked.rule, asked)]
    if not speaking:
        return None
    best = min(ranked.rank for ranked in speaking)

    def order(ranked: RankedRule) -> tuple[bool, bool, str]:
        rule = ranked.rule
        # After ``none``, prefer the rule with exactly the requested permission, because an explanation shows it.
        return rule.permission != "none", rule.permission != asked, rule.pattern

    return min((ranked for ranked in speaking if ranked.rank == best), key=order)


def grants(decided: RankedRule | None) -> bool:
    """Whether the deciding rule allows the access. Without a deciding rule, access is denied."""
    return decided is not None and decided.rule.permission != "none"


def explain(matching: list[RankedRule], agent: str, asked: Asked, resource: Resource) -> AccessExplanation:
    """Return the explanation of a decision, given all rules that match the agent and the resource.

    Raises:
        InvalidInput: ``asked`` is neither read nor write.
    """
    decided = winner(matching, asked)
    allowed = grants(decided)
    lost = sorted((ranked for ranked in matching if ranked is not decided), key=_sort_key)
    return AccessExplanation(
        agent=agent,
        permission=asked,
        resource=resource,
        allowed=allowed,
        rule=None if decided is None else decided.rule,
        reason=_reason(decided, agent, asked, resource),
        shadowed=[OverriddenRule(rule=ranked.rule, reason=_loss_reason(ranked, decided, asked)) for ranked in lost],
        would_grant=[] if allowed else _rules_that_would_grant(matching, decided, agent, asked, resource),
    )


def _sort_key(ranked: RankedRule) -> tuple[tuple[int, int, int], str, str]:
    return ranked.rank, ranked.rule.pattern, ranked.rule.permission


def _describe_rule(rule: AccessRule) -> str:
    who = "any agent" if rule.agent == ANY else f"agent {quote_name(rule.agent)}"
    return f"{rule.permission} on {rule.resource_type} {quote_name(rule.pattern)} for {who} at priority {rule.priority}"


def _reason(decided: RankedRule | None, agent: str, asked: Asked, resource: Resource) -> str:
    if fault := agent_fault(agent):
        return f"denied: agent {quote_name(agent)} {fault}, so nobody may ask by that name and no rule can grant it"
    if decided is None:
        what = f"{resource.type} {quote_name(resource.path)}"
        return f"denied: no rule lets agent {quote_name(agent)} {asked} {what}, and what no rule grants is denied"
    rule = decided.rule
    if not grants(decided):
        return f"denied by {_describe_rule(rule)}: remove that rule, or {_ways_past(decided)}"
    because = ", since write grants read" if rule.permission != asked else ""
    return f"allowed by {_describe_rule(rule)}{because}"


def _ways_past(blocking: RankedRule) -> str:
    priority, specificity, any_agent = blocking.rank
    ways: list[str] = []
    if priority > PRIORITIES[0]:
        ways.append(f"a priority below {priority}")
    if (specificity, any_agent) > (-3, 0):
        ways.append(f"priority {priority} and a more specific pattern or agent")
    return f"outrank it by a rule with {', or with '.join(ways)}" if ways else "change it, for nothing comes before it"


def _loss_reason(lost: RankedRule, decided: RankedRule | None, asked: Asked) -> str:
    if decided is None or not counts(lost.rule, asked):
        return f"grants {lost.rule.permission}, which is not {asked}"
    priority, specificity, _ = lost.rank
    if priority != decided.rank[0]:
        return f"priority {priority} comes after {decided.rank[0]}"
    if specificity != decided.rank[1]:
        return f"its pattern is less specific than {quote_name(decided.rule.pattern)}"
    if lost.rank != decided.rank:
        return f"a rule for any agent comes after one for agent {quote_name(decided.rule.agent)}"
    if grants(lost) == grants(decided):
        return "says the same at the same rank"
    return "at the same rank none wins"


def _rules_that_would_grant(
    matching: list[RankedRule], decided: RankedRule | None, agent: str, asked: Asked, resource: Resource
) -> list[AccessRule]:
    """Return rules that would each, added alone, grant the access: for the resource itself, then for everything of its owner.

    A rule for everything is suggested only if no narrower pattern can name the resource. A suggestion may replace a rule with
    the same key. That is harmless, because the replaced rule granted too and lost. No rule helps an invalid agent name.
    """
    found: list[AccessRule] = []
    for pattern in dict.fromkeys((f"{resource.agent}/{resource.name}", f"{resource.agent}/*", ANY)):
        if (pattern == ANY and found) or not _matches_exactly(pattern, resource):
            continue
        for priority in _priorities(decided):
            rule = AccessRule(agent=agent, resource_type=resource.type, pattern=pattern, permission=asked, priority=priority)
            if _would_grant(rule, matching, resource):
                found.append(rule)
                break
    return found


def _matches_exactly(pattern: str, resource: Resource) -> bool:
    """Whether a pattern made from a resource's names is valid and parses back to them. Names may contain ``*`` or ``/``."""
    try:
        parts = parse_pattern(pattern)
    except InvalidInput:
        return False
    if parts.form == "exact":
        return (parts.agent, parts.name) == (resource.agent, resource.name)
    return parts.form == "all" or (parts.form == "agent" and parts.agent == resource.agent)


def _priorities(decided: RankedRule | None) -> list[int]:
    """Return the priorities to try: the default, that of the blocking rule, and the next lower number."""
    if decided is None:
        return [DEFAULT_PRIORITY]
    blocking = decided.rule.priority
    return [DEFAULT_PRIORITY, blocking, max(blocking - 1, PRIORITIES[0])]


def _would_grant(rule: AccessRule, matching: list[RankedRule], resource: Resource) -> bool:
    if agent_fault(rule.agent) is not None:
        return False
    index = RuleIndex([*(ranked.rule for ranked in matching), rule])
    # A suggested rule has the requested permission.
    return grants(winner(index.matching_rules(rule.agent, resource.type, resource.agent, resource.name), rule.permission))


_MAX_ANSWERS = 100_000  # cached answers; a long history repeats few agents and sessions
_NO_RULE_NAMES_IT = "\0"  # a name that no rule and no agent can have; stands for everything that no rule names


class Rules:
    """An immutable set of rules that caches its answers."""

    def __init__(self, rules: Iterable[AccessRule] = ()) -> None:
        """Check and index the rules. Duplicates count once.

        Raises:
            InvalidInput: a rule can't be evaluated. It is not skipped, because it might forbid something.
        """
        known = {_values(rule): rule for rule in map(check_rule, rules)}
        self._rules = tuple(known[values] for values in sorted(known))
        self._index = RuleIndex(self._rules)
        self._answers: dict[tuple[str, str, str, str, str], bool] = {}

    def __iter__(self) -> Iterator[AccessRule]:
        """Yield the rules in canonical order: by resource type, agent, pattern, permission and priority."""
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that are equal for the same rules in any order."""
        import json

        text = json.dumps([_values(rule) for rule in self._rules], separators=(",", ":"))
        return codec.digest(text.encode("ascii"))[:16]

    def allows(self, agent: str | None, permission: Asked, resource: Resource) -> bool:
        """Whether an agent may read or write a resource. None is the operator, who may do everything.

        Invalid names raise no error: an agent called ``*`` or ``self``, or with an invalid name, may do nothing.

        Raises:
            InvalidInput: the permission is neither read nor write.
        """
        return self.may(agent, permission, resource.type, resource.agent, resource.name)

    def may(self, agent: str | None, permission: Asked, resource_type: ResourceType, owner: str, name: str) -> bool:
        """Answer like `allows`, for frequent callers without a `Resource`."""
        if agent is None:
            return True
        key = (agent, permission, resource_type, owner, name)
        answer = self._answers.get(key)
        if answer is None:
            answer = grants(winner(self._index.matching_rules(agent, resource_type, owner, name), permission))
            if len(self._answers) >= _MAX_ANSWERS:
                # Cleared completely, which is simpler than an LRU and hardly ever happens.
                self._answers.clear()
            self._answers[key] = answer
        return answer

    def find_rule(self, agent: str, permission: Asked, resource: Resource) -> AccessRule | None:
        """Return the deciding rule, or None if access is denied for lack of one."""
        decided = winner(self._index.matching_rules(agent, resource.type, resource.agent, resource.name), permission)
        return None if decided is None else decided.rule

    def explain(self, agent: str, permission: Asked, resource: Resource) -> AccessExplanation:
        """Return the decision with the deciding rule, the rules that lost, and rules that would grant the access."""
        return explain(
            self._index.matching_rules(agent, resource.type, resource.agent, resource.name), agent, permission, resource
        )

    def everything(self, agent: str | None, resource_type: ResourceType, permission: Asked) -> bool:
        """Whether the agent may access all resources of this type, whatever their owners and names.

        If a forbidding rule wins for any resource, it also wins for the matching resource that the fewest other rules match. So
        it is enough to test that resource for each forbidding rule, and one resource that no rule names.
        """
        if agent is None:
            return True
        if agent_fault(agent) is not None:
            return False
        places = {(_NO_RULE_NAMES_IT, _NO_RULE_NAMES_IT)}
        for rule in self._index.forbidding_rules(agent, resource_type):
            pattern = parse_pattern(rule.pattern)
            owner = agent if rule.pattern == SELF else pattern.agent
            places.add((owner or _NO_RULE_NAMES_IT, pattern.name or _NO_RULE_NAMES_IT))
        return all(grants(winner(self._index.matching_rules(agent, resource_type, *place), permission)) for place in places)


def _values(rule: AccessRule) -> tuple[str, str, str, str, int]:
    """Return the fields of a rule in canonical sort order."""
    return rule.resource_type, rule.agent, rule.pattern, rule.permission, rule.priority
