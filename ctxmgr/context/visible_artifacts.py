"""The artifacts of one version that all readers of a package may read."""

from __future__ import annotations

from difflib import get_close_matches

from ctxmgr.context.item_names import ItemName
from ctxmgr.context.readers import Readers
from ctxmgr.errors import NotFound
from ctxmgr.store.repositories.artifacts import ArtifactRow

_MOST_COMPARED = 5_000
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
        own = self.of_owner(named.source)
        every = own if len(own) >= _MOST_COMPARED else [*own, *self._artifacts.state(self.version)]
        names = dict.fromkeys(f"{row.agent}/{row.name}" for row in every if self._audience.reads(row.agent, row.name))
        return get_close_matches(named.text, list(names)[:_MOST_COMPARED], n=_SUGGESTED)

    def _row(self, owner: str, name: str) -> ArtifactRow | None:
        if (owner, name) not in self._known:
            self._known[owner, name] = None if self.version is None else self._artifacts.find(owner, name, self.version)
        return self._known[owner, name]
