"""Lines of Codex rollouts in few words, and what the importer makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ctxmgr.importers.codex import CODEX
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

THREAD = "019b0000-1111-7222-8333-0123456789ab"
TURN = "019b0000-2222-7222-8333-0123456789ab"
NAME = f"rollout-2026-01-02T03-04-05-{THREAD}.jsonl"

Reader = Callable[[list[Any]], tuple[list[Record], FileCount]]


def at(second: float) -> str:
    """Return a moment some seconds after the start of the log."""
    return f"2026-01-02T03:{4 + int(second) // 60:02d}:{second % 60:06.3f}Z"


def line(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return a line of a log from 0.32 on."""
    return {"timestamp": at(second), "type": kind, "payload": payload}


def meta(thread: str = THREAD, second: float = 0, **more: Any) -> dict[str, Any]:
    """Return the first line of a log."""
    return line(second, "session_meta", id=thread, timestamp=at(second), cwd="/p", cli_version="0.130.0", **more)


def item(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return a conversation item."""
    return line(second, "response_item", **{"type": kind, **payload})


def event(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return an event."""
    return line(second, "event_msg", **{"type": kind, **payload})


def says(second: float, words: str, role: str = "user") -> dict[str, Any]:
    """Return a message item."""
    return item(
        second,
        "message",
        role=role,
        content=[{"type": f"{'out' if role == 'assistant' else 'in'}put_text", "text": words}],
    )


def call(second: float, call_id: str, name: str = "exec_command", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    """Return a function call."""
    return item(second, "function_call", name=name, arguments=arguments, call_id=call_id, **more)


def answer(second: float, call_id: str, output: Any) -> dict[str, Any]:
    """Return the output of a function call."""
    return item(second, "function_call_output", call_id=call_id, output=output)


def usage(second: float, total: int, last: int) -> dict[str, Any]:
    """Return a running total of tokens."""
    info = {"total_token_usage": {"input_tokens": total, "output_tokens": 1},
            "last_token_usage": {"input_tokens": last, "output_tokens": 1}}  # fmt: skip
    return event(second, "token_count", info=info)


def write(path: Path, lines: list[Any]) -> Path:
    """Write the lines, those given as text as they are."""
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return path


def read_file(path: Path) -> tuple[list[Record], FileCount]:
    """Return the checked records of one file and its counts."""
    counts: list[FileCount] = []
    records = [check(record) for record in CODEX.read([path], counts)]
    return records, counts[0]


def read_growing(path: Path, lines: list[Any]) -> tuple[list[Record], FileCount]:
    """Return what a log of these lines yields, and prove that no shorter form of it yields anything else."""
    records, count = read_file(write(path, lines))
    whole = {encode(record) for record in records}
    for length in range(1, len(lines)):
        part = {encode(record) for record in read_file(write(path, lines[:length]))[0][1:]}
        assert not part - whole, f"after line {length}"
    return records, count


def of(records: list[Record], kind: str) -> list[Record]:
    """Return the records of one kind, or the events of one type."""
    return [record for record in records if kind in (record["kind"], record.get("type"))]
