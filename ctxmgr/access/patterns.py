"""Check and parse the names in rules (spec 003, Pattern matching): agents, owners, patterns and resources.

Names are compared literally. Different case, ``_`` instead of ``-``, or another Unicode form make a different name.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple, cast, get_args

from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import MAX_PRIORITY, MIN_PRIORITY, AccessRule, Asked, Permission, Resource, ResourceType

ANY = "*"
SELF = "self"
MAX_NAME = 255
"""Maximum length of an agent's name in bytes of UTF-8."""
MAX_PATTERN = 512
"""Maximum length of a pattern in characters."""
PRIORITIES = (MIN_PRIORITY, MAX_PRIORITY)
"""The lowest and the highest allowed priority. A lower number takes precedence."""
VERSION_KEY = "context_version"
"""The context key that nobody sets: it shows the current version. Agents need write access to it to make, roll back or prune
versions (spec 003, rollback step 3)."""

RESOURCE_TYPES: tuple[str, ...] = get_args(ResourceType)
PERMISSIONS: tuple[str, ...] = get_args(Permission)
ASKED: tuple[str, ...] = get_args(Asked)
FORMS = "write '*' (everything), 'self' (what belongs to the agent that asks), 'AGENT/*' or 'AGENT/NAME'"

_UNNAMEABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, lone surrogates, line and paragraph separators


class Pattern(NamedTuple):
    """A parsed pattern. ``agent`` and ``name`` are empty in forms without them."""

    form: Literal["all", "self", "agent", "exact"]
    agent: str = ""
    name: str = ""

    @property
    def specificity(self) -> int:
        """3 for one resource, 2 for everything of one agent, 1 for everything. The higher one takes precedence."""
        return {"exact": 3, "agent": 2, "self": 2, "all": 1}[self.form]


def quote_name(text: str) -> str:
    """Return a name for an error message: escaped, quoted, and cut to 80 characters."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def is_unnameable(text: str) -> bool:
    """Whether the text contains a control character, a line break or an unpaired surrogate."""
    return not text.isprintable() and any(unicodedata.category(character) in _UNNAMEABLE for character in text)


# Cached, like `parse_pattern`, because a filtered history asks for every record but with few agents and patterns.
@lru_cache(maxsize=4096)
def agent_fault(name: str) -> str | None:
    """Return why a text can't be the name of an agent, as the end of a sentence, or None if it can."""
    if not name:
        return "is empty"
    if name in (ANY, SELF):
        return "means something else in access rules"
    # Count characters first, so that a huge name is refused without encoding it.
    if len(name) > MAX_NAME or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        return f"is longer than {MAX_NAME} bytes"
    if is_unnameable(name):
        return "holds a control character, a line break or an unpaired surrogate"
    return None


def check_agent(name: str) -> str:
    """Return the name if an agent of this name may ask or be named in a rule.

    Raises:
        InvalidInput: the name is empty, ``*`` or ``self``, too long, or contains a control character.
    """
    if fault := agent_fault(name):
        raise InvalidInput(f"agent {quote_name(name)} {fault}", f"name one agent, with at most {MAX_NAME} printable bytes")
    return name


def check_owner(name: str) -> str:
    """Return the name if an agent of this name may own artifacts.

    Raises:
        InvalidInput: it is not a valid agent name, or contains a ``/``, which ends the owner in 'OWNER/NAME'.
    """
    if "/" in check_agent(name):
        raise InvalidInput(f"agent {quote_name(name)} holds a '/', so it can't own artifacts", "take an owner without '/'")
    return name


@lru_cache(maxsize=65536)
def parse_pattern(text: str) -> Pattern:
    """Parse a pattern: ``*``, ``self``, ``AGENT/*`` or ``AGENT/NAME``.

    Raises:
        InvalidInput: the text has none of these forms, or more than 512 characters.
    """
    if len(text) > MAX_PATTERN:
        raise InvalidInput(f"pattern {quote_name(text)} is longer than {MAX_PATTERN} characters", FORMS)
    if is_unnameable(text):
        fault = "holds a control character, a line break or an unpaired surrogate"
        raise InvalidInput(f"pattern {quote_name(text)} {fault}", FORMS)
    if text == ANY:
        return Pattern("all")
    if text == SELF:
        return Pattern("self")
    pattern = Pattern("agent", text[:-2]) if text.endswith("/*") else _exact_pattern(text)
    # Other globs are refused instead of matched literally, because people expect "debugger/src/*.py" to match files.
    if ANY in pattern.agent or ANY in pattern.name:
        raise InvalidInput(f"pattern {quote_name(text)} has a '*' that does not stand for everything of one owner", FORMS)
    if fault := agent_fault(pattern.agent):
        raise InvalidInput(f"pattern {quote_name(text)}: its owner {quote_name(pattern.agent)} {fault}", FORMS)
    return pattern


