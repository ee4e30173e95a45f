"""Check and split what rules name: agents, owners and patterns (spec 003, Pattern matching).

Names are compared literally: case, ``_`` against ``-`` and the forms of Unicode all make another name.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import AccessRule, Asked, Permission, ResourceType

ANY = "*"
SELF = "self"
MAX_NAME = 255
"""Longest name of an agent, in bytes of UTF-8."""
MAX_PATTERN = 512
"""Longest pattern, in characters."""
PRIORITIES = (-(2**31), 2**31)
"""The first and the last priority."""

RESOURCE_TYPES: tuple[str, ...] = get_args(ResourceType)
PERMISSIONS: tuple[str, ...] = get_args(Permission)
ASKED: tuple[str, ...] = get_args(Asked)
FORMS = "write '*' (everything), 'self' (what belongs to the agent that asks), 'AGENT/*' or 'AGENT/NAME'"

_UNNAMEABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, lone surrogates, line and paragraph separators


class Pattern(NamedTuple):
    """A pattern taken apart; ``agent`` and ``name`` are empty where its form has none."""

    form: Literal["all", "self", "agent", "exact"]
    agent: str = ""
    name: str = ""

    @property
    def specificity(self) -> int:
        """3 for one resource, 2 for what belongs to one agent, 1 for everything; the higher counts first."""
        return {"exact": 3, "agent": 2, "self": 2, "all": 1}[self.form]


def quoted(text: str) -> str:
    """Return a name as errors show it: escaped, quoted, and cut where it is long."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def is_unnameable(text: str) -> bool:
    """Whether the text holds a control character, a line break or half a character."""
    return not text.isprintable() and any(unicodedata.category(character) in _UNNAMEABLE for character in text)


@lru_cache(maxsize=4096)
def agent_fault(name: str) -> str | None:
    """Return why this is no name of an agent, None when it is one."""
    if not name:
        return "is empty"
    if name in (ANY, SELF):
        return "means something else in access rules"
    if len(name) > MAX_NAME or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        return f"is longer than {MAX_NAME} bytes"
    if is_unnameable(name):
        return "holds a control character, a line break or half a character"
    return None


def check_agent(name: str) -> str:
    """Return the name of an agent that may ask or be named in a rule.

    Raises:
        InvalidInput: it is empty, ``*`` or ``self``, too long, or holds a control character.
    """
    if fault := agent_fault(name):
        raise InvalidInput(f"agent {quoted(name)} {fault}", f"name one agent, with at most {MAX_NAME} printable bytes")
    return name


def check_owner(name: str) -> str:
    """Return the name of an agent that may own artifacts.

    Raises:
        InvalidInput: it is no name of an agent, or holds a ``/``, which ends the owner in 'OWNER/NAME'.
    """
    if "/" in check_agent(name):
        raise InvalidInput(f"agent {quoted(name)} holds a '/', so it can't own artifacts", "take an owner without '/'")
    return name


@lru_cache(maxsize=65536)
def parse_pattern(text: str) -> Pattern:
    """Return the parts of a pattern.

    Raises:
        InvalidInput: it has none of the four forms, or is longer than 512 characters.
    """
    if len(text) > MAX_PATTERN:
        raise InvalidInput(f"pattern {quoted(text)} is longer than {MAX_PATTERN} characters", FORMS)
    if is_unnameable(text):
        raise InvalidInput(f"pattern {quoted(text)} holds a control character, a line break or half a character", FORMS)
    if text == ANY:
        return Pattern("all")
    if text == SELF:
        return Pattern("self")
    if text.endswith("/*"):
        pattern = Pattern("agent", text[:-2])
    else:
        agent, slash, name = text.partition("/")
        if not slash:
            raise InvalidInput(f"pattern {quoted(text)} names no owner", FORMS)
        if not name:
            raise InvalidInput(f"pattern {quoted(text)} names nothing after its '/'", FORMS)
        pattern = Pattern("exact", agent, name)
    if ANY in pattern.agent or ANY in pattern.name:
        raise InvalidInput(f"pattern {quoted(text)} has a '*' that does not stand for everything of one owner", FORMS)
    if fault := agent_fault(pattern.agent):
        raise InvalidInput(f"pattern {quoted(text)}: its owner {quoted(pattern.agent)} {fault}", FORMS)
    return pattern


def check_rule(rule: AccessRule) -> AccessRule:
    """Return a rule that can be evaluated.

    Raises:
        InvalidInput: its agent, resource type, pattern, permission or priority can't be used.
    """
    if rule.agent != ANY:
        check_agent(rule.agent)
    parse_pattern(rule.pattern)
    # A shape that was built unchecked would otherwise match nothing, which lets a forbidding rule vanish silently.
    check_choice("resource type", rule.resource_type, RESOURCE_TYPES)
    check_choice("permission", rule.permission, PERMISSIONS)
    if type(rule.priority) is not int or not PRIORITIES[0] <= rule.priority <= PRIORITIES[1]:
        raise InvalidInput("priority must be a whole number of at most 32 bits", "the lower number counts first; 100 is usual")
    return rule


def rule_key(rule: AccessRule) -> tuple[str, str, str, str]:
    """Return what makes a rule the same rule: agent, resource type, pattern and permission (ruling 14)."""
    return rule.agent, rule.resource_type, rule.pattern, rule.permission


def check_choice(what: str, value: object, known: tuple[str, ...]) -> str:
    """Return one of the known words.

    Raises:
        InvalidInput: it is none of them.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text", f"known: {', '.join(known)}")
    if value not in known:
        raise InvalidInput(f"unknown {what} {quoted(value)}", f"known: {', '.join(known)}")
    return value
