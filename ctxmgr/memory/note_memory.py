"""Memory in the store itself: episodes are notes, and recall finds them by their words.

Recall searches only the episodes of all sessions. Other notes, mostly those of recoveries, describe how a run was handled
instead of what was learned, and would outnumber the episodes. ``notes`` in a request includes them.
"""

from __future__ import annotations

from contextlib import suppress

from ctxmgr.errors import InvalidInput, NoHistory, NotFound, OutOfBounds
from ctxmgr.history.query.address import find_entries, link_targets, linked_entry, live_link_targets, session_key
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.memory.candidates import Candidates, Finder, LexicalRanker, Ranker, TextFinder, locate, note_episode
from ctxmgr.memory.reflection import answers_query, build_reflection, source_entries
from ctxmgr.store import Store
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.text.tokens import fold
from ctxmgr.types.memory import (
    MEMORY_SESSION,
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
from ctxmgr.types.plain_records import build
from ctxmgr.types.view import EntryView

REFLECTOR = "reflect"
"""Author of a reflection that the operator keeps unsigned: rules made it, not a person or a model."""
MAX_EXPANDED = 200
"""Maximum number of entries around the links of one episode. Those around its first links are kept."""


class EmbeddedMemory:
    """Stores episodes in a store.

    Args:
        store: if it is read-only, `retain`, and `reflect` with ``keep``, are refused.
        finder: finds candidates; by default by searching the texts of the store.
        ranker: orders candidates; by default by words.
    """

    def __init__(self, store: Store, *, finder: Finder | None = None, ranker: Ranker | None = None) -> None:
        self._store = store
        self._finder = finder or TextFinder(store)
        self._ranker = ranker

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Store a text as an episode of the named session, else of the session of its entries, else of the latest session.

        Where there is none yet, it goes into one of its own, `MEMORY_SESSION`. An agent signs it as itself.

        Raises:
            Denied: an agent signs as another one, or may not write there.
            InvalidInput: "Memory text cannot be empty". NoHistory: entries are named, but there is no session.
            OutOfBounds, NotFound: a named entry, session or superseded episode does not exist.
        """
        key = session_key(self._store, request.session, next(iter(request.entry_ids), None))
        signed = request.model_copy(update={"author": self._store.signature(request.author)})
        return RetainResponse(episode=self._write(key, signed))

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the best matching episodes, newer ones first among equals.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        ranked = self._rank(self._finder.find(request), request.query)[: request.limit]
        episodes = [
            each.model_copy(update={"score": score, "around": linked_entries(self._store, each, request.expand)})
            for each, score in ranked
        ]
        return RecallResponse(status="ok" if episodes else "empty", query=request.query, episodes=episodes)

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return the digest of the best episodes. ``keep`` stores it in the place of the author's former one on this query.

        Stored reflections are never sources of a reflection, because they only repeat their own sources.

        Raises:
            InvalidInput, NotFound: as `recall`. StorageFailed: it can't be stored.
        """
        asked = RecallRequest(query=request.query, session=request.session, tags=request.tags, limit=request.limit)
        found = self._finder.find(asked)
        ranked = [(each, score) for each, score in self._rank(found, request.query) if not _is_reflection(each)]
        sources = [each.model_copy(update={"score": score}) for each, score in ranked[: request.limit]]
        outdated = [each for each in found.outdated if not _is_reflection(each)]
        answer = build_reflection(self._store, request.query, sources, outdated)
        if request.keep and sources:
            answer = answer.model_copy(update={"kept": self._store_reflection(request, answer, sources, found)})
        return ReflectResponse(status="ok" if sources else "empty", reflection=answer)

    def _rank(self, found: Candidates, query: str) -> list[tuple[Episode, float]]:
        return (self._ranker or LexicalRanker(found.weights)).rank(query, found.episodes)

    def _store_reflection(self, request: ReflectRequest, answer: Reflection, sources: list[Episode], found: Candidates) -> str:
        """Store a reflection in the named session, else in the session of its newest source, and return its id."""
        session = request.session or answer.sessions[0]
        key = session_key(self._store, session)
        author = self._store.signature(request.author) or REFLECTOR
        former = next(
            (e for e in found.episodes if _is_reflection(e) and e.author == author and answers_query(e, request.query)), None
        )
        if former is not None and former.text == answer.text:
            return former.id
        entries, links = source_entries(sources, "" if key is None else self._store.sessions.name(key))
        # Drop dead links of older episodes, because a new note refuses them.
        links = [] if key is None else live_link_targets(self._store, key, links)
        made = RetainRequest(
            text=answer.text, entry_ids=entries, links=links, tags=[REFLECTION_TAG, *request.tags], author=author,
            supersedes=None if former is None else former.id,
        )  # fmt: skip
        return self._write(key, made).id

    def _write(self, key: int | None, request: RetainRequest) -> Episode:
        record = retain_record(self._store, key, request)
        self._store.append([record])
        kept = self._store.sessions.key(str(record["session"])) if key is None else key
        note = None if kept is None else self._store.annotations.note(kept, str(record["id"]))
        assert note is not None, "an appended note can be read back"
        return note_episode(note)


def _is_reflection(episode: Episode) -> bool:
    return any(fold(tag) == REFLECTION_TAG for tag in episode.tags)


def retain_record(store: Store, key: int | None, request: RetainRequest) -> Record:
    """Return the record of an episode, checked but not written, so that the caller can write several records at once.

    Args:
        store: the store with the session and the episode to supersede.
        key: row key of the session that gets the episode and contains the named entries.
        request: the episode; its ``session`` is ignored.

    Raises:
        InvalidInput: "Memory text cannot be empty", or an id is ambiguous.
        NoHistory: entries, a link or an episode to supersede are named, but there is no session.
        OutOfBounds, NotFound: an entry, the episode to supersede, or the target of a link does not exist.
    """
    if not request.text.strip():
        raise InvalidInput("Memory text cannot be empty", "say what is to be remembered: -m TEXT")
    named = bool(request.entry_indices or request.entry_ids)
    if key is None:
        if named or request.links or request.supersedes is not None:
            raise NoHistory(hint="record or import a run first")
        session = MEMORY_SESSION
    else:
        session = store.sessions.name(key)
    entries = find_entries(store, key, request.entry_indices, request.entry_ids) if named else []
    former = None if key is None or request.supersedes is None else locate(store, key, request.supersedes)
    if request.supersedes is not None and former is None:
        raise NotFound(f"no episode {request.supersedes!r} to supersede", "'ctxmgr memory recall' shows the ids")
    tags = [tag.strip() for tag in request.tags if tag.strip() and fold(tag.strip()) != MEMORY_TAG]
    return build(
        "note",
        entries[0].session if entries else session,
        now(),
        id=new_id(),
        entries=[entry.id for entry in entries],
        content=request.text,
        tags=list(dict.fromkeys([MEMORY_TAG, *tags])),
        links=(link_targets(store, key, request.links) if key is not None else []) or None,
        author=request.author,
        supersedes=None if former is None else former.id,
    )


def linked_entries(store: Store, episode: Episode, reach: int) -> list[EntryView]:
    """Return the linked entries and up to ``reach`` before and after each, without repetition, by session and index.

    Links are entry ids, also of other sessions, or addresses. Missing entries and those beyond the ends are skipped.
    """
    if reach < 1:
        return []
    found: dict[tuple[int, int], EntryView] = {}
    for key, index in _linked_places(store, episode):
        # The linked entry comes first, then its neighbours outwards, so that the limit never drops the entry itself.
        for place in sorted(range(max(0, index - reach), index + reach + 1), key=lambda place: abs(place - index)):
            if len(found) >= MAX_EXPANDED:
                break
            if (key, place) not in found and (entry := store.queries.find_entry(key, place)) is not None:
                found[key, place] = entry
    order = list(dict.fromkeys(key for key, _ in found))
    return [found[place] for place in sorted(found, key=lambda place: (order.index(place[0]), place[1]))]


def _linked_places(store: Store, episode: Episode) -> list[tuple[int, int]]:
    own = store.sessions.key(episode.session)
    if own is None:
        return []
    places = [(own, index) for index in episode.indexes]
    rows = Rows(store.engine)
    for link in episode.links[:MAX_EXPANDED]:
        with suppress(InvalidInput, NotFound, NoHistory, OutOfBounds):  # a link from elsewhere may be dead
            entry = linked_entry(store, rows, own, link)
            if entry is not None and (key := store.sessions.key(str(entry["session"]))) is not None:
                places.append((key, int(entry["index"])))
    return list(dict.fromkeys(places))
