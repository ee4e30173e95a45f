"""Find the entries and events that contain a text, in log order.

A search first reads some rows without the index, because a common text is found there (unless all matches are wanted). Then
the index (`ctxmgr.store.search.index`) proposes places up to its mark. Behind the mark all rows are read. Every proposed row
is compared with the text, so the answer is the same as without an index. The index can't find a text without a whole word,
three letters in a row or three punctuation marks in a row; such a search reads all rows.

`Proposals` queries the index. A text without blanks or punctuation is part of words, which the vocabulary finds. In a text of
several words the inner ones are whole words; the first may be the end of a word, the last the beginning of one. A text of
punctuation only is looked up among the runs of punctuation.
"""

from __future__ import annotations

from ctxmgr.store.row_mapper import BY_PLACE
from ctxmgr.store.search.index import mark
from ctxmgr.store.search.text_match import (
    MAX_WORD,
    PROBE,
    SearchTerm,
    block_number,
    block_places,
    find_longest_mark,
    holds_condition,
    register_holds,
    split_runs,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from ctxmgr.store.engine.interface import Engine, Row

    Scope = tuple[str, str, dict[str, Any]]
    Hit = tuple[int, str]
    Run = tuple[str, bool, bool]

_BROAD = {"session", "project"}
"""Names of the values in conditions that most rows meet: those on the session."""

_FIRST = 16
_DENSE = 128
"""Number of places up to which reading rows is as fast as asking the index."""

_SLOW = 640
"""The same number if no index can be asked, or if few texts have to be read."""

SHORTEST = 3
"""Length in characters of the shortest text that the index can find."""

_WINDOW = 4096
_PLACES_OF_ALL = 65_536
"""Number of places read at once if all matches are wanted, so that nobody waits for the first ones."""

_EXACT = 4096
"""Number of places that may be read only to count matches exactly."""

_MAX_ROWS_COMPARED_HERE = 160
"""Number of places up to which whole rows are fetched and compared in Python. Most of them match and are shown."""

MOST_KEPT, LONG_ROW = 256, 20_000
"""Number of matching rows that are kept for the answer, and the length in characters from which a row is not kept."""

_AT_ONCE = 8
"""Number of rows in memory while they are compared, because each may be as long as the longest line."""

# The text of a result counts for its entry. Cheap conditions come first, so texts are read only of rows that pass them.
# SQLite does not flatten a subquery with a LIMIT, so each body is fetched only once.
_ENTRY = (
    "SELECT seq FROM (SELECT entry.seq AS seq, own.body AS own, answer.body AS answer "
    "FROM entry NOT INDEXED CROSS JOIN record AS own ON own.seq = entry.seq "
    "LEFT JOIN record AS answer ON answer.seq = entry.result AND entry.result <> entry.seq "
    "WHERE {places} AND ({where}) LIMIT -1) WHERE {own} OR {answer}"
)
_EVENT = (
    "SELECT seq FROM (SELECT event.seq AS seq, own.body AS own "
    "FROM event NOT INDEXED CROSS JOIN record AS own ON own.seq = event.seq "
    "WHERE {places} AND ({where}) LIMIT -1) WHERE {own}"
)
# Reads the texts in their order on the disk, which is faster than one look-up for each row. A result leads to its entry.
# Entries whose result lies outside of the range are proposed without a check.
_HOLDING = (
    "WITH hit AS MATERIALIZED (SELECT seq, kind, session, id FROM (SELECT seq, kind, session, id, body FROM record "
    "WHERE seq BETWEEN :low AND :high AND kind IN ('entry', 'event', 'result') LIMIT -1) WHERE {body}) "
    "SELECT seq, 1 FROM hit WHERE kind <> 'result' UNION ALL "
    "SELECT entry.seq, 1 FROM hit CROSS JOIN record AS asked ON asked.session = hit.session AND asked.kind = 'entry' "
    "AND asked.id = hit.id AND asked.seq BETWEEN :low AND :high CROSS JOIN entry ON entry.seq = asked.seq "
    "AND entry.result = hit.seq WHERE hit.kind = 'result' UNION ALL "
    "SELECT seq, 0 FROM entry NOT INDEXED WHERE seq BETWEEN :low AND :high AND result NOT BETWEEN :low AND :high"
)
_KNOWN = "SELECT {kind}.seq FROM {kind} NOT INDEXED WHERE {places} AND ({where})"
# Goes from the few notes to their entries. The other way round would look up every entry.
_NOTED = (
    "WITH noted AS MATERIALIZED (SELECT session, entry FROM (SELECT note_entry.session, note_entry.entry, note.body AS body "
    "FROM note_entry CROSS JOIN record AS note ON note.seq = note_entry.note WHERE {session} LIMIT -1) WHERE {body}) "
    "SELECT DISTINCT entry.seq FROM noted CROSS JOIN record AS own ON own.id = noted.entry AND own.kind = 'entry' "
    "AND own.session = noted.session CROSS JOIN entry ON entry.seq = own.seq WHERE {where}"
)
_STATEMENTS = {"entry": _ENTRY, "event": _EVENT}
_BETWEEN = "{kind}.seq BETWEEN :low AND :high"
# One value for all places, because the number of values in a statement is limited.
_LISTED = "{kind}.seq IN (SELECT value FROM json_each(:places))"


class Search:
    """One search.

    Args:
        engine: the engine of the store.
        scopes: for each wanted kind of row, its table, the conditions of the filters, and their values.
        needle: the folded text.
        low, high: the first and the last place in the log where a match can be.

    Attributes:
        rows: some of the first matches as whole rows, by place.
        where: (path, excerpt) by place for these rows, see `ctxmgr.store.text_normalisation.find`.
    """

    def __init__(self, engine: Engine, scopes: Sequence[Scope], needle: str, low: int, high: int) -> None:
        self._engine = engine
        self._scopes = scopes
        self._needle = needle
        self._holds, self._asked = holds_condition(needle)
        self._low = low
        self._high = high
        self._missing = 0
        self._narrow = any(bound.keys() - _BROAD for _, _, bound in scopes)  # the filters leave few texts to read
        self._sought = SearchTerm(needle)
        self.rows: dict[int, Row] = {}
        self.where: dict[int, tuple[str, str]] = {}
        if not engine.shared:
            register_holds(engine)

    _window = _WINDOW

    def _mark(self) -> int:
        """Return the place up to which the index can be asked."""
        return mark(self._engine)

    def find(self, wanted: int) -> tuple[list[Hit], int, bool]:
        """Return the first matches, at least ``wanted`` if there are as many; the number of all; and whether it is exact.

        Must be called inside `Engine.reading`, so that neither the rows nor the index change meanwhile.
        """
        if not self._high:  # the log is empty
            return [], 0, True
        hits: list[Hit] = []
        if self._high - self._low < _EXACT:
            # For so few places read all, so that the number of matches is exact.
            wanted = self._high - self._low + 1
        noted = self._find_in_notes()
        for place, found in self._windows(wanted):
            passed = [hit for hit in noted if hit[0] <= place]
            noted = noted[len(passed) :]
            hits += sorted({*found, *passed}) if passed else found
            self._missing = wanted - len(hits)
            if len(hits) >= wanted and place < self._high:
                # Estimate that the rest of the log contains the text as often as the part that was read.
                share = (self._high - self._low + 1) / (place - self._low + 1)
                return hits, max(len(hits) + 1, int(len(hits) * share)), False
        return hits, len(hits), True

    def find_last(self, wanted: int) -> list[Hit]:
        """Return the last matches, up to ``wanted``, in the order of the log. Must be called like `find`."""
        noted = self._find_in_notes() if self._high else []
        hits: set[Hit] = set()
        place, size, limit = self._high, _FIRST * 10, self._mark()
        while self._low <= place and place and len(hits) < wanted:
            if place < self._high and place <= limit:  # the text is rare, and the index knows where it is
                start = self._low
                hits.update(self._find_indexed(place))
            else:
                start = max(self._low, place - size + 1)
                hits.update(self._match_range(start, place))
            place, size = start - 1, min(size * 2, _PLACES_OF_ALL)
            hits.update(hit for hit in noted if hit[0] > place)
        return sorted(hits)[-wanted:]

    def _find_indexed(self, limit: int) -> Iterator[Hit]:
        """Yield the matches up to a place that the index covers."""
        place, self._missing = self._low - 1, _PLACES_OF_ALL
        for reached, found in self._search_proposals(place, limit):
            place = reached
            yield from found
        for _, found in self._read(place, limit, _PLACES_OF_ALL):
            yield from found

    def _find_in_notes(self) -> list[Hit]:
        """Return the entries of the scopes with a note that contains the text, in the order of the log."""
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            if kind == "entry":
                session = "note_entry.session = :session" if "session" in bound else "1"
                sql = _NOTED.format(session=session, where=where, body=self._holds.format("body"))
                found += [(int(row[0]), kind) for row in self._engine.query(sql, {**bound, **self._asked})]
        return sorted(found)

    def _windows(self, wanted: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield (last place searched, further matches up to there), until all are found."""
        place, whole = self._low - 1, wanted > self._high - self._low
        limit = min(self._mark(), self._high)
        if not whole:
            asking = limit and len(self._needle) >= SHORTEST and not self._narrow
            for reached, found in self._search_first_rows(wanted, _DENSE if asking else _SLOW):
                place = reached
                yield place, found
        if place < limit:
            for reached, found in self._search_proposals(place, limit):
                place = reached
                yield place, found
        yield from self._read(place, self._high, _PLACES_OF_ALL if whole else _FIRST * 16)

    def _search_first_rows(self, wanted: int, dense: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield the matches among the first rows, and go on while the text is so common that reading is fastest."""
        place = min(self._low + _FIRST - 1, self._high)
        found = self._match_range(self._low, place)
        yield place, found
        seen = len(found)
        # Number of places that contain the missing matches, if the text stays as common as it was so far.
        while place < self._high and (needed := (wanted - seen) * (place - self._low + 1) // max(1, seen)) < dense:
            start, place = place + 1, min(place + max(needed, _FIRST), self._high)
            found = self._match_range(start, place)
            yield place, found
            seen += len(found)

    def _read(self, place: int, last: int, size: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield the matches behind a place, reading windows of growing size."""
        while place < last:
            start, place = place + 1, min(place + size, last)
            yield place, self._match_range(start, place)
            size = max(size, min(size * 2, self._window))

    def _search_proposals(self, place: int, limit: int) -> Iterator[tuple[int, list[Hit]]]:

        proposals = Proposals(self._engine, self._needle, place, limit, self._missing)
        if not proposals.usable:
            return
        late, looked, held = self._late(place, limit), 0, 0
        for end, places in proposals:
            both = [*places, *(seq for seq in late if seq <= end)]
            late = [seq for seq in late if seq > end]
            found = self._match_places(both)
            looked, held = looked + len(both), held + len(found)
            proposals.wanted = (self._missing - len(found)) * looked // held + 1 if held else _PLACES_OF_ALL
            yield end, found
        # If the proposals gave up before the limit, `_windows` reads the rest.

    def _late(self, place: int, limit: int) -> list[int]:
        """Return the entries whose result is not in the index yet."""
        rows = self._engine.query(
            "SELECT seq FROM search_open WHERE seq > :low AND seq <= :high", {"low": place, "high": limit}
        )
        return [int(row[0]) for row in rows]

    def _match_range(self, low: int, high: int) -> list[Hit]:
        values = {"low": low, "high": high}
        if high - low < _MAX_ROWS_COMPARED_HERE:
            return self._compare_rows(_BETWEEN, values)
        if self._narrow:
            return self._matches(_BETWEEN, values)
        rows = self._engine.query(_HOLDING.format(body=self._holds.format("body")), {**values, **self._asked})
        known = {int(row[0]) for row in rows if row[1]}
        proposed = {int(row[0]) for row in rows if not row[1]} - known
        return sorted([*self._match_places(known, known=True), *self._match_places(proposed)])

    def _match_places(self, places: Collection[int], *, known: bool = False) -> list[Hit]:
        if not places:
            return []
        if len(places) <= _MAX_ROWS_COMPARED_HERE and not known:
            return self._compare_rows(_LISTED, {}, set(places))
        return self._matches(_LISTED, {"places": str(sorted(places))}, known=known)

    def _compare_rows(self, places: str, values: dict[str, Any], left: set[int] | None = None) -> list[Hit]:
        """Return the rows of the scopes at these few places that contain the text, and keep them for the answer."""
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            if left is not None:
                values = {"places": str(sorted(left))}
            rows = f"{BY_PLACE[kind]} WHERE {places.format(kind=kind)} AND ({where})"
            for row in self._engine.stream(rows, {**bound, **values}, _AT_ONCE):
                seq = int(row[0])
                if left is not None:
                    left.discard(seq)  # no other row is at this place
                if self._is_match(seq, kind, row):
                    found.append((seq, kind))
        return sorted(found)

    def _is_match(self, seq: int, kind: str, row: Row) -> bool:
        """Whether a row contains the text. Keep some matching rows for the answer."""
        if (match := self._sought.match(kind, row)) is None:
            return False
        size = len(row[4]) + len(row[5] or "") if kind == "entry" else len(row[3])
        if size < LONG_ROW and len(self.rows) < MOST_KEPT:
            self.rows[seq], where = match
            if where is not None:
                self.where[seq] = where
        return True

    def _matches(self, places: str, values: dict[str, Any], *, known: bool = False) -> list[Hit]:
        """Return the rows of the scopes at these places that contain the text; all rows if ``known``."""
        found: list[Hit] = []
        own, answer = self._holds.format("own"), self._holds.format("answer")
        for kind, where, bound in self._scopes:
            sql = (_KNOWN if known else _STATEMENTS[kind]).format(
                kind=kind, places=places.format(kind=kind), where=where, own=own, answer=answer
            )
            rows = self._engine.query(sql, {**bound, **values, **self._asked})
            found += [(int(row[0]), kind) for row in rows]
        return sorted(found)


_GRAM = 3
_FIRST_TERMS = 80
"""Number of terms in the first look-up."""

_MAX_TERMS = 1500
"""Number of terms after which reading rows is no slower than looking up more terms."""

_NARROWING_TERMS = 400
"""Number of terms of one part that are looked up to narrow down the proposals of other parts."""

_COMMON = 500
_CHUNK = 16
_LARGEST = 4096
"""Smallest and largest number of places proposed together."""

_NOTHING = '"\U0010ffff"'
"""A term that no text contains, because the character only separates texts."""

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
    """The places in a range that may contain a folded text, according to the index.

    Args:
        engine: the engine of the store.
        needle: the folded text.
        low, high: the range of places, without ``low`` itself.
        wanted: see below.

    Attributes:
        usable: whether the index can find this text.
        wanted: the number of further proposals that will probably be enough. The caller may change it while iterating.
    """

    def __init__(self, engine: Engine, needle: str, low: int, high: int, wanted: int = 0) -> None:
        self._engine = engine
        self._low = low
        self._high = high
        self.wanted = wanted
        runs = split_runs(needle)
        self._whole = [_quote(run) for run, starts, ends in runs if starts and ends]
        self._parts = [run for run in runs if not (run[1] and run[2]) and len(run[0]) >= _GRAM]
        self._marks = "" if self._whole or self._parts else find_longest_mark(needle)
        self.usable = bool(self._whole or self._parts or self._marks)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield (place, further proposed places up to there). May give up before the last place."""
        if self._marks:
            yield from self._propose_by_marks()
            return
        # The longest run first, because the fewest words contain it.
        parts = [_Words(self._engine, run) for run in sorted(self._parts, key=lambda run: -len(run[0]))]
        for words in parts:
            words.fetch(_FIRST_TERMS if len(parts) == 1 and not self._whole else _NARROWING_TERMS)
        # A part whose terms are not all known can't be queried. If the other parts match too much, look up more of its terms.
        if len(parts) > 1 and not all(words.complete for words in parts) and self._is_common(self._match_expression(parts)):
            for words in parts:
                words.fetch(_MAX_TERMS)
        if self._whole or not parts or any(words.complete for words in parts):
            yield from self._stream(self._match_expression(parts), self._low, self._high)
        else:
            yield from self._grow(parts[0])

    def _is_common(self, asked: str) -> bool:
        """Whether an expression matches so much that narrowing it by more terms is faster than reading all matches."""
        if not asked:
            return True
        values = {"terms": asked, "low": self._low, "high": self._high, "most": _COMMON}
        return len(self._engine.query(_PLACES, values)) == _COMMON

    def _match_expression(self, parts: list[_Words]) -> str:
        """Return the query for the index: all whole words, and any term of each part whose terms are all known."""
        groups = [f"({' OR '.join(words.terms)})" if words.terms else _NOTHING for words in parts if words.complete]
        return " AND ".join([*self._whole, *groups])

    def _grow(self, words: _Words) -> Iterator[tuple[int, list[int]]]:
        """Look up more and more terms. Propose places before the first term that was not looked up."""
        low, most = self._low, _FIRST_TERMS
        while low < self._high:
            high = self._high if words.complete else min(words.since - 1, self._high)
            if high > low and words.terms:
                yield from self._stream(" OR ".join(words.terms), low, high)
            elif high > low:
                yield high, []
            low = max(low, high)
            # Give up. From here reading is no slower, and `Search` does that.
            if most > _MAX_TERMS:
                return
            most *= 2
            words.fetch(most)

    def _propose_by_marks(self) -> Iterator[tuple[int, list[int]]]:
        """Propose the places of blocks that contain the marks."""
        values: dict[str, object] = {
            "terms": _grams(self._marks),
            "low": block_number(self._low + 1) - 1,
            "high": block_number(self._high),
        }
        size, low = min(max(self.wanted // 4, _CHUNK), _LARGEST), self._low
        while low < self._high:
            rows = self._engine.query(_BLOCKS, {**values, "most": size})
            values["low"] = int(rows[-1][0]) if rows else 0
            end = min(block_places(int(rows[-1][0]))[-1], self._high) if len(rows) == size else self._high
            yield end, [place for row in rows for place in block_places(int(row[0])) if low < place <= end]
            low, size = end, min(size * 2, _LARGEST)

    def _stream(self, terms: str, low: int, high: int) -> Iterator[tuple[int, list[int]]]:
        size = min(max(self.wanted, _CHUNK), _LARGEST)
        while low < high:
            rows = self._engine.query(_PLACES, {"terms": terms, "low": low, "high": high, "most": size})
            low = int(rows[-1][0]) if len(rows) == size else high
            yield low, [int(row[0]) for row in rows]
            # The caller may have set `wanted` meanwhile.
            size = max(min(size * 2, self.wanted, _LARGEST), _CHUNK)


class _Words:
    """The terms of the vocabulary that contain a run, in the order in which they appeared.

    Attributes:
        terms: the fetched terms, in the form of a query.
        complete: whether all terms were fetched.
        since: no place before this one contains a term that was not fetched.
    """

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine = engine
        self._run, self._starts, self._ends = run
        self._probe = self._run[:PROBE]
        self._grams = _grams(self._probe, all_of_it=False)
        # Less than all ids; the twins of early terms have negative ones.
        self._after = -(2**62)
        self._seen: set[str] = set()
        self.terms: list[str] = []
        self.complete = False
        self.since = 0

    def fetch(self, most: int) -> None:
        """Fetch about ``most`` further terms."""
        if self.complete:
            return
        # One term more shows whether there are others, and from which place on they appear.
        rows = self._engine.query(_TERMS, {"grams": self._grams, "after": self._after, "most": most + 1})
        self.complete = len(rows) <= most
        for number, text, head, since in rows[:most]:
            self._after = int(number)
            if self._holds(text, head) and (term := _quote(text) if not head else _prefix_term(head)) not in self._seen:
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
    """Return the query for texts with the same trigrams as this one.

    Without ``all_of_it``, use three trigrams of a long text: every hit is compared anyway, and each trigram takes time.
    """
    last = len(text) - _GRAM
    starts = range(last + 1) if all_of_it or last < _GRAM else (0, last // 2, last)
    grams = {text[place : place + _GRAM].replace('"', '""') for place in starts}
    return " AND ".join(f'"{gram}"' for gram in sorted(grams))


def _quote(word: str) -> str:
    """Return a word in the form of a query; of a long word only its beginning. No word contains a quote."""
    return f'"{word}"' if len(word) <= MAX_WORD else _prefix_term(word[:MAX_WORD])


def _prefix_term(head: str) -> str:
    return f'"{head}"*'
