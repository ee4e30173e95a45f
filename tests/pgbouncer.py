"""PgBouncer in transaction mode before the run's server, for the tests that go through a pooler.

It is taken from PATH, or from where ``.ci/pgbouncer`` unpacked it. Each process of the run has one of its own, which ends with
the process.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import postgresql_server

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxmgr" / "pgbouncer"  # of the run, not of a test
_NOBODY = 65534
MISSING = "no PgBouncer: run .ci/pgbouncer, or apt-get install pgbouncer"
"""Why a test is skipped, and what would help."""

_SETTINGS = """
[databases]
* = host={place} port=5432{user}
[pgbouncer]
pool_mode = transaction
listen_addr =
listen_port = {port}
unix_socket_dir = {place}
{access}
max_client_conn = 500
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
"""
_running: dict[int, subprocess.Popen[Any]] = {}


def _found() -> Path | None:
    named = shutil.which("pgbouncer") or _CACHE / "usr" / "sbin" / "pgbouncer"
    return Path(named) if Path(named).is_file() else None


def can_start() -> bool:
    """Whether there is a PgBouncer here."""
    return _found() is not None


def start(worker: str, pool_size: int = 20, roles: Iterable[str] = ()) -> int:
    """Start this process's pooler, if it has none of that pool size, and return its port on the server's socket.

    With ``roles`` these alone can log in, each as itself; else everybody does as the server's superuser.
    """
    program = _found()
    assert program is not None, MISSING
    port = 6000 + int("".join(filter(str.isdigit, worker)) or 99) * 3 + (2 if roles else pool_size != 20)
    if port in _running:
        return port
    place = postgresql_server.server()
    folder = place / f"pooler{port}"
    folder.mkdir()
    for each in (program, *_CACHE.rglob("*.so*")):  # the user that it runs as can't read a home
        shutil.copy(each, folder)
    settings = folder / "pgbouncer.ini"
    user, access = " user=tester", "auth_type = any"
    if roles:
        users = folder / "users"
        users.write_text("".join(f'"{role}" ""\n' for role in roles), encoding="utf-8")
        user, access = "", f"auth_type = trust\nauth_file = {users}"
    told = _SETTINGS.format(place=place, port=port, user=user, access=access)
    told = told.replace("pool_size = 20", f"pool_size = {pool_size}")
    settings.write_text(told, encoding="utf-8")
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    who: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    environment = {"PATH": os.environ.get("PATH", ""), "LD_LIBRARY_PATH": str(folder)}
    with open(folder / "log", "wb") as log:
        _running[port] = subprocess.Popen(
            [folder / program.name, settings],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=place,
            **who,
        )
    (folder / "pid").write_text(f"{_running[port].pid}\n", encoding="ascii")  # for who ends what a killed run left
    atexit.register(stop)
    for _ in range(200):
        if (place / f".s.PGSQL.{port}").exists():
            return port
        assert _running[port].poll() is None, (folder / "log").read_text()
        time.sleep(0.02)
    raise AssertionError((folder / "log").read_text())


def stop() -> None:
    """End this process's poolers."""
    while _running:
        each = _running.popitem()[1]
        each.kill()
        each.wait()


def through(url: str, port: int) -> str:
    """Return the URL of a database of the run's server, through a pooler that has noticed which of its connections ended."""
    import psycopg

    address = url.replace("port=5432", f"port={port}")
    for _ in range(100):
        try:
            with psycopg.connect(address, autocommit=True, prepare_threshold=None) as connection:
                connection.execute("SELECT 1")
            return address
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("the pooler does not reach the server")
