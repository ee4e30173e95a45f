"""A store on a PostgreSQL server that many machines write, and its administration, such as granting rights to teams."""

from __future__ import annotations

import os
import shlex
import threading
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import CtxmgrError, Damaged, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store.base import Store
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.dialect import SCHEMA
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_schema import BLOBS, DEFAULT_TEAM, TEAMS, no_rights, rights
from ctxmgr.store.repositories.blobs import Blobs
from ctxmgr.store.text_normalisation import storable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from contextlib import AbstractContextManager
    from socket import socket

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.search.index import Progress

ALIVE_SECONDS = 30.0
"""Number of seconds after its last heartbeat during which a recorder on any machine counts as live."""

_MIGRATE = "have its owner run 'ctxmgr store migrate'; end older recorders and shippers before"
_MAY_REMOVE = (
    "SELECT session_user, bool_and(has_table_privilege(name, 'DELETE')) FROM unnest(CAST(:names AS TEXT[])) AS held(name)"
)
# A third of `ALIVE_SECONDS`, so two heartbeats may get lost before a recorder counts as ended.
_BEAT_SECONDS = 10.0
_SEEN = (
    "INSERT INTO live (session, process, host, seen) VALUES (:session, :process, :host, :now) "
    "ON CONFLICT (session, process) DO UPDATE SET host = excluded.host, seen = excluded.seen"
)


