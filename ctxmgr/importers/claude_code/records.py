"""Read the raw records of one Claude Code file of any shape."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ctxmgr.importers import log_files
from ctxmgr.importers.values import decoder, ident, mapping
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, read_objects
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.paths import open_regular
from ctxmgr.types.importing import FileCount

STATE_TYPES = frozenset(
    {
        "summary", "ai-title", "custom-title", "last-prompt", "mode", "permission-mode", "tag", "agent-name",
        "agent-color", "agent-setting", "pr-link", "queue-operation", "worktree-state", "file-history-snapshot",
        "file-history-delta", "api-request", "api-request-blob", "api-request-shape", "tools-used", "cost-state",
        "atis-latch",
    }
)  # fmt: skip
"""Records without an envelope; they tell of the program's state, not of what the agent did."""

KNOWN_TYPES = STATE_TYPES | {
    "user", "assistant", "system", "attachment", "progress", "started", "result",
    "stream_event", "rate_limit_event", "tool_progress", "tool_use_summary", "auth_status", "keep_alive",
    "control_request", "control_response", "control_cancel_request",
}  # fmt: skip

KEPT_ATTACHMENTS = frozenset(
    {
        "max_turns_reached", "queued_command", "hook_blocking_error", "hook_non_blocking_error",
        "hook_error_during_execution", "hook_stopped_continuation",
    }
)  # fmt: skip

_BULKY = 2_048
_MAX_RANGES = 1_000
_HEAD = 1 << 16
_FAST = re.compile(
    rb'\{"type":"(?:api-request(?:-blob|-shape)?|file-history-(?:snapshot|delta))",'
    rb'|\{"parentUuid":(?:null|"[^"]{1,64}"),"isSidechain":(?:true|false),(?:"agentId":"[^"]{1,64}",)?'
    rb'"attachment":\{"type":"([a-z_]{1,40})"'
)
_STARTS = (b'{"parentUuid"', b'{"type"', b'{"uuid"')
_UUID = re.compile(rb'"uuid":"([^"]{1,64})"')
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_EXPORT = re.compile(r'"loglines"\s*:\s*\[')


@dataclass(slots=True)
class Raw:
    """One record of a file.

    Attributes:
        number: its line, counted from 1; for a web export its place in the list.
        place: rises with each record of the file, those left unread included.
        ts: its time as RFC 3339; at: the same in seconds since 1970.
        long: whether it is so long that texts must be cut to fit into a record of ours.
    """

    number: int
    place: int
    kind: str
    value: dict[str, Any]
    ts: str | None
    at: float | None
    long: bool


