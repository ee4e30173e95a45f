"""Ask the search index where a text may stand.

A text without blanks or punctuation is a part of words: the vocabulary names them. In a text of several words the inner
ones are whole, the first may be the end of a word, the last the beginning of one. A text of marks alone is looked for where
such marks stand.
"""

from __future__ import annotations

from ctxmgr.store.search.tokenizer import MAX_WORD, PROBE, block_of, marks_in, places_of, runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxmgr.store.engine.interface import Engine

    Run = tuple[str, bool, bool]

_GRAM = 3
_FIRST_TERMS = 80
"""Terms that are looked up together at first."""

_MAX_TERMS = 1500
"""Terms after which reading on is no slower than looking them all up."""

_NARROWING_TERMS = 400
"""Terms of a part that are looked up to narrow down what other parts propose."""

_COMMON = 500
_CHUNK = 16
_LARGEST = 4096
"""Places that are proposed together: at least, and at most."""

_NOTHING = '"\U0010ffff"'
"""A term that no text has: it stands between texts."""

_TERMS = (
    "SELECT term.id, term.text, term.head, term.since FROM search_gram JOIN search_term AS term ON term.id = search_gram.rowid "
    "WHERE search_gram MATCH :grams AND search_gram.rowid > :after ORDER BY search_gram.rowid LIMIT :most"
)
_PLACES = (
    "SELECT rowid FROM search_word WHERE search_word MATCH :terms AND rowid > :low AND rowid <= :high "
    "ORDER BY rowid LIMIT :most"
)
_BLOCKS = (
    "SELECT rowid FROM search_mark WHERE search_mark MATCH :terms AND rowid > :low AND rowid <= :high "
    "ORDER BY rowid LIMIT :most"
)


