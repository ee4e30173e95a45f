"""Read entries, events and search hits with filters, pages and totals; and what was appended since last time."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, candidates
from ctxmgr.log.fast_json import cast
from ctxmgr.store.engine.dialect import NO_LIMIT
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.repositories.filters import ANY, OF_SESSION, build_scopes, entry_conditions, event_condition
from ctxmgr.store.row_mapper import (
    BY_PLACE,
    ENTRY_COLUMNS,
    ID_CONDITIONS,
    batches,
    entry_rows,
    entry_shape,
    event_rows,
    event_shape,
    load,
    only_row,
    placeholders,
)
from ctxmgr.store.text_normalisation import find, fold, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.store.repositories.filters import Scope
    from ctxmgr.store.row_mapper import LongTexts, Plain
    from ctxmgr.types.query import Filters, RowKind
    from ctxmgr.types.view import EntryView, EventView

    Found = tuple[Plain, str, str]
    """A row that holds a text, the field that does, and an excerpt of it."""
    from typing import Literal

    Series = Literal["all", "event", "message"]
    """Of rows that are counted and have milestones: entries and events, events, events that carry something said."""

_ALL = (
    # Entries are limited by their numbers, which are dense: only as many as the page can reach are sorted among the events.
    "SELECT seq, 'entry' FROM entry WHERE session = :session AND idx >= :idx AND idx < :idx + :reach UNION ALL "
    "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq ORDER BY seq LIMIT :count OFFSET :skip"
)
_EVENTS = "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq {} ORDER BY seq LIMIT :count OFFSET :skip"
_COUNTS = {"all": "entries + events", "event": "events", "message": "messages"}


def row_count(engine: Engine, key: int, series: Series) -> int:
    """Return how many rows of a series a session has."""
    return int(only_row(engine.query(f"SELECT {_COUNTS[series]} FROM session WHERE key = :session", {"session": key}))[0])


def page(engine: Engine, key: int, series: Series, offset: int, limit: int, *, newest_first: bool = False
         ) -> tuple[list[tuple[int, str]], int] | None:  # fmt: skip
    """Return the places of one page of a session's rows, and how many rows there are.

    Returns:
        None where the session has no milestones: its rows were copied from another store, and some came late.
    """
    total = row_count(engine, key, series)
    end = max(0, total - offset) if newest_first else min(total, offset + limit)
    begin = max(0, end - limit) if newest_first else offset
    if begin >= end:
        return [], total
    values: dict[str, Any] = {"session": key, "series": series, "begin": begin}
    found = engine.query(
        "SELECT number, seq FROM milestone WHERE session = :session AND series = :series AND number <= :begin "
        "ORDER BY number DESC LIMIT 1",
        values,
    )
    if not found:
        return None
    values |= {"seq": found[0][1], "skip": begin - found[0][0], "count": end - begin, "reach": end - found[0][0]}
    if series == "all":
        values["idx"] = _count_entries_before(engine, key, found[0][1])
        rows = engine.query(_ALL, values)
    elif series == "event":
        rows = engine.query(_EVENTS.format(""), values)
    else:
        rows = engine.query(_EVENTS.format(f"AND type IN ({_types()})"), values)
    if newest_first:
        rows.reverse()
    return cast("list[tuple[int, str]]", rows), total


def _count_entries_before(engine: Engine, key: int, place: int) -> int:
    """Return how many entries of its session stand before the row at a place."""
    index, after = engine.query(
        "SELECT (SELECT idx FROM entry WHERE seq = :place AND session = :session), "
        "(SELECT after FROM event WHERE seq = :place AND session = :session)",
        {"place": place, "session": key},
    )[0]
    if index is not None:
        return int(index)
    return 0 if after is None else int(after) + 1


def _types() -> str:
    from ctxmgr.types.plain_records import MESSAGE_TYPES

    return ", ".join(f"'{name}'" for name in MESSAGE_TYPES)


Hit = tuple[int, str]
"""Place in the log and "entry" or "event"."""


class Rows:
    """The reading half of a store, in rows as JSON shows them; ``key`` is a session's integer key.

    Args:
        engine: of the store.
        exact: count whatever matches, never estimate: an estimate follows from places, and these tell of records between.
        verbatim: leave marks in the place of long texts, for which ``texts`` puts in what is stored.

    Attributes:
        texts: what the marks stand for; None where there are none.
    """

    def __init__(self, engine: Engine, *, exact: bool = False, verbatim: bool = False) -> None:
        self._engine = engine
        self._exact = exact
        self._load = self._load_verbatim if verbatim else load
        self.texts: LongTexts | None = None

    def _load_verbatim(self, body: str) -> Record:
        if len(body) < _LONG_BODY:
            return load(body)
        if self.texts is None:
            from ctxmgr.store.row_mapper import LongTexts

            self.texts = LongTexts()
        return self.texts.load(body)

    def entries(self, key: int, filters: Filters, offset: int, limit: int | None, *, newest_first: bool = False
                ) -> tuple[list[Plain], int, bool]:  # fmt: skip
        """Return one page of matching entries in the order of the log, how many match in all, and whether that is exact."""
        where, values = entry_conditions(filters, key)
        order = "DESC" if newest_first else "ASC"
        paged = {"limit": NO_LIMIT if limit is None else limit, "offset": offset}
        count = int(only_row(self._engine.query("SELECT entries FROM session WHERE key = :session", {"session": key}))[0])
        exact = True
        if where == OF_SESSION.format("entry"):  # indexes are dense: a page begins where its index says
            total = count
            paged |= {"first": max(0, count - offset - (limit or count)) if newest_first else offset}
            paged |= {"last": count - offset - 1 if newest_first else count - 1}
            page = f"{where} AND entry.idx BETWEEN :first AND :last"
        else:
            total, exact = self._count([("entry", where, values)], count)
            # The page is found in an index that holds all that is asked for, where it can be; only its rows are read.
            chosen = f"SELECT entry.idx FROM entry WHERE {where} ORDER BY entry.idx {order} LIMIT :limit OFFSET :offset"
            page = f"entry.session = :session AND entry.idx IN ({chosen})"
        found = self._engine.query(f"{ENTRY_COLUMNS} WHERE {page} ORDER BY entry.idx {order} LIMIT :limit", {**values, **paged})
        # Everything was read, so it is counted and need not be estimated.
        if limit is None and (found or not offset):
            total, exact = offset + len(found), True
        if not exact:
            # An estimate must not say fewer than are shown, nor that a full page is the last one.
            total = max(total, offset + len(found) + (len(found) == limit))
        return entry_rows(self._engine, found, self._load), total, exact

    def places(self, key: int, filters: Filters, kind: RowKind, offset: int, limit: int, *, newest_first: bool = False
               ) -> tuple[list[Hit], int, bool]:  # fmt: skip
        """Return the places of one page of rows of any kind; else as `entries`."""
        scopes = build_scopes(filters, kind, key)
        if kind != "entry" and all(where == OF_SESSION.format(table) for table, where, _ in scopes):
            paged = page(self._engine, key, kind, offset, limit, newest_first=newest_first)
            if paged is not None:
                return *paged, True
        low, high = self._reach(key)
        values: dict[str, Any] = {"low": low, "high": high, "limit": limit, "offset": offset}
        parts: list[str] = []
        for table, where, bound in scopes:
            values |= bound
            ordered = "entry NOT INDEXED" if table == "entry" else table  # an index by place in the log exists for events alone
            parts.append(f"SELECT seq, '{table}' FROM {ordered} WHERE seq BETWEEN :low AND :high AND {where}")
        order = "DESC" if newest_first else "ASC"
        rows = self._engine.query(f"{' UNION ALL '.join(parts)} ORDER BY seq {order} LIMIT :limit OFFSET :offset", values)
        total, exact = self._count(scopes, high - low + 1)
        if not exact:
            total = max(total, offset + len(rows) + (len(rows) == limit))
        return [(int(row[0]), str(row[1])) for row in rows], total, exact

    def _count(self, scopes: Sequence[Scope], most: int) -> tuple[int, bool]:
        """Return how many rows match, and whether that is exact: of very many the rest is estimated.

        ``most`` is how many there can be.
        """
        total, exact = 0, True
        counted = most if self._exact else _COUNTED
        for table, where, values in scopes:
            found, last = self._count_rows(table, where, values, counted)
            if found == counted < most:  # what the log holds up to the last one counted stands for all of it
                low, high = self._reach(values.get("session"))
                found, exact = found * (high - low + 1) // (last - low + 1), False
            total += found
        return total, exact

    def _count_rows(self, table: str, where: str, values: dict[str, Any], most: int) -> tuple[int, int]:
        """Return how many rows match, counting no further than ``most``; when they are so many, the last place among these."""
        matching = f"SELECT seq FROM {table} WHERE {where} LIMIT"
        if table == "entry" and values.keys() in _IN_ORDER:  # to step over rows takes a third of the time of counting them
            rows = self._engine.query(f"{matching} 1 OFFSET {most - 1:d}", values)
            if rows:
                return most, int(rows[0][0])
            return int(self._engine.query(f"SELECT count(*) FROM {table} WHERE {where}", values)[0][0]), 0
        rows = self._engine.query(f"SELECT count(*), max(seq) FROM ({matching} {most:d}) AS matching", values)
        return int(rows[0][0]), int(rows[0][1] or 0)

    def hits(self, key: int | None, filters: Filters, kind: RowKind) -> list[Hit]:
        """Return the places of all rows that pass the filters, in the order of the log; ``key`` None: of every session."""
        found: list[Hit] = []
        for table, where, values in build_scopes(filters, kind, key):
            rows = self._engine.query(f"SELECT seq FROM {table} WHERE {where} ORDER BY seq", values)
            found += [(int(row[0]), table) for row in rows]
        return sorted(found)

    def search(self, key: int | None, filters: Filters, kind: RowKind, query: str, offset: int, limit: int, *,
               every: bool = False) -> tuple[list[Found], int, bool]:  # fmt: skip
        """Return one page of rows that hold a text, in the order of the log; ``key`` None searches every session.

        Returns:
            The rows; how many hold it in all; whether that is exact: with ``every`` all of the log is looked through for it.
        """
        if self._engine.shared:
            from ctxmgr.store.search.find_on_server import SearchOnServer as Search
        else:
            from ctxmgr.store.search.find import Search
        needle = fold(query)
        with self._engine.reading():
            low, high = self._reach(key)
            # Inside of one reading: the ends of the log, the mark of the index and the rows belong to one state.
            search = Search(self._engine, build_scopes(filters, kind, key), needle, low, high)
            # One more than the page holds tells whether another page follows.
            places, total, exact = search.find(2**62 if every or self._exact else offset + limit + 1)
            page = places[offset : offset + limit]
            rows = self.rows(page, search.rows)
        found: list[Found] = []
        for (seq, _), row in zip(page, rows, strict=True):
            field, excerpt = search.where.get(seq) or find(row, needle) or _find_in_notes(row, needle) or ("", "")
            found.append((row, field, excerpt))
        return found, total, exact

    def _reach(self, key: int | None) -> tuple[int, int]:
        """Return the first and the last place in the log where a session's records can be: no text outside is looked at."""
        if key is None and self._engine.shared:
            return 0, last_place(self._engine)
        where = "" if key is None else "WHERE session = :session"
        # Two subqueries: SQLite finds a minimum or a maximum at the end of an index, but looks at all rows for both at once.
        ends = f"SELECT (SELECT min(seq) FROM record {where}), (SELECT max(seq) FROM record {where})"
        rows = self._engine.query(ends, {} if key is None else {"session": key})
        return int(rows[0][0] or 0), int(rows[0][1] or 0)

    def rows(self, places: Sequence[Hit], read: dict[int, Row] | None = None) -> list[Plain]:
        """Return the rows at these places, in their order; ``read`` are those columns of them that were read already.

        Those of a session that was archived since the places were found are left out.
        """
        known = read or {}
        entries, events = (
            [*self._read_rows([seq for seq, each in places if each == kind and seq not in known], kind),
             *(known[seq] for seq, each in places if each == kind and seq in known)]
            for kind in ("entry", "event")
        )  # fmt: skip
        views = dict(zip((int(row[0]) for row in entries), entry_rows(self._engine, entries, self._load), strict=True))
        views.update(zip((int(row[0]) for row in events), event_rows(self._engine, events, self._load), strict=True))
        return [views[seq] for seq, _ in places if seq in views]

    def _read_rows(self, places: Sequence[int], kind: str) -> list[Row]:
        rows: list[Row] = []
        table = "record" if self._engine.shared else kind  # which one has an index by the place alone
        for batch in batches(places):
            names, values = placeholders(batch, "s")
            rows += self._engine.query(f"{BY_PLACE[kind]} WHERE {table}.seq IN ({names})", values)
        return rows

    def find_entry(self, key: int, index: int) -> Plain | None:
        """Return the entry with this index, or None."""
        rows = self._engine.query(
            f"{ENTRY_COLUMNS} WHERE entry.session = :session AND entry.idx = :idx", {"session": key, "idx": index}
        )
        return entry_rows(self._engine, rows, self._load)[0] if rows else None

    def entry_by_id(self, key: int, entry_id: str) -> Plain | None:
        """Return the entry with this id, or with an id that starts so, if there is exactly one.

        Raises:
            InvalidInput: when several ids start so.
        """
        # Six at most: an error names five of them (`candidates`), and says whether there are others.
        for condition in ID_CONDITIONS if entry_id else ():
            rows = self._engine.query(
                f"{ENTRY_COLUMNS} WHERE record.session = :session AND record.kind = 'entry' AND {condition} LIMIT 6",
                {"session": key, "id": storable(entry_id), "after": storable(entry_id) + "\U0010ffff"},
            )
            if len(rows) > 1:
                ids = [entry["id"] for entry in entry_rows(self._engine, rows, self._load)]
                raise InvalidInput(f"{len(rows)} or more entry ids start with {entry_id!r}", candidates(ids))
            if rows:
                return entry_rows(self._engine, rows, self._load)[0]
        return None

    def messages(self, key: int, entry: Plain | None, offset: int, limit: int, request: Any = None) -> tuple[list[Plain], int]:
        """Return a page of message events: those of an entry and what was said on the way to it, or all.

        On the way to an entry means: not tied to another entry, by the same agent or a person, after that agent's
        previous entry in the same process. With a request only those of its processes.
        """
        narrowed, named = (ANY, {}) if request is None else event_condition(request)
        if entry is None and narrowed == ANY:
            paged = page(self._engine, key, "message", offset, limit)
            if paged is not None:
                return self.rows(paged[0]), paged[1]
        from ctxmgr.types.plain_records import MESSAGE_TYPES

        names, values = placeholders(MESSAGE_TYPES, "t")
        values |= {"session": key, "limit": limit, "offset": offset, **named}
        said = f"SELECT seq FROM event WHERE session = :session AND type IN ({names})"
        if narrowed != ANY:
            said = f"{said} AND {narrowed}"
        if entry is not None:
            # In two halves, each of which an index finds.
            said = (
                f"{said} AND entry = :entry UNION ALL {said} AND entry IS NULL AND seq > :start AND seq < :end "
                "AND (agent IS NULL OR agent = :agent OR type IN ('user_message', 'user_message_chunk', 'interrupt'))"
            )
            values |= {"entry": storable(entry["id"]), "agent": fold(entry["agent"]), **self._span(key, entry)}
        total = int(self._engine.query(f"SELECT count(*) FROM ({said}) AS said", values)[0][0])
        places = self._engine.query(f"{said} ORDER BY seq LIMIT :limit OFFSET :offset", values)
        found = self.rows([(int(row[0]), "event") for row in places])
        if entry is not None and entry["notes"]:  # what was said on the way to an entry is shown with its notes
            found = [row if row["entry"] is not None else {**row, "notes": entry["notes"]} for row in found]
        return found, total

    def _span(self, key: int, entry: Plain) -> dict[str, Any]:
        """Return the places in the log between the agent's previous entry and this one."""
        values: dict[str, Any] = {"session": key, "idx": entry["index"], "agent": fold(entry["agent"]), "began": 0}
        values["process"] = None if entry["process"] is None else storable(entry["process"])
        own = self._engine.query("SELECT seq FROM entry WHERE session = :session AND idx = :idx", values)
        order = "idx"
        if self._exact:  # what is a copy came a little out of order
            order = "seq"
        elif entry["process"] is not None:  # then looking back ends where it began
            values |= {"own": own[0][0]}
            began = self._engine.query(
                "SELECT idx FROM entry NOT INDEXED WHERE session = :session AND seq <= :own AND seq >= "
                "(SELECT seq FROM process WHERE session = :session AND process = :process) ORDER BY seq LIMIT 1",
                values,
            )
            values["began"] = began[0][0] if began else 0
        before = self._engine.query(
            # Named, for by the order alone SQLite might step back through the entries of all other agents.
            "SELECT seq FROM entry INDEXED BY entry_by_agent WHERE session = :session AND agent = :agent "
            f"AND idx >= :began AND idx < :idx AND process IS NOT DISTINCT FROM :process ORDER BY {order} DESC LIMIT 1",
            values,
        )
        return {"start": int(before[0][0]) if before else 0, "end": int(own[0][0])}


