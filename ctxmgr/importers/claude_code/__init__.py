"""Read Claude Code transcripts of every version, web exports and stream-json logs.

Start with `records`, the raw lines of one file, and `session`, which reads the files of a session in parallel, with one part
per agent. `events` judges single records. This package may import what every importer may, but no other format.
"""

from __future__ import annotations

import heapq
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ctxmgr.importers.base import Coverage, FormatDescription, Place
from ctxmgr.importers.claude_code.records import STATE_TYPES, Head, Raw, Source, is_export, read_head
from ctxmgr.importers.claude_code.session import LogFile, Session
from ctxmgr.importers.log_files import open_plain
from ctxmgr.importers.transcript import Part
from ctxmgr.importers.values import ident, mapping
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

# For a torn line, or one longer than the head, which is not JSON. The program writes these keys first.
_ENVELOPE = re.compile(rb'\{"parentUuid":(?:null|"[^"]{1,64}"),"isSidechain":(?:true|false),')
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SNIFFED_LINES = 200  # a file may begin with many records of the program's state, which prove nothing
_TAIL = 1 << 16  # bytes at the end of a file; its last record has the latest time
# Searched as bytes, because the tail begins in the middle of a line and records may be long.
_TIME = re.compile(rb'"timestamp":"([0-9TZ:.+-]{10,40})"')


@dataclass(frozen=True, kw_only=True)
class _ParallelFilesImporter(FormatDescription):
    """Importer of sessions whose files are merged by time: a main log and the logs of its sub-agents."""

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether a record has the envelope of Claude Code. Similar logs of other programs lack parts of it."""
        if is_export(head):
            start = head[head.index(b'"loglines"') :]
            return b'"sessionId"' in start and (b'"isSidechain"' in start or b'"parentUuid"' in start)
        # A new session may contain only records of state. Logs of other programs have similar
        # records, but only beside messages.
        states = 0
        # A power failure leaves a run of NULs in the place of a line. The record after them begins a line too.
        for line in head.replace(b"\0", b"\n").split(b"\n")[:_SNIFFED_LINES]:
            verdict = _is_ours(line.strip(b"\xef\xbb\xbf \t\r"))
            if verdict is True:
                return True
            states += verdict is None
        return states > 0 and b'"message"' not in head

    def read(self, group: Sequence[Path], counts: list[FileCount]) -> Iterator[Record]:
        """Yield one session's records. Its files are read in parallel, in the order of their times.

        A stream-json log beside its session's transcript is counted, but adds no records.

        Raises:
            OSError: a file can't be read.
        """
        if not group:
            return
        head = read_head(group[0])
        counts += [FileCount(path, session=head.session) for path in group]
        own_counts = counts[-len(group) :]
        # Only the counts of a copy are needed, so its records go into a part from which nobody takes them.
        part, copied = (Part(head.session, own_counts[0], self.name) for _ in range(2))
        session, unused = Session(part), Session(copied)
        emitted: set[str] = set()
        with ExitStack() as stack:
            for file, raw in _merge_records(own_counts, stack):
                copies = file.head.stream and not file.is_first
                feeding = unused if copies else session
                if copies and raw is None:
                    file.count.notes.append(f"the same session as {group[0].name}; counted, not recorded again")
                records = feeding.finish(file) if raw is None else feeding.feed(file, raw)
                for record in records:
                    if not copies and _is_new(record, emitted):
                        # The session's own record comes with the first other record, so a file without records yields nothing.
                        if len(emitted) == 1:
                            yield _opening_record(head, part)
                        yield record
        yield from session.end()


def _merge_records(counts: Sequence[FileCount], stack: ExitStack) -> Iterator[tuple[LogFile, Raw | None]]:
    """Yield each record with its file, by time across files and by place inside a file; None at the end of a file.

    A record without a time follows the previous one.
    """
    heads: list[tuple[float, int, Raw | None]] = []
    opened: list[tuple[LogFile, Iterator[Raw]]] = []
    for index, count in enumerate(counts):
        source = Source(count.path, count, keep_places=index == 0)
        file = LogFile(count.path, read_head(count.path), count, source, is_first=index == 0)
        records = source.records()
        stack.enter_context(closing(cast("Any", records)))
        opened.append((file, records))
        if len(counts) > 1:
            _push(heads, float("-inf"), index, next(records, None))
        else:
            yield from ((file, raw) for raw in records)
            yield file, None
    # A time that goes back inside a file does not change the order, because `at` never falls within one file.
    while heads:
        at, index, raw = heapq.heappop(heads)
        file, records = opened[index]
        yield file, raw
        if raw is not None:
            _push(heads, at, index, next(records, None))


def _push(heads: list[tuple[float, int, Raw | None]], at: float, index: int, raw: Raw | None) -> None:
    if raw is not None and (found := raw.seconds()) is not None:
        at = max(at, found)
    heapq.heappush(heads, (at, index, raw))


def _is_new(record: Record, emitted: set[str]) -> bool:
    # A result has no id. Resumed and forked sessions repeat records in another file, but each is yielded once.
    key = f"result {record['entry']}" if record["kind"] == "result" else str(record["id"])
    if key in emitted:
        return False
    emitted.add(key)
    return True


def _opening_record(head: Head, part: Part) -> Record:
    about = {
        "cwd": head.cwd, "gitBranch": head.branch, "title": head.title, "forkedFrom": head.forked_from, "live": False,
    }  # fmt: skip
    return part.session_record(head.ts, head.version, part.count.path, about)


def _is_ours(line: bytes) -> bool | None:
    """Judge one line: True for a record of Claude Code, None for a possible one, False for any other."""
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
        # Simplified logs of other programs have these types too, but ids such as ``u6`` instead of UUIDs.
        named = (record.get(key) for key in ("sessionId", "leafUuid", "messageId"))
        return None if any(isinstance(name, str) and _UUID.fullmatch(name) for name in named) else False
    if kind in ("user", "assistant", "system", "attachment", "progress") and isinstance(record.get("isSidechain"), bool):
        if "systemPayload" in record or "parts" in mapping(record.get("message")):  # written by Qwen Code in logs of sub-agents
            return False
        return "parentUuid" in record and ident(record.get("uuid")) is not None and "sessionId" in record
    if kind in ("started", "result") and "session_id" not in record:  # lines of a journal
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


# --- which files belong together


def _is_log(path: Path) -> bool:
    return "tool-results" not in path.parts and path.is_file()


def _session_files(path: Path) -> Sequence[Path]:
    """Return a main log and the logs of its session's sub-agents, beside it or in its folder."""
    try:
        head = read_head(path)
    except OSError:
        return [path]
    if not head.is_main:
        return [path]
    # Versions 2.0 put sub-agents' logs beside the session's log, later versions into its folder.
    siblings = [other for other in sorted(path.parent.glob("agent-*.jsonl")) if _belongs_to(other, head.session)]
    # A main log that was copied under another name keeps its folder. The id is recorded text, but its last part alone
    # can't lead out of the folder.
    folders = {path.with_suffix(""), path.parent / Path(head.session).name}
    below = [other for folder in sorted(folders) for other in sorted((folder / "subagents").rglob("*.jsonl"))]
    return [path, *(other for other in [*siblings, *below] if other.is_file())]


