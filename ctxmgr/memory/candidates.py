"""Find candidate episodes in the notes of all sessions, and rank them by their words.

A pass reads each note once and keeps the places of the latest that match, by how often they hold which word; only the best
of them are looked up as a whole. So it takes the time of reading all notes, and memory for a bounded number.

Ranked by BM25, newer ones first among equals: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009), with the length of a text counting for less than usual, because an episode is a few sentences.

The seams of memory are here too: what any memory answers, where candidates come from, and who puts them in order.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.address import session_key
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.store.normalise import storable
from ctxmgr.text.tokens import MIN_INFIX, Term, fold, stems, terms
from ctxmgr.types.memory import (
    MEMORY_TAG,
    REFLECTION_TAG,
    Episode,
    RecallRequest,
    RecallResponse,
    ReflectRequest,
    ReflectResponse,
    RetainRequest,
    RetainResponse,
)
from ctxmgr.types.view import NoteView

SATURATION = 1.2
LENGTH = 0.4
INSIDE = 0.3
"""What a word counts that is only found inside another one."""

_MARKERS = {MEMORY_TAG, REFLECTION_TAG}


class LexicalRanker:
    """Ranks by the words of an episode's text and tags.

    Args:
        weights: how telling each stem is, from a whole memory; worked out over the episodes themselves without it.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = weights or {}

    def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
        """Return the episodes that hold a word of the query, best first; among equals the newest."""
        asked = terms(query)
        read = [_frequencies(asked, episode) for episode in episodes]
        weights = {
            term.stem: self._weights.get(term.stem) or weight(len(read), sum(1 for counts, _ in read if counts[place] > 0))
            for place, term in enumerate(asked)
        }
        usual = sum(length for _, length in read) / max(1, len(read)) or 1.0
        scored: list[tuple[float, float, int]] = []
        for place, (counts, length) in enumerate(read):
            total = score(counts, [weights[term.stem] for term in asked], length / usual)
            if total > 0:
                scored.append((round(total, 6), parse_time(episodes[place].ts) or -math.inf, place))
        return [(episodes[place], total) for total, _, place in sorted(scored, reverse=True)]


def weight(total: int, holding: int) -> float:
    """Return the weight of a word that ``holding`` of ``total`` texts have; always above 0."""
    return math.log(1 + (max(total, holding) - holding + 0.5) / (holding + 0.5))


def score(counts: Sequence[float], weights: Sequence[float], length: float) -> float:
    """Return the score of a text; ``length`` is its length as a share of the usual one."""
    slow = SATURATION * (1 - LENGTH + LENGTH * length)
    return sum(
        each * count * (SATURATION + 1) / (count + slow) for each, count in zip(weights, counts, strict=True) if count > 0
    )


def searched(text: str, tags: Sequence[str]) -> str:
    """Return the text of an episode that recall searches."""
    if len(tags) == 1 and tags[0] in _MARKERS:
        return text
    return " ".join([text, *(tag for tag in tags if fold(tag) not in _MARKERS)])


def _frequencies(asked: Sequence[Term], episode: Episode) -> tuple[list[float], int]:
    """Return how often the episode holds each term, and its number of words."""
    whole = searched(episode.text, episode.tags)
    held, folded = Counter(stems(whole)), fold(whole)
    counts: list[float] = []
    for term in asked:
        exact = held[term.stem]
        if term.running:
            counts.append(float(folded.count(term.needle)))
        elif len(term.needle) >= MIN_INFIX:
            counts.append(exact + INSIDE * max(0, folded.count(term.needle) - exact))
        else:
            counts.append(float(exact))
    return counts, held.total()


MIN_CANDIDATES = 200
"""Candidates that are looked up as a whole when the request asks for few."""
_LATEST = 1_000
_MAX_COUNT = 8
_OUTDATED = 50


class _Match(NamedTuple):
    """A note that holds a word of the query: where it is, and in how long a text."""

    session: str
    id: str
    place: int
    length: int


class _Alike:
    """The notes that hold each word of the query equally often: how many there are, and the latest of them."""

    __slots__ = ("latest", "total")

    def __init__(self) -> None:
        self.total = 0
        self.latest: deque[_Match] = deque(maxlen=_LATEST)


@dataclass(slots=True)
class _Pass:
    """What one pass over the notes saw; notes are kept by how often they hold each word."""

    looked_at: int = 0
    alike: dict[tuple[int, ...], _Alike] = field(default_factory=lambda: defaultdict[tuple[int, ...], _Alike](_Alike))
    replaced: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: dict[str, list[tuple[str, str]]]())


