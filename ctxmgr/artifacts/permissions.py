"""The permissions that this package checks; the operator has all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ctxmgr.types.access import ResourceType

VERSION_KEY = "context_version"
"""The context key that whoever makes, rolls back or prunes versions must be allowed to write (spec 003, rollback step 3)."""


CURRENT_ARTIFACT = ("project", "current")
"""The pointer to the current version, as rules on artifacts know it: who may write it rolls back what others made."""


class Permissions(Protocol):
    """Answers for one asker; ``agent`` is None for the operator."""

    @property
    def agent(self) -> str | None: ...  # noqa: D102 - see the class

    def reads(self, agent: str, name: str) -> bool:
        """Whether the asker may read this artifact."""
        ...

    def writes(self, agent: str, name: str) -> bool:
        """Whether the asker may write this artifact."""
        ...

    def writes_key(self, key: str) -> bool:
        """Whether the asker may set this key of the context."""
        ...

    def log(
        self,
        command: str,
        permission: str,
        granted: Iterable[tuple[str, str]] = (),
        denied: Iterable[tuple[str, str]] = (),
        *,
        resource_type: ResourceType = "artifact",
        failed: str | None = None,
        hidden: int = 0,
    ) -> None:
        """Record what was granted, what was denied or not there, and how many things were passed over unseen."""
        ...


class Operator:
    """The person whose store it is."""

    agent = None

    def reads(self, agent: str, name: str) -> bool:
        """Everything."""
        return True

    def writes(self, agent: str, name: str) -> bool:
        """Everything."""
        return True

    def writes_key(self, key: str) -> bool:
        """Every one."""
        return True

    def log(
        self,
        command: str,
        permission: str,
        granted: Iterable[tuple[str, str]] = (),
        denied: Iterable[tuple[str, str]] = (),
        *,
        resource_type: ResourceType = "artifact",
        failed: str | None = None,
        hidden: int = 0,
    ) -> None:
        """Nothing is logged of the operator."""


OPERATOR: Permissions = Operator()
