"""The five reading tools: trace, list, search, show, messages (FR-007 to FR-011, FR-025).

Each takes one request and returns one response. Reading an empty history answers ``empty``; asking for one thing in it is
an error (ruling 4).
"""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.history.address import entry_of, session_key
from ctxmgr.store import Store
from ctxmgr.store.folding import find, fold
from ctxmgr.store.queries import Hit, moment_of
from ctxmgr.types.query import (
    Filters,
    ListRequest,
    ListResponse,
    MessagesRequest,
    MessagesResponse,
    Page,
    SearchHit,
    SearchRequest,
    SearchResponse,
    ShowRequest,
    ShowResponse,
    Status,
    TraceRequest,
    TraceResponse,
)
from ctxmgr.types.view import EntryView, EventView
from ctxmgr.wire import Record


def _status(rows: object) -> Status:
    return "ok" if rows else "empty"


def _session_of(store: Store, key: int | None) -> str | None:
    return None if key is None else store.sessions.name(key)


def trace(store: Store, request: TraceRequest) -> TraceResponse:
    """Return the ordered history of an action or agent."""
    key, filters = session_key(store, request.session), _filters(request)
    entries: list[EntryView] = []
    total, exact = 0, True
    if key is not None:
        entries, total, exact = store.queries.entries(key, filters, request.offset, request.limit)
    page = Page.of(request.offset, request.limit or max(1, len(entries)), len(entries), total, exact=exact)
    return TraceResponse(status=_status(entries), session=_session_of(store, key), entries=entries, page=page)


def list_(store: Store, request: ListRequest) -> ListResponse:
    """Return one page of a session's entries, events, or both."""
    key, filters = session_key(store, request.session), _filters(request)
    rows: list[EntryView | EventView] = []
    total, exact = 0, True
    # Who asks for types of events wants to see events.
    kind = "event" if request.event_type and request.kind == "entry" else request.kind
    if key is not None and kind == "entry":
        found, total, exact = store.queries.entries(
            key, filters, request.offset, request.limit, newest_first=request.newest_first
        )
        rows = list(found)
    elif key is not None:
        places, total, exact = store.queries.places(
            key, filters, kind, request.offset, request.limit, newest_first=request.newest_first
        )
        rows = store.queries.rows(places)
    return ListResponse(
        status=_status(rows),
        session=_session_of(store, key),
        rows=rows,
        page=Page.of(request.offset, request.limit, len(rows), total, exact=exact),
    )


def search(store: Store, request: SearchRequest) -> SearchResponse:
    """Return the rows that contain the query literally, regardless of case, inside words too.

    Raises:
        InvalidInput: "Query cannot be empty".
    """
    if not request.query.replace("\0", " ").strip():
        raise InvalidInput("Query cannot be empty", "give some text to search for")
    key, filters = None if request.all_sessions else session_key(store, request.session), _filters(request)
    places: list[Hit] = []
    total, exact = 0, True
    if key is not None or request.all_sessions:
        wanted = 2**62 if request.exact_total else request.offset + request.max_results + 1
        places, total, exact = store.queries.find(key, filters, request.kind, request.query, wanted)
    chosen = places[request.offset : request.offset + request.max_results]
    needle = fold(request.query)
    hits = [_hit(row, needle) for row in store.queries.rows(chosen)]
    return SearchResponse(
        status=_status(hits),
        session=_session_of(store, key),
        hits=hits,
        page=Page.of(request.offset, request.max_results, len(hits), total, exact=exact),
    )


def _hit(row: EntryView | EventView, needle: str) -> SearchHit:
    record: Record = row.to_json()
    record["kind"] = row.kind
    field, excerpt = find(record, needle) or ("", "")
    return SearchHit(field=field, excerpt=excerpt, row=row)


def show(store: Store, request: ShowRequest) -> ShowResponse:
    """Return one entry with all details.

    Raises:
        NoHistory: "No history available".
        OutOfBounds: "Index out of bounds".
        NotFound, InvalidInput: no such entry or session, or an ambiguous id.
    """
    key = session_key(store, request.session, request.entry_id)
    return ShowResponse(entry=entry_of(store, key, request.index, request.entry_id))


def messages(store: Store, request: MessagesRequest) -> MessagesResponse:
    """Return what was said at an entry, or in the whole session when none is named.

    Raises:
        NoHistory, OutOfBounds, NotFound, InvalidInput: as `show`, when an entry is named.
    """
    key = session_key(store, request.session, request.entry_id)
    entry: EntryView | None = None
    if request.index is not None or request.entry_id is not None:
        entry = entry_of(store, key, request.index, request.entry_id)
    found: list[EventView] = []
    total = 0
    if key is not None:
        found, total = store.queries.messages(key, entry, request.offset, request.limit)
    return MessagesResponse(
        status=_status(found),
        session=_session_of(store, key),
        entry=entry,
        messages=found,
        page=Page.of(request.offset, request.limit, len(found), total),
    )


def _filters(request: Filters) -> Filters:
    for name in ("since", "until"):  # checked here, so that they are in an empty history too
        moment_of(name, getattr(request, name))
    return Filters.model_construct(**{name: getattr(request, name) for name in Filters.model_fields})
