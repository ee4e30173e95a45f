"""Search in a store on a server: the index over its texts, and the entries and events that contain one.

The index holds the folded texts of entries and events by place in the log. The text of a result is stored with its entry. If
the server has trigrams (pg_trgm), they find a text fast; otherwise it scans the texts. The index covers the log up to a mark,
is written after the appends, and can be emptied at any time.

Up to the mark, the index proposes places. Behind it, the server excludes bodies that can't contain the text. All remaining
records are compared here, so the answer is the same as without an index.
"""

from __future__ import annotations

from ctxmgr.log.fast_json import cast
from ctxmgr.store.engine.dialect import KEEP_STATE, NO_LIMIT, SCHEMA
from ctxmgr.store.engine.postgresql_functions import INDEXERS
from ctxmgr.store.engine.postgresql_schema import PARTS, TEAMS
from ctxmgr.store.row_mapper import BY_PLACE, batches, load
from ctxmgr.store.search.find import SHORTEST, Search
from ctxmgr.store.search.text_match import like, may_hold_condition, rare_parts
from ctxmgr.store.text_normalisation import fold_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.engine.postgresql import PostgresqlEngine
    from ctxmgr.store.search.find import Hit
    from ctxmgr.store.search.index import Progress

_NOTED = (
    "SELECT entry.seq, note.body FROM note_entry JOIN record AS note ON note.seq = note_entry.note "
    "AND note.session = note_entry.session "
    "JOIN record AS own ON own.id = note_entry.entry AND own.kind = 'entry' AND own.session = note_entry.session "
    "JOIN entry ON entry.seq = own.seq AND entry.session = own.session WHERE {session} AND {where} AND {body}"
)
_INDEXED = (
    "SELECT seq FROM search_text WHERE seq > :low AND seq <= :high AND {session} AND (text LIKE :pattern ESCAPE '!' "
    "OR text LIKE :long) ORDER BY seq LIMIT :limit"
)
_PROPOSED_TO_TEAM = f"SELECT proposed FROM {SCHEMA}.proposed({{}}:long, :low, :high, :session, :limit) AS proposed"
_TEXTS_OF_SAMPLE = 64
_SAMPLE = "SELECT left(text, 4000) FROM search_text WHERE seq = ANY(:places)"
# LATERAL with a LIMIT forces one look-up for each of the few results behind the mark, even if the statistics are outdated.
_LATE = (
    "SELECT own.seq FROM "
    "(SELECT session, id FROM record WHERE seq > :mark AND kind = 'result' ORDER BY seq LIMIT :all) AS done, "
    "LATERAL (SELECT own.seq FROM record AS own WHERE own.session = done.session AND own.id = done.id "
    "AND own.kind = 'entry' AND own.seq > :low AND own.seq <= :mark LIMIT 1) AS own"
)
_PROPOSED = 512
"""Number of places in one proposal."""


