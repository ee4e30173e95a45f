"""Read what matters now of a client's log, so that a long session is answered as fast as a short one.

Kept are the first lines (who and where), what people said in between, and the end, which is all that the detectors look at. To
that comes the result of the call that a hook speaks of, where the client writes it into its log only after its hooks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ctxmgr.clients.interface import Call, Event, as_object
from ctxmgr.detect.text.fingerprints import blur, canonical, error_core, error_text, plain_text, says_anything
from ctxmgr.log.ids import new_id, now
from ctxmgr.paths import open_regular
from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

_WHOLE, _HEAD, _END = 600_000, 65_536, 400_000
_SPOKEN = 200_000
_SCANNED = 64_000_000
"""Bytes of a log in whose middle people's words are looked for; in a longer one that would take seconds."""
_LONGEST_LINE = 20_000
_PERSON = (b'"type":"user"', b'"type": "user"', b'"role":"user"', b'"role": "user"', b"user_message")
_RESULT = (b"tool_result", b"function_call_output")

_LAST = 40
_WRAPPED = 0.8
"""Share of a result in the log that must be the result itself, if the rest is to count as the client's wrapping."""


def excerpt(log: str, folder: str, unwritten: Sequence[tuple[str, str]], begun: Sequence[str] = ()) -> str:
    """Write the excerpt of a log into a folder, under the log's own name, and return its path.

    Args:
        log: of the client; its name may come from anywhere, so nothing but a regular file is opened.
        folder: where to.
        unwritten: ids and records of results that the client has not written yet; added where their ids name a call
            whose result is not there.
        begun: records of calls that the client writes only when they are over; added as they are.

    Raises:
        OSError: there is no such log, or it is no regular file.
    """
    with open(open_regular(log), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(_WHOLE) if size <= _WHOLE else b"".join(_parts(stream, size))
    content = content[: content.rfind(b"\n") + 1]  # the client may be writing
    for call, record in unwritten:
        found = [line for line in content[-_WHOLE:].split(b"\n") if call and call.encode() in line]
        if found and not any(result in line for line in found for result in _RESULT):
            content += record.encode("ascii") + b"\n"
    content += b"".join(record.encode("ascii", "replace") + b"\n" for record in begun)
    place = os.path.join(folder, os.path.basename(log) or "log.jsonl")
    with open(place, "xb") as target:
        target.write(content)
    return place


def _parts(source: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the lines at the beginning, the short ones of people in the middle, and those at the end."""
    place, kept, end = 0, 0, size - _END
    for line in source:
        start, place = place, place + len(line)
        if start < _HEAD or start >= end:
            yield line
        elif size > _SCANNED:
            source.seek(end)
            source.readline()
            yield from source
            return
        elif kept < _SPOKEN and len(line) < _LONGEST_LINE and _is_spoken(line):
            kept += len(line)
            yield line


def _is_spoken(line: bytes) -> bool:
    if not (b'user"' in line or b"user_message" in line):  # quicker than each of the marks, and most lines hold neither
        return False
    return not any(each in line for each in _RESULT) and any(each in line for each in _PERSON)


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
