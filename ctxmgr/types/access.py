"""Models of access rules, questions about them and answers (spec 003)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Shape, Text
from ctxmgr.types.query import Limit, Offset, Page, Status

ResourceType = Literal["artifact", "context", "history"]
Permission = Literal["read", "write", "none"]
Asked = Literal["read", "write"]
DEFAULT_PRIORITY = 100
MIN_PRIORITY, MAX_PRIORITY = -(2**31), 2**31 - 1
"""What a whole number of 32 bits holds: other programs that read the tables may keep priorities in one."""


class AccessRule(Shape):
    """One rule; agent, resource type, pattern and permission together are its key, the lower priority counts first.

    ``agent`` is compared literally, ``*`` stands for any. ``pattern`` is ``*``, ``self``, ``{agent}/*`` or ``{agent}/{name}``.
    """

    agent: Text
    resource_type: ResourceType
    pattern: Text
    # Part of the key: without it a rule to read would take the place of one to write (ruling 14).
    permission: Permission
    priority: Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)] = DEFAULT_PRIORITY


class Resource(Shape):
    """Something that rules are about: an artifact of an agent, a key of the context, what an agent did in a session.

    ``agent`` is the owner. Keys of the project's context belong to ``project``, a person's words to ``user``.
    """

    type: ResourceType
    agent: Text
    name: Text

    @property
    def path(self) -> str:
        """The owner and the name, as a person writes them."""
        return f"{self.agent}/{self.name}"


class OverriddenRule(Shape):
    """A rule that also matches the resource and lost, and why."""

    rule: AccessRule
    reason: Text


class AccessExplanation(Shape):
    """Whether an agent may do something, by which rule, which rules lost, and which rule would grant it.

    ``would_grant`` is empty when it is allowed; else each of its rules, added alone, would allow it.
    """

    agent: Text
    permission: Asked
    resource: Resource
    allowed: bool
    rule: AccessRule | None
    reason: Text
    shadowed: list[OverriddenRule] = []
    would_grant: list[AccessRule] = []


class RuleChangeResult(Shape):
    """What a change of the rules did: the rules now in force that it named, how many were new or other, and how many went."""

    rules: list[AccessRule]
    added: int
    changed: int
    removed: int


class ReplayedRead(Shape):
    """A past read and what another set of rules says of it."""

    at: Text | None
    agent: Text
    command: Text
    resource: Resource
    was_allowed: bool
    allowed: bool
    rule: AccessRule | None


class Replay(Shape):
    """What a changed set of rules would have done to the reads of the past; ``reads`` were looked at."""

    reads: int
    blocked: list[ReplayedRead]
    opened: list[ReplayedRead]


class AccessLogRequest(Shape):
    """Accesses of agents, of one agent if it is named; ``denied`` asks only for those that were refused or found nothing."""

    agent: Text | None = None
    denied: bool = False
    offset: Offset = 0
    limit: Limit = 20


class LoggedAccess(Shape):
    """What an agent asked for once, and got. A denied read is answered as one of something missing, so both are ``denied``.

    ``granted`` and ``denied`` name the first resources, their counts are exact. ``hidden`` is the number of records that a
    read of history left out, ``failed`` why nothing was answered or written.
    """

    id: Text
    at: Text | None
    agent: Text
    command: Text
    permission: Text
    granted: list[Resource]
    granted_count: int
    denied: list[Resource]
    denied_count: int
    hidden: int
    failed: Text | None


class AccessLogResponse(Shape):
    """One page of accesses, newest first."""

    status: Status
    accesses: list[LoggedAccess]
    page: Page
