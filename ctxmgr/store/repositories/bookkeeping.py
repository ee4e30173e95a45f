"""What a store keeps beside its history: leases, so that one recovery runs at a time even after a crash, and imported files."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import open_regular
from ctxmgr.errors import Denied
from ctxmgr.store.engine.dialect import replace_statement
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.row_mapper import readable
from ctxmgr.store.text_normalisation import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator


WATCH = "ctxmgr:watch"
"""How the names of the leases begin that watchers have, beside those of recoveries, which are named by the session alone."""

WATCHED, WATCHER = f"{WATCH}:", f"{WATCH}er:"
"""How those begin by which a session is followed by one watcher, and by which a watcher is one of those who share."""


class Leases:
    """Leases by session id; times are seconds since 1970, passed in."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def take(self, session: str, holder: str, now: float, seconds: float) -> bool:
        """Take the session's lease unless another holder has one that has not expired."""
        with self._engine.transaction():
            taken = self._engine.execute(
                "INSERT INTO lease (session, holder, expires) VALUES (:session, :holder, :expires) "
                "ON CONFLICT (session) DO UPDATE SET holder = :holder, expires = :expires "
                # A lease further in the future than any we give was written under another clock: it does not hold.
                "WHERE lease.expires <= :now OR lease.expires > :horizon OR lease.holder = :holder",
                {
                    "session": storable(session), "holder": holder, "expires": now + seconds, "now": now,
                    "horizon": now + 10 * seconds,
                },
            )  # fmt: skip
        return taken > 0

    def expiry(self, session: str, now: float) -> float | None:
        """Return when the session's lease expires, or None when nobody holds one."""
        rows = self._engine.query(
            "SELECT expires FROM lease WHERE session = :session AND expires > :now",
            {"session": storable(session), "now": now},
        )
        return float(rows[0][0]) if rows else None

    def holds(self, session: str, holder: str, now: float) -> bool:
        """Whether this holder still has the session's lease."""
        return bool(
            self._engine.query(
                "SELECT 1 FROM lease WHERE session = :session AND holder = :holder AND expires > :now",
                {"session": storable(session), "holder": holder, "now": now},
            )
        )

    @contextmanager
    def hold(self, session: str, holder: str, clock: Callable[[], float]) -> Generator[bool]:
        """Say whether this holder has the lease now; on a server nobody can take it while what is inside is written."""
        yield self.holds(session, holder, clock())

    def release(self, session: str, holder: str) -> None:
        """Give the lease back; nothing happens when somebody else holds it by now."""
        self._engine.execute(
            "DELETE FROM lease WHERE session = :session AND holder = :holder",
            {"session": storable(session), "holder": holder},
        )


_NOW = "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
# What is set is computed when the row is locked, so a lease that was waited for lasts as long as any.
_TAKE = (
    f"INSERT INTO lease (session, holder, expires, fence) VALUES (:session, :holder, {_NOW} + :seconds, 1) "
    f"ON CONFLICT (session) DO UPDATE SET holder = :holder, expires = {_NOW} + :seconds, fence = lease.fence + "
    f"CASE WHEN lease.holder = :holder AND lease.expires > {_NOW} THEN 0 ELSE 1 END "
    f"WHERE lease.expires <= {_NOW} OR lease.holder = :holder RETURNING fence"
)
_MINE = "session = :session AND holder = :holder AND fence = :fence"
_HOLDS = f"SELECT 1 FROM lease WHERE {_MINE} AND expires > {_NOW}"