class Queries:
    """The reading half of a store, in the library's views; see `Rows`."""

    def __init__(self, engine: Engine, *, exact: bool = False) -> None:
        self._rows = Rows(engine, exact=exact)

    def entries(self, key: int, filters: Filters, offset: int, limit: int | None, *, newest_first: bool = False
                ) -> tuple[list[EntryView], int, bool]:  # fmt: skip
        """Return one page of matching entries in the order of the log, how many match in all, and whether that is exact."""
        found, total, exact = self._rows.entries(key, filters, offset, limit, newest_first=newest_first)
        return [entry_shape(row) for row in found], total, exact

    def places(self, key: int, filters: Filters, kind: RowKind, offset: int, limit: int, *, newest_first: bool = False
               ) -> tuple[list[Hit], int, bool]:  # fmt: skip
        """Return the places of one page of rows of any kind; else as `entries`."""
        return self._rows.places(key, filters, kind, offset, limit, newest_first=newest_first)

    def hits(self, key: int | None, filters: Filters, kind: RowKind) -> list[Hit]:
        """Return the places of all rows that pass the filters, in the order of the log; ``key`` None: of every session."""
        return self._rows.hits(key, filters, kind)

    def search(self, key: int | None, filters: Filters, kind: RowKind, query: str, offset: int, limit: int, *,
               every: bool = False) -> tuple[list[tuple[EntryView | EventView, str, str]], int, bool]:  # fmt: skip
        """Return a page of rows that hold a text, see `Rows.search`."""
        found, total, exact = self._rows.search(key, filters, kind, query, offset, limit, every=every)
        return [(_shape(row), field, excerpt) for row, field, excerpt in found], total, exact

    def rows(self, places: Sequence[Hit]) -> list[EntryView | EventView]:
        """Return the views at these places, in their order."""
        return [_shape(row) for row in self._rows.rows(places)]

    def find_entry(self, key: int, index: int) -> EntryView | None:
        """Return the entry with this index, or None."""
        found = self._rows.find_entry(key, index)
        return None if found is None else entry_shape(found)

    def entry_by_id(self, key: int, entry_id: str) -> EntryView | None:
        """Return the entry with this id, or with an id that starts so, if there is exactly one.

        Raises:
            InvalidInput: when several ids start so.
        """
        found = self._rows.entry_by_id(key, entry_id)
        return None if found is None else entry_shape(found)

    def messages(
        self, key: int, entry: EntryView | None, offset: int, limit: int, request: Any = None
    ) -> tuple[list[EventView], int]:
        """Return a page of message events, see `Rows.messages`."""
        place = entry and {
            "id": entry.id, "index": entry.index, "agent": entry.agent, "process": entry.process,
            "notes": [note.to_json() for note in entry.notes],
        }  # fmt: skip
        found, total = self._rows.messages(key, place, offset, limit, request)
        return [event_shape(row) for row in found], total


