"""Forks of pi: a file that begins with copies of another session's lines."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from ctxmgr.history.ingest import import_logs
from ctxmgr.importers.pi import PI
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.types.import_report import FileCount

IDS = ["01a203d1-8438-7a50-ba56-00000000000" + str(n) for n in range(3)]


def _call(n: int, minute: int) -> list[dict[str, Any]]:
    """Return the lines of a call and of its result."""
    at = f"2026-11-22T15:{minute:02}:0{{}}.000Z"
    call = {"type": "toolCall", "id": f"call{n}", "name": "bash", "arguments": {"command": f"make {n}"}}
    says = {"role": "assistant", "content": [call], "usage": {"input": 10, "output": 1}, "stopReason": "toolUse"}
    result = {"role": "toolResult", "toolCallId": f"call{n}", "toolName": "bash", "content": [{"type": "text", "text": "ok"}]}
    return [
        {"type": "message", "id": f"{n:07}a", "parentId": None, "timestamp": at.format(1), "message": says},
        {"type": "message", "id": f"{n:07}b", "parentId": f"{n:07}a", "timestamp": at.format(2), "message": result},
    ]


def _write(folder: Path, n: int, parent: str | None, lines: list[dict[str, Any]]) -> Path:
    head = {"type": "session", "version": 3, "id": IDS[n], "timestamp": f"2026-11-22T15:{n}0:00.000Z", "cwd": "/p"}
    path = folder / f"2026-11-22T15-{n}0-00-000Z_{IDS[n]}.jsonl"
    head |= {"parentSession": parent} if parent else {}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]))
    return path


def _forks(folder: Path) -> list[Path]:
    """Write a session, a fork of it and a fork of that, each with one more call."""
    first = _write(folder, 0, None, _call(0, 1))
    second = _write(folder, 1, str(first), _call(0, 1) + _call(1, 11))
    return [first, second, _write(folder, 2, f"C:\\elsewhere\\{second.name}", _call(0, 1) + _call(1, 11) + _call(2, 21))]


def _entries(path: Path) -> list[Record]:
    counts: list[FileCount] = []
    return [record for record in PI.read([path], counts) if record["kind"] == "entry"]


def test_a_fork_of_a_fork_has_the_ids_of_where_its_lines_were_first_written(tmp_path: Path) -> None:
    """Each copied call is named by the session that made it, and belongs to the session that tells it again."""
    _, _, last = _forks(tmp_path)

    entries = _entries(last)

    assert [entry["id"] for entry in entries] == [f"{IDS[n]}:call{n}" for n in range(3)]
    assert {entry["session"] for entry in entries} == {IDS[2]}


def test_a_store_with_forks_holds_each_call_once(tmp_path: Path) -> None:
    """What three files tell of three calls is three entries with three results, not six."""
    _forks(tmp_path)
    with closing(open_store(str(tmp_path / "history.db"), create=True)) as store:
        import_logs(store, [tmp_path], home=tmp_path, environment={}, only="pi")
        kinds = [record["kind"] for key, _ in store.sessions.keys(0, None) for record in store.sessions.records(key)]

    assert (kinds.count("entry"), kinds.count("result")) == (3, 3)


def test_a_fork_without_its_origin_is_read_whole(tmp_path: Path) -> None:
    """A deleted origin is named by the path that the fork states; a circle of paths ends."""
    first, second, _ = _forks(tmp_path)
    first.unlink()
    assert [entry["id"] for entry in _entries(second)] == [f"{IDS[0]}:call0", f"{IDS[1]}:call1"]

    _write(tmp_path, 1, second.name, _call(0, 1))
    assert [entry["action"] for entry in _entries(second)] == ["bash"]