def _exact_pattern(text: str) -> Pattern:
    agent, slash, name = text.partition("/")
    if not slash:
        raise InvalidInput(f"pattern {quote_name(text)} names no owner", FORMS)
    if not name:
        raise InvalidInput(f"pattern {quote_name(text)} names nothing after its '/'", FORMS)
    return Pattern("exact", agent, name)


def check_rule(rule: AccessRule) -> AccessRule:
    """Return the rule if it can be evaluated.

    Raises:
        InvalidInput: its agent, resource type, pattern, permission or priority is invalid.
    """
    if rule.agent != ANY:
        check_agent(rule.agent)
    parse_pattern(rule.pattern)
    # An unchecked shape would match nothing, so a forbidding rule would silently have no effect.
    check_choice("resource type", rule.resource_type, RESOURCE_TYPES)
    check_choice("permission", rule.permission, PERMISSIONS)
    check_priority(rule.priority)
    return rule


def check_priority(value: object) -> int:
    """Return the value if a rule may have this priority.

    Raises:
        InvalidInput: the value is not a valid priority.
    """
    # Not `isinstance`, which would accept True as priority 1.
    if type(value) is not int or not PRIORITIES[0] <= value <= PRIORITIES[1]:
        raise InvalidInput("priority must be a whole number of at most 32 bits", "the lower number counts first; 100 is usual")
    return value


def rule_key(rule: AccessRule) -> tuple[str, str, str, str]:
    """Return the identity of a rule: agent, resource type, pattern and permission, without the priority (ruling 14)."""
    return rule.agent, rule.resource_type, rule.pattern, rule.permission


def check_choice(what: str, value: object, known: tuple[str, ...]) -> str:
    """Return the value if it is one of the known words.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text", f"known: {', '.join(known)}")
    if value not in known:
        raise InvalidInput(f"unknown {what} {quote_name(value)}", f"known: {', '.join(known)}")
    return value


PROJECT_OWNER = "project"
"""Owner of context keys without an owner in their name."""
USER = "user"
"""Owner of records without an agent, such as a person's messages."""

_HINTS = {
    "artifact": "write OWNER/NAME, e.g. system_architect/architecture.yaml",
    "context": "write a key, e.g. current_sprint, or OWNER/KEY",
    "history": "write AGENT/SESSION, or AGENT alone for a session that no rule names",
}


def parse_resource(resource_type: str, text: str) -> Resource:
    """Parse a resource as people write it.

    The text is split at its first ``/``: ``OWNER/NAME`` for an artifact, ``KEY`` or ``OWNER/KEY`` for the context,
    ``AGENT/SESSION`` or ``AGENT`` for history. An agent alone stands for its records in a session that no rule names, so only
    ``*``, ``self`` and ``AGENT/*`` match. Owners with a ``/`` in their name can't be written.

    Raises:
        InvalidInput: the resource type is unknown, a part is missing, or a name is invalid.
    """
    kind = cast("ResourceType", check_choice("resource type", resource_type, RESOURCE_TYPES))
    hint = _HINTS[kind]
    if is_unnameable(text):
        raise InvalidInput(f"{kind} {quote_name(text)} holds a control character, a line break or an unpaired surrogate", hint)
    owner, slash, name = text.partition("/")
    if kind == "context" and not slash:
        owner, name = PROJECT_OWNER, text
    elif kind == "artifact" and not slash:
        raise InvalidInput(f"artifact {quote_name(text)} names no owner", hint)
    if not owner or (not name and (slash or kind != "history")):
        raise InvalidInput(f"{kind} {quote_name(text)} has an empty part", hint)
    (check_owner if kind == "artifact" else check_agent)(owner)
    return Resource(type=kind, agent=owner, name=name)


def context_resource(key: str) -> Resource:
    """Return a stored context key as a resource. ``a/b`` belongs to ``a``, a key without ``/`` to the project."""
    owner, slash, name = key.partition("/")
    # Without validation, because names in a foreign history may break our rules.
    return Resource.model_construct(type="context", agent=owner if slash else PROJECT_OWNER, name=name if slash else key)
