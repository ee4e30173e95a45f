"""Read entries, events and search hits with filters, pages and totals, and records appended since the last time."""

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
    from ctxmgr.store.search.find import Search
    from ctxmgr.types.query import Filters, RowKind
    from ctxmgr.types.view import EntryView, EventView

    Found = tuple[Plain, str, str]
    """A row that contains a text, the field with the text, and an excerpt of the field."""
    from typing import Literal

    Series = Literal["all", "event", "message"]
    """Rows that are counted and have milestones: entries and events, events, or messages (events with something said)."""

_ALL = (
    # The numbers of entries have no gaps, so limiting them by number leaves few entries to sort among the events.
    "SELECT seq, 'entry' FROM entry WHERE session = :session AND idx >= :idx AND idx < :idx + :reach UNION ALL "
    "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq ORDER BY seq LIMIT :count OFFSET :skip"
)
_EVENTS = "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq {} ORDER BY seq LIMIT :count OFFSET :skip"
_COUNTS = {"all": "entries + events", "event": "events", "message": "messages"}


def row_count(engine: Engine, key: int, series: Series) -> int:
    """Return the number of rows of a series in a session."""
    return int(only_row(engine.query(f"SELECT {_COUNTS[series]} FROM session WHERE key = :session", {"session": key}))[0])


