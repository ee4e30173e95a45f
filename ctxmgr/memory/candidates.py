"""Find candidate episodes in the notes of all sessions, and rank them by their words.

One pass reads each note once and keeps the places of the latest matches, grouped by their word counts. Only the best of them
are loaded completely. The pass takes the time of reading all notes, and bounded memory.

The rank is BM25, with newer episodes first among equals: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond" (2009). The length of a text counts for less than usual, because an episode has only a few sentences.

This module also has the protocols of memory: `Memory` answers requests, `Finder` finds candidates, `Ranker` orders them.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.address import session_key
from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_texts
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store
from ctxmgr.store.text_normalisation import storable
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

# k1 and b of BM25. k1 has its usual value; b is below the usual 0.75, see above.
SATURATION = 1.2
LENGTH = 0.4
INSIDE = 0.3
"""Weight of an occurrence inside a longer word. A whole word has weight 1."""

_MARKERS = {MEMORY_TAG, REFLECTION_TAG}


class LexicalRanker:
    """Ranks episodes by the words of their text and tags.

    Args:
        weights: inverse document frequency of each stem over all of memory; by default over the ranked episodes.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = weights or {}

    def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
        """Return (episode, score) of the episodes that contain a word of the query, best first; among equals newest first."""
        asked = terms(query)
        read = [_frequencies(asked, episode) for episode in episodes]
        weights = {
            term.stem: self._weights.get(term.stem) or weight(len(read), sum(1 for counts, _ in read if counts[place] > 0))
            for place, term in enumerate(asked)
        }
        average = sum(length for _, length in read) / max(1, len(read)) or 1.0
        scored: list[tuple[float, float, int]] = []
        for place, (counts, length) in enumerate(read):
            total = score(counts, [weights[term.stem] for term in asked], length / average)
            if total > 0:
                # Rounded, so that equal scores tie despite floating point, and the newer episode wins.
                scored.append((round(total, 6), parse_time(episodes[place].ts) or -math.inf, place))
        return [(episodes[place], total) for total, _, place in sorted(scored, reverse=True)]


def weight(total: int, holding: int) -> float:
    """Return the inverse document frequency of a word in ``holding`` of ``total`` texts; always above 0."""
    return math.log(1 + (max(total, holding) - holding + 0.5) / (holding + 0.5))


def score(counts: Sequence[float], weights: Sequence[float], length: float) -> float:
    """Return the BM25 score of a text, from 0 on.

    Args:
        counts: how often the text has each word of the query.
        weights: the weight of each of these words, see `weight`.
        length: the length of the text divided by the average length.
    """
    slow = SATURATION * (1 - LENGTH + LENGTH * length)
    return sum(
        each * count * (SATURATION + 1) / (count + slow) for each, count in zip(weights, counts, strict=True) if count > 0
    )


def searched_text(text: str, tags: Sequence[str]) -> str:
    """Return the searchable text of an episode: its content and its own tags."""
    if len(tags) == 1 and tags[0] in _MARKERS:
        return text
    return " ".join([text, *(tag for tag in tags if fold(tag) not in _MARKERS)])


def _frequencies(asked: Sequence[Term], episode: Episode) -> tuple[list[float], int]:
    """Return the count of each term in the episode, and its number of words."""
    text = searched_text(episode.text, episode.tags)
    frequencies, folded = Counter(stems(text)), fold(text)
    counts: list[float] = []
    for term in asked:
        exact = frequencies[term.stem]
        # Scripts without blanks between words are matched as substrings.
        if term.running:
            counts.append(float(folded.count(term.needle)))
        elif len(term.needle) >= MIN_INFIX:
            counts.append(exact + INSIDE * max(0, folded.count(term.needle) - exact))
        else:
            counts.append(float(exact))
    return counts, frequencies.total()


