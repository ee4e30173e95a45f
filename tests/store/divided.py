"""A store on a server that is divided into teams, with roles of its own, for the tests that need one."""

from __future__ import annotations

from typing import Any

import psycopg

from ctxmgr.store import Store, open_store
from tests import postgresql_server


class Divided:
    """A database of its own, whose store has two teams; the URLs of its roles by their names."""

    def __init__(self, worker: str) -> None:
        self.place = postgresql_server.server()
        self.database = f"teams_{worker}"
        self.roles = {name: f"{name}_{worker}" for name in ("owner", "alice", "bob", "eve", "stranger")}
        with self.superuser("postgres") as connection:
            for role in self.roles.values():
                if not has_role(connection, role):
                    connection.execute(f"CREATE ROLE {role} LOGIN".encode())
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (self.database,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {self.database} OWNER {self.roles['owner']}".encode())
        with self.superuser() as connection:
            connection.execute("DROP SCHEMA IF EXISTS ctxmgr CASCADE")

    def superuser(self, database: str | None = None) -> psycopg.Connection[Any]:
        """Connect as the server's superuser, to this database or another one."""
        return psycopg.connect(postgresql_server.url(self.place, database or self.database), autocommit=True)

    def url(self, name: str) -> str:
        """Return the URL of the store for one of the roles."""
        return f"postgresql://{self.roles[name]}@/{self.database}?host={self.place}&port=5432"

    def sql(self, name: str) -> psycopg.Connection[Any]:
        """Connect as one of the roles."""
        return psycopg.connect(self.url(name), autocommit=True)

    def open(self, name: str, *, readonly: bool = False) -> Store:
        """Open the store as one of the roles."""
        return open_store(self.url(name), readonly=readonly)


def has_role(connection: psycopg.Connection[Any], role: str) -> bool:
    """Whether the server has a role of this name."""
    return connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None
