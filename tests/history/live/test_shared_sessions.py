"""Following all sessions of a server: alone, shared out among several, and taken over from one that fell silent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import cast

import pytest

from ctxmgr.errors import StorageFailed
from ctxmgr.history.live import shared_sessions
from ctxmgr.history.live.record_sources import Follower
from ctxmgr.history.live.shared_sessions import Feed, SharedSessions
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.repositories.bookkeeping import ServerLeases
from ctxmgr.store.repositories.queries import read_records_after
from tests.builders import entry, write
from tests.history.live_world import clock_at, told
from tests.store.divided import Divided

LOOP = ["Bash:ls -> same"] * 3
NAMES = ("a", "b", "c", "d")


@pytest.fixture
def other(server_store: Store, server_url: str) -> Iterator[Store]:
    """Open the same store as another machine does."""
    opened = open_store(server_url)
    yield opened
    opened.close()


def followed(source: SharedSessions) -> Follower:
    """Show what a source gives to the detectors, at a moment soon after it was recorded."""
    return Follower(source, clock=clock_at(8))


def test_every_session_that_goes_on_is_followed(server_store: Store) -> None:
    """Findings of all sessions are told, each once; what ended long ago is not read."""
    write(server_store, "past", LOOP)
    watched = followed(SharedSessions(server_store, share=False))
    watched.tick()
    for name in NAMES:
        write(server_store, name, LOOP)
    assert sorted(sight.session for sight in watched.tick()) == list(NAMES)
    for name in NAMES:
        write(server_store, name, LOOP[:1])
    assert told(watched.tick()) == []


def test_only_what_changed_is_read(server_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look costs what changed since the last one, not all sessions that are followed."""
    source, read = SharedSessions(server_store, share=False), list[int]()
    source.poll()
    for name in NAMES:
        write(server_store, name, LOOP[:1])

    def counted(engine: Engine, key: int, seq: int) -> Iterator[tuple[int, Record]]:
        read.append(key)
        return read_records_after(engine, key, seq)

    monkeypatch.setattr(shared_sessions, "read_records_after", counted)
    assert {record["session"] for record in source.poll().records} == set(NAMES)
    assert len(read) == len(NAMES)
    read.clear()
    write(server_store, "c", LOOP[:1])
    assert {record["session"] for record in source.poll().records} == {"c"}
    assert list(source.poll().records) == []
    assert len(read) == 1


def test_what_appears_late_is_read(server_store: Store, other: Store) -> None:
    """What was still being written when others were read is read when it has come, each record once."""
    source = SharedSessions(other, share=False)
    source.poll()
    write(server_store, "a", LOOP[:1])
    seen = list(source.poll().records)
    with cast("PostgresqlEngine", server_store.engine).appending():
        write(server_store, "a", LOOP[:1])
        third = open_store(server_store.engine.path)
        write(third, "b", LOOP[:1])
        third.close()
        assert {record["session"] for record in source.poll().records} == {"b"}
    late = list(source.poll().records)
    assert {record["session"] for record in late} == {"a"}
    assert not {str(record["id"]) for record in late if "id" in record} & {str(each["id"]) for each in seen if "id" in each}
    assert list(source.poll().records) == []


def test_sessions_are_shared_out(server_store: Store, other: Store) -> None:
    """Of two that watch together each follows half, and every finding is told by one of them."""
    one, two = (followed(SharedSessions(each, share=True)) for each in (server_store, other))
    for each in (one, two):
        each.tick()
    for name in NAMES:
        write(server_store, name, LOOP)
    first, second = one.tick(), two.tick()
    assert len(first) == len(second) == 2
    assert sorted(sight.session for sight in (*first, *second)) == list(NAMES)


def test_who_comes_later_gets_a_share(server_store: Store, other: Store) -> None:
    """One that follows all gives half away when another joins, and forgets it; nothing that was over is told again."""
    one = followed(SharedSessions(server_store, share=True))
    one.tick()
    for name in NAMES:
        write(server_store, name, [*LOOP, "Bash:ls -> new"])
    one.tick()
    assert len(one.counts()) == 4
    two = followed(SharedSessions(other, share=True))
    two.tick()
    for name in NAMES:
        write(server_store, name, ["Read:x"])
    sights = [*one.tick(), *two.tick()]  # the first learns of the other one, and gives back
    assert (len(one.counts()), len(two.counts())) == (2, 2)
    assert not {*one.counts()} & {*two.counts()}
    assert told(sights) == []


