"""Build Claude Code transcripts line by line, for the tests of the importer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

SESSION = "0d5c8a6e-1111-4222-8333-944445555666"


class Log:
    """A transcript under construction; each record hangs on the one before it."""

    def __init__(self, folder: Path, **envelope: Any) -> None:
        self.path = folder / f"{SESSION}.jsonl"
        self.lines: list[bytes] = []
        self._envelope = {"isSidechain": False, "sessionId": SESSION, "version": "2.1.200", **envelope}
        self._last: str | None = None

    def add(self, kind: str, parent: str | None = "last", **fields: Any) -> str:
        """Append a record and return its uuid."""
        number = len(self.lines) + 1
        uuid = f"00000000-0000-4000-8000-{number:012}"
        record: dict[str, Any] = {
            "parentUuid": self._last if parent == "last" else parent,
            **self._envelope,
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-11-21T10:{number // 60:02}:{number % 60:02}.000Z",
            **fields,
        }
        self.lines.append(json.dumps(record).encode())
        self._last = uuid
        return uuid

    def says(self, content: Any, **fields: Any) -> str:
        """Append a record with the role of the user."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answers(self, *blocks: dict[str, Any], id: str = "", usage: Any = None, **fields: Any) -> str:  # noqa: A002
        """Append a record of the model."""
        message: dict[str, Any] = {"id": id or f"msg_{len(self.lines)}", "role": "assistant", "content": list(blocks)}
        message |= {"stop_reason": fields.pop("stop", None), "usage": usage or {"input_tokens": 5, "output_tokens": 2}}
        return self.add("assistant", message=message, **fields)

    def calls(self, name: str, tool_use: str, **given: Any) -> str:
        """Append a tool call."""
        return self.answers({"type": "tool_use", "id": tool_use, "name": name, "input": given})

    def returns(self, tool_use: str, content: Any, error: Any = None, **fields: Any) -> str:
        """Append a tool's result."""
        block = {"type": "tool_result", "tool_use_id": tool_use, "content": content}
        return self.says([block if error is None else block | {"is_error": error}], **fields)

    def read(self, *others: Path) -> tuple[list[Record], FileCount]:
        """Write the log and return its records, checked, and its counts."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"\n".join(self.lines) + b"\n")
        counts: list[FileCount] = []
        records = list(CLAUDE_CODE.read([self.path, *others], counts))
        for record in records:
            encode(check(record))
        return records, counts[0]


def of(records: list[Record], kind: str) -> list[Record]:
    """Return the records of one kind, or the events of one type."""
    return [record for record in records if kind == (record["type"] if record["kind"] == "event" else record["kind"])]
