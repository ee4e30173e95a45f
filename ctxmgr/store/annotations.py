"""Read notes, snapshots and continuations."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.jsontext import cast
from ctxmgr.store.folding import fold, storable
from ctxmgr.store.holding import know_holds
from ctxmgr.store.hydrate import (
    ID_CONDITIONS,
    NOTE_COLUMNS,
    batches,
    entry_places,
    load,
    note_views,
    placeholders,
    readable,
)

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.store.interface import Engine
    from ctxmgr.types.view import NoteView, SnapshotView
    from ctxmgr.wire import Record


class Annotations:
    """What was attached to a history after the fact."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def notes(
        self, key: int | None, tags: Sequence[str], query: str | None, offset: int, limit: int
    ) -> tuple[list[NoteView], int]:
        """Return a page of notes that carry all the tags and contain the text, oldest first, and their total."""
        conditions = ["record.kind = 'note'"]
        values: dict[str, Any] = {}
        if key is not None:
            conditions.append("record.session = :session")
            values["session"] = key
        for number, tag in enumerate(tags):
            conditions.append(
                "EXISTS (SELECT 1 FROM note_tag WHERE note_tag.session = record.session "
                f"AND note_tag.note = record.seq AND note_tag.tag = :tag{number})"
            )
            values[f"tag{number}"] = fold(storable(tag))
        if query:
            know_holds(self._engine)
            conditions.append("holds(record.body, :needle)")
            values["needle"] = fold(query).encode()
        where = " AND ".join(conditions)
        total = int(self._engine.query(f"SELECT count(*) FROM record WHERE {where}", values)[0][0])
        rows = self._engine.query(
            f"{NOTE_COLUMNS} WHERE {where} ORDER BY record.seq LIMIT :limit OFFSET :offset",
            {**values, "limit": limit, "offset": offset},
        )
        return note_views(self._engine, rows), total

    def note(self, key: int, note_id: str) -> NoteView | None:
        """Return one note by its id, or None."""
        rows = self._engine.query(
            f"{NOTE_COLUMNS} WHERE record.session = :session AND record.kind = 'note' AND record.id = :id",
            {"session": key, "id": storable(note_id)},
        )
        return note_views(self._engine, rows)[0] if rows else None

    def snapshots(self, key: int, offset: int, limit: int) -> tuple[list[SnapshotView], int]:
        """Return a page of a session's snapshots, oldest first, and their total."""
        values = {"session": key}
        where = "record.session = :session AND record.kind = 'snapshot'"
        total = int(self._engine.query(f"SELECT count(*) FROM record WHERE {where}", values)[0][0])
        rows = self._engine.query(
            f"{NOTE_COLUMNS} WHERE {where} ORDER BY record.seq LIMIT :limit OFFSET :offset",
            {**values, "limit": limit, "offset": offset},
        )
        return [self._snapshot(int(row[1]), load(row[2])) for row in rows], total

    def snapshot(self, key: int, snapshot_id: str) -> SnapshotView | None:
        """Return one snapshot by id or unambiguous id prefix, or None.

        Raises:
            InvalidInput: when several ids start so.
        """
        for condition in ID_CONDITIONS if snapshot_id else ():
            rows = self._engine.query(
                f"{NOTE_COLUMNS} WHERE record.session = :session AND record.kind = 'snapshot' AND {condition} LIMIT 3",
                {"session": key, "id": storable(snapshot_id), "after": storable(snapshot_id) + "\U0010ffff"},
            )
            if len(rows) > 1:
                raise InvalidInput(f"several snapshot ids start with {snapshot_id!r}", "give more of the id")
            if rows:
                return self._snapshot(key, load(rows[0][2]))
        return None

    def _snapshot(self, key: int, record: Record) -> SnapshotView:
        from ctxmgr.types.view import SnapshotView

        with readable():
            entries = [str(item) for item in cast("list[Any]", record.get("entries") or [])]
            places = entry_places(self._engine, key, entries)
            return SnapshotView(
                id=record["id"], session=record["session"], ts=record.get("ts"), entries=entries,
                indexes=[places[entry] for entry in entries if entry in places], summary=str(record.get("summary", "")),
                reasoning=str(record.get("reasoning", "")), hash=str(record.get("hash", "")),
                missing=[entry for entry in entries if entry not in places],
            )  # fmt: skip

    def continuations(self, key: int, *, since_compaction_of: str | None = None) -> list[Record]:
        """Return the recorded continuations of a session, oldest first, as records.

        With an agent's name only those after the last event that compacted its context, or that names no agent.
        """
        rows = self._engine.query(
            "SELECT seq, body FROM record WHERE session = :session AND kind = 'continuation' ORDER BY +seq", {"session": key}
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

    def entry_bodies(self, key: int, ids: Sequence[str]) -> dict[str, list[Record]]:
        """Return the stored records (the entry and its result) of each entry id that exists."""
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

    def known(self, key: int, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that a record of the session has, of whatever kind."""
        found: set[str] = set()
        for batch in batches(list(dict.fromkeys(ids))):
            names, values = placeholders([storable(item) for item in batch], "id")
            rows = self._engine.query(
                f"SELECT DISTINCT id FROM record WHERE session = :session AND id IN ({names})", {"session": key, **values}
            )
            stored = {str(row[0]) for row in rows}
            found |= {item for item in batch if storable(item) in stored}
        return found