def _find_in_notes(row: Plain, needle: str) -> tuple[str, str] | None:
    """Return what `find` says of the first note on a row that holds the text, its path from the row on."""
    for number, note in enumerate(row["notes"]):
        if (found := find(note, needle)) is not None:
            return f"notes[{number}].{found[0]}", found[1]
    return None


def _shape(row: Plain) -> EntryView | EventView:
    return entry_shape(row) if row["kind"] == "entry" else event_shape(row)


_LONG_BODY = 4_096
"""Characters of a body with which texts in it may be long."""

_COUNTED = 20_000
"""Matches up to which a page says exactly how many there are."""

_IN_ORDER = ({"session", "action0"}, {"session", "agent0"}, {"session", "status0"})
"""Values of conditions whose rows an index holds in the order of the log."""


def find_record(engine: Engine, kind: str, identity: str) -> Record | None:
    """Return the record of a kind with this id, or with one that starts so if there is exactly one.

    Raises:
        InvalidInput: several have it, or start so.
    """
    wanted = storable(identity)
    for condition in ID_CONDITIONS if wanted else ():
        rows = engine.query(
            f"SELECT body, id FROM record WHERE {condition} AND kind = :kind ORDER BY id LIMIT 6",
            {"id": wanted, "after": wanted + "\U0010ffff", "kind": kind},
        )
        if len(rows) > 1:
            raise InvalidInput(f"several {kind} ids are {identity!r}, or start so", candidates([str(row[1]) for row in rows]))
        if rows:
            return load(rows[0][0])
    return None


