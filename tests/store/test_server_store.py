"""A store on a server: appends to several sessions side by side, and places that readers and the index may rely on."""

from __future__ import annotations

from typing import cast

from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.types.query import Filters
from tests.builders import write


def engine_of(store: Store) -> PostgresqlEngine:
    """Return the engine of a store on a server."""
    return cast("PostgresqlEngine", store.engine)


def settled(store: Store) -> int:
    """Return the place behind which something may still appear."""
    return int(store.engine.query("SELECT settled()")[0][0])


def test_an_append_does_not_wait_for_one_to_another_session(server_store: Store, server_url: str) -> None:
    """While one transaction holds its session, another session is written; what is read of all stops before the first."""
    write(server_store, "first", ["Bash:a"])
    other = open_store(server_url)
    known = settled(server_store)
    with engine_of(server_store).appending():
        write(server_store, "first", ["Bash:b"])
        write(other, "second", ["Bash:c"])
        assert other.sessions.count() == 2
        assert settled(other) == known
    assert settled(other) == server_store.engine.query("SELECT max(seq) FROM record")[0][0]
    other.close()


def test_indexing_stops_before_what_is_not_committed(server_store: Store, server_url: str) -> None:
    """An append goes on while another session is indexed; what it writes is found by reading until it is indexed too."""
    write(server_store, "first", ["Bash:needle one"])
    other = open_store(server_url)
    with engine_of(server_store).appending():
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
