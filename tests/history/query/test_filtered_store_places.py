"""What an agent sees where records go, or appear in another order than that of their places."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from ctxmgr.errors import NotFound
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.history.query.requests import list_
from ctxmgr.store import open_store
from ctxmgr.store.archive.retention import archivable_sessions, restore, retain
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListRequest
from tests.builders import at, entry
from tests.history.seen_world import ME, rules

OWN = rules(("self", "write"))
_FAR = 4_000_000_000.0


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


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_was_archived_is_not_seen(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A session that left the store leaves what agents see of it, to its last text; taken back it is as it was."""
    place = str(request.getfixturevalue("server_url") if kind == "postgresql" else tmp_path / "history.db")
    with closing(open_store(place, create=True)) as store:
        for name in ("old", "new"):
            began, ended = build("session", name, at(0), process=name), build("sessionEnd", name, at(2), outcome="completed")
            store.append([began, entry(name, 1, agent=ME), ended])
        store.append([entry("new", 3, agent=ME)])
        with closing(_seen(place)) as seen:
            assert _ids(seen) == ["old-e0001", "new-e0001", "new-e0003"]
            before = list_(seen, ListRequest(session="old")).to_json()
        taken = [each for each in archivable_sessions(store, _FAR)[0] if each.session == "old"]
        assert retain(store, str(tmp_path / "kept"), taken).sessions == ["old"]
        with closing(_seen(place)) as seen:
            assert _ids(seen) == ["new-e0001", "new-e0003"]
            assert not seen.engine.query("SELECT 1 FROM record WHERE body LIKE '%old-e0001%'")
            with pytest.raises(NotFound):
                list_(seen, ListRequest(session="old"))
        restore(store, str(tmp_path / "kept"))
        store.append([build("note", "old", at(9), id="n", entries=["old-e0001"], content="x")])
        with closing(_seen(place)) as seen:
            assert sorted(_ids(seen)) == ["new-e0001", "new-e0003", "old-e0001"]
            assert _ids(seen, "note") == ["n"]
            assert list_(seen, ListRequest(session="old")).to_json()["page"] == before["page"]
