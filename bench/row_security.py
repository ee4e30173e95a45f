"""Measure what row-level security costs an append to a PostgreSQL server: the same records as roles that it holds for, and not.

The roles append in turns, each over one connection to sessions of its own, and commits wait for no disk:

    python -m bench.row_security [--turns 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict

import psycopg

from bench.servers import processor_time, record, say
from ctxmgr.store import Store, administer, open_store
from tests import postgresql_server
from tests.store.divided import Divided

_CASES = {1: 200, 100: 10}  # appends of a turn, by the records of each


def opened() -> dict[str, Store]:
    """Return a store for each role: of a database that is not divided into teams, and of one that is."""
    whole, divided = Divided("whole"), Divided("divided")
    stores: dict[str, Store] = {}
    for place, writer in ((whole, "a writer, not divided"), (divided, "a writer of a team")):
        owner = administer(place.url("owner"))
        owner.init()
        superuser = open_store(postgresql_server.url(place.place, place.database))  # it would be refused when there are teams
        if place is divided:
            owner.grant(place.roles["alice"], "one")
            stores["the owner"] = place.open("owner")
        else:
            with place.sql("owner") as connection:
                role = place.roles["alice"]
                connection.execute(f"GRANT USAGE ON SCHEMA ctxmgr TO {role}".encode())
                connection.execute(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ctxmgr TO {role}".encode())
                connection.execute(f"GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA ctxmgr TO {role}".encode())
            stores["superuser"] = superuser
        stores[writer] = place.open("alice")
        owner.close()
    return stores


def measure(stores: dict[str, Store], batch: int, calls: int, turns: int) -> None:
    """Tell what the server spends on a call of each role, and how long it takes, as medians of turns."""
    backends = {name: int(store.engine.query("SELECT pg_backend_pid()")[0][0]) for name, store in stores.items()}
    spent: dict[str, list[float]] = defaultdict(list)
    took: dict[str, list[float]] = defaultdict(list)
    for turn in range(-1, turns):
        for name, store in stores.items():
            parts = [[record(f"{name}{batch}", (turn + 1) * calls * batch + call * batch + each) for each in range(batch)]
                     for call in range(calls)]  # fmt: skip
            before, began = processor_time(backends[name]), time.perf_counter()
            for part in parts:
                store.append(part)
            if turn >= 0:
                took[name].append((time.perf_counter() - began) / calls * 1e6)
                spent[name].append((processor_time(backends[name]) - before) / calls / 1000)
    first = next(iter(stores))
    for name in stores:
        ratios = [each / base for each, base in zip(spent[name], spent[first], strict=True)]
        say(f"batch {batch:3}, {name}: {statistics.median(spent[name]):,.0f} us of the server "
            f"({statistics.median(ratios):.2f}), {statistics.median(took[name]):,.0f} us in all")  # fmt: skip


def main() -> int:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    chosen = parser.parse_args()
    postgresql_server.begin_run()
    try:
        stores = opened()
        say(f"load {os.getloadavg()[0]:.1f}")
        for batch, calls in _CASES.items():
            measure(stores, batch, calls, chosen.turns)
        for store in stores.values():
            store.close()
        say(f"load {os.getloadavg()[0]:.1f}")
    except psycopg.Error as error:
        say(str(error))
        return 1
    finally:
        postgresql_server.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