def test_sessions_of_one_that_fell_silent_are_taken_over(
    server_store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When its leases run out the others follow its sessions too, from their beginning; it finds that it lost them."""
    monkeypatch.setattr(shared_sessions, "LEASE", 0.6)
    one, two = (followed(SharedSessions(each, share=True)) for each in (server_store, other))
    for each in (one, two):
        each.tick()
    for name in NAMES:
        write(server_store, name, ["Bash:ls -> same"] * 2)
    for each in (one, two):
        each.tick()
    assert len(one.counts()) == len(two.counts()) == 2
    until = time.monotonic() + 10
    while len(two.counts()) < 4 and time.monotonic() < until:
        two.tick()
        time.sleep(0.1)
    assert sorted(two.counts()) == list(NAMES)
    for name in NAMES:
        write(server_store, name, ["Bash:ls -> same"])
    assert sorted(sight.session for sight in two.tick()) == list(NAMES)
    assert told(one.tick()) == []


def test_who_leaves_in_order_leaves_its_sessions_at_once(server_store: Store, other: Store) -> None:
    """One that ends gives its leases back, so that nobody waits for their end."""
    first = SharedSessions(server_store, share=True)
    one, two = followed(first), followed(SharedSessions(other, share=True))
    for each in (one, two):
        each.tick()
    for name in NAMES:
        write(server_store, name, LOOP)
    for each in (one, two):
        each.tick()
    first.close()
    two.tick()
    assert sorted(two.counts()) == list(NAMES)


def _leases(store: Store) -> set[str]:
    return {str(name) for (name,) in store.engine.query("SELECT session FROM lease")}


def test_watchers_leave_no_lease_behind(server_store: Store, other: Store) -> None:
    """Rows go with the watcher that made them, or with the next one where it was killed; those of recoveries stay."""
    killed, one = SharedSessions(other, share=True), SharedSessions(server_store, share=True)
    killed.poll()
    write(server_store, "a", LOOP)
    assert server_store.leases.take("a", "a recovery", 0.0, 30.0)
    server_store.leases.release("a", "a recovery")
    killed.poll()
    before = _leases(server_store)
    assert len(before) == 3
    server_store.engine.execute("UPDATE lease SET expires = 1 WHERE session <> 'a'")
    one.poll()
    held = _leases(server_store)
    assert len(held) == 2
    assert held & before == {"a"}
    one.close()
    assert _leases(server_store) == {"a"}


def test_who_leaves_a_silent_server_leaves_at_once(server_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that can't be given back is asked for once, and does not hide why the watch ends."""
    asked: list[str] = []

    def fail(_self: ServerLeases, session: str, _holder: str) -> None:
        asked.append(session)
        raise StorageFailed("the connection was lost", "")

    write(server_store, "a", LOOP)
    source = SharedSessions(server_store, share=True)
    source.poll()
    monkeypatch.setattr(ServerLeases, "release", fail)
    source.close()
    assert len(asked) == 1


def test_a_writer_of_an_earlier_grant_watches_too() -> None:
    """Whoever may not remove leases yet watches all the same; who is granted now leaves none."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    with closing(administer(made.url("owner"))) as owner:
        owner.init()
        for role in ("alice", "bob"):
            owner.grant(made.roles[role], role)
    with made.sql("owner") as connection:
        connection.execute(f"REVOKE DELETE ON ctxmgr.lease FROM {made.roles['alice']}".encode())
    for role, left in (("alice", 2), ("bob", 0)):
        with closing(made.open(role)) as store:
            with closing(SharedSessions(store, share=True)) as source:
                source.poll()
                write(store, "a", LOOP)
                assert len(list(source.poll().records)) == 2 * len(LOOP)
            assert len(_leases(store)) == left


def test_whoever_waits_is_woken(server_store: Store, other: Store) -> None:
    """A notification ends the wait long before its time; it is heard by a connection of its own."""
    threading.Timer(0.5, other.tell).start()
    began = time.monotonic()
    server_store.wait(30.0)
    assert time.monotonic() - began < 15
    server_store.wait(0.01)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60  # a bound that a busy machine keeps, no measure
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def _recorded(store: Store, session: str, numbers: range) -> list[str]:
    store.append([entry(session, number) for number in numbers])
    return [str(entry(session, number)["id"]) for number in numbers]


def test_many_subscribers_of_a_process_share_what_is_read(server_store: Store, server_url: str) -> None:
    """Each is given every record once and in order, those before it came too, over as many connections as one needs."""
    seen: dict[str, list[str]] = {f"s{number}": [] for number in range(20)}
    wanted: list[str] = []

    def join(name: str) -> None:
        feed.subscribe(lambda record: seen[name].append(str(record["id"])))

    def given(name: str) -> bool:
        return len(seen[name]) == len(wanted)

    with closing(Feed(server_url, every=0.1)) as feed:
        for name in list(seen)[:19]:
            join(name)
        for numbers in (range(3), range(3, 5)):
            wanted += _recorded(server_store, "a", numbers)
            _until(lambda: given("s0"))
        join("s19")
        wanted += _recorded(server_store, "b", range(2))
        _until(lambda: given("s19"))
        ((connections,),) = server_store.engine.query(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        )
        assert connections <= 5  # three of the feed: for statements, for a stream, for listening
    assert all(each == wanted for each in seen.values())


def test_a_feed_gives_what_is_recorded_before_its_first_look(
    server_store: Store, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is recorded once a feed is open is given, though it tells of long ago and its thread begins late."""
    seen, wanted, settled = list[str](), list[str](), shared_sessions.settled_place

    def late(engine: Engine) -> int:
        if threading.current_thread() is not threading.main_thread() and not wanted:
            wanted.extend(_recorded(server_store, "a", range(2)))
        return settled(engine)

    monkeypatch.setattr(shared_sessions, "settled_place", late)
    with closing(Feed(server_url, every=0.05)) as feed:
        feed.subscribe(lambda record: seen.append(str(record["id"])))
        _until(lambda: bool(wanted) and seen == wanted)


@pytest.mark.slow
def test_a_feed_goes_on_behind_a_pooler(pooled: str, server_store: Store) -> None:
    """There it hears of nothing, and looks each second: every record is given once, whoever tells of it."""
    seen, wanted = list[str](), list[str]()

    def given() -> bool:
        return len(seen) == len(wanted)

    with closing(Feed(pooled)) as feed:
        feed.subscribe(lambda record: seen.append(str(record["id"])))
        for number in range(3):
            wanted += _recorded(server_store, "a", range(2 * number, 2 * number + 2))
            server_store.tell()
            _until(given)
    assert seen == wanted
    assert feed.error is None


def test_a_feed_ends_at_once(server_store: Store, server_url: str) -> None:
    """Closing one ends its wait for something new, however long that is."""
    seen = list[str]()
    feed = Feed(server_url, every=600.0)
    feed.subscribe(lambda record: seen.append(str(record["id"])))
    server_store.tell()
    wanted = _recorded(server_store, "a", range(1))

    def given() -> bool:
        server_store.tell()
        return seen == wanted

    _until(given)
    ended = threading.Thread(target=feed.close, daemon=True)
    ended.start()
    ended.join(60)  # a bound that a busy machine keeps, a tenth of the wait
    assert not ended.is_alive()


def test_a_feed_goes_on_over_a_lost_connection(server_store: Store, server_url: str) -> None:
    """When all connections were ended, what follows is given, and nothing twice; who fails is told and left alone."""
    seen, wanted, failed = list[str](), list[str](), list[Exception]()

    def fail(record: Record) -> None:
        raise ValueError(record["id"])

    def given() -> bool:
        return len(seen) == len(wanted)

    with closing(Feed(server_url, every=0.05, failed=lambda _receive, error: failed.append(error))) as feed:
        feed.subscribe(fail)
        feed.subscribe(lambda record: seen.append(str(record["id"])))
        for number in range(4):
            wanted += _recorded(server_store, "a", range(number, number + 1))
            _until(given)
            server_store.engine.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'ctxmgr' AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        _until(lambda: feed.error is None)
    assert seen == wanted
    assert [str(error) for error in failed] == wanted[:1]
