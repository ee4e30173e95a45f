"""The seams of memory: what any memory answers, where its candidates come from, and who puts them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.types.memory import (
    Episode,
    RecallRequest,
    RecallResponse,
    ReflectRequest,
    ReflectResponse,
    RetainRequest,
    RetainResponse,
)


class Memory(Protocol):
    """Keeps episodes and brings them back; tests/memory/battery.py says what every implementation holds to.

    An implementation on another kind of search (vectors, a remote service) stands behind this protocol, or keeps
    `ctxmgr.memory.note_memory.EmbeddedMemory` and gives it a `Finder` and a `Ranker` of its own.
    """

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Keep a text as an episode.

        Raises:
            InvalidInput: "Memory text cannot be empty". NoHistory: there is no session to keep it in.
            OutOfBounds, NotFound: a named entry, session or superseded episode that does not exist.
        """
        ...

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the episodes that answer the query best; writes nothing, and never returns a superseded one.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        ...

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return what the recalled episodes say together; writes only when asked to keep it. Raises as `recall`."""
        ...


@dataclass(frozen=True, slots=True)
class Candidates:
    """Episodes that may answer a query.

    Attributes:
        episodes: those that hold, in no particular order.
        outdated: those that would be among them, had no later one superseded them; newest first.
        weights: how telling each word of the query is over all of memory, by its stem.
    """

    episodes: list[Episode] = field(default_factory=lambda: list[Episode]())
    outdated: list[Episode] = field(default_factory=lambda: list[Episode]())
    weights: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())


class Finder(Protocol):
    """Where candidates come from: a text search, or the neighbours of a query's vector."""

    def find(self, request: RecallRequest) -> Candidates:
        """Return what may answer the request; raises as `Memory.recall`."""
        ...


class Ranker(Protocol):
    """Who puts candidates in order, by words, by vectors or by a model."""

    def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
        """Return the episodes that answer the query, best first, with scores comparable within this answer."""
        ...
