"""Searching what an agent sees: nothing is indexed, nothing is estimated, and what is hidden changes no answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.history.query import requests
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.search.index import TABLES, mark
from ctxmgr.types import query
from ctxmgr.types.plain_records import build
from tests.builders import at
from tests.conftest import STORE_FILES
from tests.history.seen_world import GRANTS, ME, rules, seen_of, seen_part, written

HELD = rules(*GRANTS["own"])
KINDS = sorted(STORE_FILES)


@pytest.fixture(autouse=True)
def estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let totals be estimated in small histories already."""
    monkeypatch.setattr("ctxmgr.store.search.find._EXACT", 1)
    monkeypatch.setattr("ctxmgr.store.search.find._FIRST", 2)
    monkeypatch.setattr("ctxmgr.store.repositories.queries._COUNTED", 3)


def _history(hidden: int) -> list[Record]:
    """Return own entries and messages with so many hidden entries behind each."""
    return list(_recorded(hidden))


def _recorded(hidden: int) -> Iterator[Record]:
    for number in range(20):
        given = {"action": "Bash", "input": {"text": "needle"}}
        yield build("entry", "s", at(number), id=f"own{number}", agent=ME, **given)
        yield build("event", "s", at(number), id=f"said{number}", type="message", agent=ME, data={"text": "needle"})
        for each in range(hidden):
            yield build("entry", "s", at(number), id=f"hidden{number}-{each}", agent="hidden", **given)


def _answers(store: Store) -> list[dict[str, Any]]:
    asked = [
        query.SearchRequest(query="needle", max_results=limit, offset=offset) for limit, offset in ((1, 0), (3, 7), (50, 0))
    ]
    listed = [query.ListRequest(kind="all", limit=2), query.ListRequest(action=["Bash"], limit=2, offset=4)]
    return [
        *(requests.search(store, each).to_json() for each in asked),
        *(requests.list_(store, each).to_json() for each in listed),
        requests.trace(store, query.TraceRequest(action=["bash"], limit=3)).to_json(),
    ]


@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("kind", KINDS)
def test_no_total_tells_of_what_lies_between(kind: str, tmp_path: Path) -> None:
    """However much is hidden, an agent's totals are exact and the same, while the whole history's are estimated."""
    told: list[list[dict[str, Any]]] = []
    for hidden in (0, 1, 9):
        path = written(tmp_path / f"{hidden}-{STORE_FILES[kind]}", _history(hidden))
        with seen_of(path, HELD) as seen:
            told.append(_answers(seen))
            assert all(answer["page"]["totalIsExact"] for answer in told[-1])
        with closing(open_store(str(path))) as whole:
            first = requests.search(whole, query.SearchRequest(query="needle", max_results=1))
            assert not first.page.total_is_exact

    assert told[0] == told[1] == told[2]


@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_agent_sees_is_never_indexed(kind: str, tmp_path: Path) -> None:
    """Indexing does nothing there, whatever was indexed of the whole history: records are copied in below others later."""
    records = _history(2)
    path = written(tmp_path / STORE_FILES[kind], records)
    with closing(open_store(str(path))) as whole:
        whole.index()
        assert mark(whole.engine) > 0
    with seen_of(path, HELD) as seen:
        assert not seen.index()
        assert mark(seen.engine) == 0
        there = seen.engine.query("SELECT name FROM sqlite_master")
        assert {str(row[0]) for row in there}.isdisjoint(TABLES)
        found = requests.search(seen, query.SearchRequest(query="needle", max_results=100))

    assert found.page.total == len(seen_part(records, HELD))


@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_waited_is_found(kind: str, tmp_path: Path) -> None:
    """What is copied in below the last place that was there, since what it hung on came later, is found by searching."""
    waiting = build("event", "s", at(1), id="said", type="message", entry="late", data={"text": "needle"})
    path = written(
        tmp_path / STORE_FILES[kind], [*_history(0), waiting, build("entry", "s", at(2), id="x", agent=ME, action="a")]
    )
    with seen_of(path, HELD) as seen:
        before = requests.search(seen, query.SearchRequest(query="needle", max_results=100)).page.total
        seen.index()
    written(path, [build("entry", "s", at(3), id="late", agent=ME, action="b")])
    with seen_of(path, HELD) as seen:
        after = requests.search(seen, query.SearchRequest(query="needle", max_results=100)).page.total

    assert (before, after) == (40, 41)
