"""Sessions of the OpenAI Agents SDK: one SQLite database, a row for each item of the Responses API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxmgr.importers.chat import judged, read_message, words_of
from ctxmgr.importers.descriptions import Log, OpenTables, TableImporter, Tables
from ctxmgr.importers.interface import Coverage
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, parsed, text

_FAILED = re.compile(r"An error occurred while (?:running the tool|parsing tool arguments)\b")
"""How the SDK's own handler tells the model of a tool that raised; nothing else marks it."""


def _proves(columns: Mapping[str, Sequence[str]]) -> bool:
    wanted = {"agent_sessions": {"session_id"}, "agent_messages": {"session_id", "message_data"}}
    return all(names <= set(columns.get(table, ())) for table, names in wanted.items())


def _read(log: Log, tables: Tables) -> Iterator[None]:
    for row in tables.rows("agent_sessions", ("session_id", "created_at"), ("created_at", "session_id")):
        t = log.session(row["session_id"])
        t.describe(started=row.get("created_at"))
        where, response = {"session_id": row["session_id"]}, 0
        for item in tables.rows("agent_messages", ("id", "message_data", "created_at"), ("id",), where):
            log.count.records += 1
            t.place = str(item.get("id"))
            response = _item(log, t, mapping(parsed(item.get("message_data"))), item.get("created_at"), response)
        yield


def _item(log: Log, t: Transcript, item: dict[str, Any], at: object, response: int) -> int:
    """Read an item; what the model says and calls between two of other kinds is one response. Returns its number."""
    kind, key = text(item.get("type")) or "message", item.get("call_id") or item.get("id")
    if kind == "message":
        read_message(t, item, at, response=f"response{response}")
        return response + (item.get("role") == "user")
    if kind == "reasoning":
        t.thought(words_of(item.get("summary")) or words_of(item.get("content")), at, item.get("id"))
    elif kind.endswith("_call"):
        t.step = f"{t.part}:response{response}"
        t.call(key, item.get("name") or kind.removesuffix("_call"), parsed(item.get("arguments", item.get("action"))), at)
        if "call_id" not in item:  # a tool of the model host's own: its result came with it
            failed = item.get("error") is not None or item.get("status") in ("failed", "incomplete")
            t.result(key, item.get("output"), at, status="error" if failed else "ok", error=item.get("error"))
    elif kind.endswith("_call_output"):
        shown = item.get("output")
        failed = _FAILED.match(shown if isinstance(shown, str) else words_of(shown)) is not None
        status, output, error = judged({"is_error": failed}, shown)
        t.result(key, output, at, status=status, error=error)
        return response + 1
    else:
        log.unknown(kind)
    return response


def openai_agents(open_tables: OpenTables) -> TableImporter:
    """Return the importer of the sessions that the SDK's ``SQLiteSession`` keeps."""
    return TableImporter(
        name="openai-agents",
        title="OpenAI Agents SDK sessions",
        open_tables=open_tables,
        proves=_proves,
        reader=_read,
        coverage=Coverage(usage=False, sub_agents=False),
    )
