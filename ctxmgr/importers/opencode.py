"""Sessions of opencode. Sessions of sub-agents name the session that started them.

They are in one SQLite database. Earlier versions wrote one file per session, message and part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, OpenTables, Place, TableImporter, Tables
from ctxmgr.importers.chat import judge_result, speak
from ctxmgr.importers.log_files import small_object
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, parse_json, text

_SESSION = ("id", "parent_id", "directory", "title", "version", "agent", "time_created")
_IGNORED_PARTS = frozenset(("step-start", "step-finish", "snapshot", "patch", "file", "agent", "subtask"))
_STORAGE = "storage"
_MAX_ANCESTORS = 20
"""Maximum number of levels of sub-agents to follow upwards, because files may name each other in a circle."""


def _proves(columns: Mapping[str, Sequence[str]]) -> bool:
    required = {"session": {"id", "directory", "version"}, "message": {"session_id", "data"}, "part": {"message_id", "data"}}
    return all(names <= set(columns.get(table, ())) for table, names in required.items())


def _read_tables(log: Log, tables: Tables) -> Iterator[None]:
    """Read the sessions in the order of their beginnings, so that a sub-agent's session follows the call that started it."""
    rows = {str(row["id"]): row for row in tables.rows("session", _SESSION, ("time_created", "id"))}
    started: dict[str, str] = {}
    for own, row in rows.items():
        root = _root(own, rows)
        kind = text(row.get("agent")) or "agent"
        if root == own:
            t = log.session(own)
        else:
            # Several sub-agents of one kind may run at once, so the name includes the end of the session's id.
            t = log.session(root, agent=f"{kind}-{own[-8:]}", part=own, parent=started.get(own, ""))
        t.describe(row.get("version"), row.get("time_created"), cwd=row.get("directory"), title=row.get("title"))
        _session(log, tables, t, own, started)
        yield


