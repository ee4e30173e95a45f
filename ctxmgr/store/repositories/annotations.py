"""Read notes, snapshots and continuations."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, candidates
from ctxmgr.log.fast_json import cast
from ctxmgr.store.row_mapper import (
    ID_CONDITIONS,
    NOTE_COLUMNS,
    batches,
    entry_places,
    load,
    note_rows,
    note_shape,
    placeholders,
    readable,
    require_text,
)
from ctxmgr.store.search.text_match import find_matching_places
from ctxmgr.store.text_normalisation import fold, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.store.row_mapper import Plain
    from ctxmgr.types.view import NoteView, SnapshotView

_READ = 2_000
"""Number of notes up to which matches of a text are counted exactly."""


class Annotations:
    """Notes, snapshots and continuations of a history."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def notes(
        self, key: int | None, tags: Sequence[str], query: str | None, offset: int, limit: int
    ) -> tuple[list[NoteView], int]:
        """Return a page of notes that carry all the tags and contain the text, oldest first, and their total."""
        found, total, _ = self.note_page(key, tags, query, offset, limit)
        return [note_shape(row) for row in found], total

    def note_page(
        self, key: int | None, tags: Sequence[str], query: str | None, offset: int, limit: int
    ) -> tuple[list[Plain], int, bool]:
        """Return one page of `notes` in JSON form, the number of all, and whether it is exact.

        With ``key`` None, notes of every session count. With a text and very many notes, the number is an estimate.
        """
        places, values = _notes_statement(key, tags)
        if query:
            chosen, total, exact = self._find_holding(places, values, fold(query), offset, limit)
        else:
            total, exact = int(self._engine.query(f"SELECT count(*) FROM ({places}) AS places", values)[0][0]), True
            found = self._engine.query(
                f"{places} ORDER BY seq LIMIT :limit OFFSET :offset", {**values, "limit": limit, "offset": offset}
            )
            chosen = [int(row[0]) for row in found]
        return note_rows(self._engine, self._read_rows(chosen)), total, exact

    def _find_holding(
        self, places: str, values: dict[str, Any], needle: str, offset: int, limit: int
    ) -> tuple[list[int], int, bool]:
        """Return the places of one page of the notes that contain a text, the number of all, and whether it is exact.

        This reads only as many notes as the page needs, but at least `_READ`, and estimates the rest from them.
        """
        noted = [int(row[0]) for row in self._engine.query(f"{places} ORDER BY seq", values)]
        found: list[int] = []
        read = 0
        for batch in batches(noted):
            # Reading every note of a long history to count matches would take seconds; the total is estimated from those read.
            if read >= _READ and len(found) > offset + limit:
                break
            found += find_matching_places(self._engine, batch, needle)
            read += len(batch)
        exact = read == len(noted)
        total = len(found) if exact else len(found) * len(noted) // read
        return found[offset : offset + limit], total, exact

    def _read_rows(self, places: Sequence[int]) -> list[Row]:
        """Return the `NOTE_COLUMNS` rows at these places, in the order of the log."""
        rows: list[Row] = []
        for batch in batches(places):
            names, values = placeholders(batch, "s")
            rows += self._engine.query(f"{NOTE_COLUMNS} WHERE record.seq IN ({names}) ORDER BY record.seq", values)
        return rows

    def note(self, key: int, note_id: str) -> NoteView | None:
        """Return one note by its id, or None."""
        found = self.note_row(key, note_id)
        return None if found is None else note_shape(found)

    def note_row(self, key: int, note_id: str) -> Plain | None:
        """Return `note` in JSON form."""
        rows = self._engine.query(
            f"{NOTE_COLUMNS} WHERE record.session = :session AND record.kind = 'note' AND record.id = :id",
            {"session": key, "id": storable(note_id)},
        )
        return note_rows(self._engine, rows)[0] if rows else None

    def snapshots(self, key: int, offset: int, limit: int) -> tuple[list[SnapshotView], int]:
        """Return a page of a session's snapshots, oldest first, and their total."""
        found, total = self.snapshot_page(key, offset, limit)
        return [_snapshot_view(row) for row in found], total

    def snapshot_page(self, key: int, offset: int, limit: int) -> tuple[list[Plain], int]:
        """Return `snapshots` in JSON form."""
        places = "SELECT seq FROM record WHERE session = :session AND kind = 'snapshot'"  # written to match a partial index
        total = int(self._engine.query(f"SELECT count(*) FROM ({places}) AS places", {"session": key})[0][0])
        found = self._engine.query(
            f"{places} ORDER BY seq LIMIT :limit OFFSET :offset", {"session": key, "limit": limit, "offset": offset}
        )
        return [self._snapshot(int(row[1]), load(row[2])) for row in self._read_rows([int(row[0]) for row in found])], total

    def snapshot(self, key: int, snapshot_id: str) -> SnapshotView | None:
        """Return one snapshot by id or unambiguous id prefix, or None.

        Raises:
            InvalidInput: several ids have this prefix.
        """
        found = self.snapshot_row(key, snapshot_id)
        return None if found is None else _snapshot_view(found)

    def snapshot_row(self, key: int, snapshot_id: str) -> Plain | None:
        """Return `snapshot` in JSON form; raises the same errors."""
        for condition in ID_CONDITIONS if snapshot_id else ():
            rows = self._engine.query(
                f"{NOTE_COLUMNS} WHERE record.session = :session AND record.kind = 'snapshot' AND {condition} LIMIT 6",
                {"session": key, "id": storable(snapshot_id), "after": storable(snapshot_id) + "\U0010ffff"},
            )
            if len(rows) > 1:
                ids = [str(load(row[2])["id"]) for row in rows]
                raise InvalidInput(f"several snapshot ids start with {snapshot_id!r}", candidates(ids))
            if rows:
                return self._snapshot(key, load(rows[0][2]))
        return None

    def _snapshot(self, key: int, record: Record) -> Plain:
        with readable():
            entries = [str(item) for item in cast("list[Any]", record.get("entries") or [])]
            places = entry_places(self._engine, key, entries)
            return {
                "kind": "snapshot", "id": require_text(record["id"]), "session": require_text(record["session"]),
                "ts": None if record.get("ts") is None else require_text(record["ts"]), "entries": entries,
                "indexes": [places[entry] for entry in entries if entry in places], "summary": str(record.get("summary", "")),
                "reasoning": str(record.get("reasoning", "")), "hash": str(record.get("hash", "")),
                "missing": [entry for entry in entries if entry not in places],
            }  # fmt: skip

    def continuations(self, key: int, *, since_compaction_of: str | None = None) -> list[Record]:
        """Return the recorded continuations of a session, oldest first, as records.

        With ``since_compaction_of``, only those after the last compaction of this agent's context, or of an unnamed agent's.
        """
        rows = self._engine.query(
            # With the plus SQLite does not follow the order of places, which would scan all records of the session. It finds
            # the few continuations by their kind and sorts them.
            "SELECT seq, body FROM record WHERE session = :session AND kind = 'continuation' ORDER BY +seq",
            {"session": key},
        )
        after = 0
        if rows and since_compaction_of is not None:
            found = self._engine.query(
                "SELECT max(seq) FROM event "
                "WHERE session = :session AND type = 'compaction' AND (agent IS NULL OR agent = :agent)",
                {"session": key, "agent": fold(storable(since_compaction_of))},
            )
            after = int(found[0][0] or 0)
        return [load(row[1]) for row in rows if int(row[0]) > after]

    def continuation(self, key: int | None, continuation_id: str) -> Record | None:
        """Return one recorded continuation by id or unambiguous id prefix, or None; of any session if ``key`` is None.

        Raises:
            InvalidInput: several ids have this prefix.
        """
        session = "IN (SELECT session.key FROM session)" if key is None else "= :session"
        values: dict[str, Any] = {} if key is None else {"session": key}
        for condition in ID_CONDITIONS if continuation_id else ():
            rows = self._engine.query(
                f"SELECT id, body FROM record WHERE session {session} AND kind = 'continuation' AND {condition} LIMIT 6",
                {**values, "id": storable(continuation_id), "after": storable(continuation_id) + "\U0010ffff"},
            )
            if len({str(row[0]) for row in rows}) > 1:
                ids = [str(row[0]) for row in rows]
                raise InvalidInput(f"several continuation ids start with {continuation_id!r}", candidates(ids))
            if rows:
                return load(rows[0][1])
        return None

    def latest_act(self, key: int) -> tuple[str, str] | None:
        """Return kind and id of the newest entry, result or event of an agent or a person, or None.

        Heartbeats, and events that the stuck handler writes itself, do not count.
        """
        rows = self._engine.query(
            "SELECT kind, id FROM record WHERE session = :session AND kind IN ('entry', 'result', 'event') AND NOT EXISTS "
            "(SELECT 1 FROM event WHERE event.seq = record.seq AND event.session = record.session "
            "AND event.type IN ('stuck', 'heartbeat')) "
            "ORDER BY seq DESC LIMIT 1",
            {"session": key},
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def entry_bodies(self, key: int, ids: Sequence[str]) -> dict[str, list[Record]]:
        """Return the stored records (the entry and its result) by entry id, for the ids that exist."""
        found: dict[str, list[Record]] = {}
        for batch in batches(list(dict.fromkeys(ids))):
            names, values = placeholders([storable(item) for item in batch], "id")
            rows = self._engine.query(
                "SELECT id, body FROM record WHERE session = :session AND kind IN ('entry', 'result') "
                f"AND id IN ({names}) ORDER BY seq",
                {"session": key, **values},
            )
            by_stored = {storable(item): item for item in batch}
            for entry_id, body in rows:
                found.setdefault(by_stored[str(entry_id)], []).append(load(body))
        return found

    def is_known(self, identity: str) -> bool:
        """Whether any record of the store, of any kind and session, has exactly this id."""
        return bool(self._engine.query("SELECT 1 FROM record WHERE id = :id LIMIT 1", {"id": storable(identity)}))

    def known_ids(self, key: int, ids: Sequence[str]) -> set[str]:
        """Return the given ids that a record of the session has, of any kind."""
        found: set[str] = set()
        for batch in batches(list(dict.fromkeys(ids))):
            names, values = placeholders([storable(item) for item in batch], "id")
            rows = self._engine.query(
                f"SELECT DISTINCT id FROM record WHERE session = :session AND id IN ({names})", {"session": key, **values}
            )
            # Ids are compared in their stored form, and returned as the caller gave them.
            stored = {str(row[0]) for row in rows}
            found |= {item for item in batch if storable(item) in stored}
        return found


def _notes_statement(key: int | None, tags: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a statement, and its values, that finds the places of notes with all the tags by using indexes only."""
    values: dict[str, Any] = {} if key is None else {"session": key}
    # For all sessions, list their keys, because the indexes of notes begin with the session.
    session = "IN (SELECT session.key FROM session)" if key is None else "= :session"
    if not tags:
        return f"SELECT seq FROM record WHERE session {session} AND kind = 'note'", values
    more: list[str] = []
    for number, tag in enumerate(tags):
        values[f"tag{number}"] = fold(storable(tag))
        if number:
            more.append(
                "AND EXISTS (SELECT 1 FROM note_tag AS other WHERE other.session = note_tag.session "
                f"AND other.note = note_tag.note AND other.tag = :tag{number})"
            )
    return f"SELECT note AS seq FROM note_tag WHERE session {session} AND tag = :tag0 {' '.join(more)}", values


def _snapshot_view(row: Plain) -> SnapshotView:
    from ctxmgr.types.view import SnapshotView

    return SnapshotView.model_validate(row)
