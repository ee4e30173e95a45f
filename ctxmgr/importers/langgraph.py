"""LangGraph: checkpoints of its SQLite saver, and rows of its PostgreSQL saver. The writes contain each message once.

Values are decoded as data. The classes that they name are never loaded, and pickles are never opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ctxmgr.importers.base import Coverage, JsonImporter, Log, OpenTables, TableImporter, Tables
from ctxmgr.importers.chat import ROLES, message_role, read_message
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import clean, integer, mapping, moment, sequence, text

_WRITES = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "value")
# Ids of checkpoints begin with their time, so the order of ids is the order of time.
_ORDER = ("thread_id", "checkpoint_id", "task_path", "task_id")
CHANNELS = ("messages", "__error__", "__interrupt__")
"""The channels whose writes are read."""

_GREGORIAN = 0x01B21DD213814000
"""Ticks of 100 nanoseconds from 1582, where UUID times begin, to 1970."""

_MAX_DEPTH = 60


def _proves(columns: Mapping[str, Sequence[str]]) -> bool:
    required = {"checkpoints": {"thread_id", "checkpoint_id"}, "writes": {"thread_id", "task_id", "channel", "value"}}
    return all(names <= set(columns.get(table, ())) for table, names in required.items())


def _read(log: Log, tables: Tables) -> Iterator[None]:
    """Read the writes of each thread in the order of its checkpoints."""
    after: dict[tuple[str, str], str] = {}
    for row in tables.rows("checkpoints", ("thread_id", "checkpoint_id", "parent_checkpoint_id")):
        after.setdefault((str(row["thread_id"]), str(row.get("parent_checkpoint_id"))), str(row["checkpoint_id"]))
    # Writes contain only new values. Checkpoints repeat the whole state at every step, so importing them would be quadratic.
    for row in tables.rows("writes", _WRITES, (*_ORDER, "idx")):
        log.count.records += 1
        _row(log, row, after)
        yield


def _row(log: Log, row: Mapping[str, Any], after: Mapping[tuple[str, str], str]) -> None:
    """Read a write. ``after`` maps (thread, checkpoint) to the next checkpoint of the thread."""
    thread, checkpoint = str(row.get("thread_id")), str(row.get("checkpoint_id"))
    root = log.session(thread)
    space = text(row.get("checkpoint_ns"))
    # A namespace has ``node:task`` for each nested subgraph. The first node gives the name of the agent.
    t = log.session(thread, agent=space.split(":")[0], part=f"{thread}/{space}", parent="") if space else root
    t.place = f"{checkpoint}.{row.get('task_id')}.{row.get('idx')}"
    # A write belongs to the previous checkpoint. The next checkpoint was made after the write.
    _write(log, root, t, row, _checkpoint_time(after.get((thread, checkpoint), checkpoint)))


def _write(log: Log, root: Transcript, t: Transcript, row: Mapping[str, Any], at: str | None) -> None:
    channel, kind = text(row.get("channel")) or "", text(row.get("type"))
    if channel not in CHANNELS:
        return
    value = _decode(kind, row.get("value"))
    if value is None:
        if kind not in ("null", "empty"):
            log.unknown(f"value of type {kind or '?'}")
    elif channel == "__error__":
        t.failure(value if isinstance(value, str) else json.dumps(clean(value))[:2_000], at, reason="nodeFailed")
    elif channel == "__interrupt__":
        t.event("waiting", {"reason": "interrupt"}, at)
    else:
        for message in _messages(value):
            _message(root, t, message, at)


def _messages(value: object) -> list[dict[str, Any]]:
    """Return the messages of a write: one or several, also in LangChain's short forms."""
    several = sequence(value)
    return [_full_message(item) for item in ([value] if not several or _is_pair(several) else several)]


def _full_message(item: object) -> dict[str, Any]:
    """Return a message in full. Its short forms are the text of a person, and (role, text)."""
    pair = sequence(item)
    if _is_pair(pair):
        return {"role": pair[0], "content": pair[1]}
    return {"role": "user", "content": item} if isinstance(item, str) else mapping(item)


def _is_pair(items: Sequence[object]) -> bool:
    return len(items) == 2 and text(items[0]) in ROLES and isinstance(items[1], str)