def _root(own: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the session of a person that directly or indirectly started this session's agent."""
    seen: set[str] = set()  # parents are recorded text and may form a circle
    while own not in seen and (above := text(rows[own].get("parent_id"))) in rows and above is not None:
        seen.add(own)
        own = above
    return own


def _session(log: Log, tables: Tables, t: Transcript, own: str, started: dict[str, str]) -> None:
    where = {"session_id": own}
    parts: dict[str, list[tuple[str, dict[str, Any], object]]] = {}
    for row in tables.rows("part", ("id", "message_id", "time_created", "data"), ("message_id", "id"), where):
        part = mapping(parse_json(row.get("data")))
        parts.setdefault(str(row.get("message_id")), []).append((str(row["id"]), part, row.get("time_created")))
    for row in tables.rows("message", ("id", "time_created", "data"), ("time_created", "id"), where):
        log.count.records += 1
        message, key = mapping(parse_json(row.get("data"))), str(row["id"])
        t.place = key
        if message.get("role") == "user":
            _add_prompt(t, key, parts.get(key, []), row.get("time_created"))
        elif message.get("role") == "assistant":
            _add_response(log, t, key, message, parts.get(key, []), row.get("time_created"), started)
        else:
            log.unknown(f"role {text(message.get('role')) or '?'}")


def _add_prompt(t: Transcript, key: str, parts: Sequence[tuple[str, dict[str, Any], object]], at: object) -> None:
    words_said: list[str] = []
    pictures = 0
    for own, part, _ in parts:
        kind, words = text(part.get("type")), text(part.get("text")) or ""
        pictures += kind == "file"
        if kind == "compaction":
            t.event("compaction", {"trigger": "auto" if part.get("auto") is True else "manual"}, at, own)
        elif kind == "text" and part.get("synthetic") is True:
            t.nudge(words, "synthetic", at, own)
        # Ignored parts are never sent to the model.
        elif kind == "text" and part.get("ignored") is not True:
            words_said.append(words)
    speak(t, "\n".join(words_said), at, key, pictures=pictures)


def _add_response(
    log: Log, t: Transcript, key: str, message: Mapping[str, Any], parts: Sequence[tuple[str, dict[str, Any], object]],
    at: object, started: dict[str, str],
) -> None:  # fmt: skip
    t.step = f"{t.part}:{key}"
    counted = 0
    for own, part, created in parts:
        log.count.records += 1
        if part.get("type") == "step-finish" and "tokens" in part:  # a message may consist of several responses
            counted += 1
            _count_tokens(t, own if counted > 1 else key, message.get("modelID"), mapping(part.get("tokens")), at)
        else:
            _part(log, t, own, part, created, started)
    # Versions without tokens in their steps have them in the message. Adding both would count them twice.
    if not counted:
        _count_tokens(t, key, message.get("modelID"), mapping(message.get("tokens")), at)
    error = mapping(message.get("error"))
    reason = mapping(error.get("data")).get("message")
    # The Escape key of a person is stored as an error of the message.
    if error.get("name") == "MessageAbortedError":
        t.event("interrupt", {"text": text(reason) or "aborted"}, mapping(message.get("time")).get("completed") or at)
    elif error:
        t.failure(reason or error.get("name"), at, reason=text(error.get("name")) or "error")


def _part(log: Log, t: Transcript, own: str, part: Mapping[str, Any], created: object, started: dict[str, str]) -> None:
    kind, words = text(part.get("type")), text(part.get("text")) or ""
    start = mapping(part.get("time")).get("start") or created
    if kind == "text":
        t.message(words, start, own)
    elif kind == "reasoning":
        t.add_thought(words, start, own)
    elif kind == "tool":
        _tool(t, part, created, started)
    elif kind == "compaction":
        t.event("compaction", {"text": words}, start, own)
    elif kind == "retry":
        error = mapping(part.get("error"))
        t.failure(mapping(error.get("data")).get("message") or error.get("name"), created, own, reason="apiError")
    elif kind not in _IGNORED_PARTS:
        log.unknown(f"part {kind or '?'}")


def _count_tokens(t: Transcript, key: str, model: object, used: Mapping[str, Any], at: object) -> None:
    cache = mapping(used.get("cache"))
    t.usage(
        at, key, model, inputTokens=used.get("input"), outputTokens=used.get("output"),
        reasoningTokens=used.get("reasoning"), cacheReadTokens=cache.get("read"), cacheCreationTokens=cache.get("write"),
    )  # fmt: skip


def _tool(t: Transcript, part: Mapping[str, Any], created: object, started: dict[str, str]) -> None:
    """Add a call and, if it has ended, its result. opencode stores a call of an unknown tool as a call of ``invalid``."""
    state, name = mapping(part.get("state")), part.get("tool")
    given, spent, meta = mapping(state.get("input")), mapping(state.get("time")), mapping(state.get("metadata"))
    if state.get("status") == "pending" and not given:
        return  # the model is still writing the arguments
    # In that case, the requested name is in the input, and the status is ``completed`` nevertheless.
    missing = text(given.get("tool")) if name == "invalid" else None
    entry = t.call(part.get("callID"), missing or name, given, spent.get("start") or created, timeout_ms=given.get("timeout"))
    if child := text(meta.get("sessionId")) or text(meta.get("sessionID")):
        started.setdefault(child, entry)
    # A part that stays ``running`` or ``pending`` is a call that hangs, or whose program was killed.
    source = text(state.get("status"))
    if source not in ("completed", "error"):
        return
    status, output, error = judge_result({}, state.get("output"))
    code, kind = integer(meta.get("exit")), "toolError"  # a failed command is ``completed`` too
    if source == "error":
        status, error = judge_result({"is_error": True}, state.get("error"))[0], text(state.get("error"))
    elif missing:
        status, error = "error", text(given.get("error"))
    elif code:
        status, kind = "error", "exitCode"
    outcome = {"sourceStatus": source, "exitCode": code}
    t.result(part.get("callID"), output, spent.get("end"), status=status, error=error, kind=kind, meta=outcome)


def opencode(open_tables: OpenTables) -> TableImporter:
    """Return the importer of opencode's database."""
    return TableImporter(
        name="opencode",
        title="opencode",
        open_tables=open_tables,
        proves=_proves,
        reader=_read_tables,
        coverage=Coverage(),
        places=(
            Place(".local/share/opencode", "opencode*.db", variable="XDG_DATA_HOME", below="opencode"),
            Place(".local/share/opencode", "storage/opencode*.db", variable="XDG_DATA_HOME", below="opencode"),
        ),
    )


# --- what `opencode run --format json` prints


def _is_printed(value: dict[str, Any]) -> bool:
    part = mapping(value.get("part"))
    return text(part.get("messageID")) is not None and text(value.get("sessionID")) == text(part.get("sessionID")) is not None


class _RunOutput:
    """The parts of a session in the order of their ends. Parts of its sub-agents are not printed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._counted: set[str] = set()

    def read(self, value: dict[str, Any]) -> None:
        t, at, part = self._log.session(value.get("sessionID")), value.get("timestamp"), mapping(value.get("part"))
        key = text(part.get("messageID"))
        t.step = f"{t.part}:{key}"
        if value.get("type") == "error":
            error = mapping(value.get("error"))
            t.failure(
                mapping(error.get("data")).get("message") or error.get("name"), at, reason=text(error.get("name")) or "error"
            )
        elif key is None:
            self._log.unknown(value.get("type"))
        elif part.get("type") == "step-finish":
            # A message may consist of several responses. The first one has the same id as in the import from the database.
            own = (text(part.get("id")) or key) if key in self._counted else key
            self._counted.add(key)
            _count_tokens(t, own, None, mapping(part.get("tokens")), at)
        else:
            _part(self._log, t, text(part.get("id")) or key, part, at, {})


OPENCODE_PRINTED = JsonImporter(
    name="opencode-printed",
    title="opencode (run --format json)",
    proves=_is_printed,
    reader=_RunOutput,
    coverage=Coverage(open_calls=False, sub_agents=False),
)


# --- before the database


def _table(value: Mapping[str, Any]) -> str | None:
    """Return what a file contains: a ``session``, a ``message`` or a ``part``."""
    session, own = text(value.get("sessionID")), text(value.get("id"))
    if own is None:
        return None
    if session is None:
        return "session" if own.startswith("ses") and "time" in value and ("projectID" in value or "version" in value) else None
    if text(value.get("messageID")) is not None and text(value.get("type")) is not None:
        return "part"
    return "message" if text(value.get("role")) is not None else None


def _is_file_row(value: dict[str, Any]) -> bool:
    return _table(value) is not None


class _Files:
    """The files of a session and its sub-agents, in the form of the later tables."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tables: dict[str, dict[str, dict[str, Any]]] = {"session": {}, "message": {}, "part": {}}
        self.columns: Mapping[str, Sequence[str]] = {}

    def read(self, value: dict[str, Any]) -> None:
        table = _table(value)
        if table is None:
            self._log.unknown(value.get("type"))
            return
        times, own = mapping(value.get("time")), str(value["id"])
        self._tables[table][own] = {
            "id": own, "parent_id": value.get("parentID"), "directory": value.get("directory"), "title": value.get("title"),
            "version": value.get("version"), "agent": value.get("agent"), "session_id": value.get("sessionID"),
            "message_id": value.get("messageID"), "time_created": times.get("created", times.get("start")), "data": value,
        }  # fmt: skip

    def finish(self) -> None:
        """Read the session in the same way as from the database."""
        for message in self._tables["message"].values():  # the file of the session may be gone
            own = str(message["session_id"])
            self._tables["session"].setdefault(own, {"id": own, "time_created": message["time_created"]})
        for _ in _read_tables(self._log, self):
            continue

    def rows(
        self, table: str, columns: Sequence[str], order: Sequence[str] = (), where: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield rows like a database."""
        found = [
            row for row in self._tables[table].values() if all(row.get(key) == value for key, value in (where or {}).items())
        ]
        found.sort(key=lambda row: tuple(f"{row.get(name) or ''}" for name in order))
        for row in found:
            yield {name: row.get(name) for name in columns}


def _related_files(path: Path) -> list[Path]:
    """Return the files of the session of a file, and of the sub-agents below it; the session's own file first."""
    root = next((above for above in path.parents if above.name == _STORAGE), None)
    value = small_object(path)
    own = text(value.get("sessionID")) or text(value.get("id"))
    if root is None or own is None:
        return [path]
    sessions = {
        file.stem: file for file in sorted(root.glob("session/**/ses*.json")) if file.parent.name not in ("message", "part")
    }
    above = {name: text(small_object(file).get("parentID")) for name, file in sessions.items()}
    # Upwards to the session of a person, because all sessions below it form one group, whichever file is named.
    for _ in range(_MAX_ANCESTORS):
        own = above.get(own) or own
    family, before = [own], 0
    while before < len(family):
        before = len(family)
        family += [name for name, parent in above.items() if parent in family and name not in family]
    found = [sessions[name] for name in family if name in sessions]
    for name in family:
        for messages in (root / "message" / name, root / "session" / "message" / name):
            for message in sorted(messages.glob("*.json")):
                found.append(message)
                for parts in (root / "part" / message.stem, root / "session" / "part" / name / message.stem):
                    found += sorted(parts.glob("*.json"))
    return found if path in found else [*found, path]


OPENCODE_FILES = JsonImporter(
    name="opencode-files",
    title="opencode (files)",
    proves=_is_file_row,
    reader=_Files,
    coverage=Coverage(),
    places=(
        Place(".local/share/opencode/storage", "session/**/ses*.json", variable="XDG_DATA_HOME", below="opencode/storage"),
    ),
    related=_related_files,
)