MIN_CANDIDATES = 200
"""Minimum number of candidates to load and rank exactly, because the first score is only approximate."""
_MAX_MATCHES = 1_000  # for each combination of word counts; limits the memory
_MAX_COUNT = 8  # higher counts hardly change the score; the limit keeps the number of combinations small
_MAX_OUTDATED = 50


class _Match(NamedTuple):
    """A note that contains a word of the query. ``place`` is its position among all notes, ``length`` that of its text."""

    session: str
    id: str
    place: int
    length: int


class _SameCounts:
    """The notes with equal counts of all query words, and so with nearly equal scores: their number, and the latest ones."""

    __slots__ = ("latest", "total")

    def __init__(self) -> None:
        self.total = 0
        self.latest: deque[_Match] = deque(maxlen=_MAX_MATCHES)


@dataclass(slots=True)
class _Pass:
    """Result of one pass over the notes. ``replaced`` maps an id to (session, id) of the notes that supersede it."""

    looked_at: int = 0
    alike: dict[tuple[int, ...], _SameCounts] = field(
        default_factory=lambda: defaultdict[tuple[int, ...], _SameCounts](_SameCounts)
    )
    replaced: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: dict[str, list[tuple[str, str]]]())

    def add(self, counts: tuple[int, ...], match: _Match) -> None:
        """Add a note with the count of every query word in it."""
        if max(counts) > _MAX_COUNT:
            counts = tuple([min(_MAX_COUNT, count) for count in counts])
        alike = self.alike[counts]
        alike.total += 1
        alike.latest.append(match)


class TextFinder:
    """Finds the episodes of a store that contain a word of the query, in any form or inside longer words."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, request: RecallRequest) -> Candidates:
        """Return the best candidates for a request, at least `MIN_CANDIDATES` if there are so many.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        if not request.query.replace("\0", " ").strip():
            raise InvalidInput("Query cannot be empty", "say what to remember: a few words of it")
        asked = terms(request.query)
        key = None if request.session is None else session_key(self._store, request.session)
        seen = self._read_notes(request, asked, None if key is None else self._store.sessions.name(key))
        holding = [sum(each.total for counts, each in seen.alike.items() if counts[place]) for place in range(len(asked))]
        weights = [weight(seen.looked_at, each) for each in holding]
        best: list[Episode] = []
        outdated: list[Episode] = []
        # Superseded notes are set aside, so look at that many more.
        for match in self._order(seen, weights, max(MIN_CANDIDATES, 4 * request.limit) + len(seen.replaced)):
            successor = self._successor(match, seen)
            if successor is None and len(best) < max(MIN_CANDIDATES, 4 * request.limit):
                best += self._episode(match)
            elif successor is not None and len(outdated) < _MAX_OUTDATED:
                outdated += [each.model_copy(update={"superseded_by": successor}) for each in self._episode(match)]
        outdated.sort(key=lambda each: parse_time(each.ts) or 0.0, reverse=True)
        return Candidates(best, outdated, {term.stem: each for term, each in zip(asked, weights, strict=True)})

    def _read_notes(self, request: RecallRequest, asked: Sequence[Term], session: str | None) -> _Pass:
        wanted = {fold(tag) for tag in request.tags if tag.strip()}
        if not request.notes:
            wanted.add(MEMORY_TAG)
        needles = [term.needle for term in asked]
        substrings_suffice = all(term.running or len(term.needle) >= MIN_INFIX for term in asked)
        seen = _Pass()
        for place, record in enumerate(self._store.sessions.records(None, ("note",))):
            # A note that supersedes itself would never be recalled.
            if (former := record.get("supersedes")) is not None and former != record.get("id"):
                seen.replaced.setdefault(str(former), []).append((str(record.get("session")), str(record.get("id"))))
            tags = json_texts(record.get("tags"))
            # Compare tags as written first, because most notes then need no folding.
            if not wanted.issubset(tags) and not wanted.issubset(map(fold, tags)):
                continue
            if session is not None and storable(str(record.get("session"))) != session:
                continue
            seen.looked_at += 1
            text = fold(searched_text(str(record.get("content", "")), tags))
            for needle in needles:  # a plain loop: most notes end here, and any() would cost more than the search
                if needle in text:
                    break
            else:
                continue
            counts = tuple(map(text.count, needles)) if substrings_suffice else tuple([term.count(text) for term in asked])
            if any(counts):
                seen.add(counts, _Match(str(record.get("session")), str(record.get("id")), place, len(text)))
        return seen

    @staticmethod
    def _order(seen: _Pass, weights: Sequence[float], limit: int) -> list[_Match]:
        """Return the best matches by an approximate score from counts alone, later ones first among equals."""
        pairs = [(counts, match) for counts, alike in seen.alike.items() for match in alike.latest]
        average = sum(match.length for _, match in pairs) / max(1, len(pairs)) or 1.0
        scored = ((round(score(counts, weights, match.length / average), 6), match.place, match) for counts, match in pairs)
        return [match for _, _, match in heapq.nlargest(limit, scored)]

    def _successor(self, match: _Match, seen: _Pass) -> str | None:
        """Return the id of the note that supersedes this one. Notes of other sessions count only if theirs lacks this id."""
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
        return [] if note is None else [note_episode(note)]


