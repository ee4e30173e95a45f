"""Ship records to a server over a bad network while server, shippers and recorders are killed; tell what was lost or doubled.

Recorders write logs, and note each record that was acknowledged. Two shippers bring each log through a proxy on the loopback
that cuts connections, in the middle of a message too, swallows what is said, delays it or takes no connection. Then all faults
end, the rest is shipped, and what the server holds is compared with what was acknowledged:

    python -m bench.chaos [--seconds 60] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from bench.servers import DURABLE, say
from ctxmgr.history.shipper import known_progress
from ctxmgr.log.reader import read
from ctxmgr.store import open_store
from tests import postgresql_server

RECORDERS = 2
_RECORDER = """
import sys, time
from ctxmgr.recorder import Recorder
recorder, number = Recorder(sys.argv[1], session=sys.argv[2], episode=False), 0
with open(sys.argv[3], "a", buffering=1) as noted:
    while True:
        entry = recorder.entry("coder", "Bash", {"command": f"make {number}", "text": "lorem ipsum " * 40})
        print(entry, file=noted)
        recorder.result(entry, output=f"done {number}")
        number += 1
        time.sleep(0.004)
"""
MODES = ("pass", "cut", "half", "hole", "delay", "refuse")


class Proxy:
    """A proxy on the loopback before a socket of the server, with the fault that `mode` names."""

    def __init__(self, behind: Path) -> None:
        self.mode = "pass"
        self.done: Counter[str] = Counter()
        self._behind = str(behind)
        self.open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def turn(self, mode: str) -> None:
        """Change the fault; what was swallowed is not said later, so its connections end with it."""
        if mode == "cut" or self.mode == "hole":
            for each in list(self.open):
                self.end(each)
        self.mode = mode

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                if self.mode == "refuse":
                    raise OSError
                server.connect(self._behind)
            except OSError:
                self.done["refused"] += 1
                client.close()
                continue
            self.open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if self.mode == "hole":
                    self.done["swallowed"] += 1
                    continue
                if self.mode == "delay":
                    time.sleep(0.2)
                if self.mode == "half" and len(data) > 1:
                    other.sendall(data[: len(data) // 2])
                    self.done["cut in a message"] += 1
                    break
                other.sendall(data)
        self.end(one)
        self.end(other)

    def end(self, each: socket.socket) -> None:
        """Cut a connection."""
        self.open.discard(each)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


class Run:
    """Recorders and shippers of one run, in a folder of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.logs = [folder / f"run{number}.jsonl" for number in range(RECORDERS)]
        self.sessions = 0
        self.recorders: list[subprocess.Popen[Any]] = []
        self.shippers: list[subprocess.Popen[Any]] = []

    def record(self, number: int) -> subprocess.Popen[Any]:
        """Start a recorder that goes on with a log, in a session of its own."""
        self.sessions += 1
        session = f"session-{self.sessions}"
        return subprocess.Popen([sys.executable, "-c", _RECORDER, self.logs[number], session, self.folder / f"{session}.ids"])

    def ship(self, *, follow: bool = True) -> subprocess.Popen[Any]:
        """Start a shipper of all logs."""
        ways = ["--follow", "--every", "0.1"] if follow else []
        with open(self.folder / "told", "ab") as told:
            return subprocess.Popen(
                [sys.executable, "-m", "ctxmgr", "ship", *map(str, self.logs), *ways, "--store", self.url, "--json"],
                stdout=subprocess.DEVNULL, stderr=told,
            )  # fmt: skip

    def end(self) -> None:
        """Kill what still runs."""
        for each in (*self.recorders, *self.shippers):
            each.kill()
            each.wait()


def kill_server(place: Path) -> None:
    """Kill the server without a word and start it again."""
    os.kill(int((place / "data" / "postmaster.pid").read_text().split("\n", 1)[0]), signal.SIGKILL)
    for _ in range(60):
        time.sleep(0.5)
        with suppress(AssertionError):
            postgresql_server.start(place, DURABLE)
            return
    raise RuntimeError("the server did not come back")


