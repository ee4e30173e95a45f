"""Read the raw records of one Claude Code file in any form, and its head."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from ctxmgr.importers.base import damage_reporter
from ctxmgr.importers.claude_code.events import is_summary, record_origin, text_origin
from ctxmgr.importers.log_files import HEAD_SIZE, open_log, small_object
from ctxmgr.importers.values import decoder, ident, mapping, moment, text, texts, title
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, read_objects
from ctxmgr.log.ids import parse_time
from ctxmgr.types.import_report import FileCount

_PROLOGUE = 2_000
"""Maximum number of records in a head, because a file without words of the model may contain nothing else."""

STATE_TYPES = frozenset(
    {
        "summary", "ai-title", "custom-title", "last-prompt", "mode", "permission-mode", "tag", "agent-name",
        "agent-color", "agent-setting", "pr-link", "queue-operation", "worktree-state", "file-history-snapshot",
        "file-history-delta", "api-request", "api-request-blob", "api-request-shape", "tools-used", "cost-state",
        "atis-latch",
    }
)  # fmt: skip
"""Types of records without an envelope. They hold the program's state, not actions of the agent."""

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

_MIN_SKIPPED = 2_048
"""Minimum size in bytes for which skipping a record saves more than checking it costs."""
# First bytes of records that are not used. The program writes its keys in this order.
_SKIPPABLE = re.compile(
    rb'\{"type":"(?:api-request(?:-blob|-shape)?|file-history-(?:snapshot|delta))",'
    rb'|\{"parentUuid":(?:null|"[^"]{1,64}"),"isSidechain":(?:true|false),(?:"agentId":"[^"]{1,64}",)?'
    rb'"attachment":\{"type":"([a-z_]{1,40})"'
)
_RECORD_STARTS = (b'{"parentUuid"', b'{"type"', b'{"uuid"')
_UUID = re.compile(rb'"uuid":"([^"]{1,64})"')
_EXPORT = re.compile(r'"loglines"\s*:\s*\[')


@dataclass(slots=True)
class Raw:
    """One record of a file.

    Attributes:
        number: its line, counted from 1; in a web export, its place in the list.
        place: increases with each record of the file, including skipped ones.
        ts: its time as RFC 3339.
        long: whether its texts must be cut to fit into one of our records.
    """

    number: int
    place: int
    kind: str
    value: dict[str, Any]
    ts: str | None
    long: bool

    def seconds(self) -> float | None:
        """Return the time in seconds since 1970, or None for a record about the program's state."""
        return None if self.kind in STATE_TYPES else parse_time(self.ts)