def locate(store: Store, key: int, name: str) -> NoteView | None:
    """Return the note with this id, preferably in this session, else the only note whose id starts with it.

    Raises:
        InvalidInput: several notes match.
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


def note_episode(note: NoteView) -> Episode:
    """Return a note as an episode."""
    return Episode(
        id=note.id, session=note.session, ts=note.ts, text=note.content, tags=note.tags, entries=note.entries,
        indexes=note.indexes, missing=note.missing, links=note.links, author=note.author, supersedes=note.supersedes,
        superseded_by=note.superseded_by,
    )  # fmt: skip


class Memory(Protocol):
    """Stores and recalls episodes. tests/memory/battery.py defines what every implementation must do.

    Another kind of search (vectors, a remote service) either implements this protocol, or passes its own `Finder` and `Ranker`
    to `ctxmgr.memory.note_memory.EmbeddedMemory`.
    """

    def retain(self, request: RetainRequest) -> RetainResponse:
        """Store a text as an episode.

        Raises:
            InvalidInput: "Memory text cannot be empty". NoHistory: there is no session to store it in.
            OutOfBounds, NotFound: a named entry, session or superseded episode does not exist.
        """
        ...

    def recall(self, request: RecallRequest) -> RecallResponse:
        """Return the best matching episodes. Writes nothing, and never returns superseded episodes.

        Raises:
            InvalidInput: "Query cannot be empty". NotFound: the named session does not exist.
        """
        ...

    def reflect(self, request: ReflectRequest) -> ReflectResponse:
        """Return a digest of the recalled episodes. Writes only if the request asks to keep it. Raises as `recall`."""
        ...


@dataclass(frozen=True, slots=True)
class Candidates:
    """Episodes that may answer a query.

    Attributes:
        episodes: valid episodes, unordered.
        outdated: matching episodes that later ones superseded, newest first.
        weights: stem of each query word -> its inverse document frequency over all of memory.
    """

    episodes: list[Episode] = field(default_factory=lambda: list[Episode]())
    outdated: list[Episode] = field(default_factory=lambda: list[Episode]())
    weights: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())


class Finder(Protocol):
    """A source of candidates: a text search, or the neighbours of a query's vector."""

    def find(self, request: RecallRequest) -> Candidates:
        """Return the candidates for a request; raises like `Memory.recall`."""
        ...


class Ranker(Protocol):
    """Orders candidates by words, by vectors or by a model."""

    def rank(self, query: str, episodes: Sequence[Episode]) -> list[tuple[Episode, float]]:
        """Return the matching episodes, best first. Scores are comparable within one answer."""
        ...