class Proposals:
    """The places behind one and up to another at which a folded text may stand.

    Args:
        engine: of the store.
        needle: the folded text.
        low, high: the places; the first is not one of them.
        wanted: see below.

    Attributes:
        usable: whether the index can say anything about this text.
        wanted: how many more are likely to be enough; whoever compares them may say so anew.
    """

    def __init__(self, engine: Engine, needle: str, low: int, high: int, wanted: int = 0) -> None:
        self._engine = engine
        self._low = low
        self._high = high
        self.wanted = wanted
        runs = runs_of(needle)
        self._whole = [_quoted(run) for run, starts, ends in runs if starts and ends]
        self._parts = [run for run in runs if not (run[1] and run[2]) and len(run[0]) >= _GRAM]
        self._marks = "" if self._whole or self._parts else marks_in(needle)
        self.usable = bool(self._whole or self._parts or self._marks)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield (place, the proposed places up to there that were not yielded yet); may give up before the last place."""
        if self._marks:
            yield from self._marked()
            return
        parts = [_Words(self._engine, run) for run in sorted(self._parts, key=lambda run: -len(run[0]))]
        for words in parts:
            words.fetch(_FIRST_TERMS if len(parts) == 1 and not self._whole else _NARROWING_TERMS)
        if len(parts) > 1 and not all(words.complete for words in parts) and self._is_common(self._match_expression(parts)):
            for words in parts:
                words.fetch(_MAX_TERMS)
        if self._whole or not parts or any(words.complete for words in parts):
            yield from self._stream(self._match_expression(parts), self._low, self._high)
        else:
            yield from self._grow(parts[0])

    def _is_common(self, asked: str) -> bool:
        """Whether so much matches that looking up more terms, to ask for less, is quicker than reading it all."""
        if not asked:
            return True
        values = {"terms": asked, "low": self._low, "high": self._high, "most": _COMMON}
        return len(self._engine.query(_PLACES, values)) == _COMMON

    def _match_expression(self, parts: list[_Words]) -> str:
        """Return what is asked of the index: all of the whole words, and any term of each part whose terms are known."""
        groups = [f"({' OR '.join(words.terms)})" if words.terms else _NOTHING for words in parts if words.complete]
        return " AND ".join([*self._whole, *groups])

    def _grow(self, words: _Words) -> Iterator[tuple[int, list[int]]]:
        """Look up more and more terms, and propose places before the first term that was not looked up."""
        low, most = self._low, _FIRST_TERMS
        while low < self._high:
            high = self._high if words.complete else min(words.since - 1, self._high)
            if high > low and words.terms:
                yield from self._stream(" OR ".join(words.terms), low, high)
            elif high > low:
                yield high, []
            low = max(low, high)
            if most > _MAX_TERMS:
                return
            most *= 2
            words.fetch(most)

    def _marked(self) -> Iterator[tuple[int, list[int]]]:
        """Propose the places of blocks that have the marks."""
        values: dict[str, object] = {
            "terms": _grams(self._marks),
            "low": block_of(self._low + 1) - 1,
            "high": block_of(self._high),
        }
        size, low = min(max(self.wanted // 4, _CHUNK), _LARGEST), self._low
        while low < self._high:
            rows = self._engine.query(_BLOCKS, {**values, "most": size})
            values["low"] = int(rows[-1][0]) if rows else 0
            end = min(places_of(int(rows[-1][0]))[-1], self._high) if len(rows) == size else self._high
            yield end, [place for row in rows for place in places_of(int(row[0])) if low < place <= end]
            low, size = end, min(size * 2, _LARGEST)

    def _stream(self, terms: str, low: int, high: int) -> Iterator[tuple[int, list[int]]]:
        size = min(max(self.wanted, _CHUNK), _LARGEST)
        while low < high:
            rows = self._engine.query(_PLACES, {"terms": terms, "low": low, "high": high, "most": size})
            low = int(rows[-1][0]) if len(rows) == size else high
            yield low, [int(row[0]) for row in rows]
            size = max(min(size * 2, self.wanted, _LARGEST), _CHUNK)


class _Words:
    """The terms of the vocabulary that hold a run, in the order in which they appeared.

    Attributes:
        terms: those fetched, as they are asked for.
        complete: whether these are all.
        since: the place before which no term stands that was not fetched.
    """

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._run, self._starts, self._ends = run
        self._probe = self._run[:PROBE]
        self._grams = _grams(self._probe, all_of_it=False)
        self._after = -(2**62)
        self._seen: set[str] = set()
        self.terms: list[str] = []
        self.complete = False
        self.since = 0

    def fetch(self, most: int) -> None:
        """Look at the next terms, about as many as given."""
        if self.complete:
            return
        rows = self._engine.query(_TERMS, {"grams": self._grams, "after": self._after, "most": most + 1})
        self.complete = len(rows) <= most
        for number, text, head, since in rows[:most]:
            self._after = int(number)
            if self._holds(text, head) and (term := _quoted(text) if not head else _begun(head)) not in self._seen:
                self._seen.add(term)
                self.terms.append(term)
            self.since = int(since)
        if not self.complete:
            self.since = int(rows[most][3])

    def _holds(self, text: str, head: str) -> bool:
        if head:  # one window of a long word
            return self._probe in text
        if self._run not in text:
            return False
        return (not self._starts or text.startswith(self._run)) and (not self._ends or text.endswith(self._run))


def _grams(text: str, *, all_of_it: bool = True) -> str:
    """Return what is asked for to find what has the letters and marks of a text, three in a row.

    Of a long one three that lie apart are enough, where whatever is found is compared: each more takes its time.
    """
    last = len(text) - _GRAM
    starts = range(last + 1) if all_of_it or last < _GRAM else (0, last // 2, last)
    grams = {text[place : place + _GRAM].replace('"', '""') for place in starts}
    return " AND ".join(f'"{gram}"' for gram in sorted(grams))


def _quoted(word: str) -> str:
    """Return a word as the index is asked for it; a long one by what it begins with. No word holds a quote."""
    return f'"{word}"' if len(word) <= MAX_WORD else _begun(word[:MAX_WORD])


def _begun(head: str) -> str:
    return f'"{head}"*'
