"""Memory in the store itself: episodes are notes, found by their words.

Recall looks at episodes only, of all sessions: other notes (those of recoveries above all) speak of how a run was handled,
not of what was learned, and would drown it. ``notes`` in a request looks at them too.
"""

from __future__ import annotations

from contextlib import suppress

from ctxmgr.errors import InvalidInput, NoHistory, NotFound, OutOfBounds
from ctxmgr.history.query.address import entries_of, linked, linked_entry, session_key, still_linked
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.memory.candidates import LexicalRanker, TextFinder, episode_of, locate
from ctxmgr.memory.interface import Candidates, Finder, Ranker
from ctxmgr.memory.reflection import is_about, reflection, source_entries
from ctxmgr.store import Store
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.text.words import fold
from ctxmgr.types.memory import (
    MEMORY_TAG,
    REFLECTION_TAG,
    Episode,
    RecallRequest,
    RecallResponse,
    Reflection,
    ReflectRequest,
    ReflectResponse,
    RetainRequest,
    RetainResponse,
)
from ctxmgr.types.record import build
from ctxmgr.types.view import EntryView


def retain_record(store: Store, key: int | None, request: RetainRequest) -> Record:
    """Return the record of an episode, checked but not yet written, so that others can be written along with it.

    Args:
        store: that holds the session and what is superseded.
        key: of the session that the episode is kept in, and that the named entries lie in.
        request: its ``session`` is not looked at.

    Raises:
        InvalidInput: "Memory text cannot be empty", or an ambiguous id.
        NoHistory: there is no session, or entries are named and it has none.
        OutOfBounds, NotFound: no such entry, no such episode to supersede, or a link names nothing that is there.
    """
    if not request.text.strip():
        raise InvalidInput("Memory text cannot be empty", "say what is to be remembered: -m TEXT")
    if key is None:
        raise NoHistory("record or import a run first")
    named = bool(request.entry_indices or request.entry_ids)
    entries = entries_of(store, key, request.entry_indices, request.entry_ids) if named else []
    former = None if request.supersedes is None else locate(store, key, request.supersedes)
    if request.supersedes is not None and former is None:
        raise NotFound(f"no episode {request.supersedes!r} to supersede", "'ctxmgr memory recall' shows the ids")
    tags = [tag.strip() for tag in request.tags if tag.strip() and fold(tag.strip()) != MEMORY_TAG]
    return build(
        "note",
        entries[0].session if entries else store.sessions.name(key),
        now(),
        id=new_id(),
        entries=[entry.id for entry in entries],
        content=request.text,
        tags=list(dict.fromkeys([MEMORY_TAG, *tags])),
        links=linked(store, key, request.links) or None,
        author=request.author,
        supersedes=None if former is None else former.id,
    )


MOST_AROUND = 200
"""Entries that one episode is expanded to at most; those about its first links are kept."""


def around(store: Store, episode: Episode, reach: int) -> list[EntryView]:
    """Return the linked entries and up to ``reach`` before and after each, every one once, session by session in order.

    Links are ids of entries, of other sessions too, or addresses. What is gone, or lies beyond the ends, is left out.
    """
    if reach < 1:
        return []
    found: dict[tuple[int, int], EntryView] = {}
    for key, index in _linked(store, episode):
        # The linked entry itself comes first, so that the cap never costs it.
        for place in sorted(range(max(0, index - reach), index + reach + 1), key=lambda place: abs(place - index)):
            if len(found) >= MOST_AROUND:
                break
            if (key, place) not in found and (entry := store.queries.entry_at(key, place)) is not None:
                found[key, place] = entry
    order = list(dict.fromkeys(key for key, _ in found))
    return [found[place] for place in sorted(found, key=lambda place: (order.index(place[0]), place[1]))]


def _linked(store: Store, episode: Episode) -> list[tuple[int, int]]:
    own = store.sessions.key(episode.session)
    if own is None:
        return []
    places = [(own, index) for index in episode.indexes]
    rows = Rows(store.engine)
    for link in episode.links[:MOST_AROUND]:
        with suppress(InvalidInput, NotFound, NoHistory, OutOfBounds):  # a link that was written elsewhere may lead nowhere
            entry = linked_entry(store, rows, own, link)
            if entry is not None and (key := store.sessions.key(str(entry["session"]))) is not None:
                places.append((key, int(entry["index"])))
    return list(dict.fromkeys(places))


