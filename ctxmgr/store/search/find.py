"""Find the entries and events that contain a text, in log order.

The first rows are simply read, unless all matches are wanted: a common text is found there. From there on the index
(`ctxmgr.store.search.index`) proposes places up to its mark, and behind the mark all rows are read again. Whatever is
proposed is compared with the text itself, so the answer is that of reading everything. A text without a whole word, and
without three letters or three marks in a row, is not in the index: it is looked for by reading.
"""

from __future__ import annotations

from ctxmgr.store.row_mapper import BY_PLACE
from ctxmgr.store.search.index import mark
from ctxmgr.store.search.text_match import SearchTerm, containing, know_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from ctxmgr.store.engine.interface import Engine, Row

    Scope = tuple[str, str, dict[str, Any]]
    Hit = tuple[int, str]

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
        where: of these, what `ctxmgr.store.normalise.find` says of it.
    """

    def __init__(self, engine: Engine, scopes: Sequence[Scope], needle: str, low: int, high: int) -> None:
        self._engine = engine
        self._scopes = scopes
        self._needle = needle
        self._holds, self._asked = containing(needle)
        self._low = low
        self._high = high
        self._missing = 0
        self._narrow = any(bound.keys() - _BROAD for _, _, bound in scopes)  # few texts have to be read
        self._sought = SearchTerm(needle)
        self.rows: dict[int, Row] = {}
        self.where: dict[int, tuple[str, str]] = {}
        if not engine.shared:
            know_holds(engine)

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
            wanted = self._high - self._low + 1
        noted = self._noted()
        for place, found in self._windows(wanted):
            passed = [hit for hit in noted if hit[0] <= place]
            noted = noted[len(passed) :]
            hits += sorted({*found, *passed}) if passed else found
            self._missing = wanted - len(hits)
            if len(hits) >= wanted and place < self._high:
                share = (self._high - self._low + 1) / (place - self._low + 1)
                return hits, max(len(hits) + 1, int(len(hits) * share)), False
        return hits, len(hits), True

    def _noted(self) -> list[Hit]:
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
            for reached, found in self._begun(wanted, _DENSE if asking else _SLOW):
                place = reached
                yield place, found
        if place < limit:
            for reached, found in self._proposed(place, limit):
                place = reached
                yield place, found
        yield from self._read(place, self._high, _PLACES_OF_ALL if whole else _FIRST * 16)

    def _begun(self, wanted: int, dense: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield the matches among the first rows, and go on while a text is so common that reading is the quickest."""
        place = min(self._low + _FIRST - 1, self._high)
        found = self._between(self._low, place)
        yield place, found
        seen = len(found)
        while place < self._high and (needed := (wanted - seen) * (place - self._low + 1) // max(1, seen)) < dense:
            start, place = place + 1, min(place + max(needed, _FIRST), self._high)
            found = self._between(start, place)
            yield place, found
            seen += len(found)

    def _read(self, place: int, last: int, size: int) -> Iterator[tuple[int, list[Hit]]]:
        """Yield the matches behind a place in windows that grow."""
        while place < last:
            start, place = place + 1, min(place + size, last)
            yield place, self._between(start, place)
            size = max(size, min(size * 2, self._window))

    def _proposed(self, place: int, limit: int) -> Iterator[tuple[int, list[Hit]]]:
        from ctxmgr.store.search.index_query import Proposals

        proposals = Proposals(self._engine, self._needle, place, limit, self._missing)
        if not proposals.usable:
            return
        late, looked, held = self._late(place, limit), 0, 0
        for end, places in proposals:
            both = [*places, *(seq for seq in late if seq <= end)]
            late = [seq for seq in late if seq > end]
            found = self._listed(both)
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

    def _between(self, low: int, high: int) -> list[Hit]:
        values = {"low": low, "high": high}
        if high - low < _MAX_ROWS_COMPARED_HERE:
            return self._compared(_BETWEEN, values)
        if self._narrow:
            return self._matches(_BETWEEN, values)
        rows = self._engine.query(_HOLDING.format(body=self._holds.format("body")), {**values, **self._asked})
        known = {int(row[0]) for row in rows if row[1]}
        proposed = {int(row[0]) for row in rows if not row[1]} - known
        return sorted([*self._listed(known, known=True), *self._listed(proposed)])

    def _listed(self, places: Collection[int], *, known: bool = False) -> list[Hit]:
        if not places:
            return []
        if len(places) <= _MAX_ROWS_COMPARED_HERE and not known:
            return self._compared(_LISTED, {}, set(places))
        return self._matches(_LISTED, {"places": str(sorted(places))}, known=known)

    def _compared(self, places: str, values: dict[str, Any], left: set[int] | None = None) -> list[Hit]:
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
                if (match := self._sought.match(kind, row)) is None:
                    continue
                found.append((seq, kind))
                size = len(row[4]) + len(row[5] or "") if kind == "entry" else len(row[3])
                if size < LONG_ROW and len(self.rows) < MOST_KEPT:
                    self.rows[seq], where = match
                    if where is not None:
                        self.where[seq] = where
        return sorted(found)

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