def page(engine: Engine, key: int, series: Series, offset: int, limit: int, *, newest_first: bool = False
         ) -> tuple[list[tuple[int, str]], int] | None:  # fmt: skip
    """Return the places of one page of a session's rows, and the number of all rows.

    Returns:
        None if the session has no milestones, because its rows were copied from another store, some of them late.
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
    """Return the number of entries in a session before the row at a place."""
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
    """Reads a store, and returns rows in their JSON form. ``key`` is a session's integer key.

    Args:
        engine: the engine of the store.
        exact: count all matches, never estimate. Estimates depend on places, which would reveal hidden records.
        verbatim: put marks in place of long texts; ``texts`` replaces them by the stored JSON.

    Attributes:
        texts: the texts for the marks; None if there are no marks.
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
        """Return one page of matching entries in the order of the log, the number of matches, and whether it is exact."""
        where, values = entry_conditions(filters, key)
        order = "DESC" if newest_first else "ASC"
        paged = {"limit": NO_LIMIT if limit is None else limit, "offset": offset}
        count = int(only_row(self._engine.query("SELECT entries FROM session WHERE key = :session", {"session": key}))[0])
        exact = True
        if where == OF_SESSION.format("entry"):  # indexes have no gaps, so the page is a range of indexes
            total = count
            paged |= {"first": max(0, count - offset - (limit or count)) if newest_first else offset}
            paged |= {"last": count - offset - 1 if newest_first else count - 1}
            page = f"{where} AND entry.idx BETWEEN :first AND :last"
        else:
            total, exact = self._count([("entry", where, values)], count)
            # The subquery finds the page in a covering index, if there is one. Only the page's rows are read.
            chosen = f"SELECT entry.idx FROM entry WHERE {where} ORDER BY entry.idx {order} LIMIT :limit OFFSET :offset"
            page = f"entry.session = :session AND entry.idx IN ({chosen})"
        found = self._engine.query(f"{ENTRY_COLUMNS} WHERE {page} ORDER BY entry.idx {order} LIMIT :limit", {**values, **paged})
        # All matches were read, so their number is known.
        if limit is None and (found or not offset):
            total, exact = offset + len(found), True
        if not exact:
            # An estimate must not be less than the rows shown, nor mean that a full page is the last one.
            total = max(total, offset + len(found) + (len(found) == limit))
        return entry_rows(self._engine, found, self._load), total, exact

    def places(self, key: int, filters: Filters, kind: RowKind, offset: int, limit: int, *, newest_first: bool = False
               ) -> tuple[list[Hit], int, bool]:  # fmt: skip
        """Return the places of one page of rows of any kind. Otherwise like `entries`."""
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
            ordered = "entry NOT INDEXED" if table == "entry" else table  # only events have an index by place
            parts.append(f"SELECT seq, '{table}' FROM {ordered} WHERE seq BETWEEN :low AND :high AND {where}")
        order = "DESC" if newest_first else "ASC"
        rows = self._engine.query(f"{' UNION ALL '.join(parts)} ORDER BY seq {order} LIMIT :limit OFFSET :offset", values)
        total, exact = self._count(scopes, high - low + 1)
        if not exact:
            total = max(total, offset + len(rows) + (len(rows) == limit))
        return [(int(row[0]), str(row[1])) for row in rows], total, exact

    def _count(self, scopes: Sequence[Scope], most: int) -> tuple[int, bool]:
        """Return the number of matching rows, and whether it is exact. A large number is estimated.

        ``most`` is the largest possible number.
        """
        total, exact = 0, True
        counted = most if self._exact else _COUNTED
        for table, where, values in scopes:
            found, last = self._count_rows(table, where, values, counted)
            if found == counted < most:  # extrapolate from the part of the log up to the last row counted
                low, high = self._reach(values.get("session"))
                found, exact = found * (high - low + 1) // (last - low + 1), False
            total += found
        return total, exact

    def _count_rows(self, table: str, where: str, values: dict[str, Any], most: int) -> tuple[int, int]:
        """Return the number of matching rows, at most ``most``, and, if there are that many, the last place among them."""
        matching = f"SELECT seq FROM {table} WHERE {where} LIMIT"
        if table == "entry" and values.keys() in _IN_ORDER:  # OFFSET takes a third of the time of counting
            rows = self._engine.query(f"{matching} 1 OFFSET {most - 1:d}", values)
            if rows:
                return most, int(rows[0][0])
            return int(self._engine.query(f"SELECT count(*) FROM {table} WHERE {where}", values)[0][0]), 0
        rows = self._engine.query(f"SELECT count(*), max(seq) FROM ({matching} {most:d}) AS matching", values)
        return int(rows[0][0]), int(rows[0][1] or 0)

    def hits(self, key: int | None, filters: Filters, kind: RowKind) -> list[Hit]:
        """Return the places of all rows that pass the filters, in the order of the log; of every session if ``key`` is None."""
        found: list[Hit] = []
        for table, where, values in build_scopes(filters, kind, key):
            rows = self._engine.query(f"SELECT seq FROM {table} WHERE {where} ORDER BY seq", values)
            found += [(int(row[0]), table) for row in rows]
        return sorted(found)

    def search(self, key: int | None, filters: Filters, kind: RowKind, query: str, offset: int, limit: int, *,
               every: bool = False) -> tuple[list[Found], int, bool]:  # fmt: skip
        """Return one page of rows that contain a text, in the order of the log; of every session if ``key`` is None.

        Returns:
            The rows; the number of all matches; and whether it is exact, for which ``every`` searches the whole log.
        """
        with self._engine.reading():
            search = self._make_search(key, filters, kind, needle := fold(query))
            # One match more than the page holds shows whether another page follows.
            places, total, exact = search.find(2**62 if every or self._exact else offset + limit + 1)
            page = places[offset : offset + limit]
            rows = self.rows(page, search.rows)
        found: list[Found] = []
        for (seq, _), row in zip(page, rows, strict=True):
            field, excerpt = search.where.get(seq) or find(row, needle) or _find_in_notes(row, needle) or ("", "")
            found.append((row, field, excerpt))
        return found, total, exact

    def search_last(self, key: int, filters: Filters, kind: RowKind, query: str, limit: int) -> list[Plain]:
        """Return the last rows of a session that contain a text, at most ``limit``, in the order of the log."""
        with self._engine.reading():
            search = self._make_search(key, filters, kind, fold(query))
            return self.rows(search.find_last(limit), search.rows)

    def _make_search(self, key: int | None, filters: Filters, kind: RowKind, needle: str) -> Search:
        """Return a search in one snapshot, for the ends of the log, the mark of the index and the rows."""
        if self._engine.shared:
            from ctxmgr.store.search.find_on_server import SearchOnServer as Search
        else:
            from ctxmgr.store.search.find import Search
        return Search(self._engine, build_scopes(filters, kind, key), needle, *self._reach(key))

    def _reach(self, key: int | None) -> tuple[int, int]:
        """Return the first and the last place in the log where a session's records can be. Searches stay within them."""
        if key is None and self._engine.shared:
            return 0, last_place(self._engine)
        where = "" if key is None else "WHERE session = :session"
        # Two subqueries, because SQLite finds a single minimum or maximum at the end of an index, but scans all rows for both.
        ends = f"SELECT (SELECT min(seq) FROM record {where}), (SELECT max(seq) FROM record {where})"
        rows = self._engine.query(ends, {} if key is None else {"session": key})
        return int(rows[0][0] or 0), int(rows[0][1] or 0)

    def rows(self, places: Sequence[Hit], read: dict[int, Row] | None = None) -> list[Plain]:
        """Return the rows at these places, in their order. ``read`` holds columns that were read already, by place.

        Rows of a session that was archived since the places were found are left out.
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
        table = "record" if self._engine.shared else kind  # the table with an index by place only
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

    def entries_by_ids(self, key: int, ids: Sequence[str]) -> list[Plain]:
        """Return the entries of a session that have exactly these ids, in any order."""
        found: list[Row] = []
        for batch in batches(ids):
            names, values = placeholders([storable(each) for each in batch], "id")
            where = f"record.session = :session AND record.kind = 'entry' AND record.id IN ({names})"
            found += self._engine.query(f"{ENTRY_COLUMNS} WHERE {where}", {"session": key, **values})
        return entry_rows(self._engine, found, self._load)

    def entry_by_id(self, key: int, entry_id: str) -> Plain | None:
        """Return the entry with this id, or the only one whose id has this prefix, or None.

        Raises:
            InvalidInput: several ids have this prefix.
        """
        # Six at most, because the error names five (`candidates`) and says whether there are more.
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
        """Return a page of messages and the number of all: those of an entry and those leading up to it, or all.

        A message leads up to an entry if it belongs to no entry, is by the same agent or a person, and comes after that
        agent's previous entry in the same process. A request limits them to its processes.
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
            # Two halves, for each of which there is an index.
            said = (
                f"{said} AND entry = :entry UNION ALL {said} AND entry IS NULL AND seq > :start AND seq < :end "
                "AND (agent IS NULL OR agent = :agent OR type IN ('user_message', 'user_message_chunk', 'interrupt'))"
            )
            values |= {"entry": storable(entry["id"]), "agent": fold(entry["agent"]), **self._span(key, entry)}
        total = int(self._engine.query(f"SELECT count(*) FROM ({said}) AS said", values)[0][0])
        places = self._engine.query(f"{said} ORDER BY seq LIMIT :limit OFFSET :offset", values)
        found = self.rows([(int(row[0]), "event") for row in places])
        if entry is not None and entry["notes"]:  # messages leading up to an entry are shown with its notes
            found = [row if row["entry"] is not None else {**row, "notes": entry["notes"]} for row in found]
        return found, total

    def _span(self, key: int, entry: Plain) -> dict[str, Any]:
        """Return the places in the log between the agent's previous entry and this one."""
        values: dict[str, Any] = {"session": key, "idx": entry["index"], "agent": fold(entry["agent"]), "began": 0}
        values["process"] = None if entry["process"] is None else storable(entry["process"])
        own = self._engine.query("SELECT seq FROM entry WHERE session = :session AND idx = :idx", values)
        order = "idx"
        if self._exact:  # a copy, whose rows may have come a little out of order
            order = "seq"
        elif entry["process"] is not None:  # do not look back beyond the begin of the process
            values |= {"own": own[0][0]}
            began = self._engine.query(
                "SELECT idx FROM entry NOT INDEXED WHERE session = :session AND seq <= :own AND seq >= "
                "(SELECT seq FROM process WHERE session = :session AND process = :process) ORDER BY seq LIMIT 1",
                values,
            )
            values["began"] = began[0][0] if began else 0
        before = self._engine.query(
            # INDEXED BY, because SQLite might otherwise follow the order and step through the entries of all other agents.
            "SELECT seq FROM entry INDEXED BY entry_by_agent WHERE session = :session AND agent = :agent "
            f"AND idx >= :began AND idx < :idx AND process IS NOT DISTINCT FROM :process ORDER BY {order} DESC LIMIT 1",
            values,
        )
        return {"start": int(before[0][0]) if before else 0, "end": int(own[0][0])}


