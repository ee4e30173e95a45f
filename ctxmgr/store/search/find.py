"""Find the entries and events that contain a text, in log order.

The first rows are simply read, unless all matches are wanted: a common text is found there. From there on the index
(`ctxmgr.store.search.index`) proposes places up to its mark, and behind the mark all rows are read again. Whatever is
proposed is compared with the text itself, so the answer is that of reading everything. A text without a whole word, and
without three letters or three marks in a row, is not in the index: it is looked for by reading.

The index is asked by `Proposals`. A text without blanks or punctuation is a part of words: the vocabulary names them. In a
text of several words the inner ones are whole, the first may be the end of a word, the last the beginning of one. A text of
marks alone is looked for where such marks stand.
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
"""Values of conditions that leave most rows: those on the session."""

_FIRST = 16
_DENSE = 128
"""Places up to which reading on is as quick as asking the index."""

_SLOW = 640
"""The same where no index can be asked, or where few texts have to be read."""

SHORTEST = 3
"""Characters of the shortest text that the index can find."""

_WINDOW = 4096
_PLACES_OF_ALL = 65_536
"""Places that are read together when all matches are wanted: nobody waits for the first ones."""

_EXACT = 4096
"""Places of the log that may be read only to say exactly how many rows match."""

_MAX_ROWS_COMPARED_HERE = 160
"""Places up to which rows are had whole, and compared here: most of them match, and are shown."""

MOST_KEPT, LONG_ROW = 256, 20_000
"""Rows that are kept for whoever shows them, and the characters of the longest."""

_AT_ONCE = 8
"""Rows that are held together while they are compared: each may be as long as a line can be."""

# A result's text stands for the entry that it completed. Cheap conditions come first: texts are read of what passes them.
# A subquery with a limit stays one: whatever a body costs, it is had once.
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
# The texts are read in the order in which they lie, which is faster than one look-up for each row; a result leads to the
# entry that it completed. Entries whose result lies outside are proposed, whatever it says.
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
# From the few notes to their entries: the other way round every entry would be looked up.
_NOTED = (
    "WITH noted AS MATERIALIZED (SELECT session, entry FROM (SELECT note_entry.session, note_entry.entry, note.body AS body "
    "FROM note_entry CROSS JOIN record AS note ON note.seq = note_entry.note WHERE {session} LIMIT -1) WHERE {body}) "
    "SELECT DISTINCT entry.seq FROM noted CROSS JOIN record AS own ON own.id = noted.entry AND own.kind = 'entry' "
    "AND own.session = noted.session CROSS JOIN entry ON entry.seq = own.seq WHERE {where}"
)
_STATEMENTS = {"entry": _ENTRY, "event": _EVENT}
_BETWEEN = "{kind}.seq BETWEEN :low AND :high"
# One value for all places: how many values a statement may have is limited.
_LISTED = "{kind}.seq IN (SELECT value FROM json_each(:places))"


class Search:
    """One search.

    Args:
        engine: of the store.
        scopes: of each kind of row that is wanted: its table, the conditions of the filters, and their values.
        needle: the folded text.
        low, high: the first and the last place in the log where a match can be.

    Attributes:
        rows: of the first matches, by their places, those that were read as they are shown.
        where: of these, what `ctxmgr.store.text_normalisation.find` says of it.
    """

    def __init__(self, engine: Engine, scopes: Sequence[Scope], needle: str, low: int, high: int) -> None:
        self._engine = engine
        self._scopes = scopes
        self._needle = needle
        self._holds, self._asked = holds_condition(needle)
        self._low = low
        self._high = high
        self._missing = 0
        self._narrow = any(bound.keys() - _BROAD for _, _, bound in scopes)  # few texts have to be read
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
        """Return the first matches, at least as many as wanted if there are; how many there are in all; whether that is exact.

        Call it where nothing changes meanwhile: inside `Engine.reading`, also against an index that is built, or deleted.
        """
        if not self._high:  # nothing is there, nor an index
            return [], 0, True
        hits: list[Hit] = []
        if self._high - self._low < _EXACT:
            # So few places are all looked at: then the number of matches is exact.
            wanted = self._high - self._low + 1
        noted = self._find_in_notes()
        for place, found in self._windows(wanted):
            passed = [hit for hit in noted if hit[0] <= place]
            noted = noted[len(passed) :]
            hits += sorted({*found, *passed}) if passed else found
            self._missing = wanted - len(hits)
            if len(hits) >= wanted and place < self._high:
                # The rest of the log is taken to hold the text as often as the part that was looked at.
                share = (self._high - self._low + 1) / (place - self._low + 1)
                return hits, max(len(hits) + 1, int(len(hits) * share)), False
        return hits, len(hits), True

    def _find_in_notes(self) -> list[Hit]:
        """Return the entries of the scopes with a note that holds the text, in the order of the log."""
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            if kind == "entry":
                session = "note_entry.session = :session" if "session" in bound else "1"
                sql = _NOTED.format(session=session, where=where, body=self._holds.format("body"))
                found += [(int(row[0]), kind) for row in self._engine.query(sql, {**bound, **self._asked})]
        return sorted(found)

    def _windows(self, wanted: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield (last place looked at, matches up to there that were not yielded yet), until all are found."""
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
        """Yield the matches among the first rows, and go on while a text is so common that reading is the quickest."""
        place = min(self._low + _FIRST - 1, self._high)
        found = self._match_range(self._low, place)
        yield place, found
        seen = len(found)
        # As many places as hold what is missing, if the text stays as common as it was so far.
        while place < self._high and (needed := (wanted - seen) * (place - self._low + 1) // max(1, seen)) < dense:
            start, place = place + 1, min(place + max(needed, _FIRST), self._high)
            found = self._match_range(start, place)
            yield place, found
            seen += len(found)

    def _read(self, place: int, last: int, size: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield the matches behind a place in windows that grow."""
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
        # What is left over was given up: `_windows` reads on from there.

    def _late(self, place: int, limit: int) -> list[int]:
        """Return the entries whose result the index does not know of yet."""
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
        """Return the rows of the scopes at these few places that hold the text, and keep them for whoever shows them."""
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            if left is not None:
                values = {"places": str(sorted(left))}
            rows = f"{BY_PLACE[kind]} WHERE {places.format(kind=kind)} AND ({where})"
            for row in self._engine.stream(rows, {**bound, **values}, _AT_ONCE):
                seq = int(row[0])
                if left is not None:
                    left.discard(seq)  # nothing else stands at its place
                if self._is_match(seq, kind, row):
                    found.append((seq, kind))
        return sorted(found)

    def _is_match(self, seq: int, kind: str, row: Row) -> bool:
        """Whether a row holds the text; some that do are kept for whoever shows them."""
        if (match := self._sought.match(kind, row)) is None:
            return False
        size = len(row[4]) + len(row[5] or "") if kind == "entry" else len(row[3])
        if size < LONG_ROW and len(self.rows) < MOST_KEPT:
            self.rows[seq], where = match
            if where is not None:
                self.where[seq] = where
        return True

    def _matches(self, places: str, values: dict[str, Any], *, known: bool = False) -> list[Hit]:
        """Return the rows of the scopes at these places that hold the text, or are known to."""
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
        runs = split_runs(needle)
        self._whole = [_quote(run) for run, starts, ends in runs if starts and ends]
        self._parts = [run for run in runs if not (run[1] and run[2]) and len(run[0]) >= _GRAM]
        self._marks = "" if self._whole or self._parts else find_longest_mark(needle)
        self.usable = bool(self._whole or self._parts or self._marks)

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield (place, the proposed places up to there that were not yielded yet); may give up before the last place."""
        if self._marks:
            yield from self._propose_by_marks()
            return
        # The longest run first: the fewest words hold it.
        parts = [_Words(self._engine, run) for run in sorted(self._parts, key=lambda run: -len(run[0]))]
        for words in parts:
            words.fetch(_FIRST_TERMS if len(parts) == 1 and not self._whole else _NARROWING_TERMS)
        # Parts of which not all terms are known are not asked for; where the others leave too much, more terms are looked up.
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
            # Given up: reading on is no slower from here, and `Search` does that.
            if most > _MAX_TERMS:
                return
            most *= 2
            words.fetch(most)

    def _propose_by_marks(self) -> Iterator[tuple[int, list[int]]]:
        """Propose the places of blocks that have the marks."""
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
            # Whoever compares the proposals may have said meanwhile that fewer are enough.
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
        # Below all of them: the twins of early terms have negative ids.
        self._after = -(2**62)
        self._seen: set[str] = set()
        self.terms: list[str] = []
        self.complete = False
        self.since = 0

    def fetch(self, most: int) -> None:
        """Look at the next terms, about as many as given."""
        if self.complete:
            return
        # One more than wanted: it tells whether there are others, and the place from which on they stand.
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
    """Return what is asked for to find what has the letters and marks of a text, three in a row.

    Of a long one three that lie apart are enough, where whatever is found is compared: each more takes its time.
    """
    last = len(text) - _GRAM
    starts = range(last + 1) if all_of_it or last < _GRAM else (0, last // 2, last)
    grams = {text[place : place + _GRAM].replace('"', '""') for place in starts}
    return " AND ".join(f'"{gram}"' for gram in sorted(grams))


def _quote(word: str) -> str:
    """Return a word as the index is asked for it; a long one by what it begins with. No word holds a quote."""
    return f'"{word}"' if len(word) <= MAX_WORD else _prefix_term(word[:MAX_WORD])


def _prefix_term(head: str) -> str:
    return f'"{head}"*'
