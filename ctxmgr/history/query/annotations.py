"""Create, list and search notes and snapshots on plain rows.

Both `ctxmgr.history.query.requests` and the fast path of the command line call these. ``request`` has the fields of the tool's
request.
"""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, NoHistory, NotFound
from ctxmgr.history.query.address import entries_from, linked, session_key
from ctxmgr.history.query.tools import Found
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.types.plain_records import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store import Store
    from ctxmgr.store.row_mapper import Plain


def add_note(store: Store, request: Any) -> Plain:
    """Attach a note to entries and return it.

    Raises:
        InvalidInput: "Note content cannot be empty", or no entries named.
        NoHistory: "No history available". OutOfBounds: "Index out of bounds".
        NotFound: a link names nothing that is there.
    """
    key = session_key(store, request.session, next(iter(request.entry_ids), None))
    record = note_record(store, key, request)
    store.append([record])
    note = store.annotations.note_row(session_key(store, record["session"]) or 0, record["id"])
    assert note is not None, "an appended note can be read back"
    return note


def note_record(store: Store, key: int | None, request: Any) -> Record:
    """Return the record of a note, checked but not written; raises like `add_note`."""
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
        links=(linked(store, key, request.links) if key is not None else []) or None,
        author=request.author,
        supersedes=request.supersedes,
    )


def list_notes(store: Store, request: Any) -> Found:
    """Find notes by tags and text, oldest first."""
    key = None if request.all_sessions else session_key(store, request.session)
    if key is None and not request.all_sessions:
        return Found(None, [], request.offset, request.limit, 0)
    found, total, exact = store.annotations.note_page(key, request.tags, request.query, request.offset, request.limit)
    name = None if key is None else store.sessions.name(key)
    return Found(name, found, request.offset, request.limit, total, exact=exact)


def create_snapshot(store: Store, request: Any) -> Plain:
    """Store a curated bundle of entries and return it; its hash covers their records.

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


def list_snapshots(store: Store, request: Any) -> Found:
    """Find a session's snapshots, oldest first."""
    key = session_key(store, request.session)
    found, total = ([], 0) if key is None else store.annotations.snapshot_page(key, request.offset, request.limit)
    name = None if key is None else store.sessions.name(key)
    return Found(name, found, request.offset, request.limit, total)


def content_hash(store: Store, key: int, ids: Sequence[str]) -> str:
    """Return one hash over entries and results, which changes with a later result; a snapshot shows so whether it is intact."""
    from ctxmgr.log.codec import fingerprint

    bodies = store.annotations.entry_bodies(key, ids)
    return fingerprint([bodies.get(entry) for entry in ids])


def _named_entries(store: Store, key: int | None, request: Any) -> tuple[str, list[str]]:
    """Return the session and the ids of the entries that a request names."""
    entries: list[Plain] = entries_from(store, Rows(store.engine), key, request.entry_indices, request.entry_ids)
    return entries[0]["session"], [entry["id"] for entry in entries]


def _new_id_and_time() -> tuple[str, str]:
    """Return a new id and the present time."""
    from ctxmgr.log.ids import new_id, now

    moment = now()
    return new_id(), moment
