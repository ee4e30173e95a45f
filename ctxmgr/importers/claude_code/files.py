"""Find the files of Claude Code sessions, and which session was forked from which."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ctxmgr.importers.claude_code.events import is_summary, record_origin, text_origin, title
from ctxmgr.importers.claude_code.records import STATE_TYPES, Source, open_log
from ctxmgr.importers.values import ident, mapping, text, texts
from ctxmgr.types.importing import FileCount

_PROLOGUE = 2_000
_TAIL = 1 << 16
_META_LIMIT = 1 << 18
_TIME = re.compile(rb'"timestamp":"([0-9TZ:.+-]{10,40})"')


@dataclass(slots=True)
class Head:
    """What the beginning of a file tells, up to the model's first words.

    Attributes:
        session: the sessionId of its records, else the file's name; shared by a session's sub-agent files.
        agent_id: of a sub-agent's own file; None for a session's main file.
        stream: whether this is what the program wrote to its output, not a transcript.
        title: the first words of a person; forked_from: the session whose records the file begins with copies of.
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
        """Whether this is a session's main log."""
        return self.agent_id is None and not self.journal


def head_of(path: Path) -> Head:
    """Read the beginning of a file.

    Raises:
        OSError: when it can't be read.
    """
    state = path.stat()
    return _head_of(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)
def _head_of(path: Path, size: int, changed: int) -> Head:
    del size, changed  # they are here for the cache alone
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
            sidechain = value.get("isSidechain") is True and not head.stream and sidechain is not False
            _describe(head, value)
            head.agent_id = head.agent_id or ident(value.get("agentId"))
        if raw.kind == "assistant" or number >= _PROLOGUE:
            break
    head.session = path.stem if path.stem in sessions or not sessions else sessions[0]
    if head.journal:
        head.session = _folder_session(path) or head.session
    if not sidechain or path.stem == head.session:
        head.agent_id = None
    elif head.agent_id is None and path.name.startswith("agent-"):
        head.agent_id = path.stem.removeprefix("agent-")
    if head.forked_from == head.session:
        head.forked_from = None
    return head


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
    """Return the session that a record was carried over from."""
    own = value.get("sessionId")
    source = value.get("forkedFrom")
    for found in (mapping(source).get("sessionId") or source, value.get("requestSessionId"), value.get("session_id")):
        if (session := ident(found)) and session != own:
            return session
    return None


def agent_meta(path: Path) -> dict[str, Any]:
    """Return what the file beside a sub-agent's log says about it (agentType, toolUseId), or an empty object."""
    try:
        with open_log(path.with_name(f"{path.stem}.meta.json")) as stream:
            return mapping(json.loads(stream.read(_META_LIMIT)))
    except (OSError, ValueError, RecursionError):
        return {}


def companions(path: Path) -> Sequence[Path]:
    """Return the logs of the sub-agents of the session whose main log is ``path``."""
    try:
        head = head_of(path)
    except OSError:
        return []
    if not head.is_main:
        return []
    beside = [other for other in sorted(path.parent.glob("agent-*.jsonl")) if _belongs(other, head.session)]
    folders = {path.with_suffix(""), path.parent / Path(head.session).name}
    below = [other for folder in sorted(folders) for other in sorted((folder / "subagents").rglob("*.jsonl"))]
    return [other for other in [*beside, *below] if other.is_file()]


def _belongs(path: Path, session: str) -> bool:
    try:
        head = head_of(path)
    except OSError:
        return False
    return not head.is_main and head.session == session


def groups(paths: Iterable[Path]) -> list[list[Path]]:
    """Group files by session, a session's main log first, originals before their forks and later copies.

    A stream-json log whose transcript is there too comes last in the transcript's group.
    """
    heads: dict[Path, Head] = {}
    for path in paths:
        try:
            heads.setdefault(path, head_of(path))
        except OSError:
            heads.setdefault(path, Head(session=path.stem))
    found: dict[tuple[Path, str], list[Path]] = {}
    by_session: dict[str, list[Path]] = {}
    whole: list[list[Path]] = []
    streams: list[Path] = []
    for path, head in heads.items():
        if head.is_main and head.stream:
            streams.append(path)
        elif head.is_main:
            group = [path]
            whole.append(group)
            found.setdefault((path.parent, head.session), group)
            by_session.setdefault(head.session, group)
    for path, head in sorted(heads.items()):
        if not head.is_main:
            key = (_project(path), head.session)
            if key not in found:
                found[key] = []
                whole.append(found[key])
            found[key].append(path)
    for path in sorted(streams):
        if heads[path].session in by_session:
            by_session[heads[path].session].append(path)
        else:
            whole.append([path])
    return sorted(whole, key=lambda group: _order(heads[group[0]], group[0], heads))


def _order(head: Head, path: Path, heads: dict[Path, Head]) -> tuple[int, bytes, str]:
    """Forks come behind their origin; else the session that ended first comes first, since a copy goes on longer."""
    origins = {other.session: other.forked_from for other in heads.values() if other.is_main}
    depth, origin, seen = 0, head.forked_from, {head.session}
    while origin in origins and origin not in seen:
        seen.add(origin)
        depth, origin = depth + 1, origins[origin]
    return depth, _last_time(path), str(path)


def _last_time(path: Path) -> bytes:
    try:
        with open_log(path) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _TAIL))
            found = _TIME.findall(stream.read(_TAIL))
    except OSError:
        return b""
    return max(found, default=b"")


def _project(path: Path) -> Path:
    """Return the folder that holds the main log of the session a sub-agent's log belongs to."""
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent.parent
    return path.parent


def _folder_session(path: Path) -> str | None:
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent.name
    return None
