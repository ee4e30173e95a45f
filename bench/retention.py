"""Measure what it costs to take old sessions out of a store on a server, one by one, beside dropping a table of the same size.

A part of the sessions is old: these are archived and removed. Told are the milliseconds of a session, how much of it is its
removal, the dead rows that are left, and how long VACUUM takes to make room of them. The server vacuums nothing by itself:

    python -m bench.retention [--entries 100000] [--each 250] [--old 0.1]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import closing
from itertools import pairwise
from typing import Any

import psycopg

from bench.servers import DURABLE, record, say
from ctxmgr.log.ids import parse_time
from ctxmgr.store import Store, open_store
from ctxmgr.store.archive import retention
from tests import postgresql_server

_BATCH = 250
_OLD, _BETWEEN, _NEW = "2026-01-01T10:00:00Z", "2026-01-10T00:00:00Z", "2026-01-22T10:00:00Z"


def fill(store: Store, entries: int, each: int, old: float) -> None:
    """Store sessions of so many entries that ended, the old ones first among them."""
    sessions = entries // each
    for number in range(sessions):
        name, moment = f"s-{number:06}", _OLD if number < sessions * old else _NEW
        side: dict[str, Any] = {"v": 1, "session": name, "process": "p", "ts": moment}
        records: list[dict[str, Any]] = [{**record(name, made), "ts": moment} for made in range(each)]
        records = [{**side, "kind": "session"}, *records, {**side, "kind": "sessionEnd", "outcome": "completed"}]
        for start in range(0, len(records), _BATCH):
            store.append(records[start : start + _BATCH])


def measure(url: str, entries: int, each: int, old: float) -> None:
    """Fill a store, archive its old sessions, and tell what that took."""
    removed = list[float]()
    with (
        closing(psycopg.connect(url, autocommit=True)) as admin, closing(open_store(url, create=True)) as store,
        tempfile.TemporaryDirectory() as kept,
    ):  # fmt: skip
        fill(store, entries, each, old)
        store.index()
        admin.execute("VACUUM ANALYZE")
        chosen = retention.archivable_sessions(store, parse_time(_BETWEEN) or 0.0)[0]
        began, used = time.perf_counter(), time.process_time()
        done = retention.retain(store, kept, chosen, lambda _done, _all: removed.append(time.perf_counter()))
        took, used, count = time.perf_counter() - began, time.process_time() - used, len(done.sessions)
        removals = [
            after - before for before, after in pairwise(removed)
        ]  # all are of one day, so its files are written before
        say(f"{entries:,} entries, {count:,} of {entries // each:,} sessions archived, {done.records:,} records in all:")
        say(f"  {took / count * 1000:.0f} ms a session, {used / count * 1000:.0f} ms of it this process; its removal "
            f"{statistics.median(removals) * 1000:.0f} ms (longest {max(removals) * 1000:.0f})")  # fmt: skip
        store.engine.query("SELECT pg_stat_force_next_flush()")  # what the connection counted is told now
        (dead,) = admin.execute("SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = 'ctxmgr'").fetchall()[0]
        began = time.perf_counter()
        admin.execute("VACUUM")
        say(f"  {dead:,} dead rows, VACUUM {time.perf_counter() - began:.1f} s")
        admin.execute("CREATE TABLE part AS SELECT * FROM ctxmgr.record LIMIT %s", (done.records,))
        began = time.perf_counter()
        admin.execute("DROP TABLE part")
        say(f"  to drop a table of as many records: {(time.perf_counter() - began) * 1000:.0f} ms")


def main() -> int:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=250, help="entries of a session")
    parser.add_argument("--old", type=float, default=0.1, help="part of the sessions that is archived")
    chosen = parser.parse_args()
    postgresql_server.begin_run()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            place = postgresql_server.server({**DURABLE, "autovacuum": "off"})
            measure(postgresql_server.url(place, "postgres"), chosen.entries, chosen.each, chosen.old)
    finally:
        postgresql_server.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
