"""``record``, ``note`` and ``snapshot`` on the fast path."""

from __future__ import annotations

from ctxmgr.cli.envelope import tell_session
from ctxmgr.cli.fast.answer import Answer, FastRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ctxmgr.store import Store


def _record(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.cli.pydantic_plugins import disable
    from ctxmgr.cli.record_input import take

    disable()  # what is of no plain shape is checked by the models
    taken = take(store, values["session"], trusted=values["trust_project"])
    answer = Answer(taken.data, taken.status)
    answer.warnings += taken.warnings
    answer.line = taken.line
    return answer


def _add_note(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import annotations as noting

    asked = _on_entries(values, content=values["message"], tags=values["tag"] or [], links=values["link"] or [])
    note = noting.add_note(store, asked)
    tell_session(store, asked.session, note["session"])
    return Answer(note)


def _list_notes(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import annotations as noting

    found = noting.list_notes(store, FastRequest({**values, "tags": values["tag"] or [], "query": None}))
    return Answer(found.rows, found.status, found.page)


def _create_snapshot(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import annotations as noting

    asked = _on_entries(values)
    snapshot = noting.create_snapshot(store, asked)
    tell_session(store, asked.session, snapshot["session"])
    return Answer(snapshot)


def _list_snapshots(store: Store, values: dict[str, Any]) -> Answer:
    from ctxmgr.history.query import annotations as noting

    found = noting.list_snapshots(store, FastRequest(values))
    return Answer(found.rows, found.status, found.page)


def _on_entries(values: dict[str, Any], **changed: Any) -> Any:
    """Return the request of a command that names entries."""
    from ctxmgr.cli.address import parse_all

    session, indexes, ids = parse_all(values["entries"], values["session"])
    return FastRequest({**values, **changed, "session": session, "entry_indices": indexes, "entry_ids": ids})


TOOLS: dict[str, Callable[[Store, dict[str, Any]], Answer]] = {
    "note add": _add_note,
    "note list": _list_notes,
    "record": _record,
    "snapshot create": _create_snapshot,
    "snapshot list": _list_snapshots,
}
WRITES = frozenset({"note add", "record", "snapshot create"})
