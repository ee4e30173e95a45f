"""User story 2: page through a long history."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest
from tests.builders import at, entry
from tests.frontends import Ask


def _hundred(store: Store) -> None:
    store.append([
        entry("workflow", number, "review" if number % 4 == 0 else "work", agent=f"agent{number % 3}") for number in range(100)
    ])  # fmt: skip


@pytest.mark.requirement("US2-1", "FR-009", "C-list", "T-list", "R-02")
def test_the_first_page(store: Store, ask: Ask) -> None:
    """Of 100 entries, offset=0 and limit=20 return the first 20 with hasMore=true."""
    _hundred(store)

    answer = ask(ListRequest(offset=0, limit=20))

    assert [row["index"] for row in answer["rows"]] == list(range(20))
    assert answer["page"] == {"offset": 0, "limit": 20, "hasMore": True, "nextOffset": 20, "total": 100, "totalIsExact": True}


@pytest.mark.requirement("US2-2", "FR-009", "C-list")
def test_the_last_page(store: Store, ask: Ask) -> None:
    """Of 100 entries, offset=90 and limit=20 return the last 10 with hasMore=false."""
    _hundred(store)

    answer = ask(ListRequest(offset=90, limit=20))

    assert [row["index"] for row in answer["rows"]] == list(range(90, 100))
    assert answer["page"] == {
        "offset": 90,
        "limit": 20,
        "hasMore": False,
        "nextOffset": None,
        "total": 100,
        "totalIsExact": True,
    }


@pytest.mark.requirement("US2-3", "FR-025", "C-list", "R-03")
def test_the_first_of_two_hours(store: Store, ask: Ask) -> None:
    """Of entries that span 2 hours, a time range over the first hour returns only those within it."""
    store.append([entry("workflow", number, ts=at(60 * number)) for number in range(121)])

    answer = ask(ListRequest(since=at(0), until=at(3600), limit=100))

    assert [row["index"] for row in answer["rows"]] == list(range(60))
    assert answer["page"]["total"] == 60


@pytest.mark.requirement("US2-4", "FR-025", "T-list")
def test_an_action_across_agents(store: Store, ask: Ask) -> None:
    """With an action filter only matching entries are paged, whichever agent they are of."""
    _hundred(store)

    pages = [ask(ListRequest(action=["review"], offset=offset, limit=10)) for offset in (0, 10, 20)]

    rows = [row for page in pages for row in page["rows"]]
    assert [row["index"] for row in rows] == list(range(0, 100, 4))
    assert {row["agent"] for row in rows} == {"agent0", "agent1", "agent2"}
    assert [page["page"]["hasMore"] for page in pages] == [True, True, False]
    assert {page["page"]["total"] for page in pages} == {25}


@pytest.mark.requirement("T-list", "FR-009")
def test_backward_as_well_as_forward(store: Store, ask: Ask) -> None:
    """A history is scanned from its end too, with every filter."""
    _hundred(store)

    assert [row["index"] for row in ask(ListRequest(newest_first=True, limit=3))["rows"]] == [99, 98, 97]
    answer = ask(ListRequest(newest_first=True, limit=2, offset=1, agent=["agent1"]))
    assert [row["index"] for row in answer["rows"]] == [94, 91]


@pytest.mark.requirement("R-04")
def test_an_empty_history(store: Store, ask: Ask) -> None:
    """A list of an empty history is empty, without an error."""
    answer = ask(ListRequest())

    assert (answer["status"], answer["rows"]) == ("empty", [])
    assert answer["page"] == {"offset": 0, "limit": 20, "hasMore": False, "nextOffset": None, "total": 0, "totalIsExact": True}
    assert store.sessions.count() == 0