def last_place(engine: Engine) -> int:
    """Return the place of the last record, 0 where there is none."""
    table = "session" if engine.shared else "record"  # of other teams' records there is no end to be asked for
    return int(engine.query(f"SELECT coalesce(max(seq), 0) FROM {table}")[0][0])


def read_sum(engine: Engine, seq: int) -> str:
    """Return the sum of the record at a place, empty where there is none."""
    rows = engine.query("SELECT sum FROM record WHERE seq = :seq", {"seq": seq})
    return str(rows[0][0]) if rows else ""


def holds_record(engine: Engine, session: str, kind: str, identity: str) -> bool:
    """Whether a session holds the record of this kind and id."""
    sql = (
        "SELECT 1 FROM record JOIN session ON session.key = record.session "
        "WHERE session.id = :session AND record.kind = :kind AND record.id = :id"
    )
    return bool(engine.query(sql, {"session": storable(session), "kind": kind, "id": storable(identity)}))


def read_records_after(engine: Engine, key: int, seq: int) -> Iterator[tuple[int, Record]]:
    """Yield (place in the store, record) of a session's records behind a place, in the order of the log; 0 for all."""
    sql = "SELECT seq, body FROM record WHERE session = :key AND seq > :seq ORDER BY seq"
    for row in engine.stream(sql, {"key": key, "seq": seq}):
        yield int(row[0]), load(row[1])


