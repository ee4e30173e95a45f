"""Through a pooler in transaction mode, where the next statement may go over another connection; and what else is prepared.

The whole contract of a store is tried through it by ``pytest -m slow -k pooler``.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctxmgr.store import Store, administer, open_store
from ctxmgr.types.query import Filters
from tests import pgbouncer, postgresql_server
from tests.builders import entry, event, steps, write
from tests.store.divided import Divided

_LINE = re.compile(r"^(\S+) (\d+) LOG:  (statement|execute ([^:]+)): (.*)$")


def worked(store: Store, name: str) -> None:
    """Do with a store all that goes over the wire in another way."""
    write(store, name, ["Bash:a"] * 3)
    store.append([entry(name, 50, "Bash", {"command": "x"})])
    store.append([entry(name, 50, "Bash", {"command": "x"}), event(name, 1, "message", {"text": "hi"})])
    store.append(steps("both", ["Bash:a"]), on_conflict="keep", doubles=True)
    with store.engine.transaction():
        store.append([event(name, 2, "message", {"text": "hi"})])
    store.index()
    key = store.sessions.key(name)
    assert key is not None
    assert store.queries.entries(key, Filters(), 0, None)[1] == 4
    assert store.queries.search(key, Filters(), "all", "hi", 0, 10)[1] == 2
    assert len(list(store.sessions.records(key))) == 9
    assert store.leases.take(name, "me", 0.0, 30.0)
    with store.leases.hold(name, "me", store.clock) as kept:
        assert kept
        store.append([event(name, 3, "message", {"text": "hi"})])
    store.leases.release(name, "me")
    store.tell()
    store.wait(0.01)
    assert store.examine().damaged == []
    store.count_unindexed()


def test_many_clients_share_two_connections(pooled: str) -> None:
    """Six clients at once over two connections: each finds what it wrote, and nothing of a connection is another's."""
    failed: list[BaseException] = []

    def client(name: str) -> None:
        try:
            with closing(open_store(pooled)) as store:
                worked(store, name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=client, args=(f"s{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with closing(open_store(pooled)) as store:
        assert store.sessions.count() == 7
        assert store.examine().damaged == []


def test_a_pooler_passes_no_team_on() -> None:
    """Two roles of two teams take turns behind a pooler with one connection each; neither ever gets the other's."""
    if not pgbouncer.can_start():
        pytest.skip(pgbouncer.MISSING)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    divided = Divided(worker)
    with closing(administer(divided.url("owner"))) as owner:
        owner.init()
        owner.grant(divided.roles["alice"], "one")
        owner.grant(divided.roles["bob"], "two")
    port = pgbouncer.start(worker, 1, divided.roles.values())
    stores = {name: open_store(pgbouncer.through(divided.url(name), port)) for name in ("alice", "bob")}
    found: dict[str, set[object]] = {name: set() for name in stores}
    for number in range(10):
        for name, store in stores.items():
            store.append([entry("s", number, "Bash", {"command": name})])
            # What one says in the other's place is the connection's alone, and it names no team.
            store.engine.execute("SELECT set_config('ctxmgr.team', '1', FALSE), set_config('ctxmgr.team', '2', FALSE)")
            found[name] |= set(store.engine.query("SELECT pg_backend_pid(), ctxmgr.team()"))
            assert [each["input"]["command"] for each in store.sessions.records(None, ("entry",))] == [name] * (number + 1)
    assert [len(each) for each in found.values()] == [1, 1]
    assert found["alice"].isdisjoint(found["bob"])
    for store in stores.values():
        assert store.examine().damaged == []
        store.close()


@pytest.fixture
def logged(server_url: str) -> Iterator[tuple[str, Path, str]]:
    """Let the server write down every statement of the test's database; return its URL, that log, and a name for the place."""
    database = re.findall(r"/(test_\w+)\?", server_url)[0]
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {database} SET log_statement = 'all'".encode())
        yield server_url, postgresql_server.server() / "server.log", database
        admin.execute(f"ALTER DATABASE {database} RESET log_statement".encode())


def sent(log: Path, database: str, start: int) -> dict[str, list[tuple[str, str]]]:
    """Return, by connection of a database, (name of the prepared statement or "", statement) in the order of sending."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with open(log, encoding="utf-8", errors="replace") as lines:
        lines.seek(start)
        for line in lines:
            told = _LINE.match(line)
            if told is not None and told[1] == database:
                found[told[2]].append((told[4] or "", told[5]))
    return found


def lasting(statements: list[tuple[str, str]]) -> list[str]:
    """Return what one connection was told that outlasts its transactions."""
    faults: list[str] = []
    within = False
    for prepared, statement in statements:
        begins = statement.startswith("BEGIN")
        if prepared not in ("", "<unnamed>") or re.match(r"(PREPARE|LISTEN|DECLARE .* WITH HOLD|CREATE TEMP)", statement):
            faults.append(statement)
        if re.search(r"(^|; ?)SET (?!LOCAL)", statement) or re.search(r"set_config\((?!.*(TRUE|true)\))", statement):
            faults.append(statement)
        if "SET LOCAL" in statement and not (within or begins):
            faults.append(statement)
        if "pg_advisory_lock" in statement:
            faults.append(statement)
        within = (within or begins) and not statement.startswith(("COMMIT", "ROLLBACK"))
    return faults


def test_nothing_is_set_outside_of_a_transaction(logged: tuple[str, Path, str]) -> None:
    """Of all that the server hears nothing outlasts a transaction; who waits for news listens on its own connection."""
    url, log, database = logged
    start = log.stat().st_size
    with closing(open_store(url, create=True)) as store:
        worked(store, "s")
    time.sleep(0.1)
    statements = sent(log, database, start)
    assert sum(map(len, statements.values())) > 60
    assert any("SET LOCAL" in statement for told in statements.values() for _, statement in told)
    listening = [told for told in statements.values() if any(each.startswith("LISTEN") for _, each in told)]
    assert [len(told) for told in listening] == [2]  # the name of the channel, and LISTEN
    assert {fault for told in statements.values() if told not in listening for fault in lasting(told)} == set()


@pytest.mark.parametrize(
    "told",
    [
        [("", "SET search_path = x")], [("", "SET LOCAL lock_timeout = '1s'")], [("ps_1", "SELECT 1")],
        [("", "BEGIN"), ("", "COMMIT"), ("", "SET LOCAL lock_timeout = '1s'")], [("", "SELECT set_config('a.b', 'c', FALSE)")],
        [("", "SELECT pg_advisory_lock(1)")], [("", "BEGIN; SET lock_timeout = 1")], [("", "LISTEN x")],
    ],
)  # fmt: skip
def test_what_outlasts_a_transaction_is_told(told: list[tuple[str, Any]]) -> None:
    """What is looked for in a server's log is found where it is."""
    assert lasting(told)


def test_nothing_is_prepared_behind_a_pooler(pooled: str, server_url: str) -> None:
    """However often it is appended through one, none of the connections that it shares has a statement of ours."""
    with closing(open_store(pooled)) as store:
        for number in range(20):
            store.append([entry("s", number)])
        store.append([entry("s", number) for number in range(20, 200)])
        assert store.engine.query(_PREPARED) == []
        assert store.examine().damaged == []


def test_nobody_listens_through_a_pooler(pooled: str, server_url: str) -> None:
    """Who waits behind one waits the whole time, and leaves none of the connections that it shares listening."""
    with closing(open_store(pooled)) as store, closing(open_store(server_url)) as direct:
        for _ in range(2):
            direct.tell()
            store.wait(0.01)
            direct.wait(0.01)
    channels = "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_listening_channels())"
    with psycopg.connect(pooled, prepare_threshold=None) as one, psycopg.connect(pooled, prepare_threshold=None) as other:
        found = dict(each.execute(channels).fetchall()[0] for each in (one, other))
    assert list(found.values()) == [0, 0]  # both of the pooler's connections


@pytest.mark.parametrize("together", [1, 9, 120])
def test_a_statement_that_a_pooler_lost_is_asked_unprepared(server_url: str, together: int) -> None:
    """Behind a pooler that looks like the server itself an append is done all the same, and from then on none is prepared."""
    with closing(open_store(f"{server_url}&prepare=1", create=True)) as store:
        for start in (0, 500, 1000):
            store.append([entry("s", start + each) for each in range(together)])
            store.engine.execute("DEALLOCATE ALL")
        assert store.engine.query(_PREPARED) == []
        assert store.sessions.entry_count(1) == 3 * together
        assert store.examine().damaged == []


# But for the wait for the disk, which an append on a busy machine may need.
_PREPARED = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'ctxmgr%append%' OR name = 'ctxmgr_open' ORDER BY name"


@pytest.mark.parametrize("said", ["", "&prepare=1"])
def test_appends_are_prepared_where_no_pooler_stands_between(server_url: str, said: str) -> None:
    """Once for a connection, also for the one that follows a lost one; a few appends are not worth it, unless it is said."""
    with closing(open_store(f"{server_url}{said}", create=True)) as store:
        store.append([entry("other", 1)])
        assert len(store.engine.query(_PREPARED)) == len(said) // 10
        for number in range(2, 6):
            store.append([entry("other", number)])
        for number in range(2):
            store.append([entry("s", 10 * number, "Bash", {"command": "x"})])
            store.append([entry("s", 10 * number + each, "Bash", {"command": "x"}) for each in range(1, 4)])
            names = [row[0] for row in store.engine.query(_PREPARED)]
            assert names == ["ctxmgr_append", *(["ctxmgr_append_one"] if number == 0 else []), "ctxmgr_open"]
            with psycopg.connect(server_url) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'ctxmgr' AND datname = current_database()"
                )
            assert store.sessions.entry_count(2) == 4 * (number + 1)
        assert store.examine().damaged == []
