"""Find the rules that match a resource, and the one that decides."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ctxmgr.access.patterns import ANY, ASKED, agent_fault, check_choice, parse_pattern
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.types.access import AccessRule

# What is granted or forbidden by a permission: write grants read, so it counts for both.
_COUNTS: dict[str, frozenset[str]] = {"read": frozenset({"read", "write", "none"}), "write": frozenset({"write", "none"})}


class Ranked(NamedTuple):
    """A rule and its place in the order; the lower rank counts first."""

    rank: tuple[int, int, int]
    rule: AccessRule


@dataclass(slots=True)
class _Shelf:
    """The rules for one agent and one type of resource, by the form of their pattern."""

    everything: list[Ranked] = field(default_factory=lambda: list[Ranked]())
    own: list[Ranked] = field(default_factory=lambda: list[Ranked]())
    agents: dict[str, list[Ranked]] = field(default_factory=lambda: dict[str, list[Ranked]]())
    exact: dict[tuple[str, str], list[Ranked]] = field(default_factory=lambda: dict[tuple[str, str], list[Ranked]]())

    def add(self, ranked: Ranked) -> None:
        pattern = parse_pattern(ranked.rule.pattern)
        if pattern.form == "exact":
            self.exact.setdefault((pattern.agent, pattern.name), []).append(ranked)
        elif pattern.form == "agent":
            self.agents.setdefault(pattern.agent, []).append(ranked)
        else:
            (self.own if pattern.form == "self" else self.everything).append(ranked)

    def matching(self, asking: str, owner: str, name: str) -> list[Ranked]:
        found = [*self.everything, *self.agents.get(owner, ()), *self.exact.get((owner, name), ())]
        return [*found, *self.own] if owner == asking else found

    def forbidding(self) -> Iterable[AccessRule]:
        for shelf in (self.everything, self.own, *self.agents.values(), *self.exact.values()):
            yield from (ranked.rule for ranked in shelf if ranked.rule.permission == "none")


class RuleIndex:
    """Checked rules by agent, resource type and pattern."""

    def __init__(self, rules: Iterable[AccessRule]) -> None:
        self._shelves: dict[tuple[str, str], _Shelf] = {}
        for rule in rules:
            self._shelves.setdefault((rule.agent, rule.resource_type), _Shelf()).add(Ranked(rank(rule), rule))

    def matching(self, asking: str, resource_type: str, owner: str, name: str) -> list[Ranked]:
        """Return the rules that speak to this agent of this resource, in no order; none when nobody of this name may ask."""
        if agent_fault(asking) is not None:
            return []
        found: list[Ranked] = []
        for agent in (asking, ANY):
            if (shelf := self._shelves.get((agent, resource_type))) is not None:
                found += shelf.matching(asking, owner, name)
        return found

    def forbidding(self, asking: str, resource_type: str) -> Iterable[AccessRule]:
        """Yield the rules with ``none`` that speak to this agent of resources of this type."""
        for agent in (asking, ANY):
            if (shelf := self._shelves.get((agent, resource_type))) is not None:
                yield from shelf.forbidding()


def rank(rule: AccessRule) -> tuple[int, int, int]:
    """Return a rule's place: the lower priority first, then the more specific pattern, then a named agent before any."""
    return rule.priority, -parse_pattern(rule.pattern).specificity, int(rule.agent == ANY)


def counts(rule: AccessRule, asked: str) -> bool:
    """Whether a rule has something to say when this permission is asked for."""
    return rule.permission in _COUNTS[asked]


def winner(matching: list[Ranked], asked: str) -> Ranked | None:
    """Return the rule that decides, None when no rule speaks of the matter.

    Of several at the same best rank one with ``none`` decides; which of equals is named does not depend on their order.

    Raises:
        InvalidInput: something else than read or write is asked for.
    """
    check_choice("permission to ask for", asked, ASKED)
    speaking = [ranked for ranked in matching if counts(ranked.rule, asked)]
    if not speaking:
        return None
    best = min(ranked.rank for ranked in speaking)

    def order(ranked: Ranked) -> tuple[bool, bool, str]:
        rule = ranked.rule
        return rule.permission != "none", rule.permission != asked, rule.pattern

    return min((ranked for ranked in speaking if ranked.rank == best), key=order)


def grants(decided: Ranked | None) -> bool:
    """Whether the rule that decides allows; what no rule speaks of is denied."""
    return decided is not None and decided.rule.permission != "none"
