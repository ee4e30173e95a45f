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
"""How long after its last sign of life a recorder on whatever machine counts as live."""

_MIGRATE = "have its owner run 'ctxmgr store migrate'; end older recorders and shippers before"
_MAY_REMOVE = (
    "SELECT session_user, bool_and(has_table_privilege(name, 'DELETE')) FROM unnest(CAST(:names AS TEXT[])) AS held(name)"
)
# A third of `ALIVE_SECONDS`: two beats may get lost before a recorder counts as ended.
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
        """Bring the tables to the latest version; see `Store.migrate`."""
        super()._require_writable()
        before = postgresql_schema.migrate(self._server)
        self._version = postgresql_schema.LATEST
        return before, self._version

    def _append_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()  # the appender begins one where it needs more than one round trip

    def team(self) -> str | None:
        """Return the name of the team that this role belongs to; None where the store is not divided."""
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
        """Refuse a role that may not remove what was archived; see `Store.require_keeper`."""
        role, may = self.engine.query(_MAY_REMOVE, {"names": _kept()})[0]
        if not may:
            team = self.team()
            within = "" if team in (None, DEFAULT_TEAM) else f" --team {shlex.quote(str(team))}"
            raise Denied(
                f"{self._server.path}: the role {role} may not remove what was archived",
                f"have the store's owner run 'ctxmgr store grant {role}{within} --keeper'",
            )

    def is_live(self, session: str) -> bool:
        """Whether a recorder of this session gave a sign of life lately; the server's clock counts."""
        rows = self.engine.query("SELECT max(seen) FROM live WHERE session = :session", {"session": storable(session)})
        return rows[0][0] is not None and self.clock() - float(rows[0][0]) < ALIVE_SECONDS

    def wait(self, seconds: float, end: socket | None = None) -> None:
        """Wait for a notification, or for so many seconds; behind a pooler there is none."""
        self._server.wait(seconds, end)

    def tell(self) -> None:
        """Say to all who wait that there is something new."""
        self._server.tell()

    def index(self, progress: Progress | None = None) -> bool:
        """Bring the search index up to date; see `Store.index`."""
        from ctxmgr.store.search.find_on_server import advance

        return advance(self._server, progress)

    def count_unindexed(self) -> int:
        """Return how many records a search has to read because they are not indexed yet."""
        from ctxmgr.store.search.find_on_server import mark

        return max(0, int(self.engine.query("SELECT coalesce(max(seq), 0) FROM session")[0][0]) - mark(self.engine))

    def accept(self) -> None:
        """Do nothing: no anchor is kept that could be moved."""


def _kept() -> list[str]:
    return [f"{SCHEMA}.{table}" for table in postgresql_schema.KEPT]


def open_server(location: str, *, create: bool, readonly: bool, masked: bool) -> Store:
    """Open the store at a URL.

    Raises:
        NotFound: there is none, and it is not to be made.
        InvalidInput: the URL can't name one.
        Denied, StorageFailed, Busy, Damaged: it can't be opened.
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
    """Refuse a role that has no team, or that would see all teams mixed.

    Raises:
        Denied: says which of both.
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
    """Write down that recorders are live: (session, process) of each."""
    # The server's clock, for whoever reads this compares with it too.
    now, host = engine.clock(), storable(os.uname().nodename)
    engine.many(
        _SEEN,
        [
            {"session": storable(session), "process": storable(process), "host": host, "now": now}
            # In one order everywhere: two that lock the same rows in another order would wait for each other.
            for session, process in sorted(holders)
        ],
    )