class Queries:
    """Reads a store, and returns the library's views; see `Rows`."""

    def __init__(self, engine: Engine, *, exact: bool = False) -> None:
        self._rows = Rows(engine, exact=exact)

    def entries(self, key: int, filters: Filters, offset: int, limit: int | None, *, newest_first: bool = False
                ) -> tuple[list[EntryView], int, bool]:  # fmt: skip
        """Return one page of matching entries in the order of the log, the number of matches, and whether it is exact."""
        found, total, exact = self._rows.entries(key, filters, offset, limit, newest_first=newest_first)
        return [entry_shape(row) for row in found], total, exact

    def places(self, key: int, filters: Filters, kind: RowKind, offset: int, limit: int, *, newest_first: bool = False
               ) -> tuple[list[Hit], int, bool]:  # fmt: skip
        """Return the places of one page of rows of any kind. Otherwise like `entries`."""
        return self._rows.places(key, filters, kind, offset, limit, newest_first=newest_first)

    def hits(self, key: int | None, filters: Filters, kind: RowKind) -> list[Hit]:
        """Return the places of all rows that pass the filters, in the order of the log; of every session if ``key`` is None."""
        return self._rows.hits(key, filters, kind)

    def search(self, key: int | None, filters: Filters, kind: RowKind, query: str, offset: int, limit: int, *,
               every: bool = False) -> tuple[list[tuple[EntryView | EventView, str, str]], int, bool]:  # fmt: skip
        """Return a page of rows that contain a text, see `Rows.search`."""
        found, total, exact = self._rows.search(key, filters, kind, query, offset, limit, every=every)
        return [(_shape(row), field, excerpt) for row, field, excerpt in found], total, exact

    def search_last(self, key: int, filters: Filters, kind: RowKind, query: str, limit: int) -> list[EntryView | EventView]:
        """Return the last rows of a session that contain a text, see `Rows.search_last`."""
        return [_shape(row) for row in self._rows.search_last(key, filters, kind, query, limit)]

    def rows(self, places: Sequence[Hit]) -> list[EntryView | EventView]:
        """Return the views at these places, in their order."""
        return [_shape(row) for row in self._rows.rows(places)]

    def find_entry(self, key: int, index: int) -> EntryView | None:
        """Return the entry with this index, or None."""
        found = self._rows.find_entry(key, index)
        return None if found is None else entry_shape(found)

    def entries_by_ids(self, key: int, ids: Sequence[str]) -> dict[str, EntryView]:
        """Return the entries of a session that have exactly these ids, by id, in the given order."""
        found = {row["id"]: row for row in self._rows.entries_by_ids(key, ids)}
        return {each: entry_shape(found[each]) for each in ids if each in found}

    def entry_by_id(self, key: int, entry_id: str) -> EntryView | None:
        """Return the entry with this id, or the only one whose id has this prefix, or None.

        Raises:
            InvalidInput: several ids have this prefix.
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
    """Return (path from the row, excerpt) for the first note on a row that contains the text, or None."""
    for number, note in enumerate(row["notes"]):
        if (found := find(note, needle)) is not None:
            return f"notes[{number}].{found[0]}", found[1]
    return None


def _shape(row: Plain) -> EntryView | EventView:
    return entry_shape(row) if row["kind"] == "entry" else event_shape(row)


_LONG_BODY = 4_096
"""Length in characters from which a body may contain long texts."""

_COUNTED = 20_000
"""Largest number of matches that is counted exactly."""

_IN_ORDER = ({"session", "action0"}, {"session", "agent0"}, {"session", "status0"})
"""Names of the values in conditions for which an index has the rows in the order of the log."""


def find_record(engine: Engine, kind: str, identity: str) -> Record | None:
    """Return the record of a kind with this id, or the only one whose id has this prefix, or None.

    Raises:
        InvalidInput: several records have this id, or this prefix.
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
    """Return the place of the last record, 0 if there is none."""
    table = "session" if engine.shared else "record"  # on a server, skipping other teams' records could take long
    return int(engine.query(f"SELECT coalesce(max(seq), 0) FROM {table}")[0][0])


