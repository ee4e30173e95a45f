"""Look after a store on a server as its owner: make it, migrate it, and say which role reads or writes which team."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.light_dataclass import dataclass
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_teams import DEFAULT_TEAM, no_rights, rights
from ctxmgr.store.engine.spelling import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Generator

_ROLE = "SELECT quote_ident(rolname), rolsuper OR rolbypassrls, rolname = current_user FROM pg_roles WHERE rolname = :role"
_MEMBERS = (
    "SELECT team.name, member_role.rolname, has_table_privilege(member_role.oid, :records, 'INSERT') "
    "FROM team LEFT JOIN member ON member.team = team.number "
    "LEFT JOIN pg_roles AS member_role ON member_role.oid = member.role ORDER BY team.number, member_role.rolname"
)
_JOIN = (
    f"INSERT INTO {SCHEMA}.member (role, team) SELECT oid, :team FROM pg_roles WHERE rolname = :role "
    "ON CONFLICT (role) DO UPDATE SET team = excluded.team"
)
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A role of a team, and whether it may write; a team without members has one line without a role."""

    team: str
    role: str | None
    writes: bool


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
        if not team.strip() or not team.isprintable() or len(team) > _LONGEST_NAME:
            raise InvalidInput(f"{team!r} can't name a team", f"use up to {_LONGEST_NAME} printable characters")
        with self._as_owner():
            quoted, passes, is_owner = self._role(role)
            if passes:
                raise InvalidInput(
                    f"row-level security does not hold for the role {role}",
                    "name one that is no superuser and has no BYPASSRLS",
                )
            was_divided = bool(self._engine.query(f"SELECT {SCHEMA}.is_divided()")[0][0])
            self._engine.execute(f"INSERT INTO {SCHEMA}.team (name) VALUES (:name) ON CONFLICT DO NOTHING", {"name": team})
            number = self._engine.query("SELECT number FROM team WHERE name = :name", {"name": team})[0][0]
            for statement in () if is_owner else (*no_rights(quoted), *rights(quoted, writes=writes, removes=removes)):
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
        return [Member(str(name), None if role is None else str(role), bool(writes)) for name, role, writes in rows]

    @contextmanager
    def _as_owner(self) -> Generator[None]:
        version = postgresql_schema.prepare(self._engine, create=False)
        if not version:
            raise NotFound(f"no store at {self._engine.path} yet", "make it: ctxmgr store init")
        if version < postgresql_schema.LATEST:
            raise StorageFailed(f"{self._engine.path} has tables of an older ctxmgr", "run 'ctxmgr store migrate' first")
        with self._engine.transaction():
            postgresql_schema.become_owner(self._engine)
            yield

    def _role(self, role: str) -> tuple[str, bool, bool]:
        rows = self._engine.query(_ROLE, {"role": role})
        if not rows:
            raise NotFound(f"the server has no role {role!r}", f"let its administrator make it: CREATE ROLE {role} LOGIN")
        quoted, passes, is_owner = rows[0]
        return str(quoted), bool(passes), bool(is_owner)
