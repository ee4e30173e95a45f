"""The two writing tools: notes and snapshots. They add records; no entry is ever changed (FR-012, FR-022 to FR-024)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.errors import InvalidInput, NoHistory, NotFound
from ctxmgr.history.address import entries_of, entry_of, session_key
from ctxmgr.ids import new_id, now
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
from ctxmgr.types.record import build
from ctxmgr.types.view import EntryView
from ctxmgr.wire import Record, fingerprint


def add_note(store: Store, request: AddNoteRequest) -> AddNoteResponse:
    """Attach a note to entries.

    Raises:
        InvalidInput: "Note content cannot be empty", or no entries named.
        NoHistory: "No history available". OutOfBounds: "Index out of bounds".
    """
    key = session_key(store, request.session, next(iter(request.entry_ids), None))
    record = note_record(store, key, request)
    store.append([record])
    note = store.annotations.note(session_key(store, record["session"]) or 0, record["id"])
    assert note is not None, "an appended note can be read back"
    return AddNoteResponse(note=note)


def note_record(store: Store, key: int | None, request: AddNoteRequest) -> Record:
    """Return the record of a note, checked but not yet written; raises as `add_note`."""
    if not request.content.strip():
        raise InvalidInput("Note content cannot be empty", "say what the note is to tell: -m TEXT")
    entries = entries_of(store, key, request.entry_indices, request.entry_ids)
    if request.supersedes is not None and (key is None or store.annotations.note(key, request.supersedes) is None):
        raise NotFound(f"no note {request.supersedes!r} to supersede", "'ctxmgr note list' shows the ids")
    return build(
        "note",
        entries[0].session,
        now(),
        id=new_id(),
        entries=[entry.id for entry in entries],
        content=request.content,
        tags=list(dict.fromkeys(tag.strip() for tag in request.tags if tag.strip())),
        links=list(request.links) or None,
        author=request.author,
        supersedes=request.supersedes,
    )


def list_notes(store: Store, request: ListNotesRequest) -> ListNotesResponse:
    """Return notes by tags and text, oldest first."""
    key = None if request.all_sessions else session_key(store, request.session)
    if key is None and not request.all_sessions:
        return ListNotesResponse(status="empty", session=None, notes=[], page=Page.of(request.offset, request.limit, 0, 0))
    found, total = store.annotations.notes(key, request.tags, request.query, request.offset, request.limit)
    return ListNotesResponse(
        status="ok" if found else "empty",
        session=None if key is None else store.sessions.name(key),
        notes=found,
        page=Page.of(request.offset, request.limit, len(found), total),
    )


def create_snapshot(store: Store, request: CreateSnapshotRequest) -> CreateSnapshotResponse:
    """Store a curated bundle of entries; its hash covers their records.

    Raises:
        InvalidInput: an empty summary, or no entries named.
        NoHistory, OutOfBounds: as `add_note`.
    """
    key = session_key(store, request.session, next(iter(request.entry_ids), None))
    record = snapshot_record(store, key, request)
    store.append([record])
    snapshot = store.annotations.snapshot(session_key(store, record["session"]) or 0, record["id"])
    assert snapshot is not None, "an appended snapshot can be read back"
    return CreateSnapshotResponse(snapshot=snapshot)


def snapshot_record(store: Store, key: int | None, request: CreateSnapshotRequest) -> Record:
    """Return the record of a snapshot, checked but not yet written; raises as `create_snapshot`."""
    if not request.summary.strip():
        raise InvalidInput("Snapshot summary cannot be empty", "say what the bundle is: --summary TEXT")
    entries = entries_of(store, key, request.entry_indices, request.entry_ids)
    if key is None:
        raise NoHistory
    ids = [entry.id for entry in entries]
    return build(
        "snapshot",
        entries[0].session,
        now(),
        id=new_id(),
        entries=ids,
        summary=request.summary,
        reasoning=request.reasoning,
        hash=_hash(store, key, ids),
    )


def _hash(store: Store, key: int, ids: Sequence[str]) -> str:
    """Return one hash over what the entries were and did; a result that comes later changes it."""
    bodies = store.annotations.entry_bodies(key, ids)
    return fingerprint([bodies.get(entry) for entry in ids])


def list_snapshots(store: Store, request: ListSnapshotsRequest) -> ListSnapshotsResponse:
    """Return a session's snapshots, oldest first."""
    key = session_key(store, request.session)
    found, total = ([], 0) if key is None else store.annotations.snapshots(key, request.offset, request.limit)
    return ListSnapshotsResponse(
        status="ok" if found else "empty",
        session=None if key is None else store.sessions.name(key),
        snapshots=found,
        page=Page.of(request.offset, request.limit, len(found), total),
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
    intact = not snapshot.missing and _hash(store, key, snapshot.entries) == snapshot.hash
    return ShowSnapshotResponse(snapshot=snapshot, entries=entries, intact=intact)
