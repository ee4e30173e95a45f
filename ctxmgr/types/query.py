"""Requests and responses of the seven history tools (spec 002, FR-011).

The library, the command line and every other front end build these requests and show these responses. Times are RFC 3339 text.
Indexes begin at 0 and have no gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, cast

from ctxmgr.types.base import Field, Shape, Text
from ctxmgr.types.plain_check import camel_case
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER, make_page
from ctxmgr.types.view import EntryStatus, EntryView, EventView, NoteView, SnapshotView

Status = Literal["ok", "empty"]
# Beyond it readers of JSON in JavaScript would lose digits of ``nextOffset``.
Offset = Annotated[int, Field(ge=0, le=MAX_EXACT_INTEGER)]
# A page is held in memory as a whole; whoever wants all of a long session pages, or exports it.
Limit = Annotated[int, Field(ge=1, le=100_000)]
RowKind = Literal["entry", "event", "all"]

DEFAULT_LIMIT = 20


class Request(Shape):
    """Base of the requests. The field names of spec 002 are accepted beside ours (ruling 30), in both spellings.

    ``actionNameFilter`` and ``agentNameFilter`` hold one name where ours hold a list; ``entries`` holds indexes and ids
    together.
    """

    @classmethod
    def model_rename(cls, given: Any) -> Any:
        """Return what was given, under our own names."""
        return with_own_names(cls.model_fields, given)


class Filters(Request):
    """What every history query can be narrowed by (FR-025, ruling 3).

    ``action``, ``agent`` and ``input_type`` match whole names, regardless of case; several values mean any of them.
    ``process`` matches whole ids, else ids that begin so (FR-013); an event is of the process of its entry, or of the one
    that it names. ``since`` is inclusive, ``until`` exclusive; records without a timestamp match neither.
    """

    session: Text | None = None
    process: list[Text] = []
    action: list[Text] = []
    agent: list[Text] = []
    input_type: list[Text] = []
    status: list[EntryStatus] = []
    since: str | None = None
    until: str | None = None
    event_type: list[Text] = []


class Page(Shape):
    """The position of a page in the whole result; ``next_offset`` is null on the last page.

    ``total`` is an estimate where ``total_is_exact`` is false: counting all of them would cost more than the page.
    """

    offset: int
    limit: int
    has_more: bool
    next_offset: int | None
    total: int
    total_is_exact: bool = True

    @classmethod
    def make(cls, offset: int, limit: int, shown: int, total: int, exact: bool = True) -> Page:
        """Return the page that shows ``shown`` of ``total`` rows from ``offset`` on."""
        return cls.model_validate(make_page(offset, limit, shown, total, exact))


class TraceRequest(Filters):
    """The ordered history of an action or agent (FR-007); without filters, of the whole session."""

    offset: Offset = 0
    limit: Limit | None = None


class TraceResponse(Shape):
    """Matching entries in the order of the log."""

    status: Status
    session: Text | None
    entries: list[EntryView]
    page: Page


class ListRequest(Filters):
    """A page of a session's entries, events or both, oldest first (FR-009)."""

    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT
    kind: RowKind = "entry"
    newest_first: bool = False


class ListResponse(Shape):
    """One page of rows."""

    status: Status
    session: Text | None
    rows: list[EntryView | EventView]
    page: Page

    @property
    def entries(self) -> list[EntryView]:
        """The entries among the rows, as spec 002 names them."""
        return [row for row in self.rows if row.kind == "entry"]


class SearchRequest(Filters):
    """Text anywhere in actions, agents, input types, inputs, outputs, errors, notes and events (FR-008, SC-008).

    A note stands for the entries that it is attached to.

    The query is taken literally, whatever its punctuation, and found inside words, regardless of case. Searching stops
    behind the page; ``exact_total`` goes on to the end, to say exactly how many rows match.
    """

    query: Text
    max_results: Limit = 50
    offset: Offset = 0
    exact_total: bool = False
    kind: RowKind = "all"
    all_sessions: bool = False


class SearchHit(Shape):
    """A row that matches, and where: ``field`` names the place, ``excerpt`` shows its surroundings.

    ``notes[1].content`` is the text of the entry's second note.
    """

    field: str
    excerpt: Text
    row: EntryView | EventView


class SearchResponse(Shape):
    """Hits in the order of the log, events beside entries."""

    status: Status
    session: Text | None
    hits: list[SearchHit]
    page: Page

    @property
    def entries(self) -> list[EntryView]:
        """The entries among the hits, as spec 002 names them."""
        return [hit.row for hit in self.hits if hit.row.kind == "entry"]


class ShowRequest(Request):
    """One entry by index (negative: from the end) or by id or unambiguous id prefix (FR-010)."""

    session: Text | None = None
    index: int | None = None
    entry_id: Text | None = None


class ShowResponse(Shape):
    """The entry with all details."""

    entry: EntryView


class MessagesRequest(Request):
    """What was said at an entry, or in the whole session when no entry is named (FR-011); ``process`` is as in `Filters`."""

    session: Text | None = None
    process: list[Text] = []
    index: int | None = None
    entry_id: Text | None = None
    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT


