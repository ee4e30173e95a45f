"""Add the result of the call that a hook speaks of, where the client writes it into its log only after its hooks."""

from __future__ import annotations

from typing import Any

from ctxmgr.clients.interface import Call, Event, as_object
from ctxmgr.detect.text.fingerprints import canonical, error_core, error_text, plain_text, says_anything
from ctxmgr.detect.text.volatile_fields import blur
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

_LAST = 40
_WRAPPED = 0.8
"""Share of a result in the log that must be the result itself, if the rest is to count as the client's wrapping."""


def add_late_results(workspace: Workspace, event: Event) -> None:
    """Record the results of an event's calls beside the log that was read; nothing of it is kept.

    A call that the log does not even begin is recorded whole, as the same call before it was.

    Raises:
        CtxmgrError: the store refused.
    """
    entries = workspace.list(ListRequest(newest_first=True, limit=_LAST)).entries
    for call in event.calls:
        same = [each for each in entries if _is_same(each, call)]
        if same:
            _add(workspace.store, call, same)


def _is_same(entry: EntryView, call: Call) -> bool:
    if call.id:
        return call.id in entry.id
    return canonical(entry.input) == canonical(call.given)


def _add(store: Store, call: Call, same: list[EntryView]) -> None:
    latest = same[0]
    records: list[dict[str, Any]] = []
    shared = {"v": 1, "session": latest.session, "ts": now()}
    entry = latest.id
    if latest.status != "open":
        if call.id:
            return
        entry = new_id()
        whole = {"kind": "entry", "id": entry, "agent": latest.agent, "action": latest.action, "input": latest.input}
        records.append({**shared, **whole, "inputType": latest.input_type, "process": latest.process, "turn": latest.turn})
    closed = next((each for each in same if each.status != "open"), None)
    result: dict[str, Any] = {"kind": "result", "entry": entry, "status": "ok", "output": call.result}
    if closed is not None and _says_the_same(call.result, closed):
        result |= {"status": closed.status, "output": closed.output, "error": closed.error}
    elif closed is not None and closed.status == "error" and _fails_the_same(call.result, closed):
        kind = (as_object(closed.error) or {}).get("type")
        result |= {"status": "error", "error": {"type": kind or "error", "message": plain_text(call.result)}}
    records.append({**shared, **result})
    store.append([{key: value for key, value in record.items() if value is not None} for record in records])


def _says_the_same(result: Any, before: EntryView) -> bool:
    """Whether a result is the one before but for times, ids and what a client wraps around it in its log."""
    mine = _blurred(result)
    error = as_object(before.error) or {}
    for each in (before.output, error.get("message")):
        theirs = _blurred(each)
        short, long = sorted((mine, theirs), key=len)
        if mine == theirs or (short in long and len(short) >= _WRAPPED * len(long)):
            return True
    return False


def _fails_the_same(result: Any, before: EntryView) -> bool:
    """Whether a result names the cause that the failure before it named, as the detectors compare failures."""
    core = error_core(plain_text(result) or "")
    return says_anything(core) and core == error_core(error_text(before.error, before.output))


def _blurred(value: Any) -> str:
    return blur((plain_text(value) or "").strip(), ids=True)
