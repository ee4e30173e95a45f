"""Functions on the server: places in the order of commits within a session, and what is settled of all sessions."""

from __future__ import annotations

import threading

import pytest

from ctxmgr.store import Store, open_store
from tests.builders import entry, event
from tests.store.test_server_store import engine_of, settled


def test_whoever_reads_behind_what_is_settled_misses_nothing(server_store: Store, server_url: str) -> None:
    """A reader that follows all sessions by one place, while many write, sees each record once."""
    done = threading.Event()

    def append(name: str) -> None:
        own = open_store(server_url)
        for number in range(25):
            own.append([entry(name, number, "Bash", {"command": name})])
            if number % 7 == 0:
                with engine_of(own).appending():
                    own.append([event(name, number, "message", {"text": "a"})])
                    own.append([event(name, 100 + number, "message", {"text": "b"})])
        own.close()

    threads = [threading.Thread(target=append, args=(f"s{number}",)) for number in range(4)]
    seen: list[int] = []

    def follow() -> None:
        own, place = open_store(server_url), 0
        while True:
            last = done.is_set()
            upto = settled(own)
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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"process":"p","n":1}', "p"), ('{"process":null}', None), ('{"process":""}', ""), ('{"a":{"process":"q"}}', None),
        ("{}", None), ("[1]", None), ("7", None), ('"text"', None), ("null", None), ("", None), ("{", None), ("nonsense", None),
    ],
)  # fmt: skip
def test_names_of_sqlite_mean_the_same(body: str, said: str | None, server_store: Store) -> None:
    """What a statement asks of a body is answered alike by both."""
    sqlite = open_store(":memory:", create=True)
    asked = (
        "SELECT CASE WHEN json_valid(:body) THEN json_extract(:body, '$.process') END, "
        "CASE WHEN json_valid(:body) THEN json_type(:body, '$.process') END"
    )
    for store in (server_store, sqlite):
        value, kind = store.engine.query(asked, {"body": body})[0]
        assert (value, kind == "text") == (said, said is not None)
    sqlite.close()


@pytest.mark.parametrize("body", ['{"process":"\\u0000"}', '{"process":"\\ud800"}', "[" * 10_000])
def test_json_that_postgresql_does_not_take_has_no_value(body: str, server_store: Store) -> None:
    """A body with a sign that no text of a server can hold is no reason for a statement to fail."""
    asked = "SELECT json_extract(:body, '$.process'), json_type(:body, '$.process') = 'text'"

    assert server_store.engine.query(asked, {"body": body})[0][0] is None