class SearchOnServer(Search):
    """One search, see `Search`."""

    _window = 65536  # large, because most places may belong to other teams

    def _mark(self) -> int:
        return mark(self._engine) if len(self._needle) >= SHORTEST else 0

    def _prefilter(self) -> tuple[str, dict[str, object]]:
        condition, values = may_hold_condition(self._needle)
        return condition.replace(" LIKE ", " ILIKE "), values  # like SQLite's LIKE, which ignores the case of ASCII letters

    def _find_in_notes(self) -> list[Hit]:
        found: set[Hit] = set()
        for kind, where, bound in self._scopes:
            if kind == "entry":
                session = "note_entry.session = :session" if "session" in bound else "TRUE"
                condition, values = self._prefilter()
                sql = _NOTED.format(session=session, where=where, body=condition.format("note.body"))
                rows = self._engine.query(sql, {**bound, **values})
                found |= {(int(row[0]), kind) for row in rows if self._sought.matches(str(row[1]))}
        return sorted(found)

    def _search_proposals(self, place: int, limit: int) -> Iterator[tuple[int, list[Hit]]]:
        session = next((bound["session"] for _, _, bound in self._scopes if "session" in bound), None)
        values: dict[str, Any] = {"high": limit, "long": f"%{TOO_LONG[2:7]}%", "limit": _PROPOSED, "session": session}
        version = cast("Any", self._engine).version
        if version >= PARTS:
            sql = _PROPOSED_TO_TEAM.format(":pattern, :needle, ")
            values |= {"pattern": rare_parts(self._needle, self._sample(place, limit)), "needle": self._needle}
        else:
            sql = _INDEXED.format(session="TRUE" if session is None else "session = :session")
            if version >= TEAMS:
                sql = _PROPOSED_TO_TEAM.format(":pattern, ")
            values["pattern"] = like(self._needle)
        late = sorted(
            {int(row[0]) for row in self._engine.query(_LATE, {"low": place, "mark": mark(self._engine), "all": NO_LIMIT})}
        )
        while place < limit:
            rows = [int(row[0]) for row in self._engine.query(sql, {**values, "low": place})]
            place = rows[-1] if len(rows) == _PROPOSED else limit
            both = {*rows, *(seq for seq in late if seq <= place)}
            late = [seq for seq in late if seq > place]
            yield place, self._match_places(both)

    def _sample(self, low: int, high: int) -> list[str]:
        """Return the beginnings of some indexed texts, from evenly spaced places."""
        places = [low + (high - low) * number // _TEXTS_OF_SAMPLE for number in range(1, _TEXTS_OF_SAMPLE + 1)]
        return [str(row[0]) for row in self._engine.query(_SAMPLE, {"places": places})]

    def _match_range(self, low: int, high: int) -> list[Hit]:
        return self._compare_on_server("record.seq BETWEEN :low AND :high", {"low": low, "high": high})

    def _match_places(self, places: Collection[int], *, known: bool = False) -> list[Hit]:
        found: list[Hit] = []
        for batch in batches(sorted(places)):
            found += self._compare_on_server("record.seq = ANY(:places)", {"places": list(batch)})
        return found

    def _compare_on_server(self, places: str, values: dict[str, Any]) -> list[Hit]:
        """Return the rows of the scopes at these places that contain the text, and keep some for the answer."""
        condition, likely = self._prefilter()
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            held = condition.format("record.body")
            if kind == "entry":
                held = f"({held} OR {condition.format('done.body')})"
            sql = f"{BY_PLACE[kind]} WHERE {places} AND ({where}) AND {held}"
            for row in self._engine.stream(sql, {**bound, **values, **likely}):
                seq = int(row[0])
                if self._is_match(seq, kind, row):
                    found.append((seq, kind))
        return sorted(found)


_MARK = "search.mark"
_SLICE = 512
"""Number of records indexed in one transaction."""
_WIDEST = 1 << 22
"""Largest number of places read at once. Most of them may belong to other teams."""
_MAX_INDEXED_CHARS = 1_000_000
"""Length in characters of the longest indexed text. The place of a longer one is always proposed."""

TOO_LONG = "ctxmgrtoolongtobeindexed"
"""Stands in the index for a text that is too long. Searches find it by a part of it, which trigrams serve like any text."""

_NEXT = (
    "SELECT count(*), max(seq) FROM "
    "(SELECT seq FROM record WHERE seq > :low AND seq <= :far ORDER BY seq LIMIT :most) AS following"
)
_RECORDS = (
    "SELECT record.seq, record.session, record.kind, record.body, other.seq, other.body FROM record LEFT JOIN record AS other "
    "ON other.session = record.session AND other.id = record.id AND (record.kind = 'result' AND other.kind = 'entry' "
    "OR record.kind = 'entry' AND other.kind = 'result' AND other.seq < record.seq) "
    "WHERE record.seq > :low AND record.seq <= :high AND record.kind IN ('entry', 'event', 'result') ORDER BY record.seq"
)
_ADD = (
    "INSERT INTO search_text (seq, session, text) VALUES (:seq, :session, :text) "
    "ON CONFLICT (session, seq) DO UPDATE SET text = search_text.text || excluded.text"
)


def mark(engine: Engine) -> int:
    """Return the place up to which the index covers the log."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": _MARK})
    return int(rows[0][0]) if rows else 0


def advance(engine: PostgresqlEngine, progress: Progress | None = None) -> bool:
    """Index the records appended since the last time. Return whether there were any. Several clients may call this at once."""
    moved, width = False, _SLICE
    while True:
        with engine.appending():  # does not block appends
            # Only one client at a time, because two that begin at the same mark would add the same texts twice.
            engine.query("SELECT pg_advisory_xact_lock(:indexers)", {"indexers": INDEXERS})
            low, last = mark(engine), int(engine.query("SELECT settled()")[0][0])
            if low >= last:
                return moved
            far = min(low + width, last)
            count, end = engine.query(_NEXT, {"low": low, "far": far, "most": _SLICE})[0]
            high = int(end) if count == _SLICE else far
            # If there were few records, because most places belong to others, widen the next range.
            width = _SLICE if count == _SLICE else min(width * 4, _WIDEST)
            _add(engine, low, high)
            engine.execute(KEEP_STATE, {"name": _MARK, "value": str(high)})
        moved = True
        if progress is not None:
            progress(high, last)


def _add(engine: Engine, low: int, high: int) -> None:
    texts: dict[tuple[int, int], str] = {}
    for seq, session, kind, body, other, early in engine.query(_RECORDS, {"low": low, "high": high}):
        place = other if kind == "result" else seq
        if place is None:  # a result before its entry, with which it will be added
            continue
        for each in (body, early) if kind == "entry" and early is not None else (body,):
            text = fold_text(load(each)) or ""
            key = int(place), int(session)
            texts[key] = f"{texts.get(key, '')}\n{text if len(text) <= _MAX_INDEXED_CHARS else TOO_LONG}"
    engine.many(_ADD, [{"seq": seq, "session": session, "text": text} for (seq, session), text in texts.items()])
