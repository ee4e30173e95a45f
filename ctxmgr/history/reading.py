"""The five reading tools: trace, list, search, show, messages (FR-007 to FR-011, FR-025).

Each takes one request and returns one response. Reading an empty history answers ``empty``; asking for one thing in it is
an error (ruling 4). How they go about it is in `ctxmgr.history.tools`.
"""

from __future__ import annotations

from ctxmgr.history import tools
from ctxmgr.store import Store
from ctxmgr.types.query import (
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
    TraceRequest,
    TraceResponse,
)
from ctxmgr.types.view import EntryView, EventView


def trace(store: Store, request: TraceRequest) -> TraceResponse:
    """Return the ordered history of an action or agent."""
    found = tools.trace(store, store.queries, request)
    return TraceResponse(status=found.status, session=found.session, entries=found.rows, page=Page.of(*found.page))


def list_(store: Store, request: ListRequest) -> ListResponse:
    """Return one page of a session's entries, events, or both."""
    found = tools.list_(store, store.queries, request)
    return ListResponse(status=found.status, session=found.session, rows=found.rows, page=Page.of(*found.page))


def search(store: Store, request: SearchRequest) -> SearchResponse:
    """Return the rows that contain the query literally, regardless of case, inside words too.

    Raises:
        InvalidInput: "Query cannot be empty".
    """
    found = tools.search(store, store.queries, request, _hit)
    return SearchResponse(status=found.status, session=found.session, hits=found.rows, page=Page.of(*found.page))


def _hit(row: EntryView | EventView, field: str, excerpt: str) -> SearchHit:
    return SearchHit(field=field, excerpt=excerpt, row=row)


def show(store: Store, request: ShowRequest) -> ShowResponse:
    """Return one entry with all details.

    Raises:
        NoHistory: "No history available".
        OutOfBounds: "Index out of bounds".
        NotFound, InvalidInput: no such entry or session, or an ambiguous id.
    """
    return ShowResponse(entry=tools.show(store, store.queries, request))


def messages(store: Store, request: MessagesRequest) -> MessagesResponse:
    """Return what was said at an entry, or in the whole session when none is named.

    Raises:
        NoHistory, OutOfBounds, NotFound, InvalidInput: as `show`, when an entry is named.
    """
    found = tools.messages(store, store.queries, request)
    return MessagesResponse(
        status=found.status, session=found.session, entry=found.entry, messages=found.rows, page=Page.of(*found.page)
    )
