"""What is told where a connection can't be made, or a server refuses: what happened, in one sentence, and what to do next."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from ctxmgr.errors import Busy, CtxmgrError, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import open_store
from ctxmgr.store.engine.postgresql_errors import connection_error
from tests.store.divided import Divided

AT = 'connection to server at "10.0.0.1", port 5432 failed: '
OTHER = AT.replace("0.1", "0.2")
REFUSED = "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?"
TWO = (
    f"connection failed: {AT}FATAL:  the database system is shutting down\n"
    "Multiple connection attempts failed. All failures were:\n"
    "- host: 'db1', port: '5432', hostaddr: '10.0.0.2': connection timeout expired\n"
    f"- host: 'db2', port: '5432', hostaddr: '10.0.0.1': connection failed: {AT}FATAL:  the database system is shutting down"
)


@pytest.mark.parametrize(
    ("said", "kind", "message", "hint"),
    [
        (f"connection failed: {AT}{REFUSED}", StorageFailed,
         "can't be reached: Connection refused (10.0.0.1 port 5432)", "port"),
        (
            'connection is bad: connection to server on socket "/run/.s.PGSQL.1" failed: No such file or directory\n\tIs it?',
            StorageFailed, "can't be reached: No such file or directory (/run/.s.PGSQL.1)", "host",
        ),
        (
            f"connection failed: {AT}{REFUSED}\n{OTHER}{REFUSED}",
            StorageFailed, "can't be reached: Connection refused (10.0.0.1 port 5432, 10.0.0.2 port 5432)", "network",
        ),
        ("failed to resolve host 'db': [Errno -2] Name or service not known", StorageFailed,
         "can't be reached: Name or service not known (db)", "host"),
        ('connection is bad: could not translate host name "db" to address: Name or service not known', StorageFailed,
         'can\'t be reached: could not translate host name "db" to address: Name or service not known', "host"),
        ("connection timeout expired", StorageFailed, "can't be reached: connection timeout expired", "network"),
        (TWO, Busy,
         "takes no connection now: connection timeout expired (db1 port 5432); the database system is shutting down"
         " (10.0.0.1 port 5432)", "again"),
        (f'connection failed: {AT}FATAL:  role "me" is not permitted to log in', Denied,
         'does not let you in: role "me" is not permitted to log in', "ALTER ROLE"),
        (f'connection failed: {AT}FATAL:  permission denied for database "x"\nDETAIL:  User does not have CONNECT privilege.',
         Denied, 'does not let you in: permission denied for database "x"', "GRANT CONNECT"),
        (f'connection failed: {AT}FATAL:  password authentication failed for user "me"', Denied,
         'does not let you in: password authentication failed for user "me"', "PGPASSFILE"),
        (f'connection failed: {AT}FATAL:  no pg_hba.conf entry for host "h", user "me", database "x", SSL encryption\n'
         f'{AT}FATAL:  no pg_hba.conf entry for host "h", user "me", database "x", no encryption', Denied,
         "does not let you in: no pg_hba.conf entry", "role"),
        (f"connection failed: {AT}FATAL:  no such database: x", NotFound, ": no such database: x", "createdb"),
        (f"connection failed: {AT}FATAL:  no more connections allowed (max_client_conn)", Busy,
         "takes no connection now", "again"),
        (f"connection failed: {AT}server does not support SSL, but SSL was required", StorageFailed,
         "can't be reached over TLS: server does not support SSL", "sslmode=disable"),
        (f'connection failed: {AT}server certificate for "a" (and 1 other name) does not match host name "b"', StorageFailed,
         'did not prove who it is: server certificate for "a" (and 1 other name) does not match', "name that its"),
        (f"connection failed: {AT}SSL error: certificate verify failed", StorageFailed,
         "did not prove who it is: SSL error: certificate verify failed", "?sslrootcert=FILE"),
        (f'connection failed: {AT}root certificate file "/x" does not exist\nEither provide the file, or change sslmode.',
         StorageFailed, 'can\'t be checked: root certificate file "/x" does not exist', "?sslrootcert=system"),
        (f'connection failed: {AT}could not read root certificate file "/x": permission denied', StorageFailed,
         'can\'t be checked: could not read root certificate file "/x": permission denied', "?sslrootcert=system"),
        (f'connection failed: {AT}private key file "/x" has group or world access; file must have permissions u=rw (0600)',
         Denied, 'can\'t be shown your certificate: private key file "/x" has group or world access', "?sslkey=FILE"),
        (f"connection failed: {AT}FATAL:  connection requires a valid client certificate", Denied,
         "can't be shown your certificate", "?sslcert=FILE"),
        ('connection is bad: definition of service "x" not found', InvalidInput,
         'can\'t be used: definition of service "x"', "file"),
        (f'connection is bad: {AT}invalid integer value "abc" for connection option "keepalives"', InvalidInput,
         'can\'t be used: invalid integer value "abc" for connection option "keepalives"', "correct it"),
        ("could not match 3 port numbers to 1 hosts", InvalidInput, "can't be used: could not match 3 port", "correct it"),
    ],
)  # fmt: skip
def test_why_no_connection_was_made(said: str, kind: type[CtxmgrError], message: str, hint: str) -> None:
    """Each reason is told once, in one line, with the addresses that it holds for, and with a next step that can help."""
    told = connection_error("URL", psycopg.OperationalError(said))
    assert type(told) is kind
    assert told.message.startswith(f"URL {message}" if message[0] != ":" else f"URL{message}")
    assert hint in str(told.hint)
    assert "\n" not in told.message
    assert "failed: " not in told.message
    assert "?" not in told.message


@pytest.mark.parametrize("said", ["connect_timeout=abc", "sslmode=strict", "port=0", "port=1,2,3",
                                  "client_encoding=nonsense", "target_session_attrs=best", "service=nowhere"])  # fmt: skip
def test_values_that_cant_be_parsed_are_invalid(server_url: str, said: str) -> None:
    """What no try would mend is no matter of the network, whoever finds it: psycopg, libpq or the server."""
    name = said.partition("=")[0]
    others = "&".join(each for each in server_url.partition("?")[2].split("&") if not each.startswith(f"{name}="))
    with pytest.raises(InvalidInput, match="can't be used"):
        open_store(f"{server_url.partition('?')[0]}?{others}&{said}")


@pytest.mark.parametrize("location", ["postgresql://me:gehe/x", "postgresql://me@a:1,b:gehe/x", "postgresql:///x?port=gehe"])
def test_a_port_is_a_number(location: str) -> None:
    """Anything else is refused before a server is asked, and where it may be a password it is not repeated."""
    with pytest.raises(InvalidInput, match="port that is not a number") as refused:
        open_store(location)
    assert "//" not in location or "gehe" not in refused.value.message.partition("?")[0]
    assert "PGPASSFILE" in str(refused.value.hint)


def test_a_port_of_the_environment_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as that of the URL is."""
    monkeypatch.setenv("PGPORT", "abc")
    with pytest.raises(InvalidInput, match="port that is not a number"):
        open_store("postgresql://localhost/x")


