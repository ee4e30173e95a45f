"""Records, logs and what is in them, for the tests of recording."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.log.codec import Record
from ctxmgr.log.journal import Line, read
from ctxmgr.types.record import check


def record(number: object, **more: object) -> Record:
    """Return an entry with the id ``e<number>`` and the rest as its input."""
    return {"v": 1, "kind": "entry", "session": "s", "id": f"e{number}", "agent": "a", "action": "b", "input": more}


def read_log(path: Path, start: int = 0, last: str = "") -> tuple[list[Line], list[int]]:
    """Return the lines of a log and the offsets of its damage."""
    offsets: list[int] = []

    def note(offset: int, length: int, reason: str) -> None:
        del length, reason
        offsets.append(offset)

    return list(read(path, start, note, last)), offsets


def ids(path: Path) -> list[object]:
    """Return the ids in a log."""
    return [line.record["id"] for line in read_log(path)[0]]


def sound_records(path: Path, kind: str | None = None) -> list[Record]:
    """Return the records of a log after checking that each follows format 1 and that nothing is damaged."""
    lines, damage = read_log(path)
    assert damage == []
    assert all(line.sum_ok for line in lines)
    return [check(line.record) for line in lines if kind in (None, line.record["kind"])]