class MessagesResponse(Shape):
    """Message events in the order of the log; ``entry`` is the entry they were asked for."""

    status: Status
    session: Text | None
    entry: EntryView | None
    messages: list[EventView]
    page: Page


class AddNoteRequest(Request):
    """Annotate entries (FR-012); they are named by index or id, at least one."""

    session: Text | None = None
    entry_indices: list[int] = []
    entry_ids: list[Text] = []
    content: Text
    tags: list[Text] = []
    links: list[Text] = []
    author: Text | None = None
    supersedes: Text | None = None


class AddNoteResponse(Shape):
    """The stored note."""

    note: NoteView


class ListNotesRequest(Request):
    """Notes by tag, text and session (FR-024); several tags mean all of them."""

    session: Text | None = None
    tags: list[Text] = []
    query: Text | None = None
    all_sessions: bool = False
    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT


class ListNotesResponse(Shape):
    """One page of notes, oldest first."""

    status: Status
    session: Text | None
    notes: list[NoteView]
    page: Page


class CreateSnapshotRequest(Request):
    """Bundle entries as a curated context (spec 002, tool 5)."""

    session: Text | None = None
    entry_indices: list[int] = []
    entry_ids: list[Text] = []
    summary: Text
    reasoning: Text


class CreateSnapshotResponse(Shape):
    """The stored snapshot."""

    snapshot: SnapshotView


class ListSnapshotsRequest(Request):
    """The snapshots of a session, oldest first."""

    session: Text | None = None
    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT


class ListSnapshotsResponse(Shape):
    """One page of snapshots."""

    status: Status
    session: Text | None
    snapshots: list[SnapshotView]
    page: Page


class ShowSnapshotRequest(Request):
    """One snapshot by id or unambiguous id prefix."""

    session: Text | None = None
    snapshot_id: Text


class ShowSnapshotResponse(Shape):
    """The snapshot and its entries as they stand; ``intact`` is false when one is gone or differs from the hash."""

    snapshot: SnapshotView
    entries: list[EntryView]
    intact: bool


SCHEMA = "ctxmgr/1"


class ErrorView(Shape):
    """What went wrong; ``kind`` is the contract, the message is for people."""

    kind: str
    message: Text
    hint: Text | None
    retryable: bool


class Envelope(Shape):
    """One answer: lists are arrays, single things objects; the shape never changes with the row count."""

    # `schema` alone would hide a method of pydantic's models.
    schema_: str = Field(default=SCHEMA, alias="schema")
    command: str
    status: Literal["ok", "empty", "partial", "error"]
    data: Any = None
    page: Page | None = None
    warnings: list[Text] = []
    next: list[Text] = []
    error: ErrorView | None = None


ALIASES = {
    "action_name_filter": "action",
    "agent_name_filter": "agent",
    "start_time": "since",
    "end_time": "until",
    "created_by": "author",
    "requested_by": "author",
    "target_version": "version",
    "agent_id": "agent",
    "task_id": "task",
    "sprint_id": "sprint",
}
"""Our field for each field of the requests of specs 002 and 003 that has another name."""

# One name in spec 002, a list in ours.
_LISTS = frozenset({"action_name_filter", "agent_name_filter"})


def with_own_names(fields: Collection[str], given: Any) -> Any:
    """Return the values for a request under the names of its own fields.

    Args:
        fields: the request's fields, in snake_case.
        given: the mapping to rename; anything else is returned as it is.

    Raises:
        ValueError: a field is given under two names.
    """
    if not isinstance(given, Mapping):
        return given
    table = cast("Mapping[Any, Any]", given)
    found: dict[Any, Any] = {}
    for name, value in table.items():
        if name in fields:
            found[name] = value
            continue
        snake = _snake_case(name) if isinstance(name, str) else ""
        own = ALIASES.get(snake, "")
        # A name that means nothing here is passed on, so that the request itself refuses it by the name it was given.
        if snake in fields or (own not in fields and (snake != "entries" or "entry_indices" not in fields)):
            found[name] = value
            continue
        single = snake in _LISTS and isinstance(value, str)
        replaced = _entries(value) if snake == "entries" else {own: [value] if single else value}
        for field, part in replaced.items():
            # ``entries`` of ids alone says nothing of indexes, so these may be named beside it.
            if part is not None and (field in found or field in table or camel_case(field) in table):
                raise ValueError(f"{name} and {field} are the same field: give one of them")
            if part is not None:
                found[field] = part
    return found


def _snake_case(name: str) -> str:
    # Pydantic's own rule and no copy of it; only a request with foreign names pays for loading it.
    from pydantic.alias_generators import to_snake

    return to_snake(name)


def _entries(value: object) -> dict[str, Any]:
    """Split ``entries`` of spec 002 into indexes and ids; anything else is left for the request to refuse."""
    if not isinstance(value, list | tuple):
        return {"entry_indices": value}
    items = cast("list[Any]", value)
    ids = [item for item in items if isinstance(item, str)]
    return {"entry_indices": [item for item in items if not isinstance(item, str)] or None, "entry_ids": ids or None}