class TextFinder:
    """Finds the episodes of a store that hold a word of the query, in any form of the word, and inside longer words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, request: RecallRequest) -> Candidates:
        """Return the best candidates of a request, at least `MIN_CANDIDATES` where there are so many.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        if not request.query.replace("\0", " ").strip():
            raise InvalidInput("Query cannot be empty", "say what to remember: a few words of it")
        asked = terms(request.query)
        key = None if request.session is None else session_key(self._store, request.session)
        seen = self._read(request, asked, None if key is None else self._store.sessions.name(key))
        holding = [sum(each.total for counts, each in seen.alike.items() if counts[place]) for place in range(len(asked))]
        weights = [weight(seen.looked_at, each) for each in holding]
        best: list[Episode] = []
        outdated: list[Episode] = []
        for match in self._ordered(seen, weights, max(MIN_CANDIDATES, 4 * request.limit) + len(seen.replaced)):
            successor = self._successor(match, seen)
            if successor is None and len(best) < max(MIN_CANDIDATES, 4 * request.limit):
                best += self._episode(match)
            elif successor is not None and len(outdated) < _OUTDATED:
                outdated += [each.model_copy(update={"superseded_by": successor}) for each in self._episode(match)]
        outdated.sort(key=lambda each: parse_time(each.ts) or 0.0, reverse=True)
        return Candidates(best, outdated, {term.stem: each for term, each in zip(asked, weights, strict=True)})

    def _read(self, request: RecallRequest, asked: Sequence[Term], session: str | None) -> _Pass:
        wanted = {fold(tag) for tag in request.tags if tag.strip()}
        if not request.notes:
            wanted.add(MEMORY_TAG)
        needles = [term.needle for term in asked]
        plain = all(term.running or len(term.needle) >= MIN_INFIX for term in asked)
        seen = _Pass()
        for place, record in enumerate(self._store.sessions.records(None, ("note",))):
            if (former := record.get("supersedes")) is not None and former != record.get("id"):
                seen.replaced.setdefault(str(former), []).append((str(record.get("session")), str(record.get("id"))))
            tags = texts(record.get("tags"))
            if not wanted.issubset(tags) and not wanted.issubset(map(fold, tags)):
                continue
            if session is not None and storable(str(record.get("session"))) != session:
                continue
            seen.looked_at += 1
            text = fold(searched(str(record.get("content", "")), tags))
            for needle in needles:  # most notes end here, and any() would cost more than the search itself
                if needle in text:
                    break
            else:
                continue
            counts = tuple(map(text.count, needles)) if plain else tuple([term.count(text) for term in asked])
            if any(counts):
                if max(counts) > _MAX_COUNT:
                    counts = tuple([min(_MAX_COUNT, count) for count in counts])
                alike = seen.alike[counts]
                alike.total += 1
                alike.latest.append(_Match(str(record.get("session")), str(record.get("id")), place, len(text)))
        return seen

    @staticmethod
    def _ordered(seen: _Pass, weights: Sequence[float], most: int) -> list[_Match]:
        """Return the best matches by a coarse score, the later in the log first among equals."""
        kept = [(counts, match) for counts, alike in seen.alike.items() for match in alike.latest]
        usual = sum(match.length for _, match in kept) / max(1, len(kept)) or 1.0
        scored = ((round(score(counts, weights, match.length / usual), 6), match.place, match) for counts, match in kept)
        return [match for _, _, match in heapq.nlargest(most, scored)]

    def _successor(self, match: _Match, seen: _Pass) -> str | None:
        """Return the id of the note that replaced this one: in its own session, else in one that has no such note itself."""
        replacing = seen.replaced.get(match.id, [])
        for session, successor in replacing:
            if session == match.session:
                return successor
        for session, successor in replacing:
            key = self._store.sessions.key(session)
            if key is not None and self._store.annotations.note(key, match.id) is None:
                return successor
        return None

    def _episode(self, match: _Match) -> list[Episode]:
        key = self._store.sessions.key(match.session)
        note = None if key is None else self._store.annotations.note(key, match.id)
        return [] if note is None else [episode_of(note)]


def locate(store: Store, key: int, name: str) -> NoteView | None:
    """Return the note with this id, in this session first, else in any; or the only one whose id starts so.

    Raises:
        InvalidInput: several notes are meant.
    """
    if not name.strip():
        return None
    if (own := store.annotations.note(key, name)) is not None:
        return own
    found: list[Record] = [
        record for record in store.sessions.records(None, ("note",)) if str(record.get("id")).startswith(name)
    ]
    exact = [record for record in found if record.get("id") == name] or found
    if len(exact) > 1:
        raise InvalidInput(f"{len(exact)} notes have an id like {name!r}", "give the whole id, or name its session")
    owner = store.sessions.key(str(exact[0].get("session"))) if exact else None
    return None if owner is None else store.annotations.note(owner, str(exact[0].get("id")))


def episode_of(note: NoteView) -> Episode:
    """Return a note as an episode."""
    return Episode(
        id=note.id, session=note.session, ts=note.ts, text=note.content, tags=note.tags, entries=note.entries,
        indexes=note.indexes, missing=note.missing, links=note.links, author=note.author, supersedes=note.supersedes,
        superseded_by=note.superseded_by,
    )  # fmt: skip


def texts(value: object) -> list[str]:
    """Return the texts of what should be a list of texts."""
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []


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