def _message(root: Transcript, t: Transcript, message: dict[str, Any], at: str | None) -> None:
    """Add a message. If another node or the outer graph passes it on, it is not added again."""
    own = text(message.get("id"))
    # Ask the root transcript, because a subgraph's messages are also written in the namespace of the outer graph.
    # LangChain's ``RemoveMessage`` deletes a message from the state, so nobody said it.
    if (own is not None and root.is_repeated(f"message {own}")) or message_role(message) == "remove":
        return
    read_message(t, message, at)
    used = mapping(message.get("usage_metadata"))
    model = mapping(message.get("response_metadata")).get("model_name")
    t.usage(at, own, model, inputTokens=used.get("input_tokens"), outputTokens=used.get("output_tokens"))


def _checkpoint_time(checkpoint: str) -> str | None:
    """Return the time of a checkpoint. Its id is a UUID of version 6, which contains the time."""
    digits = checkpoint.replace("-", "")
    try:
        # Version 6 of RFC 9562: 48 bits of the time, the version, then the last 12 bits of the time.
        ticks = int(digits[:12] + digits[13:16], 16) - _GREGORIAN if len(digits) == 32 and digits[12] == "6" else 0
    except ValueError:
        return None
    return moment(ticks / 1e7) if ticks > 0 else None


def _decode(kind: str | None, value: object) -> Any:
    """Return a value as plain JSON, or None if it has an unsupported kind or is damaged."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    if not isinstance(value, bytes) or kind not in ("msgpack", "json"):
        return None
    try:
        return json.loads(value) if kind == "json" else _unpack(value, 0)
    except (ValueError, RecursionError, TypeError):
        return None


def _unpack(data: bytes | memoryview, depth: int) -> Any:
    """Decode msgpack. An object of a class becomes a mapping of the values that created it.

    Raises:
        ValueError: the data is damaged, or nested too deeply.
    """
    from msgspec import DecodeError, msgpack

    if depth > _MAX_DEPTH:
        raise ValueError("nested too deep")

    # LangGraph's extension types: (module, class, arguments, ...). 4 and 5 are pydantic models with their fields.
    def extension(code: int, inner: memoryview) -> Any:
        parts = sequence(_unpack(inner, depth + 1))
        if code in (4, 5) and len(parts) > 2:
            return mapping(parts[2])
        return parts[2] if len(parts) > 2 and code < 4 else None

    try:
        return _to_json(msgpack.decode(data, ext_hook=extension), 0)
    except DecodeError as error:
        raise ValueError(str(error)) from None


def _to_json(value: object, depth: int) -> Any:
    """Return a value as JSON. Bytes and unusual keys become text."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {str(key): _to_json(item, depth + 1) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple | set):
        return [_to_json(item, depth + 1) for item in cast("Sequence[object]", value)]
    if isinstance(value, str | int | float) or value is None:
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def langgraph(open_tables: OpenTables) -> TableImporter:
    """Return the importer of LangGraph's checkpoints."""
    return TableImporter(
        name="langgraph",
        title="LangGraph checkpoints (SQLite)",
        open_tables=open_tables,
        proves=_proves,
        reader=_read,
        coverage=Coverage(),
    )


class _Rows:
    """Reads rows of ``checkpoint_writes`` by PostgreSQL's saver, exported as JSON lines."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows: list[dict[str, Any]] = []

    def read(self, value: dict[str, Any]) -> None:
        if not _is_row(value):
            self._log.unknown("no row of checkpoint_writes")
            return
        blob = text(value.get("blob")) or ""
        try:
            # PostgreSQL writes bytes as ``\x81a4…``.
            data = bytes.fromhex(blob.removeprefix("\\x"))
        except ValueError:
            data = b""
        if value.get("channel") in CHANNELS and not data:
            self._log.unknown("value that is not written as PostgreSQL writes bytes")
        self._rows.append({**{name: value.get(name) for name in _WRITES}, "value": data})

    def finish(self) -> None:
        """Read the rows in the order of the checkpoints."""
        log = self._log
        for row in sorted(
            self._rows, key=lambda row: [f"{row.get(name) or ''}" for name in _ORDER] + [integer(row["idx"]) or 0]
        ):
            # Rows contain no checkpoints, so a write gets the time of the previous one instead of the next one.
            _row(log, row, {})


def _is_row(value: dict[str, Any]) -> bool:
    return {"thread_id", "checkpoint_id", "task_id", "channel", "type", "blob"} <= value.keys()


LANGGRAPH_ROWS = JsonImporter(
    name="langgraph-rows",
    title="LangGraph checkpoints (PostgreSQL rows)",
    proves=_is_row,
    reader=_Rows,
    coverage=Coverage(),
)
"""``psql URL -qAtc "select row_to_json(w) from checkpoint_writes w" > writes.jsonl`` creates such a file.

For the URL of a database, `ctxmgr.history.ingest` creates it.
"""
