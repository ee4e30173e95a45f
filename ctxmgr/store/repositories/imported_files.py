"""Remember which foreign files were read."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import open_regular
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.engine.spelling import replacing
from ctxmgr.store.normalise import storable

_HEAD = 4096


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells one state of a file from another."""

    size: int
    mtime: int
    inode: int
    head: str

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Return the present state of a file.

        Raises:
            OSError: when it can't be read, or is no regular file.
        """
        with open(open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            head = hashlib.sha256(stream.read(_HEAD)).hexdigest()[:16]
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, head)


class Imported:
    """The files that were read into a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def unchanged(self, path: Path, state: FileState) -> bool:
        """Whether the file was read in exactly this state."""
        rows = self._engine.query(
            "SELECT 1 FROM imported WHERE path = :path AND size = :size AND mtime = :mtime AND inode = :inode AND head = :head",
            {
                "path": storable(str(path)),
                "size": state.size,
                "mtime": state.mtime,
                "inode": state.inode,
                "head": state.head,
            },
        )
        return bool(rows)

    def remember(self, path: Path, form: str, state: FileState, session: str, report: dict[str, Any]) -> None:
        """Store the state in which the file was read, and what was found in it."""
        self._engine.execute(
            replacing("imported", "path", "format, size, mtime, inode, head, session, report"),
            {
                "path": storable(str(path)), "format": form, "size": state.size, "mtime": state.mtime,
                "inode": state.inode, "head": state.head, "session": storable(session), "report": json.dumps(report),
            },
        )  # fmt: skip

    def reports(self) -> list[dict[str, Any]]:
        """Return what was found in each file that was ever read, by path."""
        rows = self._engine.query("SELECT report FROM imported ORDER BY path")
        return [cast("dict[str, Any]", json.loads(row[0])) for row in rows]

    def not_understood(self, session: str) -> int:
        """Return the number of records of unknown types in the files that hold this session."""
        rows = self._engine.query("SELECT report FROM imported WHERE session = :session", {"session": storable(session)})
        return sum(sum(json.loads(row[0]).get("unknown", {}).values()) for row in rows)

    def sources(self, session: str) -> list[tuple[str, int]]:
        """Return (path, modification time in nanoseconds) of the files that hold this session."""
        rows = self._engine.query(
            "SELECT path, mtime FROM imported WHERE session = :session ORDER BY path", {"session": storable(session)}
        )
        return [(str(row[0]), int(row[1])) for row in rows]
