"""The agents that may read a package; what one of them may not read is left out."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent
from ctxmgr.access.rules import Rules
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import Store
from ctxmgr.types.access import Asked, ResourceType


class Readers(AccessGuard):
    """Answers for the agent and the asker together whether something may be read.

    The operator who asks for an agent gives it what the agent's rules allow; in a store without any rule, everything.

    Args:
        store: the whole store.
        recipient: the agent that the package is for.
        asker: who asks.
        seen: the history as the asker sees it.

    Attributes:
        agent: the recipient, or None where everything may be read.
        recipient: the agent that the package is for, whatever the rules.
        store: the whole store.
        asker: who asks.

    Raises:
        InvalidInput: no agent can be called so.
    """

    def __init__(self, store: Store, recipient: str, asker: AccessGuard, seen: Store) -> None:
        self.recipient = check_agent(recipient)
        unruled = asker.agent is None and not len(asker.rules)
        super().__init__(store, None if unruled else recipient, asker.rules)
        self.store = store
        self.asker = asker
        self._seen = seen
        self._own: Store | None = None

    def may(self, permission: Asked, resource_type: ResourceType, owner: str, name: str) -> bool:
        """Whether all of them may read or write this."""
        return super().may(permission, resource_type, owner, name) and self.asker.may(permission, resource_type, owner, name)

    def histories(self) -> list[Store]:
        """Return the history as each of them sees it, the recipient's first; a record must be in all of them."""
        if self.agent is None or self.asker.agent == self.agent:
            return [self._seen]
        if self._own is None:
            from ctxmgr.history.query.filtered_store import FilteredStore

            self._own = FilteredStore(self.store, self.agent, self.rules)
        return [self._own] if self.asker.agent is None else [self._own, self._seen]

    def reader(self) -> AccessGuard:
        """Return the guard of the one whose reading is logged: an agent that asks, else the recipient."""
        return self.asker if self.asker.agent is not None else AccessGuard(self.store, self.agent, self.rules)

    def unruled(self) -> Readers:
        """Return the audience for which nothing is denied; for the operator's eyes."""
        return Readers(self.store, self.recipient, AccessGuard(self.store, None, Rules()), self.store)

    def close(self) -> None:
        """Release what was opened here; the store itself stays open."""
        if self._own is not None:
            with suppress(CtxmgrError):
                self._own.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
