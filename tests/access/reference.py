"""Who may do what, told once more from the words of ruling 14, pair by pair and without any index: slow and plain."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.types.access import AccessRule

NOBODY = ("", "*", "self")
"""Names that nobody may ask by; the tests ask by no other that can't be used."""


def speaks(rule: AccessRule, asking: str, asked: str, kind: str, owner: str, name: str) -> bool:
    """Whether a rule has a say: its agent, type and pattern fit, and its permission bears on what is asked."""
    if rule.resource_type != kind or (rule.agent != "*" and rule.agent != asking):
        return False
    if asked == "write" and rule.permission == "read":
        return False
    if rule.pattern == "*":
        return True
    if rule.pattern == "self":
        return owner == asking
    if rule.pattern.endswith("/*"):
        return rule.pattern == owner + "/*"
    return "/" not in owner and rule.pattern == owner + "/" + name


def level(pattern: str) -> int:
    """How specific a pattern is, 3 the most."""
    if pattern == "*":
        return 1
    return 2 if pattern == "self" or pattern.endswith("/*") else 3


def outranks(one: AccessRule, other: AccessRule) -> bool:
    """Whether one rule stands before another."""
    if one.priority != other.priority:
        return one.priority < other.priority
    if level(one.pattern) != level(other.pattern):
        return level(one.pattern) > level(other.pattern)
    return one.agent != "*" and other.agent == "*"


def allows(rules: Sequence[AccessRule], asking: str | None, asked: str, kind: str, owner: str, name: str) -> bool:
    """Whether the asking agent may; without one it is the operator, who always may."""
    if asking is None:
        return True
    if asking in NOBODY:
        return False
    speaking = [rule for rule in rules if speaks(rule, asking, asked, kind, owner, name)]
    first = [rule for rule in speaking if not any(outranks(other, rule) for other in speaking)]
    return first != [] and all(rule.permission != "none" for rule in first)
