"""Answer requests of the history tools with models (FR-007 to FR-012, FR-022 to FR-025).

Each function takes one request and returns one response. A query of an empty history returns ``empty``; a request for a
single thing in it is an error (ruling 4). The work is done on plain rows, in `ctxmgr.history.query.tools`.
"""

from __future__ import annotations

from ctxmgr.errors import NotFound
from ctxmgr.history.query import tools
from ctxmgr.history.query.address import find_named_entry, session_key
from ctxmgr.store import Store
from ctxmgr.types.query import (
    AddNoteRequest,
    AddNoteResponse,
    CreateSnapshotRequest,
    CreateSnapshotResponse,
    ListNotesRequest,
    ListNotesResponse,
    ListRequest,
    ListResponse,
    ListSnapshotsRequest,
    ListSnapshotsResponse,
    MessagesRequest,
    MessagesResponse,
    Page,
    SearchHit,
    SearchRequest,
    SearchResponse,
    ShowRequest,
    ShowResponse,
    ShowSnapshotRequest,
    ShowSnapshotResponse,
    TraceRequest,
    TraceResponse,
)
from ctxmgr.types.view import EntryView, EventView, NoteView, SnapshotView


def add_note(store: Store, request: AddNoteRequest) -> AddNoteResponse:
    """Attach a note to entries.

    Raises:
        InvalidInput: "Note content cannot be empty", or no entries named.
        NoHistory: "No history available". OutOfBounds: "Index out of bounds".
    """
    return AddNoteResponse(note=NoteView.model_validate(tools.add_note(store, request)))


def list_notes(store: Store, request: ListNotesRequest) -> ListNotesResponse:
    """Return notes by tags and text, oldest first."""
    found = tools.list_notes(store, request)
    return ListNotesResponse(
        status=found.status,
        session=found.session,
        notes=[NoteView.model_validate(row) for row in found.rows],
        page=Page.make(*found.page),
    )


def create_snapshot(store: Store, request: CreateSnapshotRequest) -> CreateSnapshotResponse:
    """Store a curated bundle of entries; its hash covers their records.

    Raises:
        InvalidInput: an empty summary, or no entries named.
        NoHistory, OutOfBounds: as `add_note`.
    """
    return CreateSnapshotResponse(snapshot=SnapshotView.model_validate(tools.create_snapshot(store, request)))


def list_snapshots(store: Store, request: ListSnapshotsRequest) -> ListSnapshotsResponse:
    """Return a session's snapshots, oldest first."""
    found = tools.list_snapshots(store, request)
    return ListSnapshotsResponse(
        status=found.status,
        session=found.session,
        snapshots=[SnapshotView.model_validate(row) for row in found.rows],
        page=Page.make(*found.page),
    )


def show_snapshot(store: Store, request: ShowSnapshotRequest) -> ShowSnapshotResponse:
    """Return a snapshot, its entries as they are now, and whether they are still unchanged.

    Raises:
        NotFound: no such snapshot.
    """
    key = session_key(store, request.session)
    snapshot = None if key is None else store.annotations.snapshot(key, request.snapshot_id)
    if key is None or snapshot is None:
        raise NotFound(f"no snapshot {request.snapshot_id!r}", "'ctxmgr snapshot list' shows the ids")
    entries: list[EntryView] = [
        find_named_entry(store, key, None, entry) for entry in snapshot.entries if entry not in snapshot.missing
    ]
    intact = not snapshot.missing and tools.content_hash(store, key, snapshot.entries) == snapshot.hash
    return ShowSnapshotResponse(snapshot=snapshot, entries=entries, intact=intact)


def trace(store: Store, request: TraceRequest) -> TraceResponse:
    """Return the ordered history of an action or agent."""
    found = tools.trace(store, store.queries, request)
    return TraceResponse(status=found.status, session=found.session, entries=found.rows, page=Page.make(*found.page))


def list_(store: Store, request: ListRequest) -> ListResponse:
    """Return one page of a session's entries, events, or both."""
    found = tools.list_(store, store.queries, request)
    return ListResponse(status=found.status, session=found.session, rows=found.rows, page=Page.make(*found.page))


def search(store: Store, request: SearchRequest) -> SearchResponse:
    """Return the rows that contain the query literally, regardless of case, inside words too.

    Raises:
        InvalidInput: "Query cannot be empty".
    """
    found = tools.search(store, store.queries, request, _make_hit)
    return SearchResponse(status=found.status, session=found.session, hits=found.rows, page=Page.make(*found.page))


def _make_hit(row: EntryView | EventView, field: str, excerpt: str) -> SearchHit:
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
    """Return the messages at an entry, or of the whole session if none is named.

    Raises:
        NoHistory, OutOfBounds, NotFound, InvalidInput: as `show`, when an entry is named.
    """
    found = tools.messages(store, store.queries, request)
    return MessagesResponse(
        status=found.status, session=found.session, entry=found.entry, messages=found.rows, page=Page.make(*found.page)
    )
