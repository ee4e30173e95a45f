"""The handlers of ``note``, ``snapshot`` and ``record``, which hooks and harnesses call beside a running agent."""

from __future__ import annotations

from ctxmgr.cli.envelope import Answer, tell_session
from ctxmgr.cli.fast.rows import make_request
from ctxmgr.history.query import tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.cli.fast.rows import Handler, OpenedStore
    from ctxmgr.cli.terminal import Printer


def _record(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    from ctxmgr.cli.invocation import disable_plugins
    from ctxmgr.cli.record_input import take

    disable_plugins()  # models check records that are not of a plain shape
    taken = take(opened.store, values["session"], trusted=values["trust_project"])
    answer = Answer(
        taken.data, lambda out: out.line(taken.line), "ok" if taken.status == "ok" else "empty", warnings=taken.warnings
    )
    answer.line = taken.line
    return answer


def _add_note(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    given: dict[str, Any] = {"content": values["message"], "tags": values["tag"] or [], "links": values["link"] or []}
    request, session = _on_entries("note add", "AddNoteRequest", values, **given)
    note = tools.add_note(opened.store, request)
    tell_session(opened.store, session, note["session"])
    return Answer(note, lambda out: _show_notes(out, [note]))


def _list_notes(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    """Answer ``note list`` and ``note search``, which differ only in the query."""
    name = "note search" if "query" in values else "note list"
    asked = {**values, "query": values.get("query")}
    request = make_request(name, "ListNotesRequest", asked, tags=values["tag"] or [])
    found = opened.read(name, lambda: tools.list_notes(opened.store, request), lambda found: found.rows)
    return Answer(found.rows, lambda out: _show_notes(out, found.rows), found.status, found.page)


def _show_notes(out: Printer, rows: list[dict[str, Any]]) -> None:
    from ctxmgr.cli.views.entries import show_notes
    from ctxmgr.types.view import NoteView

    show_notes(out, [NoteView.model_validate(row) for row in rows])


def _create_snapshot(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    request, session = _on_entries("snapshot create", "CreateSnapshotRequest", values)
    snapshot = tools.create_snapshot(opened.store, request)
    tell_session(opened.store, session, snapshot["session"])
    return Answer(snapshot, lambda out: _show_snapshots(out, [snapshot]))


def _list_snapshots(opened: OpenedStore, values: dict[str, Any]) -> Answer:
    request = make_request("snapshot list", "ListSnapshotsRequest", values)
    found = opened.read("snapshot list", lambda: tools.list_snapshots(opened.store, request), lambda found: found.rows)
    return Answer(found.rows, lambda out: _show_snapshots(out, found.rows), found.status, found.page)


def _show_snapshots(out: Printer, rows: list[dict[str, Any]]) -> None:
    from ctxmgr.cli.views.entries import show_snapshots
    from ctxmgr.types.view import SnapshotView

    show_snapshots(out, [SnapshotView.model_validate(row) for row in rows])


def _on_entries(name: str, shape: str, values: dict[str, Any], **changed: Any) -> tuple[Any, str | None]:
    """Return the request of a command that names entries, and the session of the entries."""
    from ctxmgr.cli.address import parse_all

    session, indexes, ids = parse_all(values["entries"], values["session"])
    return make_request(name, shape, values, **changed, session=session, entry_indices=indexes, entry_ids=ids), session


HANDLERS: dict[str, Handler] = {
    "note add": _add_note,
    "note list": _list_notes,
    "note search": _list_notes,
    "record": _record,
    "snapshot create": _create_snapshot,
    "snapshot list": _list_snapshots,
}
