"""The seven history tools on plain rows: trace, list, search, show, messages, notes and snapshots.

``reader`` is `ctxmgr.store.repositories.queries.Queries`, which answers in views, or `Rows`, which answers in plain rows.
``request`` has the fields of the tool's request: that of the library, which is checked, or a `PlainRequest`. Besides
`ctxmgr.history.query.requests`, the fast path and whatever reads a history below the library's edge call these.
"""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, NoHistory, NotFound
from ctxmgr.history.query.address import find_entry_form, find_entry_rows, link_targets, session_key, session_of_query
from ctxmgr.store.repositories.filters import limit_seconds
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.types.plain_records import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal

    from ctxmgr.log.codec import Record
    from ctxmgr.store import Store
    from ctxmgr.store.row_mapper import Plain

    Hit = Callable[[Any, str, str], Any]


_WITHOUT_DEFAULT = frozenset(["kind", "limit", "query", "max_results", "exact_total", "content", "summary", "reasoning"])


class PlainRequest:
    """A request whose values are not checked: its fields have the names of `ctxmgr.types.query`. One not given narrows nothing.

    The kind of rows and the length of a page have no default.

    Raises:
        TypeError: on a name that no request has.
    """

    session = process = index = entry_id = since = until = author = supersedes = None
    action = agent = input_type = status = event_type = entry_indices = entry_ids = tags = links = ()
    offset, newest_first, all_sessions = 0, False, False

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - REQUEST_FIELDS:
            raise TypeError(f"no request has the field {', '.join(sorted(unknown))}")
        self.__dict__.update(values)


REQUEST_FIELDS = _WITHOUT_DEFAULT | {name for name in vars(PlainRequest) if not name.startswith("_")}
"""The names of all fields of all requests of the tools."""


class QueryResult:
    """The result of a tool.

    Attributes:
        session: the id of the session, if there is one.
        rows: entries, events or hits, in order.
        page: (offset, limit, number of rows, total, whether the total is exact).
        entry: the entry whose messages were asked for.
    """

    __slots__ = ("entry", "page", "rows", "session")

    def __init__(
        self,
        session: str | None,
        rows: list[Any],
        offset: int,
        limit: int,
        total: int,
        *,
        exact: bool = True,
        entry: Any = None,
    ) -> None:
        self.session = session
        self.rows = rows
        self.page = (offset, limit, len(rows), total, exact)
        self.entry = entry

    @property
    def total(self) -> int:
        """How many rows there are, on this page and others."""
        return self.page[3]

    @property
    def status(self) -> Literal["ok", "empty"]:
        """Whether there is any row: "ok" or "empty"."""
        return "ok" if self.rows else "empty"


def _session_name(store: Store, key: int | None) -> str | None:
    return None if key is None else store.sessions.name(key)


def trace(store: Store, reader: Any, request: Any) -> QueryResult:
    """Find the ordered history of an action or agent."""
    key = _session(store, request)
    entries: list[Any] = []
    total, exact = 0, True
    if key is not None:
        entries, total, exact = reader.entries(key, request, request.offset, request.limit)
    return QueryResult(
        _session_name(store, key), entries, request.offset, request.limit or max(1, len(entries)), total, exact=exact
    )


def list_(store: Store, reader: Any, request: Any) -> QueryResult:
    """Find one page of a session's entries, events, or both."""
    key = _session(store, request)
    rows: list[Any] = []
    total, exact = 0, True
    # A filter on event types implies events, even if the request leaves the kind at its default.
    kind = "event" if request.event_type and request.kind == "entry" else request.kind
    if key is not None and kind == "entry":
        rows, total, exact = reader.entries(key, request, request.offset, request.limit, newest_first=request.newest_first)
    elif key is not None:
        places, total, exact = reader.places(
            key, request, kind, request.offset, request.limit, newest_first=request.newest_first
        )
        rows = reader.rows(places)
    return QueryResult(_session_name(store, key), rows, request.offset, request.limit, total, exact=exact)


def _row_alone(row: Any, field: str, excerpt: str) -> Any:
    return row


def search(store: Store, reader: Any, request: Any, hit: Hit = _row_alone) -> QueryResult:
    """Find the rows that contain the query literally, regardless of case, inside words too.

    Args:
        store: the store to search.
        reader: the reader of its rows.
        request: the query and filters.
        hit: (row, matching field, excerpt) -> hit; without it the rows alone are the result.

    Raises:
        InvalidInput: "Query cannot be empty".
    """
    _check_query(request)
    key = None if request.all_sessions else session_of_query(store, request)
    _check_times(request)
    found: list[Any] = []
    total, exact = 0, True
    if key is not None or request.all_sessions:
        found, total, exact = reader.search(
            key, request, request.kind, request.query, request.offset, request.max_results, every=request.exact_total
        )
    hits = [hit(row, field, excerpt) for row, field, excerpt in found]
    return QueryResult(_session_name(store, key), hits, request.offset, request.max_results, total, exact=exact)


def search_last(store: Store, reader: Any, request: Any) -> list[Any]:
    """Find the last rows of a session that contain the query, in the order of the log. Raises what `search` does."""
    _check_query(request)
    key = _session(store, request)
    return [] if key is None else reader.search_last(key, request, request.kind, request.query, request.max_results)


def _check_query(request: Any) -> None:
    if not request.query.replace("\0", " ").strip():
        raise InvalidInput("Query cannot be empty", "give some text to search for")


def show(store: Store, reader: Any, request: Any) -> Any:
    """Find one entry.

    Raises:
        NoHistory: "No history available".
        OutOfBounds: "Index out of bounds".
        NotFound, InvalidInput: no such entry or session, or an ambiguous id.
    """
    key = session_key(store, request.session, request.entry_id)
    return find_entry_form(store, reader, key, request.index, request.entry_id)


