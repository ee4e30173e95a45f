"""Read Claude Code transcripts of every version, web exports and stream-json logs."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

from ctxmgr.importers.claude_code import files
from ctxmgr.importers.claude_code.records import STATE_TYPES, Raw, Source, is_export
from ctxmgr.importers.claude_code.session import Session
from ctxmgr.importers.claude_code.threads import LogFile
from ctxmgr.importers.interface import Coverage, Place, found_at
from ctxmgr.importers.transcript import Part
from ctxmgr.importers.values import ident, mapping
from ctxmgr.log.codec import Record
from ctxmgr.types.importing import FileCount

_ENVELOPE = re.compile(rb'\{"parentUuid":(?:null|"[^"]{1,64}"),"isSidechain":(?:true|false),')
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SNIFFED_LINES = 200


class ClaudeCode:
    """The importer of Claude Code's logs; all rules of the seam hold (see `Importer`)."""

    name = "claude-code"
    title = "Claude Code"
    coverage = Coverage()
    places: Sequence[Place] = (Place(".claude/projects", "**/*.jsonl", variable="CLAUDE_CONFIG_DIR", below="projects"),)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Say yes to a record that carries Claude Code's envelope; logs that only look alike lack parts of it."""
        if is_export(head):
            start = head[head.index(b'"loglines"') :]
            return b'"sessionId"' in start and (b'"isSidechain"' in start or b'"parentUuid"' in start)
        states = 0
        for line in head.replace(b"\0", b"\n").split(b"\n")[:_SNIFFED_LINES]:
            verdict = _is_ours(line.strip(b"\xef\xbb\xbf \t\r"))
            if verdict is True:
                return True
            states += verdict is None
        return states > 0 and b'"message"' not in head

    def discover(self, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
        """Yield every transcript under ``$CLAUDE_CONFIG_DIR`` or ``~/.claude``."""
        found = sorted(found_at(self.places, home, environment), key=str)  # a session's log comes before its folder
        return (path for path in found if "tool-results" not in path.parts and path.is_file())

    def companions(self, path: Path) -> Sequence[Path]:
        """Return the logs of the session's sub-agents, beside it or in its folder."""
        return files.companions(path)

    def groups(self, paths: Iterable[Path]) -> list[list[Path]]:
        """Group files by session, a session's main log first, originals before their forks."""
        return files.groups(paths)

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield one session's records; files are read in step, in the order of their times.

        A stream-json log beside its session's transcript is counted, but tells nothing that the transcript does not.

        Raises:
            OSError: when a file can't be read.
        """
        if not group:
            return
        head = files.head_of(group[0])
        session, unused = (Session(head.session, self.name) for _ in range(2))
        emitted: set[str] = set()
        with ExitStack() as stack:
            for file, raw in _merged(group, head.session, counts, stack):
                copies = file.head.stream and not file.is_first
                feeding = unused if copies else session
                if copies and raw is None:
                    file.count.notes.append(f"the same session as {group[0].name}; counted, not recorded again")
                records = feeding.finish(file) if raw is None else feeding.feed(file, raw)
                for record in records:
                    if not copies and _is_new(record, emitted):
                        if len(emitted) == 1:
                            yield _opening(head, Part(head.session, counts[0], self.name))
                        yield record
        yield from session.end()


def _merged(
    group: Sequence[Path], session: str, counts: list[FileCount], stack: ExitStack
) -> Iterator[tuple[LogFile, Raw | None]]:
    """Yield each record with its file, by time across files and by place inside each; None at a file's end.

    A record without a time follows the one before it.
    """
    heads: list[tuple[float, int, Raw | None]] = []
    opened: list[tuple[LogFile, Iterator[Raw]]] = []
    for index, path in enumerate(group):
        count = FileCount(path, session=session)
        counts.append(count)
        source = Source(path, count, keep_places=index == 0)
        file = LogFile(path, files.head_of(path), count, source, is_first=index == 0)
        records = source.records()
        stack.enter_context(closing(cast("Any", records)))
        opened.append((file, records))
        if len(group) > 1:
            _push(heads, float("-inf"), index, next(records, None))
        else:
            yield from ((file, raw) for raw in records)
            yield file, None
    while heads:
        at, index, raw = heapq.heappop(heads)
        file, records = opened[index]
        yield file, raw
        if raw is not None:
            _push(heads, at, index, next(records, None))


def _push(heads: list[tuple[float, int, Raw | None]], at: float, index: int, raw: Raw | None) -> None:
    if raw is not None and raw.at is not None:
        at = max(at, raw.at)
    heapq.heappush(heads, (at, index, raw))


def _is_new(record: Record, emitted: set[str]) -> bool:
    key = f"result {record['entry']}" if record["kind"] == "result" else str(record["id"])
    if key in emitted:
        return False
    emitted.add(key)
    return True


def _opening(head: files.Head, part: Part) -> Record:
    about = {
        "cwd": head.cwd, "gitBranch": head.branch, "title": head.title, "forkedFrom": head.forked_from, "live": False,
    }  # fmt: skip
    return part.opening(head.ts, head.version, part.count.path, about)


def _is_ours(line: bytes) -> bool | None:
    """Judge one line: true for a record of ours, None for one that is merely likely, false otherwise."""
    if not line.startswith(b"{"):
        return False
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return _ENVELOPE.match(line) is not None and b'"sessionId":"' in line
    record = mapping(value)
    kind = record.get("type")
    if not isinstance(kind, str):
        return False
    if kind in STATE_TYPES:
        named = (record.get(key) for key in ("sessionId", "leafUuid", "messageId"))
        return None if any(isinstance(name, str) and _UUID.fullmatch(name) for name in named) else False
    if kind in ("user", "assistant", "system", "attachment", "progress") and isinstance(record.get("isSidechain"), bool):
        return "parentUuid" in record and ident(record.get("uuid")) is not None and "sessionId" in record
    if kind in ("started", "result") and "session_id" not in record:
        return None if ident(record.get("agentId")) and "key" in record else False
    return _is_stream(record, kind)


def _is_stream(record: dict[str, Any], kind: str) -> bool:
    if ident(record.get("session_id")) is None:
        return False
    if kind == "system":
        return isinstance(record.get("subtype"), str)
    if kind in ("user", "assistant"):
        return "parent_tool_use_id" in record and isinstance(record.get("message"), dict)
    return kind == "result" and "num_turns" in record