def read_sum(engine: Engine, seq: int) -> str:
    """Return the checksum of the record at a place, "" if there is no record."""
    rows = engine.query("SELECT sum FROM record WHERE seq = :seq", {"seq": seq})
    return str(rows[0][0]) if rows else ""


def holds_record(engine: Engine, session: str, kind: str, identity: str) -> bool:
    """Whether a session has a record of this kind and id."""
    sql = (
        "SELECT 1 FROM record JOIN session ON session.key = record.session "
        "WHERE session.id = :session AND record.kind = :kind AND record.id = :id"
    )
    return bool(engine.query(sql, {"session": storable(session), "kind": kind, "id": storable(identity)}))


def read_records_after(engine: Engine, key: int, seq: int) -> Iterator[tuple[int, Record]]:
    """Yield (place, record) for a session's records behind a place, in the order of the log; 0 for all."""
    sql = "SELECT seq, body FROM record WHERE session = :key AND seq > :seq ORDER BY seq"
    for row in engine.stream(sql, {"key": key, "seq": seq}):
        yield int(row[0]), load(row[1])


def read_all_records_after(engine: Engine, seq: int) -> Iterator[tuple[int, int, Record]]:
    """Yield (place, length of the body, record) for all sessions' records behind a place, in the order of the log."""
    for place, body in engine.stream("SELECT seq, body FROM record WHERE seq > :seq ORDER BY seq", {"seq": seq}):
        yield int(place), len(body), load(body)


