"""Bookkeeping beside the history: imported files, and leases, which let one recovery run at a time even after a crash."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import open_regular
from ctxmgr.errors import Denied
from ctxmgr.log import fast_json
from ctxmgr.store.engine.dialect import replace_statement
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.row_mapper import readable
from ctxmgr.store.text_normalisation import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path


WATCH = "ctxmgr:watch"
"""Prefix of the names of watchers' leases. A lease of a recovery is named by its session only."""

WATCHED, WATCHER = f"{WATCH}:", f"{WATCH}er:"
"""Prefix of the leases with which one watcher follows a session, and of those that list the watchers sharing the work."""


class Leases:
    """Leases by session id. Times are in seconds since 1970 and passed in by the caller."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def take(self, session: str, holder: str, now: float, seconds: float) -> bool:
        """Take the session's lease. Return False if another holder has one that has not expired."""
        with self._engine.transaction():
            taken = self._engine.execute(
                "INSERT INTO lease (session, holder, expires) VALUES (:session, :holder, :expires) "
                "ON CONFLICT (session) DO UPDATE SET holder = :holder, expires = :expires "
                # A lease that expires later than any we grant was written under a wrong clock, so ignore it.
                "WHERE lease.expires <= :now OR lease.expires > :horizon OR lease.holder = :holder",
                {
                    "session": storable(session), "holder": holder, "expires": now + seconds, "now": now,
                    "horizon": now + 10 * seconds,
                },
            )  # fmt: skip
        return taken > 0

    def expiry(self, session: str, now: float) -> float | None:
        """Return the time at which the session's lease expires, or None if nobody holds it."""
        rows = self._engine.query(
            "SELECT expires FROM lease WHERE session = :session AND expires > :now",
            {"session": storable(session), "now": now},
        )
        return float(rows[0][0]) if rows else None

    def holds(self, session: str, holder: str, now: float) -> bool:
        """Whether this holder has the session's lease."""
        return bool(
            self._engine.query(
                "SELECT 1 FROM lease WHERE session = :session AND holder = :holder AND expires > :now",
                {"session": storable(session), "holder": holder, "now": now},
            )
        )

    @contextmanager
    def hold(self, session: str, holder: str, clock: Callable[[], float]) -> Generator[bool]:
        """Yield whether this holder has the lease. On a server nobody else can take it inside this context."""
        yield self.holds(session, holder, clock())

    def release(self, session: str, holder: str) -> None:
        """Release the lease. Do nothing if another holder has it by now."""
        self._engine.execute(
            "DELETE FROM lease WHERE session = :session AND holder = :holder",
            {"session": storable(session), "holder": holder},
        )


_NOW = "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
# The time is read after the row is locked, so a lease lasts its full time even if the statement waited for the lock.
_TAKE = (
    f"INSERT INTO lease (session, holder, expires, fence) VALUES (:session, :holder, {_NOW} + :seconds, 1) "
    f"ON CONFLICT (session) DO UPDATE SET holder = :holder, expires = {_NOW} + :seconds, fence = lease.fence + "
    f"CASE WHEN lease.holder = :holder AND lease.expires > {_NOW} THEN 0 ELSE 1 END "
    f"WHERE lease.expires <= {_NOW} OR lease.holder = :holder RETURNING fence"
)
_MINE = "session = :session AND holder = :holder AND fence = :fence"
_HOLDS = f"SELECT 1 FROM lease WHERE {_MINE} AND expires > {_NOW}"


