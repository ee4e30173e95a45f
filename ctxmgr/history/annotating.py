"""The two writing tools: notes and snapshots. They add records; no entry is ever changed (FR-012, FR-022 to FR-024).

How they go about it is in `ctxmgr.history.noting`.
"""

from __future__ import annotations

from ctxmgr.errors import NotFound
from ctxmgr.history import noting
from ctxmgr.history.address import entry_of, session_key
from ctxmgr.history.noting import note_record as note_record
from ctxmgr.history.noting import snapshot_record as snapshot_record
from ctxmgr.store import Store
from ctxmgr.types.query import (
    AddNoteRequest,
    AddNoteResponse,
    CreateSnapshotRequest,
    CreateSnapshotResponse,
    ListNotesRequest,
    ListNotesResponse,
    ListSnapshotsRequest,
    ListSnapshotsResponse,
    Page,
    ShowSnapshotRequest,
    ShowSnapshotResponse,
)
from ctxmgr.types.view import EntryView, NoteView, SnapshotView


def add_note(store: Store, request: AddNoteRequest) -> AddNoteResponse:
    """Attach a note to entries.

    Raises:
        InvalidInput: "Note content cannot be empty", or no entries named.
        NoHistory: "No history available". OutOfBounds: "Index out of bounds".
    """
    return AddNoteResponse(note=NoteView.model_validate(noting.add_note(store, request)))


def list_notes(store: Store, request: ListNotesRequest) -> ListNotesResponse:
    """Return notes by tags and text, oldest first."""
    found = noting.list_notes(store, request)
    return ListNotesResponse(
        status=found.status,
        session=found.session,
        notes=[NoteView.model_validate(row) for row in found.rows],
        page=Page.of(*found.page),
    )


def create_snapshot(store: Store, request: CreateSnapshotRequest) -> CreateSnapshotResponse:
    """Store a curated bundle of entries; its hash covers their records.

    Raises:
        InvalidInput: an empty summary, or no entries named.
        NoHistory, OutOfBounds: as `add_note`.
    """
    return CreateSnapshotResponse(snapshot=SnapshotView.model_validate(noting.create_snapshot(store, request)))


def list_snapshots(store: Store, request: ListSnapshotsRequest) -> ListSnapshotsResponse:
    """Return a session's snapshots, oldest first."""
    found = noting.list_snapshots(store, request)
    return ListSnapshotsResponse(
        status=found.status,
        session=found.session,
        snapshots=[SnapshotView.model_validate(row) for row in found.rows],
        page=Page.of(*found.page),
    )


def show_snapshot(store: Store, request: ShowSnapshotRequest) -> ShowSnapshotResponse:
    """Return a snapshot, its entries as they stand now, and whether they are what was bundled.

    Raises:
        NotFound: no such snapshot.
    """
    key = session_key(store, request.session)
    snapshot = None if key is None else store.annotations.snapshot(key, request.snapshot_id)
    if key is None or snapshot is None:
        raise NotFound(f"no snapshot {request.snapshot_id!r}", "'ctxmgr snapshot list' shows the ids")
    entries: list[EntryView] = [
        entry_of(store, key, None, entry) for entry in snapshot.entries if entry not in snapshot.missing
    ]
    intact = not snapshot.missing and noting.content_hash(store, key, snapshot.entries) == snapshot.hash
    return ShowSnapshotResponse(snapshot=snapshot, entries=entries, intact=intact)
