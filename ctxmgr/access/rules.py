"""Evaluate a set of access rules; the answer does not depend on the order of the rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property

from ctxmgr.access.explanation import explain
from ctxmgr.access.patterns import SELF, agent_fault, check_rule, parse_pattern
from ctxmgr.access.precedence import RuleIndex, grants, winner
from ctxmgr.types.access import AccessExplanation, AccessRule, Asked, Resource, ResourceType

_REMEMBERED = 100_000  # answers; long histories ask of few agents and sessions, again and again
_UNNAMED = "\0"  # no rule and no agent can be named so: it stands for everything that no rule names


class Rules:
    """Rules that can be asked. Nothing about it changes once it is made, so it may be kept as long as the rules hold."""

    def __init__(self, rules: Iterable[AccessRule] = ()) -> None:
        """Take the rules; the same rule twice counts once.

        Raises:
            InvalidInput: a rule can't be evaluated. To leave it out might open what it forbids.
        """
        known = {_values(rule): rule for rule in map(check_rule, rules)}
        self._rules = tuple(known[values] for values in sorted(known))
        self._index = RuleIndex(self._rules)
        self._answers: dict[tuple[str, str, str, str, str], bool] = {}

    def __iter__(self) -> Iterator[AccessRule]:
        """Yield the rules in their canonical order: by resource type, agent, pattern, permission and priority."""
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    @cached_property
    def digest(self) -> str:
        """16 hex digits that are the same for the same rules in any order."""
        text = json.dumps([_values(rule) for rule in self._rules], separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]

    def allows(self, agent: str | None, permission: Asked, resource: Resource) -> bool:
        """Whether an agent may read or write something. Without an agent the operator asks, who may do everything.

        Never raises because of a name: nobody called ``*`` or ``self``, or by a name that can't be used, is allowed anything.

        Raises:
            InvalidInput: something else than read or write is asked for.
        """
        return self.may(agent, permission, resource.type, resource.agent, resource.name)

    def may(self, agent: str | None, permission: Asked, resource_type: ResourceType, owner: str, name: str) -> bool:
        """Answer as `allows` does, for callers that ask of very many things and need no shape for each."""
        if agent is None:
            return True
        key = (agent, permission, resource_type, owner, name)
        answer = self._answers.get(key)
        if answer is None:
            answer = grants(winner(self._index.matching(agent, resource_type, owner, name), permission))
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[key] = answer
        return answer

    def rule_for(self, agent: str, permission: Asked, resource: Resource) -> AccessRule | None:
        """Return the rule that decides, None when no rule speaks of the matter, so that it is denied."""
        decided = winner(self._index.matching(agent, resource.type, resource.agent, resource.name), permission)
        return None if decided is None else decided.rule

    def explain(self, agent: str, permission: Asked, resource: Resource) -> AccessExplanation:
        """Return the answer for an agent with the rule that decides, those that lost, and rules that would grant it."""
        return explain(self._index.matching(agent, resource.type, resource.agent, resource.name), agent, permission, resource)

    def everything(self, agent: str | None, resource_type: ResourceType, permission: Asked) -> bool:
        """Whether nothing of this type, whatever its owner and name, is denied to the agent.

        A rule that wins anywhere wins at the least named thing that it matches, where the fewest others speak. So it is
        enough to ask of what no rule names, and of the least named thing of each forbidding rule.
        """
        if agent is None:
            return True
        if agent_fault(agent) is not None:
            return False
        places = {(_UNNAMED, _UNNAMED)}
        for rule in self._index.forbidding(agent, resource_type):
            pattern = parse_pattern(rule.pattern)
            owner = agent if rule.pattern == SELF else pattern.agent
            places.add((owner or _UNNAMED, pattern.name or _UNNAMED))
        return all(grants(winner(self._index.matching(agent, resource_type, *place), permission)) for place in places)


def _values(rule: AccessRule) -> tuple[str, str, str, str, int]:
    """Return all that a rule says, in the order that rules are sorted by."""
    return rule.resource_type, rule.agent, rule.pattern, rule.permission, rule.priority
