"""The five reading tools on plain rows: trace, list, search, show, messages.

``reader`` is `ctxmgr.store.repositories.queries.Queries`, which answers in views, or `Rows`, which answers in plain rows.
``request`` has the fields of the tool's request. Both `ctxmgr.history.query.requests` and the fast path call these.
"""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.address import entry_from, queried_session, session_key
from ctxmgr.store.repositories.filters import moment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from ctxmgr.store import Store

    Hit = Callable[[Any, str, str], Any]


class Found:
    """The result of a tool.

    Attributes:
        session: the id of the session, if there is one.
        rows: entries, events or hits, in order.
        page: (offset, limit, number of rows, total, whether the total is exact).
        entry: the entry whose messages were asked for.
    """

    __slots__ = ("entry", "page", "rows", "session")

    def __init__(
        self,
        session: str | None,
        rows: list[Any],
        offset: int,
        limit: int,
        total: int,
        *,
        exact: bool = True,
        entry: Any = None,
    ) -> None:
        self.session = session
        self.rows = rows
        self.page = (offset, limit, len(rows), total, exact)
        self.entry = entry

    @property
    def status(self) -> Literal["ok", "empty"]:
        """Whether there is any row."""
        return "ok" if self.rows else "empty"


def _session_name(store: Store, key: int | None) -> str | None:
    return None if key is None else store.sessions.name(key)


def trace(store: Store, reader: Any, request: Any) -> Found:
    """Find the ordered history of an action or agent."""
    key = _session(store, request)
    entries: list[Any] = []
    total, exact = 0, True
    if key is not None:
        entries, total, exact = reader.entries(key, request, request.offset, request.limit)
    return Found(_session_name(store, key), entries, request.offset, request.limit or max(1, len(entries)), total, exact=exact)


def list_(store: Store, reader: Any, request: Any) -> Found:
    """Find one page of a session's entries, events, or both."""
    key = _session(store, request)
    rows: list[Any] = []
    total, exact = 0, True
    # A filter on event types implies events, even if the request leaves the default kind.
    kind = "event" if request.event_type and request.kind == "entry" else request.kind
    if key is not None and kind == "entry":
        rows, total, exact = reader.entries(key, request, request.offset, request.limit, newest_first=request.newest_first)
    elif key is not None:
        places, total, exact = reader.places(
            key, request, kind, request.offset, request.limit, newest_first=request.newest_first
        )
        rows = reader.rows(places)
    return Found(_session_name(store, key), rows, request.offset, request.limit, total, exact=exact)


def search(store: Store, reader: Any, request: Any, hit: Hit) -> Found:
    """Find the rows that contain the query literally, regardless of case, inside words too.

    Args:
        store: the store to search.
        reader: the reader of its rows.
        request: the query and filters.
        hit: (row, matching field, excerpt) -> hit.

    Raises:
        InvalidInput: "Query cannot be empty".
    """
    if not request.query.replace("\0", " ").strip():
        raise InvalidInput("Query cannot be empty", "give some text to search for")
    key = None if request.all_sessions else queried_session(store, request)
    _check_times(request)
    found: list[Any] = []
    total, exact = 0, True
    if key is not None or request.all_sessions:
        found, total, exact = reader.search(
            key, request, request.kind, request.query, request.offset, request.max_results, every=request.exact_total
        )
    hits = [hit(row, field, excerpt) for row, field, excerpt in found]
    return Found(_session_name(store, key), hits, request.offset, request.max_results, total, exact=exact)


def show(store: Store, reader: Any, request: Any) -> Any:
    """Find one entry.

    Raises:
        NoHistory: "No history available".
        OutOfBounds: "Index out of bounds".
        NotFound, InvalidInput: no such entry or session, or an ambiguous id.
    """
    key = session_key(store, request.session, request.entry_id)
    return entry_from(store, reader, key, request.index, request.entry_id)


def messages(store: Store, reader: Any, request: Any) -> Found:
    """Find the messages at an entry, or of the whole session if none is named.

    Raises:
        NoHistory, OutOfBounds, NotFound, InvalidInput: as `show`, when an entry is named.
    """
    asked = request.index is not None or request.entry_id is not None
    key = session_key(store, request.session, request.entry_id) if asked else queried_session(store, request)
    entry = None
    if asked:
        entry = entry_from(store, reader, key, request.index, request.entry_id)
    found: list[Any] = []
    total = 0
    if key is not None:
        found, total = reader.messages(key, entry, request.offset, request.limit, request)
    return Found(_session_name(store, key), found, request.offset, request.limit, total, entry=entry)


def _session(store: Store, request: Any) -> int | None:
    """Return the row key of the request's session; invalid times are refused even if the history is empty."""
    key = queried_session(store, request)
    _check_times(request)
    return key


def _check_times(request: Any) -> None:
    for name in ("since", "until"):
        moment_of(name, getattr(request, name))