class Source:
    """The records of one file in order. Counts records, damage, versions and unknown types.

    Attributes:
        places: uuid -> place, including skipped records; only for the main file of a session.
    """

    def __init__(self, path: Path, count: FileCount, keep_places: bool = False) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self._count = count
        self._keeps_places = keep_places
        self._place = 0
        self._version: tuple[int, ...] = ()
        self._report = damage_reporter(count)

    def records(self) -> Iterator[Raw]:
        """Yield the relevant records.

        Raises:
            OSError: the file can't be read, or is not a regular file.
        """
        with open_log(self.path, self._report) as log:
            stream = cast("IO[bytes]", log)
            self._count.bytes = self.path.stat().st_size
            head = log.peek(HEAD_SIZE)[:HEAD_SIZE]
            lines = _export(stream, self._report) if is_export(head) else self._lines(stream)
            for line in lines:
                raw = self._raw(line)
                if raw is not None:
                    yield raw

    def _lines(self, stream: IO[bytes]) -> Iterator[Line]:
        return read_objects(stream, self._report, accept=is_whole, skip=self._skip, decode=decoder())

    def _skip(self, line: bytes) -> bool:
        """Whether a bulky record can be skipped unread, because its first bytes show that none of it would be used.

        The line must look complete: it ends with a brace, contains no NULs and no beginning of another record, and is UTF-8.
        """
        if len(line) < _MIN_SKIPPED or not line.endswith(b"}") or (hit := _SKIPPABLE.match(line)) is None:
            return False
        kind = hit.group(1)
        if kind is not None and kind.decode() in KEPT_ATTACHMENTS:
            return False
        if b"\0" in line or _is_glued(line) or not _is_utf8(line):
            return False
        self._count.records += 1
        self._place += 1
        if self._keeps_places and kind is not None and (found := _UUID.search(line, line.rfind(b'"uuid":"'))):
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
            return Raw(line.number, self._place, kind, value, _record_time(value), False)
        if self._keeps_places and (uuid := ident(value.get("uuid"))):
            self.places.setdefault(uuid, self._place)
        # Our records are ASCII, so they may be longer than the line: ``é`` has two bytes there and six here.
        return Raw(line.number, self._place, kind, value, _record_time(value), line.length > MAX_LINE // 4)

    def _see_version(self, version: object) -> None:
        if not isinstance(version, str) or version == self._count.version or len(version) > 40:
            return
        # The newest version counts. Several versions may write one log, and a copy begins with older ones.
        parts = tuple(int(part) for part in re.findall(r"\d{1,9}", version, re.ASCII))
        if parts > self._version:
            self._version, self._count.version = parts, version


def _record_time(value: dict[str, Any]) -> str | None:
    """Return a record's timestamp as RFC 3339 in UTC, or None."""
    stamp = value.get("timestamp")
    return moment(stamp) if isinstance(stamp, str) else None


def normal(value: dict[str, Any]) -> dict[str, Any]:
    """Return a stream-json record with the field names of a transcript. A transcript's record stays unchanged."""
    session = value.get("session_id")
    # A transcript's record may have both names. Then ``session_id`` is the session from which it was copied.
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
    """Whether an object next to damage is a complete record instead of a part of one."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if "parentUuid" in value:
        return isinstance(value.get("uuid"), str) and isinstance(value.get("sessionId"), str)
    if kind in STATE_TYPES:
        return any(key in value for key in ("sessionId", "leafUuid", "messageId"))
    return isinstance(value.get("session_id"), str) or (kind in {"started", "result"} and "agentId" in value)


def is_export(head: bytes) -> bool:
    """Whether the file is a web export: one object with the records under ``loglines``."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{") or b'"loglines"' not in start:
        return False
    found = _EXPORT.search(start.decode("utf-8", "replace"))
    return found is not None and b'"parentUuid"' not in start[: found.start()]


def _is_glued(line: bytes) -> bool:
    """Whether another record begins inside the line, outside of the line's own JSON."""
    for start in _RECORD_STARTS:
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
    """Yield the records of a web export, with at most one record and one block of the file in memory."""
    feed = codecs.getincrementaldecoder("utf-8")("replace")
    decoder = json.JSONDecoder()
    buffer = feed.decode(stream.read(HEAD_SIZE))
    start = _EXPORT.search(buffer)
    at = start.end() if start else len(buffer)
    number = 0
    while True:
        while at < len(buffer) and buffer[at] in " \t\r\n,":
            at += 1
        if buffer.startswith("]", at):
            return
        try:
            value, at = cast("tuple[object, int]", decoder.raw_decode(buffer, at))
        except (ValueError, RecursionError):
            # Double the size each time: a record is parsed from its beginning again, which with fixed
            # blocks would take quadratic time.
            block = stream.read(max(HEAD_SIZE, len(buffer)))
            buffer, at = buffer[at:] + feed.decode(block, final=not block), 0
            if not block or len(buffer) > MAX_LINE:
                damage(max(0, stream.tell() - len(buffer)), len(buffer), "the list of records breaks off")
                return
            continue
        number += 1
        if isinstance(value, dict):
            yield Line(number, mapping(cast("object", value)))
        # Only sometimes, because cutting the buffer after each record would copy it each time.
        if at > HEAD_SIZE:
            buffer, at = buffer[at:], 0


# --- what the first records of a file tell


