"""The readers of a package, and the artifacts that all of them may see."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent
from ctxmgr.access.rules import Rules
from ctxmgr.context.items import ItemName
from ctxmgr.errors import CtxmgrError, NotFound
from ctxmgr.store import Store
from ctxmgr.store.repositories.artifacts import ArtifactRow
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


_MAX_COMPARED = 5_000
_SUGGESTED = 3


class VisibleArtifacts:
    """Looks artifacts up in a version, the current one by default.

    Attributes:
        version: number of the version; None when there is none yet.
        denied: (owner, name) of what was named and may not be read; hidden: how many others were passed over.

    Raises:
        NotFound: there is no such version, or it was pruned.
    """

    def __init__(self, audience: Readers, version: int | None) -> None:
        self._audience = audience
        self._artifacts = audience.store.artifacts
        if version is not None:
            row = self._artifacts.version(version)
            if row is None or row.pruned is not None:
                raise NotFound(f"no version {version}", "'ctxmgr version list' shows them")
        self.version = self._artifacts.current() if version is None else version
        self.denied: dict[tuple[str, str], None] = {}
        self.hidden = 0
        self._known: dict[tuple[str, str], ArtifactRow | None] = {}

    def of_owner(self, owner: str) -> list[ArtifactRow]:
        """Return the artifacts of an owner, ordered by name."""
        rows = [] if self.version is None else self._artifacts.state(self.version, owner)
        self._known.update({(row.agent, row.name): row for row in rows})
        readable = [row for row in rows if self._audience.reads(row.agent, row.name)]
        self.hidden += len(rows) - len(readable)
        return readable

    def find(self, owner: str, name: str) -> ArtifactRow | None:
        """Return an artifact that was named."""
        if not self._audience.reads(owner, name):
            self.denied[owner, name] = None
            return None
        return self._row(owner, name)

    def needed(self, owner: str, name: str) -> ArtifactRow | None:
        """Return an artifact that another one depends on."""
        if not self._audience.reads(owner, name):
            self.hidden += 1
            return None
        return self._row(owner, name)

    def by_id(self, identity: str) -> ArtifactRow | None:
        """Return an artifact of any version by its id."""
        row = self._artifacts.by_id(identity)
        if row is not None and not self._audience.reads(row.agent, row.name):
            self.denied[row.agent, row.name] = None
            return None
        return row

    def suggestions(self, named: ItemName) -> list[str]:
        """Return up to three names, of those that may be read, that are like the one that was not found."""
        if self.version is None or named.form != "artifact":
            return []
        from difflib import get_close_matches

        own = self.of_owner(named.source)
        every = own if len(own) >= _MAX_COMPARED else [*own, *self._artifacts.state(self.version)]
        names = dict.fromkeys(f"{row.agent}/{row.name}" for row in every if self._audience.reads(row.agent, row.name))
        return get_close_matches(named.text, list(names)[:_MAX_COMPARED], n=_SUGGESTED)

    def _row(self, owner: str, name: str) -> ArtifactRow | None:
        if (owner, name) not in self._known:
            self._known[owner, name] = None if self.version is None else self._artifacts.find(owner, name, self.version)
        return self._known[owner, name]
