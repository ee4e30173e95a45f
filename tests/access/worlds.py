"""Small worlds of rules and resources that are walked through completely or drawn from at random."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hypothesis import strategies as st

from ctxmgr.types.access import AccessRule, Resource

PERMISSIONS = ("read", "write", "none")


def rule(agent: str, pattern: str, permission: str, priority: int = 100, kind: str = "artifact") -> AccessRule:
    """Return a rule."""
    return AccessRule.model_validate(
        {"agent": agent, "resource_type": kind, "pattern": pattern, "permission": permission, "priority": priority}
    )


def every_rule(agents: Iterable[str], patterns: Iterable[str], priorities: Iterable[int] = (1, 2)) -> list[AccessRule]:
    """Return every rule that can be put together."""
    return [
        rule(agent, pattern, permission, priority)
        for agent, pattern, permission, priority in product(agents, patterns, PERMISSIONS, priorities)
    ]


def thing(owner: str, name: str, kind: str = "artifact") -> Resource:
    """Return a resource."""
    return Resource.model_validate({"type": kind, "agent": owner, "name": name})


AGENTS = ("a", "b", "a/b", "A", "é", "e\u0301", "sel", "**", "[ab]", "user", "project")
"""Agents that some other reading of the names would take for one another."""
OWNERS = (*AGENTS, "*", "self", "", "\0", "\ud800")
NAMES = ("n", "m", "b/n", "*", "", "n/*", "self", "\n")
PATTERNS = (
    "*",
    "self",
    *(f"{agent}/*" for agent in AGENTS if "*" not in agent),
    *(f"{agent}/{name}" for agent in AGENTS if "*" not in agent for name in ("n", "m", "b/n", "self")),
)

RULES = st.builds(
    rule,
    st.sampled_from(("*", *AGENTS)),
    st.sampled_from(PATTERNS),
    st.sampled_from(PERMISSIONS),
    st.sampled_from((-1, 1, 100)),
    st.sampled_from(("artifact", "context", "history")),
)
RESOURCES = st.builds(
    thing, st.sampled_from(OWNERS), st.sampled_from(NAMES), st.sampled_from(("artifact", "context", "history"))
)
ASKING = st.sampled_from((*AGENTS, "*", "self", ""))
ASKED = st.sampled_from(("read", "write"))