def disturb(run: Run, proxy: Proxy, place: Path, seconds: float, draw: random.Random) -> Counter[str]:
    """Do harm for so long; return how often what was done."""
    done: Counter[str] = Counter()
    until, next_kill = time.monotonic() + seconds, time.monotonic() + 8
    while time.monotonic() < until:
        proxy.turn(draw.choice(MODES))
        done[proxy.mode] += 1
        time.sleep(draw.uniform(0.2, 1.5))
        proxy.turn("pass")
        time.sleep(draw.uniform(0.5, 2.0))  # time in which something can be shipped at all
        if time.monotonic() > next_kill:
            next_kill = time.monotonic() + draw.uniform(2, 5)
            what = draw.choice(("shipper", "shipper", "recorder", "server", "all three"))
            done[f"{what} killed"] += 1
            done["kills with something left to ship"] += any(each.lag for each in known_progress())
            number = draw.randrange(2)
            killed = [run.recorders[number]] if what in ("recorder", "all three") else []
            killed += [run.shippers[number]] if what in ("shipper", "all three") else []
            for each in killed:
                each.kill()
            if what in ("server", "all three"):
                kill_server(place)
            for each in killed:
                each.wait()
            if run.recorders[number].poll() is not None:
                run.recorders[number] = run.record(number)
            if run.shippers[number].poll() is not None:
                run.shippers[number] = run.ship()
    proxy.turn("pass")
    return done


def arrival(run: Run) -> float:
    """Return how long it takes until what the logs hold now is shipped; they go on growing."""
    sizes, began = {str(log): log.stat().st_size for log in run.logs}, time.monotonic()
    while any(each.done < sizes[each.source] for each in known_progress()):
        time.sleep(0.05)
    return time.monotonic() - began


def caught_up(run: Run, proxy: Proxy, seconds: float) -> None:
    """Tell how long it takes to ship what was recorded while the server was away for so long."""
    arrival(run)  # what earlier faults left
    proxy.turn("refuse")
    for each in list(proxy.open):
        proxy.end(each)
    time.sleep(seconds)
    proxy.turn("pass")
    took = arrival(run)
    say(
        f"the server was away for {seconds:g} s: what was left was there {took:.1f} s after it came back ({took / seconds:.2f})"
    )


def compared(run: Run, url: str) -> bool:
    """Compare what the server holds with what was acknowledged and with the logs; tell it."""
    acknowledged = {name for path in run.folder.glob("*.ids") for name in path.read_text().split("\n")[:-1]}
    with closing(open_store(url, readonly=True)) as store:
        held = [str(row[0]) for row in store.engine.query("SELECT id FROM record WHERE kind = 'entry' ORDER BY seq")]
        indexes = store.engine.query("SELECT session, count(*), max(idx) + 1, count(DISTINCT idx) FROM entry GROUP BY session")
        disorder = 0
        for log in run.logs:
            wanted: dict[str, list[str]] = {}
            for line in read(str(log), 0):
                if line.record["kind"] == "entry":
                    wanted.setdefault(str(line.record["session"]), []).append(str(line.record["id"]))
            for session, names in wanted.items():
                key = store.sessions.key(session)
                found = [] if key is None else [str(each["id"]) for each in store.sessions.records(key, ("entry",))]
                disorder += found != names
        examined = store.examine()
    lost, doubled = len(acknowledged - set(held)), len(held) - len(set(held))
    gaps = sum(1 for _, count, last, different in indexes if not count == last == different)
    say(
        f"acknowledged {len(acknowledged):,}, on the server {len(held):,}: lost {lost}, doubled {doubled}, "
        f"sessions with gaps {gaps}, in another order {disorder}, "
        f"damaged {len(examined.damaged)} of {examined.records:,} records"
    )
    return not (lost or doubled or gaps or disorder or examined.damaged)


def main() -> int:
    """Start all, disturb it, let it catch up, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args()
    say(f"seed {chosen.seed}, {chosen.seconds:g} s")
    postgresql_server.begin_run()
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            place = postgresql_server.server(DURABLE)
            straight = postgresql_server.url(place, "postgres")
            open_store(straight, create=True).close()
            proxy = Proxy(place / ".s.PGSQL.5432")
            run = Run(Path(folder), f"postgresql://tester@127.0.0.1:{proxy.port}/postgres")
            try:
                run.recorders = [run.record(number) for number in range(RECORDERS)]
                time.sleep(1)
                run.shippers = [run.ship(), run.ship()]
                done = disturb(run, proxy, place, chosen.seconds, random.Random(chosen.seed))
                caught_up(run, proxy, min(60.0, max(5.0, chosen.seconds / 10)))
            finally:
                run.end()
            with closing(open_store(straight, readonly=True)) as store:
                say(f"on the server when the faults end: {store.engine.query('SELECT count(*) FROM record')[0][0]:,} records")
            began = time.monotonic()
            code = run.ship(follow=False).wait()
            say(f"done: {', '.join(f'{what} {count}' for what, count in sorted({**done, **proxy.done}.items()))}")
            told = (run.folder / "told").read_text()
            say(f"tries that failed {told.count('the next try')}, recovered {told.count('shipping again')}, "
                f"the rest shipped in {time.monotonic() - began:.1f} s (exit {code})")  # fmt: skip
            return 0 if compared(run, straight) and code == 0 else 1
    finally:
        postgresql_server.end_run()


if __name__ == "__main__":
    sys.exit(main())