class ServerLeases(Leases):
    """Leases on a server, by its clock alone: the times that callers pass in do not count.

    Each win has a number of its own, greater than all before (a fence). What is written under a lease is written in a
    transaction that holds its row and finds the number there that it was won with.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._fences: dict[tuple[str, str], int] = {}

    def take(self, session: str, holder: str, now: float, seconds: float) -> bool:
        """Take the session's lease unless another holder has one that has not expired; see `Leases.take`."""
        rows = self._engine.query(_TAKE, {"session": storable(session), "holder": holder, "seconds": seconds})
        if rows:
            self._fences[session, holder] = int(rows[0][0])
        return bool(rows)

    def fence(self, session: str, holder: str) -> int:
        """Return the number of the lease that this holder won last, 0 where it won none."""
        return self._fences.get((session, holder), 0)

    def holds(self, session: str, holder: str, now: float) -> bool:
        """Whether this holder still has the lease that it won."""
        return bool(self._engine.query(_HOLDS, self._values(session, holder)))

    @contextmanager
    def hold(self, session: str, holder: str, clock: Callable[[], float]) -> Generator[bool]:
        """Say whether this holder has the lease now; nobody can take it while what is inside is written."""
        engine: Any = self._engine  # that of a server, which alone has this kind of lease
        with engine.appending():
            # The row stays locked until the transaction ends: whoever wants the lease waits for what is written under it.
            yield bool(self._engine.query(f"{_HOLDS} FOR UPDATE", self._values(session, holder)))

    def release(self, session: str, holder: str) -> None:
        """Give the lease back; its number stays known, and nothing happens when somebody else holds it by now."""
        # The row is not deleted: the number of the next win must be greater than this one.
        self._engine.execute(f"UPDATE lease SET expires = 0 WHERE {_MINE}", self._values(session, holder))
        self._fences.pop((session, holder), None)

    def remove_expired(self, start: str) -> None:
        """Remove the leases whose names start so and that nobody has; the numbers of their next wins begin anew."""
        # Whoever was granted the rights of a writer by an earlier version may not remove leases: then they stay.
        with suppress(Denied):
            self._engine.execute(
                f"DELETE FROM lease WHERE session >= :start AND session < :after AND expires <= {_NOW}",
                {"start": start, "after": start + "\U0010ffff"},
            )

    def _values(self, session: str, holder: str) -> dict[str, object]:
        return {"session": storable(session), "holder": holder, "fence": self.fence(session, holder)}


_HEAD = 4096


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells one state of a file from another."""

    size: int
    mtime: int
    inode: int
    head: str

    @classmethod
    def read(cls, path: Path) -> FileState:
        """Return the present state of a file.

        Raises:
            OSError: when it can't be read, or is no regular file.
        """
        with open(open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            # Inodes are used again and times can be set: the beginning tells apart what the other three do not.
            head = hashlib.sha256(stream.read(_HEAD)).hexdigest()[:16]
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, head)


class ImportedFiles:
    """The files that were read into a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def is_unchanged(self, path: Path, state: FileState) -> bool:
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
            replace_statement("imported", "path", "format, size, mtime, inode, head, session, report"),
            {
                "path": storable(str(path)), "format": form, "size": state.size, "mtime": state.mtime,
                "inode": state.inode, "head": state.head, "session": storable(session), "report": json.dumps(report),
            },
        )  # fmt: skip

    def reports(self) -> list[dict[str, Any]]:
        """Return what was found in each file that was ever read, by path."""
        rows = self._engine.query("SELECT report FROM imported ORDER BY path")
        with readable():
            return [cast("dict[str, Any]", json.loads(row[0])) for row in rows]

    def count_unknown_records(self, session: str) -> int:
        """Return the number of records of unknown types in the files that hold this session."""
        rows = self._engine.query("SELECT report FROM imported WHERE session = :session", {"session": storable(session)})
        with readable():
            return sum(sum(json.loads(row[0]).get("unknown", {}).values()) for row in rows)

    def sources(self, session: str) -> list[tuple[str, int]]:
        """Return (path, modification time in nanoseconds) of the files that hold this session."""
        rows = self._engine.query(
            "SELECT path, mtime FROM imported WHERE session = :session ORDER BY path", {"session": storable(session)}
        )
        return [(str(row[0]), int(row[1])) for row in rows]
