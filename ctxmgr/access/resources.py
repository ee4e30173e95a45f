"""Name the resources that rules protect, from user input and from stored records."""

from __future__ import annotations

from typing import Literal, cast

from ctxmgr.access.patterns import RESOURCE_TYPES, check_agent, check_choice, check_owner, is_unnameable, quoted
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import Resource, ResourceType

PROJECT_OWNER = "project"
"""Owner of the context keys that name none."""
USER = "user"
"""Owner of what no agent said: a person's words."""

_HINTS = {
    "artifact": "write OWNER/NAME, e.g. system_architect/architecture.yaml",
    "context": "write a key, e.g. current_sprint, or OWNER/KEY",
    "history": "write AGENT/SESSION, or AGENT alone for a session that no rule names",
}


def parse_resource(resource_type: str, text: str) -> Resource:
    """Return the resource that a person names.

    The text is split at its first ``/``: ``OWNER/NAME`` for an artifact, ``KEY`` or ``OWNER/KEY`` for the context,
    ``AGENT/SESSION`` or ``AGENT`` for history. An agent alone stands for what it did in a session that no rule names, so
    it is matched by ``*``, ``self`` and ``AGENT/*`` only. An owner that itself holds a ``/`` can't be written so.

    Raises:
        InvalidInput: an unknown resource type, a part that is missing, or a name that can't be used.
    """
    kind = cast("ResourceType", check_choice("resource type", resource_type, RESOURCE_TYPES))
    hint = _HINTS[kind]
    if is_unnameable(text):
        raise InvalidInput(f"{kind} {quoted(text)} holds a control character, a line break or half a character", hint)
    owner, slash, name = text.partition("/")
    if kind == "context" and not slash:
        owner, name = PROJECT_OWNER, text
    elif kind == "artifact" and not slash:
        raise InvalidInput(f"artifact {quoted(text)} names no owner", hint)
    if not owner or (not name and (slash or kind != "history")):
        raise InvalidInput(f"{kind} {quoted(text)} has an empty part", hint)
    (check_owner if kind == "artifact" else check_agent)(owner)
    return Resource(type=kind, agent=owner, name=name)


def artifact_resource(owner: str, name: str) -> Resource:
    """Return an artifact as a resource; nothing is checked, for what is stored may be odd."""
    return _resource("artifact", owner, name)


def context_resource(key: str) -> Resource:
    """Return a stored key of the context as a resource: ``a/b`` belongs to ``a``, a key without ``/`` to the project."""
    owner, slash, name = key.partition("/")
    return _resource("context", owner, name) if slash else _resource("context", PROJECT_OWNER, key)


def history_resource(agent: str | None, session: str) -> Resource:
    """Return what an agent did in a session as a resource; without an agent it is a person's."""
    return _resource("history", USER if agent is None else agent, session)


def _resource(kind: Literal["artifact", "context", "history"], owner: str, name: str) -> Resource:
    return Resource.model_construct(type=kind, agent=owner, name=name)