class ServerLeases(Leases):
    """Leases on a server, by its clock only. Times that callers pass in are ignored.

    Each new lease gets a number greater than all before (a fence). A holder writes in a transaction that locks the lease's
    row and checks that it still has the holder's number.
    """

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._fences: dict[tuple[str, str], int] = {}

    def take(self, session: str, holder: str, now: float, seconds: float) -> bool:
        """Take the session's lease; see `Leases.take`."""
        rows = self._engine.query(_TAKE, {"session": storable(session), "holder": holder, "seconds": seconds})
        if rows:
            self._fences[session, holder] = int(rows[0][0])
        return bool(rows)

    def fence(self, session: str, holder: str) -> int:
        """Return the fence of the lease that this holder took last, 0 if it took none."""
        return self._fences.get((session, holder), 0)

    def holds(self, session: str, holder: str, now: float) -> bool:
        """Whether this holder still has the lease that it took."""
        return bool(self._engine.query(_HOLDS, self._values(session, holder)))

    @contextmanager
    def hold(self, session: str, holder: str, clock: Callable[[], float]) -> Generator[bool]:
        """Yield whether this holder has the lease. Nobody else can take it inside this context."""
        engine: Any = self._engine  # a `PostgresqlEngine`
        with engine.appending():
            # The row stays locked until the transaction ends, so others who want the lease wait for it.
            yield bool(self._engine.query(f"{_HOLDS} FOR UPDATE", self._values(session, holder)))

    def release(self, session: str, holder: str) -> None:
        """Release the lease, but keep its row. Do nothing if another holder has it by now."""
        # The row keeps the fence, because the next one must be greater.
        self._engine.execute(f"UPDATE lease SET expires = 0 WHERE {_MINE}", self._values(session, holder))
        self._fences.pop((session, holder), None)

    def remove_expired(self) -> None:
        """Remove the expired leases of watchers. The fences of their next holders start again."""
        # A writer to whom an earlier version granted the rights may not delete leases. Then they stay.
        with suppress(Denied):
            self._engine.execute(
                f"DELETE FROM lease WHERE session >= :start AND session < :after AND expires <= {_NOW}",
                {"start": WATCH, "after": WATCH + "\U0010ffff"},
            )

    def _values(self, session: str, holder: str) -> dict[str, object]:
        return {"session": storable(session), "holder": holder, "fence": self.fence(session, holder)}


_HEAD = 4096


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of a file, to detect whether it changed."""

    size: int
    mtime: int
    inode: int
    head: str

    @classmethod
    def read(cls, path: Path) -> FileState:
        """Return the current state of a file.

        Raises:
            OSError: the file can't be read, or is not a regular file.
        """
        import hashlib

        with open(open_regular(path), "rb") as stream:
            status = os.fstat(stream.fileno())
            # Inodes are reused and times can be set, so also compare the beginning of the file.
            head = hashlib.sha256(stream.read(_HEAD)).hexdigest()[:16]
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, head)


class ImportedFiles:
    """The files that were imported into a store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def is_unchanged(self, path: Path, state: FileState) -> bool:
        """Whether the file was imported in exactly this state."""
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
        """Store the state in which the file was imported, and the importer's report."""
        import json

        self._engine.execute(
            replace_statement("imported", "path", "format, size, mtime, inode, head, session, report"),
            {
                "path": storable(str(path)), "format": form, "size": state.size, "mtime": state.mtime,
                "inode": state.inode, "head": state.head, "session": storable(session), "report": json.dumps(report),
            },
        )  # fmt: skip

    def reports(self) -> list[dict[str, Any]]:
        """Return the importers' reports on all imported files, ordered by path."""
        rows = self._engine.query("SELECT report FROM imported ORDER BY path")
        with readable():
            return [cast("dict[str, Any]", fast_json.loads(row[0])) for row in rows]

    def count_unknown_records(self, session: str) -> int:
        """Return the number of records of unknown types in the files that hold this session."""
        rows = self._engine.query("SELECT report FROM imported WHERE session = :session", {"session": storable(session)})
        with readable():
            return sum(sum(fast_json.loads(row[0]).get("unknown", {}).values()) for row in rows)

    def sources(self, session: str) -> list[tuple[str, int, str]]:
        """Return (path, modification time in nanoseconds, name of the format) of the files that hold this session."""
        rows = self._engine.query(
            "SELECT path, mtime, format FROM imported WHERE session = :session ORDER BY path", {"session": storable(session)}
        )
        return [(str(row[0]), int(row[1]), str(row[2])) for row in rows]
