"""Fail over to a replica while records are shipped; tell what the replica lacked, and what of it was shipped again.

Recorders write logs, and two shippers bring them to a primary server with a streaming replica. Then the primary is killed and
the replica promoted; the shippers know both hosts. It is done twice: with a replica that each commit waits for, and with one
that fell behind before the primary died:

    python -m bench.failover [--seconds 15]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from bench.chaos import RECORDERS, Run, compared
from bench.servers import DURABLE, say
from ctxmgr.history.shipper import known_progress
from ctxmgr.log.reader import read
from ctxmgr.store import open_store
from tests import postgresql_server

_BEHIND = 4.0
"""Seconds that the replica is behind when the primary dies, where no commit waits for it."""
_LIMIT = 60.0


def replicate(primary: Path, folder: Path) -> Path:
    """Start a streaming replica of a server; return the folder of its socket."""
    place = folder / "replica"
    place.mkdir(mode=0o711)
    programs = postgresql_server.programs(place)
    who: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
    if who:
        os.chown(place, 65534, 65534)
    subprocess.run(
        [programs / "pg_basebackup", "-D", place / "data", "-R", "-X", "stream", "-c", "fast", "-h", primary, "-p", "5432",
         "-U", "tester"],
        check=True, cwd=place, env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}, **who,
    )  # fmt: skip
    postgresql_server.start(place, DURABLE)
    return place


def ask(place: Path, statement: str) -> Any:
    """Return the one value that a statement has on a server."""
    with psycopg.connect(postgresql_server.url(place, "postgres"), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


def shipped_entries() -> set[str]:
    """Return the entries that the shippers were told are stored."""
    names: set[str] = set()
    for each in known_progress():
        names |= {str(line.record["id"]) for line in read(each.source, 0) if line.offset < each.done and "id" in line.record}
    return names


def wait_for(what: str, met: Any) -> float:
    """Wait until something holds; return how many seconds that took."""
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > _LIMIT:
            raise RuntimeError(f"{what} within {_LIMIT:g} s")
        time.sleep(0.05)
    return time.monotonic() - began


def fail_over(folder: Path, seconds: float, *, waited_for: bool) -> bool:
    """Kill the primary in mid-work, promote the replica, let all go on; return whether nothing is missing in the end."""
    primary = postgresql_server.server(DURABLE)
    open_store(postgresql_server.url(primary, "postgres"), create=True).close()
    replica = replicate(primary, folder)
    wait_for("the replica follows", lambda: ask(primary, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"))
    if waited_for:
        ask(primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        ask(primary, "SELECT pg_reload_conf()")
    run = Run(folder, f"postgresql://tester@/postgres?host={primary},{replica}&port=5432,5432")
    try:
        run.recorders = [run.record(number) for number in range(RECORDERS)]
        run.shippers = [run.ship(), run.ship()]
        time.sleep(seconds)
        if not waited_for:
            ask(replica, "ALTER SYSTEM SET primary_conninfo = ''")
            ask(replica, "SELECT pg_reload_conf()")
            time.sleep(_BEHIND)
        os.kill(int((primary / "data" / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGKILL)
        acknowledged = shipped_entries()
        ask(replica, "SELECT pg_promote()")
        held = {row for (row,) in rows(replica, "SELECT id FROM ctxmgr.record WHERE kind = 'entry'")}
        missing = acknowledged - held
        before = len(held)
        took = wait_for("shipping goes on", lambda: ask(replica, "SELECT count(*) FROM ctxmgr.entry") > before)
        again = wait_for("what was missing is back", lambda: not missing - {
            row for (row,) in rows(replica, "SELECT id FROM ctxmgr.record WHERE kind = 'entry'")})  # fmt: skip
        time.sleep(seconds / 2)
    finally:
        run.end()
    say(
        f"{'each commit waited for the replica' if waited_for else f'the replica was {_BEHIND:g} s behind'}: "
        f"{len(acknowledged):,} entries shipped, {len(missing):,} of them not on the replica when it was promoted; "
        f"shipping went on after {took:.1f} s, all of those were there again after {took + again:.1f} s"
    )
    code = run.ship(follow=False).wait()
    complete = compared(run, postgresql_server.url(replica, "postgres"))
    stop(replica)
    return complete and code == 0 and (not missing or not waited_for) and (bool(missing) or waited_for)


def rows(place: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows that a statement has on a server."""
    with psycopg.connect(postgresql_server.url(place, "postgres"), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def stop(place: Path) -> None:
    """Stop a server at once."""
    os.kill(int((place / "data" / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGINT)
    time.sleep(2)


def main() -> int:
    """Fail over both ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    chosen = parser.parse_args()
    sound = True
    for waited_for in (True, False):
        postgresql_server.begin_run()
        folder = Path(tempfile.mkdtemp(prefix="ctxmgr-failover-", dir="/tmp"))
        folder.chmod(0o711)
        try:
            os.environ["XDG_STATE_HOME"] = str(folder)
            sound = fail_over(folder, chosen.seconds, waited_for=waited_for) and sound
        finally:
            postgresql_server.end_run()
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