def read_all_records_after(engine: Engine, seq: int) -> Iterator[tuple[int, int, Record]]:
    """Yield (place in the store, length, record) of the records of all sessions behind a place, in the order of the log."""
    for place, body in engine.stream("SELECT seq, body FROM record WHERE seq > :seq ORDER BY seq", {"seq": seq}):
        yield int(place), len(body), load(body)


def settled_place(engine: Engine) -> int:
    """Return the place up to which nothing can appear any more that was not there: where a cursor over all sessions stops.

    Ask before what is read up to there is asked for, and of the primary of a server.
    """
    return int(engine.query("SELECT settled()")[0][0]) if engine.shared else last_place(engine)


def changed_sessions(engine: Engine, place: int) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions, but the reserved one, with a record behind a place."""
    sql = "SELECT session FROM record WHERE seq > :place"
    return _session_names(
        engine, f"SELECT key, id FROM session WHERE id <> :project AND key IN ({sql}) ORDER BY seq", {"place": place}
    )


def recent_sessions(engine: Engine, since: float) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions, but the reserved one, with a record from this moment on (seconds since 1970)."""
    return _session_names(
        engine, "SELECT key, id FROM session WHERE id <> :project AND last >= :since ORDER BY seq", {"since": since}
    )


def _session_names(engine: Engine, sql: str, values: dict[str, object]) -> list[tuple[int, str]]:
    return [(int(row[0]), str(row[1])) for row in engine.query(sql, {**values, "project": PROJECT})]


def held_leases(engine: Engine, start: str) -> set[str]:
    """Return the names that start so and whose leases hold now."""
    sql = "SELECT session FROM lease WHERE session >= :start AND session < :after AND expires > :now"
    values = {"start": start, "after": start + "\U0010ffff", "now": engine.clock()}
    return {str(row[0]) for row in engine.query(sql, values)}
