"""Follow a store on a server with many subscribers; tell what they cost those who append, and how late they hear.

Each subscriber follows all sessions. Some do so apart, as ``ctxmgr watch --store URL`` does, with connections of their own:
each listens, and looks every two seconds. Many share the feed of their process, of which there are four. The rate of a
writer is measured before and meanwhile. Server, writer and all subscribers share this machine, so of what they cost the
most is their own reading:

    python -m bench.subscribers [--many 1000] [--apart 40] [--seconds 10]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench.servers import DURABLE, record, say
from ctxmgr.history.live.shared_sessions import Feed, SharedSessions
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from tests import postgresql_server

_PROCESSES = 4
_TURNS = 5
_EVERY = 2.0
_BATCH, _SHIPPED = 20, 0.1
"""Records of a batch of a shipper that follows a log, and seconds between two."""


def subscribe(url: str, count: int, way: str) -> None:
    """Follow with so many subscribers until standard input ends; then print what each saw, and how late."""
    lags, seen = list[float](), [list[str]() for _ in range(count)]

    def take(own: list[str], record: Record) -> None:
        own.append(str(record["id"]))
        lags.append(time.monotonic() - float(record["input"]["at"]))

    (share if way == "shared" else follow_apart)(url, [partial(take, own) for own in seen], listening=way != "deaf")
    complete = sum(own == seen[0] and len(own) == len(set(own)) for own in seen)
    print(json.dumps({"first": len(seen[0]), "complete": complete, "lags": sorted(lags)[:: max(1, len(lags) // 2_000)]}))


def _begun() -> None:
    print("ready", flush=True)
    sys.stdin.read()


def share(url: str, receivers: list[Callable[[Record], None]], *, listening: bool) -> None:
    """Give all of them what one feed reads."""
    with closing(Feed(url, every=_EVERY)) as feed:
        for each in receivers:
            feed.subscribe(each)
        _begun()
        time.sleep(2 * _EVERY + 1)  # it looks once more


def follow_apart(url: str, receivers: list[Callable[[Record], None]], *, listening: bool) -> None:
    """Read for each of them over connections of its own."""
    ended, ready = threading.Event(), threading.Semaphore(0)

    def follow(take: Callable[[Record], None]) -> None:
        with closing(open_store(url, readonly=True)) as store, closing(SharedSessions(store, share=False)) as sessions:
            ready.release()
            last = False
            while True:
                for each in sessions.poll().records:
                    take(each)
                if last:
                    return
                last = ended.is_set()
                if not last and listening:
                    store.wait(_EVERY)
                elif not last:
                    ended.wait(1.0)

    threading.stack_size(512 * 1024)
    threads = [threading.Thread(target=follow, args=(each,), daemon=True) for each in receivers]
    for thread in threads:
        thread.start()
        ready.acquire()  # one by one: so many connections at once would time out
    _begun()
    ended.set()
    for thread in threads:
        thread.join(60)


class Subscribers:
    """Processes with so many subscribers together."""

    def __init__(self, url: str, count: int, way: str) -> None:
        self.count = count
        shares = [count // _PROCESSES + (number < count % _PROCESSES) for number in range(_PROCESSES)]
        self._all = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.subscribers", "--subscribe", url, "--many", str(share), "--way", way],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for share in shares if share
        ]  # fmt: skip
        for each in self._all:
            assert each.stdout is not None
            each.stdout.readline()

    def end(self, written: int) -> str:
        """End them; return what they saw of so many records."""
        told: list[dict[str, Any]] = [json.loads(each.communicate()[0]) for each in self._all]
        lags = sorted(lag for each in told for lag in each["lags"])
        whole = sum(each["complete"] for each in told if each["first"] == written)
        late = f"heard after {statistics.median(lags) * 1000:,.0f} ms, p99 {lags[len(lags) * 99 // 100] * 1000:,.0f} ms"
        return f"{whole} of {self.count} saw all {written:,} records once and in order; {late}"


def write(store: Store, session: str, seconds: float) -> tuple[int, float]:
    """Append batches for so long, as a shipper does; return how many records, and how many a second while it did not wait."""
    end, made, spent = time.monotonic() + seconds, 0, 0.0
    while time.monotonic() < end:
        records = [record(session, made + each) for each in range(_BATCH)]
        for each in records:
            each["input"]["at"] = time.monotonic()
        began = time.perf_counter()
        store.append(records)
        spent += time.perf_counter() - began
        made += _BATCH
        store.tell()
        time.sleep(_SHIPPED)
    return made, made / spent


def measure(url: str, many: int, apart: int, seconds: float) -> None:
    """Tell the rate of a writer with none, few and many subscribers, and how late these hear."""
    with closing(open_store(url, create=True)) as store:
        for count, way in ((1, "apart"), (1, "deaf"), (10, "apart"), (apart, "apart"), (many, "shared")):
            rates: list[float] = []
            for turn in range(_TURNS):
                alone = write(store, f"alone-{count}-{way}-{turn}", seconds)[1]
                store.engine.execute("UPDATE session SET last = 0")  # none of these goes on
                subscribers = Subscribers(url, count, way)
                written, rate = write(store, f"told-{count}-{way}-{turn}", seconds)
                told = subscribers.end(written)
                rates.append(rate / alone)
                shown = {"apart": "", "deaf": ", that do not listen", "shared": f", on {_PROCESSES} feeds"}[way]
                say(f"subscribers {count}{shown}: {told}; batches are stored at {rate / alone:.2f} of the rate without them")
            say(f"  of {_TURNS} turns: {statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})")


def main() -> int:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=1000, help="subscribers that share the feed of their process")
    parser.add_argument("--apart", type=int, default=40, help="subscribers with connections of their own")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--subscribe", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--way", default="apart", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.subscribe:
        subscribe(chosen.subscribe, chosen.many, chosen.way)
        return 0
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    postgresql_server.begin_run()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            place: Path = postgresql_server.server({**DURABLE, "max_connections": str(3 * chosen.apart + 50)})
            measure(postgresql_server.url(place, "postgres"), chosen.many, chosen.apart, chosen.seconds)
    finally:
        postgresql_server.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