@dataclass(slots=True)
class Head:
    """The beginning of a file, up to the first words of the model.

    Attributes:
        session: the sessionId of its records, else the file name; shared by the files of a session's sub-agents.
        agent_id: id of the agent in a sub-agent's own file; None in the main file of a session.
        stream: whether the file is captured output of the program instead of a transcript.
        title: the first words of a person; forked_from: the session whose records are copied at the beginning.
    """

    session: str
    agent_id: str | None = None
    journal: bool = False
    stream: bool = False
    ts: str | None = None
    version: str | None = None
    cwd: str | None = None
    branch: str | None = None
    title: str | None = None
    forked_from: str | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is the main log of a session."""
        return self.agent_id is None and not self.journal


def read_head(path: Path) -> Head:
    """Read the beginning of a file.

    Raises:
        OSError: the file can't be read.
    """
    state = path.stat()
    return _parse_head(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _parse_head(path: Path, size: int, changed: int) -> Head:
    del size, changed  # only parts of the cache key, so that a file that has grown is read again
    sessions: list[str] = []
    head = Head(session="")
    sidechain: bool | None = None
    for number, raw in enumerate(Source(path, FileCount(path)).records()):
        value = raw.value
        head.stream = head.stream or ("session_id" in value and "parentUuid" not in value and raw.kind not in STATE_TYPES)
        if (session := ident(value.get("sessionId"))) and session not in sessions:
            sessions.append(session)
        head.ts = head.ts or raw.ts
        if raw.kind in {"started", "result"} and not sessions:
            head.journal = True
        elif raw.kind not in STATE_TYPES:
            # One record of the main thread makes it a main log: versions before 2.0 mix records of sub-agents into it.
            sidechain = value.get("isSidechain") is True and not head.stream and sidechain is not False
            _describe(head, value)
            head.agent_id = head.agent_id or ident(value.get("agentId"))
        # The first words of the model come after everything that a head tells.
        if raw.kind == "assistant" or number >= _PROLOGUE:
            break
    _name_session(head, path, sessions, sidechain=sidechain is True)
    return head


def _name_session(head: Head, path: Path, sessions: list[str], *, sidechain: bool) -> None:
    """Set the session of a log and the id of its sub-agent, from its records and its name."""
    # A resumed session begins with copies of another session's records, which have that session's id.
    head.session = path.stem if path.stem in sessions or not sessions else sessions[0]
    if head.journal:
        head.session = _folder_session(path) or head.session
    if not sidechain or path.stem == head.session:
        head.agent_id = None
    elif head.agent_id is None and path.name.startswith("agent-"):
        head.agent_id = path.stem.removeprefix("agent-")
    if head.forked_from == head.session:
        head.forked_from = None


def _describe(head: Head, value: dict[str, Any]) -> None:
    head.version = head.version or ident(value.get("version"))
    head.cwd = head.cwd or (text(value.get("cwd")) or "")[:4096] or None
    head.branch = head.branch or ident(value.get("gitBranch"))
    head.forked_from = head.forked_from or _origin(value)
    if head.title is None and value.get("type") == "user" and record_origin(value) is None:
        for words in texts(mapping(value.get("message")).get("content")):
            origin, said = text_origin(words)
            if origin is None and not is_summary(value, words) and said.strip():
                head.title = title(said)
                return


def _origin(value: dict[str, Any]) -> str | None:
    """Return the session from which a record was copied."""
    own = value.get("sessionId")
    source = value.get("forkedFrom")
    # The original is named differently in each era. ``requestSessionId`` stays in the copies by ``--fork-session``.
    for found in (mapping(source).get("sessionId") or source, value.get("requestSessionId"), value.get("session_id")):
        if (session := ident(found)) and session != own:
            return session
    return None


def agent_meta(path: Path) -> dict[str, Any]:
    """Return the object in the file beside a sub-agent's log ({agentType, toolUseId}), or an empty one."""
    return small_object(path.with_name(f"{path.stem}.meta.json"))


def _folder_session(path: Path) -> str | None:
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent.name
    return None