class Source:
    """The records of one file in order; fills the counts of records, damage, versions and unknown types.

    Attributes:
        places: of a transcript's uuids, those of records left unread included; only kept for a session's main file.
    """

    def __init__(self, path: Path, count: FileCount, keep_places: bool = False) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self._count = count
        self._keep = keep_places
        self._place = 0
        self._version: tuple[int, ...] = ()

    def records(self) -> Iterator[Raw]:
        """Yield the records that matter.

        Raises:
            OSError: when the file can't be read or is not a regular file.
        """
        with log_files.open_log(self.path, self._damage) as log:
            stream = cast("IO[bytes]", log)
            self._count.bytes = self.path.stat().st_size
            head = log.peek(_HEAD)[:_HEAD]
            lines = _export(stream, self._damage) if is_export(head) else self._lines(stream)
            for line in lines:
                raw = self._raw(line)
                if raw is not None:
                    yield raw

    def _lines(self, stream: IO[bytes]) -> Iterator[Line]:
        return read_objects(stream, self._damage, accept=is_whole, skip=self._skip, decode=decoder())

    def _skip(self, line: bytes) -> bool:
        """Leave a bulky record unread when its first bytes show that nothing of it would be kept.

        Only where the line is whole for all that can be seen without reading it: it ends with a brace, holds no NULs
        and no beginning of another record, and is UTF-8.
        """
        if len(line) < _BULKY or not line.endswith(b"}") or (hit := _FAST.match(line)) is None:
            return False
        kind = hit.group(1)
        if kind is not None and kind.decode() in KEPT_ATTACHMENTS:
            return False
        if b"\0" in line or _is_glued(line) or not _is_utf8(line):
            return False
        self._count.records += 1
        self._place += 1
        if self._keep and kind is not None and (found := _UUID.search(line, line.rfind(b'"uuid":"'))):
            self.places[found.group(1).decode("utf-8", "replace")] = self._place
        return True

    def _raw(self, line: Line) -> Raw | None:
        self._count.records += 1
        self._place += 1
        value = normal(line.value)
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in KNOWN_TYPES:
            self._count.unknown[kind[:80] if isinstance(kind, str) else "(no type)"] += 1
            return None
        self._see_version(value.get("version"))
        if kind in STATE_TYPES:
            ts, _ = _moment(value.get("timestamp"))
            return Raw(line.number, self._place, kind, value, ts, None, False)
        if self._keep and (uuid := ident(value.get("uuid"))):
            self.places.setdefault(uuid, self._place)
        ts, at = _moment(value.get("timestamp"))
        return Raw(line.number, self._place, kind, value, ts, at, line.length > MAX_LINE // 4)

    def _see_version(self, version: object) -> None:
        if not isinstance(version, str) or version == self._count.version or len(version) > 40:
            return
        parts = tuple(int(part) for part in re.findall(r"\d{1,9}", version, re.ASCII))
        if parts > self._version:
            self._version, self._count.version = parts, version

    def _damage(self, offset: int, length: int, reason: str) -> None:
        if len(self._count.damaged) < _MAX_RANGES:
            self._count.damaged.append((offset, length, reason))
        elif len(self._count.damaged) == _MAX_RANGES:
            self._count.damaged.append((offset, self._count.bytes - offset, "more damage follows; not listed"))


def _moment(value: object) -> tuple[str | None, float | None]:
    """Return a timestamp as RFC 3339 in UTC and as seconds since 1970; both None when it is not one."""
    seconds = parse_time(value)
    if seconds is None or not isinstance(value, str):
        return None, None
    if _UTC.fullmatch(value):
        return value, seconds
    try:
        return format_time(seconds), seconds
    except (ValueError, OverflowError):
        return None, None


def open_log(path: Path) -> IO[bytes]:
    """Open a regular file for reading; a pipe or a device would block or never end.

    Raises:
        OSError: when it can't be read or is not a regular file.
    """
    return os.fdopen(open_regular(path), "rb", buffering=1 << 20)


def normal(value: dict[str, Any]) -> dict[str, Any]:
    """Return a stream-json record with the names that a transcript uses; a transcript's record as it is."""
    session = value.get("session_id")
    if not isinstance(session, str) or "sessionId" in value:
        return value
    return value | {
        "sessionId": session,
        "isSidechain": isinstance(value.get("parent_tool_use_id"), str),
        "agentId": value.get("agent_id"),
        "requestId": value.get("request_id"),
        "version": value.get("claude_code_version"),
        "toolUseResult": value.get("tool_use_result"),
        "isApiErrorMessage": value.get("is_api_error_message"),
        "apiErrorStatus": value.get("api_error_status"),
        "apiErrorType": value.get("api_error_type"),
        "compactMetadata": value.get("compact_metadata"),
    }


def is_whole(value: dict[str, Any]) -> bool:
    """Whether an object found next to damage is a whole record and not a part of one."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if "parentUuid" in value:
        return isinstance(value.get("uuid"), str) and isinstance(value.get("sessionId"), str)
    if kind in STATE_TYPES:
        return any(key in value for key in ("sessionId", "leafUuid", "messageId"))
    return isinstance(value.get("session_id"), str) or (kind in {"started", "result"} and "agentId" in value)


def is_export(head: bytes) -> bool:
    """Whether the file is a web export: one object whose ``loglines`` holds the records."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{") or b'"loglines"' not in start:
        return False
    found = _EXPORT.search(start.decode("utf-8", "replace"))
    return found is not None and b'"parentUuid"' not in start[: found.start()]


def _is_glued(line: bytes) -> bool:
    """Whether another record begins inside the line: the opening of one, and not as a part of the line's own JSON."""
    for start in _STARTS:
        at = line.find(start, 1)
        while at > 0:
            if line[at - 1 : at] not in b":,[":
                return True
            at = line.find(start, at + 1)
    return False


def _is_utf8(line: bytes) -> bool:
    if line.isascii():
        return True
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _export(stream: IO[bytes], damage: Any) -> Iterator[Line]:
    """Yield the records of a web export one by one, holding no more than one record and one block of the file."""
    feed = codecs.getincrementaldecoder("utf-8")("replace")
    decoder = json.JSONDecoder()
    held = feed.decode(stream.read(_HEAD))
    start = _EXPORT.search(held)
    at = start.end() if start else len(held)
    number = 0
    while True:
        while at < len(held) and held[at] in " \t\r\n,":
            at += 1
        if held.startswith("]", at):
            return
        try:
            value, at = cast("tuple[object, int]", decoder.raw_decode(held, at))
        except (ValueError, RecursionError):
            block = stream.read(max(_HEAD, len(held)))
            held, at = held[at:] + feed.decode(block, final=not block), 0
            if not block or len(held) > MAX_LINE:
                damage(max(0, stream.tell() - len(held)), len(held), "the list of records breaks off")
                return
            continue
        number += 1
        if isinstance(value, dict):
            yield Line(number, 0, mapping(cast("object", value)))
        if at > _HEAD:
            held, at = held[at:], 0