def _belongs_to(path: Path, session: str) -> bool:
    try:
        head = read_head(path)
    except OSError:
        return False
    return not head.is_main and head.session == session


def _groups(paths: Iterable[Path]) -> list[list[Path]]:
    """Group files by session: a session's main log first, originals before their forks and later copies.

    A stream-json log comes last in the group of its transcript, if that exists.
    """
    heads = _read_heads(paths)
    by_place: dict[tuple[Path, str], list[Path]] = {}
    by_session: dict[str, list[Path]] = {}
    groups: list[list[Path]] = []
    for path, head in heads.items():
        if head.is_main and not head.stream:
            group = [path]
            groups.append(group)
            by_place.setdefault((path.parent, head.session), group)
            by_session.setdefault(head.session, group)
    for path, head in sorted(heads.items()):
        if not head.is_main:
            key = (_project_folder(path), head.session)
            if key not in by_place:
                by_place[key] = []
                groups.append(by_place[key])
            by_place[key].append(path)
    for path in sorted(path for path, head in heads.items() if head.is_main and head.stream):
        if heads[path].session in by_session:
            by_session[heads[path].session].append(path)
        else:
            groups.append([path])
    # Originals first, because the first of two records with one id is used.
    return sorted(groups, key=lambda group: _sort_key(heads[group[0]], group[0], heads))


def _read_heads(paths: Iterable[Path]) -> dict[Path, Head]:
    heads: dict[Path, Head] = {}
    for path in paths:
        try:
            heads.setdefault(path, read_head(path))
        except OSError:
            # Grouped too, so that reading it reports why it can't be read.
            heads.setdefault(path, Head(session=path.stem))
    return heads


def _sort_key(head: Head, path: Path, heads: dict[Path, Head]) -> tuple[int, bytes, str]:
    """Return the sort key of a session: forks after their origin, else by last time, because a copy continues longer."""
    # The depth in the chain of forks. Recorded ids may form a circle.
    origins = {other.session: other.forked_from for other in heads.values() if other.is_main}
    depth, origin, seen = 0, head.forked_from, {head.session}
    while origin in origins and origin not in seen:
        seen.add(origin)
        depth, origin = depth + 1, origins[origin]
    return depth, _last_time(path), str(path)


def _last_time(path: Path) -> bytes:
    try:
        with open_plain(path) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL))
            found = _TIME.findall(stream.read(_TAIL))
    except OSError:
        return b""
    return max(found, default=b"")


def _project_folder(path: Path) -> Path:
    """Return the folder of the session's main log for a sub-agent's log."""
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent.parent
    return path.parent


CLAUDE_CODE = _ParallelFilesImporter(
    name="claude-code",
    title="Claude Code",
    coverage=Coverage(),
    places=(Place(".claude/projects", "**/*.jsonl", variable="CLAUDE_CONFIG_DIR", below="projects"),),
    related=_session_files,
    is_log=_is_log,
    grouped=_groups,
)