def settled_place(engine: Engine) -> int:
    """Return the place up to which no new record can appear. A cursor over all sessions must stop there.

    Must be called before reading the records up to there, and on the primary of a server.
    """
    return int(engine.query("SELECT settled()")[0][0]) if engine.shared else last_place(engine)


def changed_sessions(engine: Engine, place: int) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions with a record behind a place, without the reserved session."""
    sql = "SELECT session FROM record WHERE seq > :place"
    return _session_names(
        engine, f"SELECT key, id FROM session WHERE id <> :project AND key IN ({sql}) ORDER BY seq", {"place": place}
    )


def recent_sessions(engine: Engine, since: float) -> list[tuple[int, str]]:
    """Return (key, id) of the sessions with a record from this time on (seconds since 1970), without the reserved session."""
    return _session_names(
        engine, "SELECT key, id FROM session WHERE id <> :project AND last >= :since ORDER BY seq", {"since": since}
    )


def _session_names(engine: Engine, sql: str, values: dict[str, object]) -> list[tuple[int, str]]:
    return [(int(row[0]), str(row[1])) for row in engine.query(sql, {**values, "project": PROJECT})]


def held_leases(engine: Engine, start: str) -> set[str]:
    """Return the names with a prefix whose leases are held now."""
    sql = "SELECT session FROM lease WHERE session >= :start AND session < :after AND expires > :now"
    values = {"start": start, "after": start + "\U0010ffff", "now": engine.clock()}
    return {str(row[0]) for row in engine.query(sql, values)}
