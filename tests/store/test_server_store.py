"""A store on a server: appends to several sessions side by side, and places that readers and the index may rely on."""

from __future__ import annotations

import threading
from typing import cast

from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.types.query import Filters
from tests.builders import entry, event, write


def _engine(store: Store) -> PostgresqlEngine:
    return cast("PostgresqlEngine", store.engine)


def _settled(store: Store) -> int:
    return int(store.engine.query("SELECT settled()")[0][0])


def test_an_append_does_not_wait_for_one_to_another_session(server_store: Store, server_url: str) -> None:
    """While one transaction holds its session, another session is written; what is read of all stops before the first."""
    write(server_store, "first", ["Bash:a"])
    other = open_store(server_url)
    known = _settled(server_store)
    with _engine(server_store).appending():
        write(server_store, "first", ["Bash:b"])
        write(other, "second", ["Bash:c"])
        assert other.sessions.count() == 2
        assert _settled(other) == known
    assert _settled(other) == server_store.engine.query("SELECT max(seq) FROM record")[0][0]
    other.close()


def test_whoever_reads_behind_what_is_settled_misses_nothing(server_store: Store, server_url: str) -> None:
    """A reader that follows all sessions by one place, while many write, sees each record once."""
    done = threading.Event()

    def append(name: str) -> None:
        own = open_store(server_url)
        for number in range(25):
            own.append([entry(name, number, "Bash", {"command": name})])
            if number % 7 == 0:
                with _engine(own).appending():
                    own.append([event(name, number, "message", {"text": "a"})])
                    own.append([event(name, 100 + number, "message", {"text": "b"})])
        own.close()

    threads = [threading.Thread(target=append, args=(f"s{number}",)) for number in range(4)]
    seen: list[int] = []

    def follow() -> None:
        own, place = open_store(server_url), 0
        while True:
            last = done.is_set()
            upto = _settled(own)
            rows = own.engine.query("SELECT seq FROM record WHERE seq > :low AND seq <= :high ORDER BY seq", {
                "low": place, "high": upto,
            })  # fmt: skip
            seen.extend(int(row[0]) for row in rows)
            place = max(place, upto)
            if last:
                own.close()
                return

    reader = threading.Thread(target=follow)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert seen == [int(row[0]) for row in server_store.engine.query("SELECT seq FROM record ORDER BY seq")]
    assert len(seen) == 4 * (25 + 8)
    found = server_store.examine()
    assert (found.records, found.damaged) == (132, [])


def test_indexing_stops_before_what_is_not_committed(server_store: Store, server_url: str) -> None:
    """An append goes on while another session is indexed; what it writes is found by reading until it is indexed too."""
    write(server_store, "first", ["Bash:needle one"])
    other = open_store(server_url)
    with _engine(server_store).appending():
        write(server_store, "first", ["Bash:needle two"])
        write(other, "second", ["Bash:needle three"])
        assert other.index()
        assert not other.index()
        assert other.count_unindexed() > 0
    for indexed in (False, True):
        found, total, _ = other.queries.search(None, Filters(), "all", "needle", 0, 10)
        assert (len(found), total) == (3, 3), indexed
        other.index()
    assert other.count_unindexed() == 0
    other.close()
