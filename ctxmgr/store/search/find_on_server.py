"""Find the entries and events that contain a text in a store on a server.

The server proposes, and each record is compared here: from the search index (`ctxmgr.store.search.index_on_server`) up to
its mark, and by what bodies can't hold the text behind it. The answer is that of reading everything.
"""

from __future__ import annotations

from ctxmgr.log.fast_json import cast
from ctxmgr.store.engine.postgresql_teams import TEAMS
from ctxmgr.store.engine.spelling import SCHEMA
from ctxmgr.store.row_mapper import BY_PLACE, batches
from ctxmgr.store.search.find import LONG_ROW, MOST_KEPT, SHORTEST, Search
from ctxmgr.store.search.index_on_server import TOO_LONG, mark
from ctxmgr.store.search.text_match import like, may_hold

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from ctxmgr.store.search.find import Hit

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
_PROPOSED_TO_TEAM = f"SELECT proposed FROM {SCHEMA}.proposed(:pattern, :long, :low, :high, :session, :limit) AS proposed"
_LATE = (
    "SELECT own.seq FROM record AS done JOIN record AS own ON own.session = done.session AND own.kind = 'entry' "
    "AND own.id = done.id WHERE done.seq > :mark AND done.kind = 'result' AND own.seq > :low AND own.seq <= :mark"
)
_PROPOSED = 512
"""Places that are asked for together."""


class SearchOnServer(Search):
    """One search, see `Search`."""

    _window = 65536  # most of these places may be other teams'

    def _mark(self) -> int:
        return mark(self._engine) if len(self._needle) >= SHORTEST else 0

    def _likely(self) -> tuple[str, dict[str, object]]:
        condition, values = may_hold(self._needle)
        return condition.replace(" LIKE ", " ILIKE "), values  # as SQLite compares: letters of ASCII in either case

    def _noted(self) -> list[Hit]:
        found: set[Hit] = set()
        for kind, where, bound in self._scopes:
            if kind == "entry":
                session = "note_entry.session = :session" if "session" in bound else "TRUE"
                condition, values = self._likely()
                sql = _NOTED.format(session=session, where=where, body=condition.format("note.body"))
                rows = self._engine.query(sql, {**bound, **values})
                found |= {(int(row[0]), kind) for row in rows if self._sought.is_in(str(row[1]))}
        return sorted(found)

    def _proposed(self, place: int, limit: int) -> Iterator[tuple[int, list[Hit]]]:
        values: dict[str, Any] = {
            "high": limit, "pattern": like(self._needle), "long": f"%{TOO_LONG}%", "limit": _PROPOSED, "mark": limit,
        }  # fmt: skip
        session = next((bound["session"] for _, _, bound in self._scopes if "session" in bound), None)
        sql = _INDEXED.format(session="TRUE" if session is None else "session = :session")
        if cast("Any", self._engine).version >= TEAMS:
            sql = _PROPOSED_TO_TEAM
        values["session"] = session
        late = sorted({int(row[0]) for row in self._engine.query(_LATE, {"low": place, "mark": mark(self._engine)})})
        while place < limit:
            rows = [int(row[0]) for row in self._engine.query(sql, {**values, "low": place})]
            place = rows[-1] if len(rows) == _PROPOSED else limit
            both = {*rows, *(seq for seq in late if seq <= place)}
            late = [seq for seq in late if seq > place]
            yield place, self._listed(both)

    def _between(self, low: int, high: int) -> list[Hit]:
        return self._compared_at("record.seq BETWEEN :low AND :high", {"low": low, "high": high})

    def _listed(self, places: Collection[int], *, known: bool = False) -> list[Hit]:
        found: list[Hit] = []
        for batch in batches(sorted(places)):
            found += self._compared_at("record.seq = ANY(:places)", {"places": list(batch)})
        return found

    def _compared_at(self, places: str, values: dict[str, Any]) -> list[Hit]:
        """Return the rows of the scopes at these places that hold the text, and keep some for whoever shows them."""
        condition, likely = self._likely()
        found: list[Hit] = []
        for kind, where, bound in self._scopes:
            held = condition.format("record.body")
            if kind == "entry":
                held = f"({held} OR {condition.format('done.body')})"
            sql = f"{BY_PLACE[kind]} WHERE {places} AND ({where}) AND {held}"
            for row in self._engine.stream(sql, {**bound, **values, **likely}):
                if (match := self._sought.match(kind, row)) is None:
                    continue
                seq = int(row[0])
                found.append((seq, kind))
                size = len(row[4]) + len(row[5] or "") if kind == "entry" else len(row[3])
                if size < LONG_ROW and len(self.rows) < MOST_KEPT:
                    self.rows[seq], told = match
                    if told is not None:
                        self.where[seq] = told
        return sorted(found)
