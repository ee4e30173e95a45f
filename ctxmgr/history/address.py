"""Find what a request speaks of: the session, and entries by index or id."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, NoHistory, NotFound, OutOfBounds

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.store import Store
    from ctxmgr.store.hydrate import Plain
    from ctxmgr.store.queries import Rows
    from ctxmgr.types.view import EntryView


def session_key(store: Store, session: str | None, entry_id: str | None = None) -> int | None:
    """Return the key of the session a request means; None only when none is named and the store is empty.

    A session is named by its id, an unambiguous prefix, or the id of the process that executed it (FR-013, FR-026). When
    none is named it is the one that holds the entry asked for, else the only or the latest one.

    Raises:
        NotFound: the named session does not exist.
        InvalidInput: the name, or the entry's, fits several sessions.
    """
    if session is None:
        latest = store.sessions.latest()
        owning = store.sessions.of_entry(entry_id) if entry_id else []
        if latest in owning or not owning:
            return latest
        if len(owning) > 1:
            raise InvalidInput(f"entries of several sessions have an id like {entry_id!r}", "name one with --session")
        return owning[0]
    key = store.sessions.key(session)
    if key is not None:
        return key
    owners = store.sessions.of_process(session)
    if len(owners) > 1:
        raise InvalidInput(f"process {session!r} executed {len(owners)} sessions", "name the session instead")
    if owners:
        return store.sessions.key(owners[0])
    raise NotFound(f"no session {session!r}", "'ctxmgr sessions' lists them")


def entry_of(store: Store, key: int | None, index: int | None, entry_id: str | None) -> EntryView:
    """Return the entry at an index (negative: from the end) or with an id or id prefix.

    Raises:
        InvalidInput: neither or both are given, or the prefix fits several ids.
        NoHistory: the history is empty.
        OutOfBounds, NotFound: there is no such entry.
    """
    found: EntryView = entry_from(store, store.queries, key, index, entry_id)
    return found


def entry_from(store: Store, reader: Any, key: int | None, index: int | None, entry_id: str | None) -> Any:
    """Return the entry as a reader of the store gives it, see `entry_of`."""
    if (index is None) == (entry_id is None):
        raise InvalidInput("name the entry by its index or by its id", "e.g. SESSION@42, @-1, or an entry id")
    total = 0 if key is None else store.sessions.entry_count(key)
    if key is None or total == 0:
        raise NoHistory("record or import a run first")
    if index is not None:
        place = index + total if index < 0 else index
        found = reader.entry_at(key, place) if 0 <= place < total else None
        if found is None:
            raise OutOfBounds(f"{store.sessions.name(key)} has the indexes 0 to {total - 1}")
        return found
    found = reader.entry_by_id(key, str(entry_id))
    if found is None:
        raise NotFound(f"no entry {entry_id!r} in session {store.sessions.name(key)}", "'ctxmgr list' shows the ids")
    return found


def entries_of(store: Store, key: int | None, indexes: Sequence[int], ids: Sequence[str]) -> list[EntryView]:
    """Return the named entries in the order of the log, each once.

    Raises:
        InvalidInput: none is named.
        NoHistory, OutOfBounds, NotFound: as `entry_of`.
    """
    from ctxmgr.store.hydrate import entry_shape
    from ctxmgr.store.queries import Rows

    return [entry_shape(row) for row in entries_from(store, Rows(store.engine), key, indexes, ids)]


def entries_from(store: Store, rows: Rows, key: int | None, indexes: Sequence[int], ids: Sequence[str]) -> list[Plain]:
    """Return the named entries as rows of the store, see `entries_of`."""
    if not indexes and not ids:
        raise InvalidInput("no entries are named", "give indexes or ids, e.g. 3 4 5")
    named = [entry_from(store, rows, key, index, None) for index in dict.fromkeys(indexes)]
    named += [entry_from(store, rows, key, None, name) for name in dict.fromkeys(ids)]
    found: dict[int, Plain] = {entry["index"]: entry for entry in named}
    return [found[index] for index in sorted(found)]