REFLECTOR = "reflect"
"""Who a kept reflection is by when nobody else says so: these rules, no person and no model."""
_MOST_LINKED = 200


class EmbeddedMemory:
    """Keeps episodes in a store.

    Args:
        store: may be open for reading only; then `retain`, and `reflect` with ``keep``, are refused.
        finder: finds candidates; by default the store's texts are searched.
        ranker: puts them in order; by default by words.
    """

    def __init__(self, store: Store, *, finder: Finder | None = None, ranker: Ranker | None = None) -> None:
        self._store = store
        self._finder = finder or TextFinder(store)
        self._ranker = ranker

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Keep a text as an episode of the named session, else of that of its entries, else of the latest.

        Raises:
            InvalidInput: "Memory text cannot be empty". NoHistory: there is no session to keep it in.
            OutOfBounds, NotFound: a named entry, session or superseded episode that does not exist.
        """
        key = session_key(self._store, request.session, next(iter(request.entry_ids), None))
        return RetainResponse(episode=self._write(key, request))

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the episodes that answer the query best, the newer first among equals.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        ranked = self._ranked(self._finder.find(request), request.query)[: request.limit]
        episodes = [
            each.model_copy(update={"score": score, "around": around(self._store, each, request.expand)})
            for each, score in ranked
        ]
        return RecallResponse(status="ok" if episodes else "empty", query=request.query, episodes=episodes)

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return the digest of the best episodes; kept, it replaces what the same author kept on the same query.

        Kept reflections are not reflected on again: they would only repeat what they were made of.

        Raises:
            InvalidInput, NotFound: as `recall`. StorageFailed: it can't be kept.
        """
        asked = RecallRequest(query=request.query, session=request.session, tags=request.tags, limit=request.limit)
        found = self._finder.find(asked)
        ranked = [(each, score) for each, score in self._ranked(found, request.query) if not _is_reflection(each)]
        sources = [each.model_copy(update={"score": score}) for each, score in ranked[: request.limit]]
        outdated = [each for each in found.outdated if not _is_reflection(each)]
        told = reflection(self._store, request.query, sources, outdated)
        if request.keep and sources:
            told = told.model_copy(update={"kept": self._keep(request, told, sources, found)})
        return ReflectResponse(status="ok" if sources else "empty", reflection=told)

    def _ranked(self, found: Candidates, query: str) -> list[tuple[Episode, float]]:
        return (self._ranker or LexicalRanker(found.weights)).rank(query, found.episodes)

    def _keep(self, request: ReflectRequest, told: Reflection, sources: list[Episode], found: Candidates) -> str:
        """Retain a reflection in the named session, else in that of its newest source; return its id."""
        session = request.session or told.sessions[0]
        key = session_key(self._store, session)
        author = request.author or REFLECTOR
        former = next(
            (e for e in found.episodes if _is_reflection(e) and e.author == author and is_about(e, request.query)), None
        )
        if former is not None and former.text == told.text:
            return former.id
        entries, links = source_entries(sources, "" if key is None else self._store.sessions.name(key), _MOST_LINKED)
        links = [] if key is None else still_linked(self._store, key, links)
        made = RetainRequest(
            text=told.text, entry_ids=entries, links=links, tags=[REFLECTION_TAG, *request.tags], author=author,
            supersedes=None if former is None else former.id,
        )  # fmt: skip
        return self._write(key, made).id

    def _write(self, key: int | None, request: RetainRequest) -> Episode:
        record = retain_record(self._store, key, request)
        if key is None:
            raise NoHistory
        self._store.append([record])
        note = self._store.annotations.note(key, str(record["id"]))
        assert note is not None, "an appended note can be read back"
        return episode_of(note)


def _is_reflection(episode: Episode) -> bool:
    return any(fold(tag) == REFLECTION_TAG for tag in episode.tags)
