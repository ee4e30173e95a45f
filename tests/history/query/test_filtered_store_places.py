"""What an agent sees where records go, or appear in another order than that of their places."""

from __future__ import annotations

from contextlib import closing
from typing import cast

from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.store import open_store
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.types.plain_records import build
from tests.builders import at, entry
from tests.history.seen_world import ME, rules

OWN = rules(("self", "write"))


def _seen(place: str) -> FilteredStore:
    return FilteredStore(open_store(place), ME, OWN)


def _ids(seen: FilteredStore, kind: str = "entry") -> list[str]:
    return [record["id"] for record in seen.sessions.records(None, (kind,))]


def test_what_appears_late_below_others_is_seen(server_url: str) -> None:
    """Records whose transaction ends after that of later ones are seen as soon as they are there, and counted once."""
    with closing(open_store(server_url, create=True)) as slow, closing(open_store(server_url)) as quick:
        slow.append([entry("a", 0, agent=ME), entry("a", 1, agent="hidden")])
        with closing(_seen(server_url)) as seen:
            with cast("PostgresqlEngine", slow.engine).appending():
                slow.append([entry("a", 2, agent=ME), entry("a", 3, agent="hidden")])
                quick.append([entry("b", 0, agent=ME), entry("b", 1, agent="hidden")])
                seen.append([entry("c", 0, agent=ME)])
                assert _ids(seen) == ["a-e0000", "b-e0000", "c-e0000"]
            seen.catch_up()
            assert _ids(seen) == ["a-e0000", "a-e0002", "b-e0000", "c-e0000"]
            assert seen.hidden == 3
            assert [seen.sessions.entry_count(seen.sessions.key(name) or 0) for name in "abc"] == [2, 1, 1]
            seen.catch_up()
            assert (seen.looked_at, seen.copied, seen.hidden) == (0, 0, 3)


def test_a_note_that_appears_before_what_it_waits_for_is_settled(server_url: str) -> None:
    """What waits while nothing is settled yet is judged when its entry comes, and counted once."""
    with closing(open_store(server_url, create=True)) as slow, closing(open_store(server_url)) as quick:
        slow.append([entry("a", 0, agent=ME)])
        with closing(_seen(server_url)) as seen:
            with cast("PostgresqlEngine", slow.engine).appending():
                slow.append([entry("a", 1, agent="hidden")])
                quick.append([build("note", "b", at(1), id="n", entries=["b-e0001", "b-e0002"], content="x")])
                seen.catch_up()
                quick.append([entry("b", 1, agent=ME)])
                seen.catch_up()
                assert _ids(seen, "note") == []
                quick.append([entry("b", 2, agent=ME)])
                seen.catch_up()
                assert _ids(seen, "note") == ["n"]
            seen.catch_up()
            assert (_ids(seen, "note"), seen.hidden) == (["n"], 1)