class ServerStore(Store):
    """The histories of all machines that write to one server."""

    def __init__(self, engine: Engine, location: str, version: int, *, readonly: bool, masked: bool) -> None:
        super().__init__(engine, location, readonly=readonly, masked=masked)
        self._version = version
        self._server = cast("PostgresqlEngine", engine)

    def _require_writable(self) -> None:
        super()._require_writable()
        if self._version < postgresql_schema.WRITABLE:
            raise StorageFailed(f"{self.engine.path} has tables of an older ctxmgr, and can only be read", _MIGRATE)

    def migrate(self) -> tuple[int, int]:
        """Migrate the tables to the latest version; see `Store.migrate`."""
        super()._require_writable()
        before = postgresql_schema.migrate(self._server)
        self._version = postgresql_schema.LATEST
        return before, self._version

    def _append_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()  # the appender begins one if it needs more than one round trip

    def team(self) -> str | None:
        """Return the name of the team of this role; None if the store is not divided into teams."""
        if self._version < TEAMS:
            return None
        name = self.engine.query(f"SELECT {postgresql_schema.SCHEMA}.team_name()")[0][0]
        return None if name is None else str(name)

    def blobs(self) -> Blobs:
        """Return what keeps the contents of artifacts.

        Raises:
            StorageFailed: the tables are of a version that has none.
        """
        if self._version < BLOBS and self.engine.schema_version() < BLOBS:  # it may have been migrated since it was opened
            raise StorageFailed(f"{self.engine.path} has tables of an older ctxmgr, which keep no artifacts", _MIGRATE)
        return Blobs(self._server)

    def require_keeper(self) -> None:
        """Check that the role may remove archived sessions; see `Store.require_keeper`."""
        tables = [f"{SCHEMA}.{table}" for table in postgresql_schema.KEPT]
        role, may = self.engine.query(_MAY_REMOVE, {"names": tables})[0]
        if not may:
            team = self.team()
            within = "" if team in (None, DEFAULT_TEAM) else f" --team {shlex.quote(str(team))}"
            raise Denied(
                f"{self._server.path}: the role {role} may not remove what was archived",
                f"have the store's owner run 'ctxmgr store grant {role}{within} --keeper'",
            )

    def is_live(self, session: str) -> bool:
        """Whether a recorder of this session has sent a heartbeat lately, by the server's clock."""
        rows = self.engine.query("SELECT max(seen) FROM live WHERE session = :session", {"session": storable(session)})
        return rows[0][0] is not None and self.clock() - float(rows[0][0]) < ALIVE_SECONDS

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for a notification, at most this many seconds. Behind a pooler none arrives."""
        self._server.wait(seconds, end)

    def tell(self) -> None:
        """Notify all clients in `wait` of new records."""
        self._server.tell()

    def index(self, progress: Progress | None = None) -> bool:
        """Bring the search index up to date; see `Store.index`."""
        from ctxmgr.store.search.find_on_server import advance

        return advance(self._server, progress)

    def count_unindexed(self) -> int:
        """Return the number of places that are not indexed yet, whose records a search has to read."""
        from ctxmgr.store.search.find_on_server import mark

        return max(0, int(self.engine.query("SELECT coalesce(max(seq), 0) FROM session")[0][0]) - mark(self.engine))

    def accept(self) -> None:
        """Do nothing, because a store on a server has no anchor."""


def open_server(location: str, *, create: bool, readonly: bool, masked: bool) -> Store:
    """Open the store at a URL.

    Raises:
        NotFound: the store does not exist and ``create`` is false.
        InvalidInput: the URL can't name a store.
        Denied, StorageFailed, Busy, Damaged: the store can't be opened.
    """
    engine = PostgresqlEngine(location, readonly=readonly)
    try:
        version = postgresql_schema.prepare(engine, create=create)
        if not version:
            raise postgresql_schema.no_store(engine.path)
        if version < postgresql_schema.READABLE:
            raise Damaged(f"{engine.path} has tables of version {version}, which can't be read any more", _MIGRATE)
        if version >= TEAMS:
            _require_team(engine)
    except BaseException:
        engine.close()
        raise
    return ServerStore(engine, location, version, readonly=readonly, masked=masked)


def _require_team(engine: PostgresqlEngine) -> None:
    """Check that the role has a team, and that row-level security applies to it if the store is divided.

    Raises:
        Denied: the role has no team, or would see the records of all teams.
    """
    schema = postgresql_schema.SCHEMA
    sql = f"SELECT {schema}.team(), {schema}.is_divided(), row_security_active('{schema}.record'), session_user"
    team, divided, fenced, role = engine.query(sql)[0]
    if divided and not fenced:
        raise Denied(
            f"{engine.path}: the store is divided into teams, and row-level security does not hold for the role {role}",
            "log in as a role that is no superuser and has no BYPASSRLS",
        )
    if team is None:
        raise Denied(
            f"{engine.path}: the role {role} belongs to no team", f"have its owner run 'ctxmgr store grant {role} --team NAME'"
        )


def report_alive(engine: Engine, holders: Iterable[tuple[str, str]]) -> None:
    """Store a heartbeat for each recorder, given as (session, process)."""
    # Use the server's clock, with which readers compare it.
    now, host = engine.clock(), storable(os.uname().nodename)
    engine.many(
        _SEEN,
        [
            {"session": storable(session), "process": storable(process), "host": host, "now": now}
            # Sorted, because two clients that lock the same rows in different orders would deadlock.
            for session, process in sorted(holders)
        ],
    )


class LivenessThread:
    """A thread that sends heartbeats for the recorders of one sink.

    Args:
        engine: the engine of the store to which they write.
        lock: held while the engine is used.
    """

    def __init__(self, engine: Engine, lock: threading.Lock) -> None:
        self._engine = engine
        self._lock = lock
        self._holders: set[tuple[str, str]] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, records: Sequence[Record]) -> None:
        """Note the processes that begin or end in new records. The caller holds the lock."""
        for record in records:
            if record["kind"] in ("session", "sessionEnd"):
                holder = str(record["session"]), str(record.get("process") or "")
                if record["kind"] == "sessionEnd":
                    self._forget(holder)
                elif holder not in self._holders:
                    self._holders.add(holder)
                    # The records are committed, so a failure here must not fail their append. The next heartbeat tries again.
                    with suppress(CtxmgrError):
                        report_alive(self._engine, [holder])
                    if self._thread is None:
                        self._thread = threading.Thread(target=self._beat, daemon=True, name="ctxmgr signs of life")
                        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS):
            with self._lock, suppress(CtxmgrError):  # the next heartbeat may reach the server again
                # A heartbeat after `stop` would insert the deleted row again.
                if self._holders and not self._ended.is_set():
                    report_alive(self._engine, self._holders)

    def _forget(self, holder: tuple[str, str]) -> None:
        self._holders.discard(holder)
        with suppress(CtxmgrError):  # after a failure the recorder counts as ended in half a minute
            self._engine.execute(
                "DELETE FROM live WHERE session = :session AND process = :process",
                {"session": storable(holder[0]), "process": storable(holder[1])},
            )

    def stop(self) -> None:
        """Stop the thread and delete the rows of all recorders."""
        self._ended.set()
        for holder in list(self._holders):
            self._forget(holder)


# GRANT takes no bound values, so the server quotes the role's name for the statement.
_ROLE = "SELECT quote_ident(rolname), rolsuper OR rolbypassrls, rolname = current_user FROM pg_roles WHERE rolname = :role"
_MEMBERS = (
    "SELECT team.name, member_role.rolname, has_table_privilege(member_role.oid, :records, 'INSERT'), "
    "has_table_privilege(member_role.oid, :records, 'DELETE') FROM team LEFT JOIN member ON member.team = team.number "
    "LEFT JOIN pg_roles AS member_role ON member_role.oid = member.role ORDER BY team.number, member_role.rolname"
)
_JOIN = (
    f"INSERT INTO {SCHEMA}.member (role, team) SELECT oid, :team FROM pg_roles WHERE rolname = :role "
    "ON CONFLICT (role) DO UPDATE SET team = excluded.team"
)
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A role of a team, and whether it may write and remove archived sessions. For a team without members the role is None."""

    team: str
    role: str | None
    writes: bool
    removes: bool = False


