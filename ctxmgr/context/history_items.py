"""Read history for a package: one record, the latest failures, the latest runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxmgr.access.executions import list_executions
from ctxmgr.context.items import ItemName, entry_fields, execution_fields, failure_fields, listed, record_fields, written
from ctxmgr.context.readers import Readers
from ctxmgr.errors import NoHistory, NotFound, OutOfBounds
from ctxmgr.history.query.address import entry_of, session_key
from ctxmgr.store import Store
from ctxmgr.store.repositories.queries import find_record
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.context_package import Execution, ListExecutionsRequest
from ctxmgr.types.query import Filters
from ctxmgr.types.view import EntryView

LATEST = 20
"""Failures or runs that a package tells of at most."""

_LOOKED_AT = 2_000
_ADDRESS = lazy_pattern(r"(.*)@(-?[0-9]{1,15}|last)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """A part of the history as a package gives it: YAML."""

    id: str
    type: str
    source: str
    name: str
    text: str


def record_item(audience: Readers, named: ItemName) -> HistoryItem | None:
    """Return an entry, a snapshot with its entries, or a continuation; None when it is not there, or not to be read.

    Raises:
        InvalidInput: the id fits several.
    """
    first, *others = audience.histories()
    if named.source == "entry":
        entry = find_entry(first, named.name)
        if entry is None or not all(_has(other, entry) for other in others):
            return None
        return HistoryItem(entry.id, "entry", entry.agent, f"{entry.session}@{entry.index}", written(entry_fields(entry)))
    record = find_record(first.engine, named.source, named.name)
    if record is None or any(find_record(other.engine, named.source, str(record["id"])) is None for other in others):
        return None
    identity, session = str(record["id"]), str(record["session"])
    if named.source == "continuation":
        return HistoryItem(identity, named.source, session, identity, written(record_fields(record)))
    return HistoryItem(identity, named.source, session, identity, _snapshot(first, session, identity))


def find_entry(store: Store, text: str) -> EntryView | None:
    """Return the entry at ``SESSION@42``, ``@-1`` or ``@last``, or with this id or an id that starts so.

    Raises:
        InvalidInput: the name fits several sessions or entries.
    """
    address = _ADDRESS.fullmatch(text)
    try:
        if address is not None:
            place = -1 if address[2] == "last" else int(address[2])
            return entry_of(store, session_key(store, address[1] or None), place, None)
        record = find_record(store.engine, "entry", text)
        key = None if record is None else store.sessions.key(str(record["session"]))
        return None if record is None or key is None else store.queries.entry_by_id(key, str(record["id"]))
    except (NotFound, NoHistory, OutOfBounds):
        return None


def is_address(text: str) -> bool:
    """Whether an entry is named by its place, which may mean another one later."""
    return _ADDRESS.fullmatch(text) is not None


def failures(audience: Readers, task: str | None) -> str | None:
    """Return the latest failures of a task; without one of the agent, or where it has none, of all that may be read."""
    history = audience.histories()[0]
    if task is not None:
        rows = _failed(history, audience, None, task)
    else:
        rows = _failed(history, audience, audience.recipient, None) or _failed(history, audience, None, None)
    return listed(map(failure_fields, rows)) if rows else None


def _failed(history: Store, audience: Readers, agent: str | None, task: str | None) -> list[EntryView]:
    filters = Filters(status=["error", "interrupted"], agent=[] if agent is None else [agent])
    places = history.queries.hits(None, filters, "entry")[-_LOOKED_AT:]
    found: list[EntryView] = []
    for start in range(len(places), 0, -4 * LATEST):
        rows = history.queries.rows(places[max(start - 4 * LATEST, 0) : start])
        for row in reversed(rows):
            if not isinstance(row, EntryView) or (agent is not None and row.agent != agent):
                continue
            if (task is None or row.task == task) and audience.may("read", "history", row.agent, row.session):
                found.append(row)
                if len(found) == LATEST:
                    return found
    return found


def runs(audience: Readers, task: str | None) -> list[Execution]:
    """Return the latest runs, newest first; of a task where one is given."""
    history = audience.histories()[0]
    found = list_executions(audience.store, history, audience, ListExecutionsRequest(task=task, limit=LATEST)).executions
    return [run for run in found if audience.may("read", "history", run.agent, run.session)]


def runs_text(found: list[Execution]) -> str | None:
    """Return runs as the text of an item."""
    return listed(map(execution_fields, found)) if found else None


def task_runs(found: list[Execution]) -> list[dict[str, Any]]:
    """Return runs as a part of the task's context."""
    return [execution_fields(run) for run in found]


def _snapshot(store: Store, session: str, identity: str) -> str:
    key = store.sessions.key(session)
    view = None if key is None else store.annotations.snapshot(key, identity)
    if key is None or view is None:
        return ""
    fields = {
        "id": view.id, "session": view.session, "at": view.ts, "summary": view.summary,
        "reasoning": view.reasoning or None, "missing": view.missing or None,
    }  # fmt: skip
    entries = [entry_fields(entry) for entry in _entries(store, key, view.indexes)]
    return written(fields) + ("entries:\n" + listed(entries, 2) if entries else "")


def _entries(store: Store, key: int, indexes: list[int]) -> Iterator[EntryView]:
    for index in indexes:
        entry = store.queries.entry_at(key, index)
        if entry is not None:
            yield entry


def _has(store: Store, entry: EntryView) -> bool:
    key = store.sessions.key(entry.session)
    return key is not None and store.queries.entry_by_id(key, entry.id) is not None
