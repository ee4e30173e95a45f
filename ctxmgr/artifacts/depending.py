"""What a new artifact depends on: named by owner and name, kept with the id that stands there, never more than may be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxmgr.access.patterns import quoted
from ctxmgr.artifacts.guarding import Guard
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.store.artifacts import ArtifactRow, DependencyRow
from ctxmgr.types.artifact_request import NewArtifact, PutRequest

MOST = 1_000
"""Dependencies of one artifact."""


class Dependencies:
    """The dependencies of the artifacts of one put, checked when it is made.

    Raises:
        NotFound: one of them is not there, or may not be read: the two look the same.
        InvalidInput: an artifact depends on itself, twice on the same, or on too many.
    """

    def __init__(self, store: Store, guard: Guard, current: int | None, request: PutRequest) -> None:
        self._store, self._current, self._agent = store, current, request.agent
        self._items = {item.name: item for item in request.artifacts}
        for item in request.artifacts:
            self._check(guard, item)

    def _check(self, guard: Guard, item: NewArtifact) -> None:
        seen: set[tuple[str, str]] = set()
        for needed in item.dependencies or ():
            key = (needed.agent, needed.name)
            if key == (self._agent, item.name):
                raise InvalidInput(f"{quoted(item.name)} depends on itself", "name what it was made from")
            if key in seen or len(seen) >= MOST:
                raise InvalidInput(f"{quoted(item.name)} depends on {'/'.join(key)} twice, or on too many", "name each once")
            seen.add(key)
            along = needed.agent == self._agent and needed.name in self._items
            if not along and (self._standing(*key) is None or not guard.reads(*key)):
                guard.log("artifact put", "read", denied=[key], failed="no such dependency")
                raise NotFound(f"no artifact {needed.agent}/{needed.name} to depend on", "'ctxmgr artifact list' shows all")

    def _standing(self, agent: str, name: str) -> ArtifactRow | None:
        return None if self._current is None else self._store.artifacts.find(agent, name, self._current)

    def are_as_they_were(self, item: NewArtifact, known: ArtifactRow) -> bool:
        """Whether an artifact depends on what it depended on; if nothing was said of it, it does."""
        if item.dependencies is None:
            return True
        before = {(row.agent, row.name, row.type) for row in self._store.artifacts.dependencies(known.id)}
        return before == {(needed.agent, needed.name, needed.type) for needed in item.dependencies}

    def of(self, row: ArtifactRow, known: ArtifactRow | None, changed: Mapping[str, ArtifactRow]) -> Sequence[DependencyRow]:
        """Return what a new artifact depends on, with the ids that stand there once this put is done."""
        given = self._items[row.name].dependencies
        if given is not None:
            named = [(needed.agent, needed.name, str(needed.type), "") for needed in given]
        else:
            before = () if known is None else self._store.artifacts.dependencies(known.id)
            named = [(old.agent, old.name, old.type, old.target) for old in before]
        return [
            DependencyRow(row.id, self._id(agent, name, changed) or old, agent, name, kind) for agent, name, kind, old in named
        ]

    def _id(self, agent: str, name: str, changed: Mapping[str, ArtifactRow]) -> str | None:
        if agent == self._agent and name in changed:
            return changed[name].id
        standing = self._standing(agent, name)
        return None if standing is None else standing.id