def test_a_role_that_does_not_exist_is_denied(server_url: str) -> None:
    """It is not the network: the answer says that a role has to be named or made."""
    with pytest.raises(Denied, match='role "ghost" does not exist') as refused:
        open_store(server_url.replace("tester@", "ghost@"))
    assert "CREATE ROLE" in str(refused.value.hint)


def test_a_role_that_was_granted_nothing_is_told_how(server_url: str) -> None:
    """It may not look into the schema; its owner can let it."""
    whole = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    open_store(whole.url("owner"), create=True).close()
    with pytest.raises(Denied, match="permission denied for schema ctxmgr") as refused:
        whole.open("stranger")
    assert "ctxmgr store grant ROLE --team NAME" in str(refused.value.hint)


@pytest.mark.parametrize("command", ["sessions --store", "import"])
def test_a_driver_that_cant_be_loaded_is_told_like_a_missing_one(command: str) -> None:
    """Where psycopg is installed and finds no libpq, what it says is told, and how both are installed."""
    ran = subprocess.run(
        [sys.executable, "-m", "ctxmgr", *command.split(), "postgresql://localhost/x"],
        env={**os.environ, "PSYCOPG_IMPL": "nowhere"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2, ran.stderr
    assert "need psycopg, which can't be loaded: " in ran.stderr
    assert "nowhere" in ran.stderr
    assert "pip install 'ctxmgr-cli[postgresql]'" in ran.stderr
