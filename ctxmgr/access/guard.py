"""Check and log the accesses of one agent or of the operator (spec 003)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ctxmgr.access.patterns import context_resource
from ctxmgr.access.rules import Rules
from ctxmgr.errors import CtxmgrError, Denied
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, PROJECT
from ctxmgr.types.access import Asked, Resource, ResourceType
from ctxmgr.types.plain_records import build

_DEPTH = 12  # levels of an answer to search; our answers have fewer, and deeper ones belong to recorded text


def find_resources(answer: Any) -> list[tuple[str, str]]:
    """Return each distinct (agent, session) of the entries and events in a JSON answer, in order of appearance.

    Records without an agent belong to ``user``, as in rules.
    """
    found: dict[tuple[str, str], None] = {}
    _walk_resources(answer, found, _DEPTH)
    return list(found)


def _walk_resources(value: Any, found: dict[tuple[str, str], None], depth: int) -> None:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        session, kind = fields.get("session"), fields.get("kind")
        if kind in ("entry", "event") and isinstance(session, str):
            agent = fields.get("agent")
            found.setdefault((agent if isinstance(agent, str) else "user", session))
            return  # deeper values are recorded text, which may imitate other entries
        for item in fields.values() if depth else ():
            _walk_resources(item, found, depth - 1)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value) if depth else ():
            _walk_resources(item, found, depth - 1)


MAX_LOGGED = 200
"""Maximum number of resources that one access event lists. Its counts are exact."""


OPERATOR_NAME = "operator"
"""Signature of the person whose store it is."""


def signature(agent: str | None, author: str | None) -> str | None:
    """Return who signs: an agent as itself alone, the operator (None) as anybody, or unnamed where it names nobody.

    Raises:
        Denied: an agent signs as another one.
    """
    if agent is not None and author not in (None, agent):
        raise Denied(f"{agent} may not sign as {author}", "an agent signs as itself: leave out the author, or --as")
    return author if agent is None else agent


class AccessGuard:
    """Decides for one asker what may be read or written, and logs the accesses.

    Attributes:
        agent: the asking agent; None for the operator, who may do everything and whose accesses are not logged.
        warnings: warnings for a person, e.g. that a denial could not be logged.
    """

    def __init__(self, store: Store, agent: str | None = None, rules: Rules | None = None) -> None:
        self._store = store
        self.agent = agent
        self.rules = Rules(store.shared.rules()) if rules is None else rules
        self.warnings: list[str] = []

    def may(self, permission: Asked, resource_type: ResourceType, owner: str, name: str) -> bool:
        """Whether the asker may read or write this resource."""
        return self.rules.may(self.agent, permission, resource_type, owner, name)

    def reads(self, agent: str, name: str) -> bool:
        """Whether the asker may read this artifact."""
        return self.may("read", "artifact", agent, name)

    def writes(self, agent: str, name: str) -> bool:
        """Whether the asker may write this artifact."""
        return self.may("write", "artifact", agent, name)

    def reads_key(self, key: str) -> bool:
        """Whether the asker may read this context key."""
        return self.may("read", "context", *key_resource(key))

    def writes_key(self, key: str) -> bool:
        """Whether the asker may set this context key."""
        return self.may("write", "context", *key_resource(key))

    def sign(self, author: str | None, command: str) -> str:
        """Return who signs what a command writes, see `signature`; the operator as `OPERATOR_NAME` where it names nobody.

        Raises:
            Denied: an agent signs as another one.
        """
        try:
            return signature(self.agent, author) or OPERATOR_NAME
        except Denied as error:
            self.log(command, "write", failed=error.message)
            raise

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
        """Log one access: (owner, name) of granted resources and of denied or missing ones, and the number of hidden ones.

        Nothing is logged for the operator. If the store can't be written, the answer to a read stays the same, and `warnings`
        says that the log is incomplete.
        """
        # The operator owns the store. Logging everything that a person reads would only bury the accesses of agents.
        if self.agent is None:
            return
        data = {
            "agent": self.agent, "command": command, "permission": permission,
            **_logged_resources("granted", resource_type, granted), **_logged_resources("denied", resource_type, denied),
            "hidden": hidden, "failed": failed,
        }  # fmt: skip
        try:
            self._store.append([build("event", PROJECT, now(), id=new_id(), type=ACCESS, agent=self.agent, data=data)])
        except CtxmgrError as error:
            self.warnings.append(f"this access could not be logged: {error.message}")


def _logged_resources(name: str, resource_type: ResourceType, things: Iterable[tuple[str, str]]) -> dict[str, object]:
    # A context package may need one artifact for several reasons. The log lists the artifact once.
    each = list(dict.fromkeys(things))
    rows = [Resource(type=resource_type, agent=owner, name=thing).to_json() for owner, thing in each[:MAX_LOGGED]]
    return {name: rows, f"{name}Count": len(each)}


def key_resource(key: str) -> tuple[str, str]:
    """Return (owner, name) of a context key for rules; see `ctxmgr.access.patterns.context_resource`."""
    resource = context_resource(key)
    return resource.agent, resource.name
