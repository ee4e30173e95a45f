"""Read entries, events and search hits: every filter, paging, and totals."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.store.folding import fold, storable
from ctxmgr.store.hydrate import (
    ENTRY_COLUMNS,
    EVENT_COLUMNS,
    ID_CONDITIONS,
    batches,
    entry_rows,
    entry_shape,
    event_row,
    event_shape,
    placeholders,
)
from ctxmgr.store.reserved import PROJECT

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.store.hydrate import Plain
    from ctxmgr.store.interface import Engine
    from ctxmgr.types.query import Filters, RowKind
    from ctxmgr.types.view import EntryView, EventView

Hit = tuple[int, str]
"""Place in the log and "entry" or "event"."""


class Rows:
    """The reading half of a store, in rows as JSON shows them; ``key`` is a session's integer key."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def entries(self, key: int, filters: Filters, offset: int, limit: int | None, *, newest_first: bool = False
                ) -> tuple[list[Plain], int]:  # fmt: skip
        """Return one page of matching entries in the order of the log, and how many match in all."""
        where, values = _entry_where(filters, key)
        # A whole session is counted already, and counting it again would take longer than all the rest.
        count = _ALL_OF_SESSION if len(values) == 1 and not filters.event_type else f"SELECT count(*) FROM entry WHERE {where}"
        total = int(self._engine.query(count, values)[0][0])
        order = "DESC" if newest_first else "ASC"
        rows = self._engine.query(
            f"{ENTRY_COLUMNS} WHERE {where} ORDER BY entry.idx {order} LIMIT :limit OFFSET :offset",
            {**values, "limit": -1 if limit is None else limit, "offset": offset},
        )
        return entry_rows(self._engine, rows), total

    def hits(self, key: int | None, filters: Filters, kind: RowKind, query: str | None = None) -> list[Hit]:
        """Return the places of all matching rows in the order of the log; ``key`` None searches every session."""
        found: list[Hit] = []
        for table in ("entry", "event"):
            if kind not in (table, "all"):
                continue
            where, values = (_entry_where if table == "entry" else _event_where)(filters, key)
            if query is None:
                sql = f"SELECT seq FROM {table} WHERE {where} ORDER BY seq"
            else:
                sql = _ENTRY_HITS if table == "entry" else _EVENT_HITS
                sql = sql.format(where=where)
                values |= {"needle": fold(query), **self._reach(key)}
            found += [(int(row[0]), table) for row in self._engine.query(sql, values)]
        return sorted(found)

    def _reach(self, key: int | None) -> dict[str, int]:
        """Return the first and the last place in the log where a session's records can be: no text outside is looked at."""
        if key is None:
            return {"low": 0, "high": 2**62}
        rows = self._engine.query("SELECT min(seq), max(seq) FROM record WHERE session = :session", {"session": key})
        return {"low": int(rows[0][0] or 0), "high": int(rows[0][1] or 0)}

    def rows(self, places: Sequence[Hit]) -> list[Plain]:
        """Return the rows at these places, in their order."""
        views: dict[int, Plain] = {}
        for batch in batches([seq for seq, kind in places if kind == "entry"]):
            names, values = placeholders(batch, "s")
            found = self._engine.query(f"{ENTRY_COLUMNS} WHERE entry.seq IN ({names})", values)
            views.update(zip((int(row[0]) for row in found), entry_rows(self._engine, found), strict=True))
        for batch in batches([seq for seq, kind in places if kind == "event"]):
            names, values = placeholders(batch, "s")
            found = self._engine.query(f"{EVENT_COLUMNS} WHERE event.seq IN ({names})", values)
            views.update((int(row[0]), event_row(row)) for row in found)
        return [views[seq] for seq, _ in places]

    def entry_at(self, key: int, index: int) -> Plain | None:
        """Return the entry with this index, or None."""
        rows = self._engine.query(
            f"{ENTRY_COLUMNS} WHERE entry.session = :session AND entry.idx = :idx", {"session": key, "idx": index}
        )
        return entry_rows(self._engine, rows)[0] if rows else None

    def entry_by_id(self, key: int, entry_id: str) -> Plain | None:
        """Return the entry with this id, or with an id that starts so, if there is exactly one.

        Raises:
            InvalidInput: when several ids start so.
        """
        for condition in ID_CONDITIONS if entry_id else ():
            rows = self._engine.query(
                f"{ENTRY_COLUMNS} WHERE record.session = :session AND record.kind = 'entry' AND {condition} LIMIT 6",
                {"session": key, "id": storable(entry_id), "after": storable(entry_id) + "\U0010ffff"},
            )
            if len(rows) > 1:
                raise InvalidInput(f"{len(rows)} or more entry ids start with {entry_id!r}", "give more of the id")
            if rows:
                return entry_rows(self._engine, rows)[0]
        return None

    def messages(self, key: int, entry: Plain | None, offset: int, limit: int) -> tuple[list[Plain], int]:
        """Return a page of message events: those of an entry and what was said on the way to it, or all.

        On the way to an entry means: not tied to another entry, by the same agent or a person, after that agent's
        previous entry in the same process.
        """
        from ctxmgr.types.plain import MESSAGE_TYPES

        names, values = placeholders(MESSAGE_TYPES, "t")
        where = f"event.session = :session AND event.type IN ({names})"
        values = {**values, "session": key}
        if entry is not None:
            where += (
                " AND (event.entry = :entry OR (event.entry IS NULL"
                " AND event.seq > :start AND event.seq < :end AND (event.agent IS NULL OR event.agent = :agent"
                " OR event.type IN ('user_message', 'user_message_chunk', 'interrupt'))))"
            )
            values |= {"entry": storable(entry["id"]), "agent": fold(entry["agent"]), **self._span(key, entry)}
        total = int(self._engine.query(f"SELECT count(*) FROM event WHERE {where}", values)[0][0])
        rows = self._engine.query(
            f"{EVENT_COLUMNS} WHERE {where} ORDER BY event.seq LIMIT :limit OFFSET :offset",
            {**values, "limit": limit, "offset": offset},
        )
        return [event_row(row) for row in rows], total

    def _span(self, key: int, entry: Plain) -> dict[str, Any]:
        """Return the places in the log between the agent's previous entry and this one."""
        values: dict[str, Any] = {"session": key, "idx": entry["index"], "agent": fold(entry["agent"])}
        values["process"] = None if entry["process"] is None else storable(entry["process"])
        own = self._engine.query("SELECT seq FROM entry WHERE session = :session AND idx = :idx", values)
        before = self._engine.query(
            "SELECT max(seq) FROM entry WHERE session = :session AND idx < :idx AND agent = :agent AND process IS :process",
            values,
        )
        return {"start": int(before[0][0] or 0), "end": int(own[0][0])}