class LivenessThread:
    """Gives signs of life for the recorders of one sink, from a thread.

    Args:
        engine: of the store that they write.
        lock: held while the engine is used.
    """

    def __init__(self, engine: Engine, lock: threading.Lock) -> None:
        self._engine = engine
        self._lock = lock
        self._holders: set[tuple[str, str]] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, records: Sequence[Record]) -> None:
        """Take note of processes that begin or end; call it with the lock held."""
        for record in records:
            if record["kind"] in ("session", "sessionEnd"):
                holder = str(record["session"]), str(record.get("process") or "")
                if record["kind"] == "sessionEnd":
                    self._forget(holder)
                elif holder not in self._holders:
                    self._holders.add(holder)
                    # The records are committed by now, so a failure here is none of theirs: the first beat tells it then.
                    with suppress(CtxmgrError):
                        report_alive(self._engine, [holder])
                    if self._thread is None:
                        self._thread = threading.Thread(target=self._beat, daemon=True, name="ctxmgr signs of life")
                        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS):
            with self._lock, suppress(CtxmgrError):  # the next one may reach the server again
                # A beat after `stop` would bring the row back that was deleted there.
                if self._holders and not self._ended.is_set():
                    report_alive(self._engine, self._holders)

    def _forget(self, holder: tuple[str, str]) -> None:
        self._holders.discard(holder)
        with suppress(CtxmgrError):  # nobody hears of it: in half a minute it counts as ended
            self._engine.execute(
                "DELETE FROM live WHERE session = :session AND process = :process",
                {"session": storable(holder[0]), "process": storable(holder[1])},
            )

    def stop(self) -> None:
        """Say that all of them have ended."""
        self._ended.set()
        for holder in list(self._holders):
            self._forget(holder)


# GRANT takes no bound values, so the server itself quotes the name that is put into the statement.
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
    """A role of a team, and whether it may write, and remove what was archived; of a team without members the role is None."""

    team: str
    role: str | None
    writes: bool
    removes: bool = False


class Administration:
    """What the owner of a store on a server does; close it.

    Args:
        location: URL of the store, with the role that owns it.

    Raises:
        Denied, StorageFailed, Busy, Damaged: it can't be opened.
    """

    def __init__(self, location: str) -> None:
        self._engine = PostgresqlEngine(location)

    def close(self) -> None:
        """Release the connection."""
        self._engine.close()

    def init(self) -> tuple[int, int]:
        """Make the tables where there are none; return (version before, version now). Older ones stay as they are."""
        before = self._engine.schema_version()
        return before, postgresql_schema.prepare(self._engine, create=True)

    def migrate(self) -> tuple[int, int]:
        """Bring the tables to the latest version, all or nothing; return (version before, version now)."""
        return postgresql_schema.migrate(self._engine), postgresql_schema.LATEST

    def grant(self, role: str, team: str = DEFAULT_TEAM, *, writes: bool = True, removes: bool = False) -> bool:
        """Put a role into a team, made now if there is none of that name, with the rights of a reader, a writer or a keeper.

        A keeper is a writer who also removes what was archived.
        A role is of one team at a time: of the one that was granted last.

        Returns:
            Whether the store was divided by this: from now on a role that nobody granted anything sees nothing.

        Raises:
            InvalidInput: no name of a team, or a role that row-level security does not hold for.
            NotFound: no such role on the server.
            Denied: you are not the owner.
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
            # All rights are taken away first: whoever becomes a reader was perhaps a writer. An owner keeps its own.
            for statement in () if is_owner else (*no_rights(quoted), *rights(quoted, version, writes=writes, removes=removes)):
                self._engine.run(statement)
            self._engine.execute(_JOIN, {"team": int(number), "role": role})
        return not was_divided

    def revoke(self, role: str) -> None:
        """Take a role out of its team, and all its rights in the store from it. What it recorded stays.

        Raises:
            NotFound: no such role on the server.
            Denied: you are not the owner.
        """
        with self._as_owner():
            quoted, _, is_owner = self._role(role)
            for statement in () if is_owner else no_rights(quoted):
                self._engine.run(statement)
            self._engine.execute(
                f"DELETE FROM {SCHEMA}.member WHERE role = (SELECT oid FROM pg_roles WHERE rolname = :role)", {"role": role}
            )

    def members(self) -> list[Member]:
        """Return all teams with their roles, in the order in which the teams were made.

        Raises:
            Denied: you are not the owner.
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
        # PostgreSQL takes back GRANT and REVOKE with their transaction, so a role never has half of its rights.
        with self._engine.transaction():
            postgresql_schema.become_owner(self._engine)
            yield version

    def _role(self, role: str) -> tuple[str, bool, bool]:
        rows = self._engine.query(_ROLE, {"role": role})
        if not rows:
            raise NotFound(f"the server has no role {role!r}", f"let its administrator make it: CREATE ROLE {role} LOGIN")
        quoted, passes, is_owner = rows[0]
        return str(quoted), bool(passes), bool(is_owner)