def messages(store: Store, reader: Any, request: Any) -> QueryResult:
    """Find the messages at an entry, or of the whole session if none is named.

    Raises:
        NoHistory, OutOfBounds, NotFound, InvalidInput: as `show`, when an entry is named.
    """
    asked = request.index is not None or request.entry_id is not None
    key = session_key(store, request.session, request.entry_id) if asked else session_of_query(store, request)
    entry = None
    if asked:
        entry = find_entry_form(store, reader, key, request.index, request.entry_id)
    found: list[Any] = []
    total = 0
    if key is not None:
        found, total = reader.messages(key, entry, request.offset, request.limit, request)
    return QueryResult(_session_name(store, key), found, request.offset, request.limit, total, entry=entry)


def _session(store: Store, request: Any) -> int | None:
    """Return the row key of the request's session. Invalid times are refused even if the history is empty."""
    key = session_of_query(store, request)
    _check_times(request)
    return key


def _check_times(request: Any) -> None:
    for name in ("since", "until"):
        limit_seconds(name, getattr(request, name))


def add_note(store: Store, request: Any) -> Plain:
    """Attach a note to entries, and return the note. An agent signs it as itself.

    Raises:
        Denied: an agent signs as another one, or may not write the history of the entries.
        InvalidInput: "Note content cannot be empty", or no entries named.
        NoHistory: "No history available". OutOfBounds: "Index out of bounds".
        NotFound: a link names nothing that exists.
    """
    # If no session is named, the first entry determines it.
    key = session_key(store, request.session, next(iter(request.entry_ids), None))
    record = note_record(store, key, request, store.signature(request.author))
    store.append([record])
    note = store.annotations.note_row(session_key(store, record["session"]) or 0, record["id"])
    assert note is not None, "an appended note can be read back"
    return note


def note_record(store: Store, key: int | None, request: Any, author: str | None = None) -> Record:
    """Return the record of a note, checked but not written; raises like `add_note`. ``author`` is else the request's."""
    if not request.content.strip():
        raise InvalidInput("Note content cannot be empty", "say what the note is to tell: -m TEXT")
    session, entries = _named_entries(store, key, request)
    if request.supersedes is not None and (key is None or store.annotations.note_row(key, request.supersedes) is None):
        raise NotFound(f"no note {request.supersedes!r} to supersede", "'ctxmgr note list' shows the ids")
    identity, ts = _new_id_and_time()
    return build(
        "note",
        session,
        ts,
        id=identity,
        entries=entries,
        content=request.content,
        tags=list(dict.fromkeys(tag.strip() for tag in request.tags if tag.strip())),
        links=(link_targets(store, key, request.links) if key is not None else []) or None,
        author=request.author if author is None else author,
        supersedes=request.supersedes,
    )


def list_notes(store: Store, request: Any) -> QueryResult:
    """Find notes by tags and text, oldest first."""
    key = None if request.all_sessions else session_key(store, request.session)
    if key is None and not request.all_sessions:
        return QueryResult(None, [], request.offset, request.limit, 0)
    found, total, exact = store.annotations.note_page(key, request.tags, request.query, request.offset, request.limit)
    name = None if key is None else store.sessions.name(key)
    return QueryResult(name, found, request.offset, request.limit, total, exact=exact)


def create_snapshot(store: Store, request: Any) -> Plain:
    """Store a curated bundle of entries, and return it. Its hash covers their records.

    Raises:
        InvalidInput: an empty summary, or no entries named.
        NoHistory, OutOfBounds: as `add_note`.
    """
    key = session_key(store, request.session, next(iter(request.entry_ids), None))
    record = snapshot_record(store, key, request)
    store.append([record])
    snapshot = store.annotations.snapshot_row(session_key(store, record["session"]) or 0, record["id"])
    assert snapshot is not None, "an appended snapshot can be read back"
    return snapshot


def snapshot_record(store: Store, key: int | None, request: Any) -> Record:
    """Return the record of a snapshot, checked but not written; raises like `create_snapshot`."""
    if not request.summary.strip():
        raise InvalidInput("Snapshot summary cannot be empty", "say what the bundle is: --summary TEXT")
    session, entries = _named_entries(store, key, request)
    if key is None:
        raise NoHistory
    identity, ts = _new_id_and_time()
    return build(
        "snapshot",
        session,
        ts,
        id=identity,
        entries=entries,
        summary=request.summary,
        reasoning=request.reasoning,
        hash=content_hash(store, key, entries),
    )


def list_snapshots(store: Store, request: Any) -> QueryResult:
    """Find a session's snapshots, oldest first."""
    key = session_key(store, request.session)
    found, total = ([], 0) if key is None else store.annotations.snapshot_page(key, request.offset, request.limit)
    name = None if key is None else store.sessions.name(key)
    return QueryResult(name, found, request.offset, request.limit, total)


def content_hash(store: Store, key: int, ids: Sequence[str]) -> str:
    """Return one hash over entries and results. A later result changes it, so a snapshot shows by it whether it is intact."""
    from ctxmgr.log.codec import fingerprint

    bodies = store.annotations.entry_bodies(key, ids)
    return fingerprint([bodies.get(entry) for entry in ids])


def _named_entries(store: Store, key: int | None, request: Any) -> tuple[str, list[str]]:
    """Return the session and the ids of the entries that a request names."""
    entries: list[Plain] = find_entry_rows(store, Rows(store.engine), key, request.entry_indices, request.entry_ids)
    return entries[0]["session"], [entry["id"] for entry in entries]


def _new_id_and_time() -> tuple[str, str]:
    """Return a new id and the current time."""
    from ctxmgr.log.ids import new_id, now

    moment = now()
    return new_id(), moment