class Queries:
    """The reading half of a store, in the library's views; ``key`` is a session's integer key."""

    def __init__(self, engine: Engine) -> None:
        self._rows = Rows(engine)

    def entries(self, key: int, filters: Filters, offset: int, limit: int | None, *, newest_first: bool = False
                ) -> tuple[list[EntryView], int]:  # fmt: skip
        """Return one page of matching entries in the order of the log, and how many match in all."""
        found, total = self._rows.entries(key, filters, offset, limit, newest_first=newest_first)
        return [entry_shape(row) for row in found], total

    def hits(self, key: int | None, filters: Filters, kind: RowKind, query: str | None = None) -> list[Hit]:
        """Return the places of all matching rows in the order of the log; ``key`` None searches every session."""
        return self._rows.hits(key, filters, kind, query)

    def rows(self, places: Sequence[Hit]) -> list[EntryView | EventView]:
        """Return the views at these places, in their order."""
        return [entry_shape(row) if row["kind"] == "entry" else event_shape(row) for row in self._rows.rows(places)]

    def entry_at(self, key: int, index: int) -> EntryView | None:
        """Return the entry with this index, or None."""
        found = self._rows.entry_at(key, index)
        return None if found is None else entry_shape(found)

    def entry_by_id(self, key: int, entry_id: str) -> EntryView | None:
        """Return the entry with this id, or with an id that starts so, if there is exactly one.

        Raises:
            InvalidInput: when several ids start so.
        """
        found = self._rows.entry_by_id(key, entry_id)
        return None if found is None else entry_shape(found)

    def messages(self, key: int, entry: EntryView | None, offset: int, limit: int) -> tuple[list[EventView], int]:
        """Return a page of message events, see `Rows.messages`."""
        place = entry and {"id": entry.id, "index": entry.index, "agent": entry.agent, "process": entry.process}
        found, total = self._rows.messages(key, place, offset, limit)
        return [event_shape(row) for row in found], total


