"""Leases on a server: one holder at a time by the server's clock, and nothing written under one that is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import cast

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.store.repositories.bookkeeping import ServerLeases
from tests.builders import write


def test_a_lease_goes_by_the_servers_clock(server_store: Store) -> None:
    """A caller whose clock is an hour wrong can neither take a lease that holds nor keep one longer."""
    assert server_store.leases.take("s", "one", time.time(), 30.0)
    assert not server_store.leases.take("s", "two", time.time() + 3600, 30.0)
    assert not server_store.leases.take("s", "two", time.time() - 3600, 30.0)
    assert server_store.leases.holds("s", "one", server_store.clock())
    assert abs(server_store.clock() - time.time()) < 60


def test_a_lease_that_ran_out_is_somebody_elses(server_store: Store) -> None:
    """What is written under a lease is written by its holder alone: who was paused for too long learns that it is gone."""
    assert server_store.leases.take("s", "paused", server_store.clock(), 0.1)
    with server_store.leases.hold("s", "paused", server_store.clock) as kept:
        assert kept
    time.sleep(0.12)
    with server_store.leases.hold("s", "paused", server_store.clock) as kept:
        assert not kept
    assert server_store.leases.take("s", "next", server_store.clock(), 30.0)
    server_store.leases.release("s", "paused")
    assert server_store.leases.holds("s", "next", server_store.clock())


def test_one_of_many_contenders_gets_a_lease(server_store: Store, server_url: str) -> None:
    """Of contenders at once one alone is given the lease."""
    won: list[str] = []

    def contend(name: str) -> None:
        own = open_store(server_url)
        if own.leases.take("s", name, own.clock(), 30.0):
            won.append(name)
        own.close()

    threads = [threading.Thread(target=contend, args=(f"h{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


@pytest.mark.slow
def test_a_lease_changes_hands_no_sooner_than_it_ends(server_store: Store, server_url: str) -> None:
    """Contenders with wrong clocks: each win has a greater number than the one before, and comes a whole lease later."""
    wins: list[tuple[int, float]] = []
    until = time.monotonic() + 2.0

    def contend(name: str, skew: float) -> None:
        own = open_store(server_url)
        leases = cast("ServerLeases", own.leases)
        while time.monotonic() < until:
            if leases.take("s", name, time.time() + skew, 0.2):
                ((began,),) = own.engine.query("SELECT expires FROM lease WHERE holder = :name", {"name": name})
                wins.append((leases.fence("s", name), float(began) - 0.2))
                time.sleep(0.25)  # too long: by then it is somebody else's
        own.close()

    threads = [threading.Thread(target=contend, args=(f"h{number}", (number % 3 - 1) * 3600.0)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wins.sort()
    assert [fence for fence, _ in wins] == list(range(1, len(wins) + 1))
    assert len(wins) > 3
    assert min(later - earlier for (_, earlier), (_, later) in pairwise(wins)) >= 0.2


_HOLDER = """
import sys
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import open_store
from ctxmgr.store.engine import postgresql
from tests.builders import entry
timeout = "idle_in_transaction_session_timeout = '{}s'"
assert timeout.format(60) in postgresql._BEGIN
postgresql._BEGIN = postgresql._BEGIN.replace(timeout.format(60), timeout.format(1))
store, stopped = open_store(sys.argv[1]), sys.argv[2]
def ready():
    print("ready", flush=True)
    sys.stdin.readline()
assert store.leases.take("s", "paused", 0.0, 0.5)
if stopped == "before it writes":
    ready()
try:
    with store.leases.hold("s", "paused", store.clock) as kept:
        if stopped == "while it writes":
            ready()
        if kept:
            store.append([entry("s", 1, "Bash", {"command": "stale"})])
        print("written" if kept else "refused", flush=True)
except CtxmgrError as error:
    print("refused", error, flush=True)
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("stopped", ["before it writes", "while it writes"])
def test_a_paused_holder_writes_nothing_when_it_goes_on(server_store: Store, server_url: str, stopped: str) -> None:
    """A holder is stopped, another takes the lease with a greater number, and what the first wanted to write is refused."""
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, server_url, stopped], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        holder.send_signal(signal.SIGSTOP)
        ((first,),) = server_store.engine.query("SELECT fence FROM lease WHERE session = 's'")
        while not server_store.leases.take("s", "next", 0.0, 30.0):
            time.sleep(0.05)
        assert cast("ServerLeases", server_store.leases).fence("s", "next") > int(first)
        holder.send_signal(signal.SIGCONT)
        told, _ = holder.communicate("go\n", timeout=30)
    finally:
        holder.kill()
        holder.wait()
    assert told.startswith("refused")
    assert server_store.sessions.count() == 0
    assert server_store.leases.holds("s", "next", 0.0)


def test_a_lease_won_again_is_not_the_one_before(server_store: Store, server_url: str) -> None:
    """A holder whose lease ran out and was won again, by whoever has its name, writes nothing under the former number."""
    assert server_store.leases.take("s", "me", 0.0, 0.05)
    time.sleep(0.06)
    other = open_store(server_url)
    assert other.leases.take("s", "me", 0.0, 30.0)
    with server_store.leases.hold("s", "me", server_store.clock) as kept:
        assert not kept
    server_store.leases.release("s", "me")
    assert other.leases.holds("s", "me", 0.0)
    other.close()


def test_nobody_takes_a_lease_while_something_is_written_under_it(server_store: Store, server_url: str) -> None:
    """What is written under a lease that ends meanwhile is there before the next holder has it."""
    other, order = open_store(server_url), list[str]()
    assert server_store.leases.take("s", "one", 0.0, 0.3)

    def take() -> None:
        while not other.leases.take("s", "two", 0.0, 30.0):
            time.sleep(0.01)
        order.append(f"taken with {other.sessions.count()}")

    thread = threading.Thread(target=take)
    with server_store.leases.hold("s", "one", server_store.clock) as kept:
        assert kept
        thread.start()
        time.sleep(0.5)
        write(server_store, "s", ["Bash:a"])
        order.append("written")
    thread.join()
    assert order == ["written", "taken with 1"]
    other.close()