class Administration:
    """The tasks of the owner of a store on a server. Must be closed.

    Args:
        location: the URL of the store, with the role that owns it.

    Raises:
        Denied, StorageFailed, Busy, Damaged: the database can't be opened.
    """

    def __init__(self, location: str) -> None:
        self._engine = PostgresqlEngine(location)

    def close(self) -> None:
        """Close the connection."""
        self._engine.close()

    def init(self) -> tuple[int, int]:
        """Create the tables if they are missing. Return (version before, version now). Do not migrate older tables."""
        before = self._engine.schema_version()
        return before, postgresql_schema.prepare(self._engine, create=True)

    def migrate(self) -> tuple[int, int]:
        """Migrate the tables to the latest version in one transaction. Return (version before, version now)."""
        return postgresql_schema.migrate(self._engine), postgresql_schema.LATEST

    def grant(self, role: str, team: str = DEFAULT_TEAM, *, writes: bool = True, removes: bool = False) -> bool:
        """Put a role into a team with the rights of a reader, a writer or a keeper. Create the team if it does not exist.

        A keeper is a writer who may also remove archived sessions.
        A role belongs to one team only, the one of the last grant.

        Returns:
            Whether this call divided the store into teams. From then on a role without a grant sees nothing.

        Raises:
            InvalidInput: the name can't be that of a team, or row-level security does not apply to the role.
            NotFound: the server has no such role.
            Denied: the caller is not the owner.
        """
        if not team.strip() or not team.isprintable() or len(team) > _MAX_NAME:
            raise InvalidInput(f"{team!r} can't name a team", f"use up to {_MAX_NAME} printable characters")
        with self._as_owner() as version:
            quoted, passes, is_owner = self._role(role)
            if passes:
                raise InvalidInput(
                    f"row-level security does not hold for the role {role}",
                    "name one that is no superuser and has no BYPASSRLS",
                )
            was_divided = bool(self._engine.query(f"SELECT {SCHEMA}.is_divided()")[0][0])
            self._engine.execute(f"INSERT INTO {SCHEMA}.team (name) VALUES (:name) ON CONFLICT DO NOTHING", {"name": team})
            number = self._engine.query("SELECT number FROM team WHERE name = :name", {"name": team})[0][0]
            # Revoke all rights first, because a new reader may have been a writer. The owner keeps its rights.
            for statement in () if is_owner else (*no_rights(quoted), *rights(quoted, version, writes=writes, removes=removes)):
                self._engine.run(statement)
            self._engine.execute(_JOIN, {"team": int(number), "role": role})
        return not was_divided

    def revoke(self, role: str) -> None:
        """Remove a role from its team and revoke all its rights in the store. Its records stay.

        Raises:
            NotFound: the server has no such role.
            Denied: the caller is not the owner.
        """
        with self._as_owner():
            quoted, _, is_owner = self._role(role)
            for statement in () if is_owner else no_rights(quoted):
                self._engine.run(statement)
            self._engine.execute(
                f"DELETE FROM {SCHEMA}.member WHERE role = (SELECT oid FROM pg_roles WHERE rolname = :role)", {"role": role}
            )

    def members(self) -> list[Member]:
        """Return all teams with their roles, in the order in which the teams were created.

        Raises:
            Denied: the caller is not the owner.
        """
        with self._as_owner():
            rows = self._engine.query(_MEMBERS, {"records": f"{SCHEMA}.record"})
        return [Member(str(team), None if role is None else str(role), bool(writes), bool(removes))
                for team, role, writes, removes in rows]  # fmt: skip

    @contextmanager
    def _as_owner(self) -> Generator[int]:
        version = postgresql_schema.prepare(self._engine, create=False)
        if not version:
            raise postgresql_schema.no_store(self._engine.path)
        if version < postgresql_schema.WRITABLE:
            raise StorageFailed(f"{self._engine.path} has tables of an older ctxmgr", "run 'ctxmgr store migrate' first")
        # PostgreSQL rolls back GRANT and REVOKE with their transaction, so a role never has half of its rights.
        with self._engine.transaction():
            postgresql_schema.become_owner(self._engine)
            yield version

    def _role(self, role: str) -> tuple[str, bool, bool]:
        rows = self._engine.query(_ROLE, {"role": role})
        if not rows:
            raise NotFound(f"the server has no role {role!r}", f"let its administrator make it: CREATE ROLE {role} LOGIN")
        quoted, passes, is_owner = rows[0]
        return str(quoted), bool(passes), bool(is_owner)