def moment_of(name: str, text: str | None) -> float | None:
    """Return the seconds since 1970 of a limit of a time range, or None when there is no limit.

    Raises:
        InvalidInput: it is no time.
    """
    if text is None:
        return None
    from ctxmgr.ids import parse_time

    moment = parse_time(text)
    if moment is None:
        raise InvalidInput(f"{name} {text!r} is not a time", "use RFC 3339, e.g. 2026-01-22T10:00:00Z")
    return moment


def _common(filters: Filters, table: str, key: int | None) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if key is not None:
        conditions.append(f"{table}.session = :session")
        values["session"] = key
    for name, sign, text in (("since", ">=", filters.since), ("until", "<", filters.until)):
        if (moment := moment_of(name, text)) is not None:
            conditions.append(f"{table}.ts {sign} :{name}")
            values[name] = moment
    if filters.agent:
        names, bound = placeholders([fold(item) for item in filters.agent], "agent")
        conditions.append(f"{table}.agent IN ({names})")
        values |= bound
    return conditions, values


def _columns(filters: Filters) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for column, wanted in (("action", filters.action), ("input_type", filters.input_type), ("status", filters.status)):
        if wanted:
            names, bound = placeholders([fold(item) for item in wanted], column)
            conditions.append(f"entry.{column} IN ({names})")
            values |= bound
    return conditions, values


# The folded texts are read in the order in which they lie, which is several times faster than one look-up for each row; only
# what matches is looked up. A result's text stands for the entry that it completed.
_MATCHES = "WITH hit AS MATERIALIZED (SELECT seq FROM folded WHERE seq BETWEEN :low AND :high AND instr(text, :needle)) "
_ENTRY_HITS = (
    _MATCHES + "SELECT entry.seq FROM hit CROSS JOIN entry ON entry.seq = hit.seq WHERE {where} "
    "UNION SELECT entry.seq FROM hit CROSS JOIN record AS answer ON answer.seq = hit.seq AND answer.kind = 'result' "
    "CROSS JOIN record AS asked ON asked.session = answer.session AND asked.kind = 'entry' AND asked.id = answer.id "
    "CROSS JOIN entry ON entry.seq = asked.seq AND entry.result = hit.seq WHERE {where} ORDER BY 1"
)
_EVENT_HITS = _MATCHES + "SELECT event.seq FROM hit CROSS JOIN event ON event.seq = hit.seq WHERE {where} ORDER BY 1"


_ALL_OF_SESSION = "SELECT entries FROM session WHERE key = :session"


def _entry_where(filters: Filters, key: int | None) -> tuple[str, dict[str, Any]]:
    conditions, values = _common(filters, "entry", key)
    more, bound = _columns(filters)
    if filters.event_type:  # no entry is an event of any type
        more.append("0")
    return " AND ".join([*conditions, *more]) or "1", {**values, **bound}


def _event_where(filters: Filters, key: int | None) -> tuple[str, dict[str, Any]]:
    conditions, values = _common(filters, "event", key)
    if key is None:  # what the project's own state says is for its own commands to show
        conditions.append("event.session IS NOT (SELECT session.key FROM session WHERE session.id = :project)")
        values["project"] = PROJECT
    if filters.event_type:
        names, bound = placeholders([storable(item) for item in filters.event_type], "type")
        conditions.append(f"event.type IN ({names})")
        values |= bound
    more, bound = _columns(filters)
    if more:  # an event has no action of its own: it is found by that of the entry it belongs to
        conditions.append(
            "EXISTS (SELECT 1 FROM record JOIN entry ON entry.seq = record.seq WHERE record.session = event.session "
            f"AND record.kind = 'entry' AND record.id = event.entry AND {' AND '.join(more)})"
        )
        values |= bound
    return " AND ".join(conditions) or "1", values
