"""Resolve the session and the entries that a request names, by index or id."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput, NoHistory, NoSession, NotFound, OutOfBounds, candidates
from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ctxmgr.store import Store
    from ctxmgr.store.repositories.queries import Rows
    from ctxmgr.store.row_mapper import Plain
    from ctxmgr.types.view import EntryView


class Address:
    """One entry, or a whole session if neither index nor id is given."""

    __slots__ = ("entry_id", "index", "session")

    def __init__(self, session: str | None = None, index: int | None = None, entry_id: str | None = None) -> None:
        self.session = session
        self.index = index
        self.entry_id = entry_id


def is_number(text: str) -> bool:
    """Whether a text is an index. A negative index counts from the end."""
    digits = text.removeprefix("-")
    # A longer number is no index in a session, but may be an id.
    return digits.isascii() and digits.isdigit() and len(digits) <= 15


def parse(text: str, session: str | None = None) -> Address:
    """Parse an address: ``SESSION@42``, ``@-1``, ``@last``, an index or an id. ``session`` is that of ``--session``.

    Raises:
        InvalidInput: it is no address, or names another session than ``--session``.
    """
    if is_number(text):
        return Address(session, int(text))
    named, at, place = text.rpartition("@")
    if at and (place == "last" or is_number(place)):
        if named and session is not None and named != session:
            raise InvalidInput(f"{text!r} and --session {session!r} name different sessions", "leave one of them out")
        return Address(named or session, -1 if place == "last" else int(place))
    if not text.strip():
        raise InvalidInput("an empty address", "e.g. SESSION@42, run.jsonl@-1, @last, or an entry id")
    return Address(session, entry_id=text)


def session_key(store: Store, session: str | None, entry_id: str | None = None) -> int | None:
    """Return the row key of the session a request means; None only if none is named and the store is empty.

    A session is named by its id, an unambiguous prefix, or the id of the process that executed it (FR-013, FR-026). When
    none is named it is the one that holds the entry asked for, else the only or the latest one.

    Raises:
        NoSession: the named session does not exist; it is a `NotFound`.
        InvalidInput: the name, or the entry's, fits several sessions.
    """
    if session is None:
        latest = store.sessions.latest()
        owning = store.sessions.of_entry(entry_id) if entry_id else []
        if latest in owning or not owning:
            return latest
        if len(owning) > 1:
            named = [store.sessions.name(each) for each in owning]
            raise InvalidInput(f"entries of several sessions have an id like {entry_id!r}", f"--session, {candidates(named)}")
        return owning[0]
    key = store.sessions.key(session)
    if key is not None:
        return key
    # The id of a process names the session that it executed (FR-026).
    owners = store.sessions.of_process(session)
    if len(owners) > 1:
        raise InvalidInput(f"process {session!r} executed {len(owners)} sessions", f"name the session, {candidates(owners)}")
    if owners:
        return store.sessions.key(owners[0])
    raise NoSession(session)


def session_of_query(store: Store, request: Any) -> int | None:
    """Return the row key of a query's session: the one that it names, else the one that its process executed.

    Raises:
        NotFound, InvalidInput: as `session_key`; also if the process executed several sessions.
    """
    processes: Sequence[str] = request.process or ()
    if request.session is not None or not processes:
        return session_key(store, request.session)
    owners = list(dict.fromkeys(key for process in processes for key in store.sessions.by_process(process)))
    latest = store.sessions.latest()
    if latest in owners or not owners:
        return latest
    if len(owners) > 1:
        names = [store.sessions.name(each) for each in owners]
        raise InvalidInput(
            f"process {processes[0]!r} executed {len(owners)} or more sessions", f"--session, {candidates(names)}"
        )
    return owners[0]


def find_named_entry(store: Store, key: int | None, index: int | None, entry_id: str | None) -> EntryView:
    """Return the entry at an index (negative: from the end), or the entry with an id or id prefix.

    Raises:
        InvalidInput: neither or both are given, or several ids have the prefix.
        NoHistory: the history is empty.
        OutOfBounds, NotFound: there is no such entry.
    """
    found: EntryView = find_entry_form(store, store.queries, key, index, entry_id)
    return found


def _hint(store: Store, name: str) -> str:
    """Return the hint for an unknown entry id, which may be the id of a session."""
    try:
        key = store.sessions.key(name)
    except InvalidInput:
        key = None
    if key is not None:
        return f"it is a session: 'ctxmgr list {name}' shows its entries, 'ctxmgr show {name}@0' the first one"
    return "'ctxmgr list' shows the ids"


def find_entry_form(store: Store, reader: Any, key: int | None, index: int | None, entry_id: str | None) -> Any:
    """Return the entry in the form of the reader (view or row); ``index`` and ``entry_id`` as in `find_named_entry`.

    Raises:
        InvalidInput, NoHistory, OutOfBounds, NotFound: as `find_named_entry`.
    """
    if (index is None) == (entry_id is None):
        raise InvalidInput("name the entry by its index or by its id", "e.g. SESSION@42, @-1, or an entry id")
    total = 0 if key is None else store.sessions.entry_count(key)
    if key is None or total == 0:
        raise NoHistory(hint="record or import a run first")
    if index is not None:
        place = index + total if index < 0 else index
        found = reader.find_entry(key, place) if 0 <= place < total else None
        if found is None:
            raise OutOfBounds(hint=f"{store.sessions.name(key)} has the indexes 0 to {total - 1}")
        return found
    found = reader.entry_by_id(key, str(entry_id))
    if found is None:
        raise NotFound(f"no entry {entry_id!r} in session {store.sessions.name(key)}", _hint(store, str(entry_id)))
    return found


def find_entries(store: Store, key: int | None, indexes: Sequence[int], ids: Sequence[str]) -> list[EntryView]:
    """Return the named entries in the order of the log, each once.

    Raises:
        InvalidInput: none is named.
        NoHistory, OutOfBounds, NotFound: as `find_named_entry`.
    """
    from ctxmgr.store.repositories.queries import Rows
    from ctxmgr.store.row_mapper import entry_shape

    return [entry_shape(row) for row in find_entry_rows(store, Rows(store.engine), key, indexes, ids)]


def find_entry_rows(store: Store, rows: Rows, key: int | None, indexes: Sequence[int], ids: Sequence[str]) -> list[Plain]:
    """Return the named entries as rows of the store, {column: value}, in the order of the log, each once.

    Raises:
        InvalidInput, NoHistory, OutOfBounds, NotFound: as `find_entries`.
    """
    if not indexes and not ids:
        raise InvalidInput("no entries are named", "give indexes or ids, e.g. 3 4 5")
    named = [find_entry_form(store, rows, key, index, None) for index in dict.fromkeys(indexes)]
    named += [find_entry_form(store, rows, key, None, name) for name in dict.fromkeys(ids)]
    # One entry may be named twice, by its index and by its id.
    found: dict[int, Plain] = {entry["index"]: entry for entry in named}
    return [found[index] for index in sorted(found)]


def link_targets(store: Store, key: int, links: Sequence[str]) -> list[str]:
    """Return the ids of the records that a note links to, each once. They are looked up in the note's session, then in all.

    Args:
        store: the store to search.
        key: row key of the note's session.
        links: addresses (``@3``, ``SESSION@42``), ids of entries or unambiguous prefixes of these, or whole ids of notes and
            other records.

    Raises:
        NotFound, OutOfBounds: a link leads nowhere.
        InvalidInput: a link is empty, or fits several ids.
    """
    from ctxmgr.store.repositories.queries import Rows

    return list(dict.fromkeys(_linked_id(store, Rows(store.engine), key, link) for link in links))


def live_link_targets(store: Store, key: int, links: Sequence[str]) -> list[str]:
    """Return the ids of those links that lead somewhere. Dead links are left out; see `link_targets`."""
    from contextlib import suppress

    found: list[str] = []
    for link in links:
        with suppress(InvalidInput, NotFound, NoHistory, OutOfBounds):
            found += link_targets(store, key, [link])
    return list(dict.fromkeys(found))


def linked_entry(store: Store, rows: Rows, key: int, link: str) -> Plain | None:
    """Return the entry that a link from a session leads to; None for an id that no entry has.

    Raises:
        NotFound, OutOfBounds, NoHistory: an address leads nowhere.
        InvalidInput: the link is empty, or fits several ids.
    """
    address = parse(link.strip())
    if address.index is not None:
        named = key if address.session is None else session_key(store, address.session)
        return cast("Plain", find_entry_form(store, rows, named, address.index, None))
    name = str(address.entry_id)
    if (found := rows.entry_by_id(key, name)) is not None:
        return found
    owners = store.sessions.of_entry(name)
    if len(owners) > 1:
        raise InvalidInput(f"entries of several sessions have an id like {name!r}", "give its address: SESSION@42")
    return cast("Plain", find_entry_form(store, rows, owners[0], None, name)) if owners else None


def _linked_id(store: Store, rows: Rows, key: int, link: str) -> str:
    if (found := linked_entry(store, rows, key, link)) is not None:
        return str(found["id"])
    name = link.strip()
    if store.annotations.is_known(name):
        return name
    raise NotFound(f"nothing to link to has the id {name!r}", "give the id or the address of an entry, or the id of a note")
