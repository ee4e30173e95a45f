"""User story 3: find earlier decisions, errors and artifacts by their text."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import SearchRequest
from tests.builders import entry, event, result, write
from tests.frontends import Ask


@pytest.mark.requirement("US3-1", "FR-008", "T-search", "C-search", "R-02")
def test_a_part_of_an_action_name(store: Store, ask: Ask) -> None:
    """The query "Discovery" returns all entries whose action name contains it, inside words too."""
    write(store, "workflow", ["coordinateWorkflow:a", "kickOffDiscoveryAgents:b", "consolidateFindings:c", "DiscoveryReport:d"])

    answer = ask(SearchRequest(query="Discovery"))

    assert [hit["row"]["action"] for hit in answer["hits"]] == ["kickOffDiscoveryAgents", "DiscoveryReport"]
    assert {hit["field"] for hit in answer["hits"]} == {"action"}
    assert (answer["status"], answer["page"]["total"]) == ("ok", 2)


@pytest.mark.requirement("US3-2", "FR-008")
def test_an_input_type(store: Store, ask: Ask) -> None:
    """The query "CollectorRequest" returns all entries of matching input types."""
    types = ("AgentRequest", "CollectorRequest", "com.example.CollectorRequest$Inner", None)
    store.append([entry("workflow", number, inputType=types[number % 4]) for number in range(12)])

    answer = ask(SearchRequest(query="CollectorRequest"))

    assert [hit["row"]["index"] for hit in answer["hits"]] == [1, 2, 5, 6, 9, 10]
    assert {hit["field"] for hit in answer["hits"]} == {"inputType"}


@pytest.mark.requirement("US3-3", "C-search")
def test_fifty_of_two_hundred(store: Store, ask: Ask) -> None:
    """Of 200 matching entries, maxResults=50 returns 50 and says that there are more."""
    store.append([entry("workflow", number, given=f"match {number}") for number in range(200)])

    answer = ask(SearchRequest(query="match", max_results=50))

    assert [hit["row"]["index"] for hit in answer["hits"]] == list(range(50))
    assert (answer["page"]["hasMore"], answer["page"]["nextOffset"], answer["page"]["total"]) == (True, 50, 200)
    assert len(ask(SearchRequest(query="match"))["hits"]) == 50
    assert len(ask(SearchRequest(query="match 19", max_results=50))["hits"]) == 11


@pytest.mark.requirement("US3-4", "R-05", "C-search")
@pytest.mark.parametrize("entries", [0, 3])
def test_an_empty_query(store: Store, ask: Ask, entries: int) -> None:
    """An empty query is an error with the message "Query cannot be empty"."""
    store.append([entry("workflow", number) for number in range(entries)])

    assert ask(SearchRequest(query="")) == {"error": "invalid", "message": "Query cannot be empty"}


@pytest.mark.requirement("US7-5", "FR-008", "T-search")
def test_events_beside_entries(store: Store, ask: Ask) -> None:
    """Captured events are among the results of a search, alongside entries."""
    store.append([
        entry("workflow", 0, given="the token expired"), result("workflow", 0),
        event("workflow", 0, "agent_thought_chunk", {"text": "token again"}),
        event("workflow", 1, "tool_call", {"name": "x"}),
    ])  # fmt: skip

    hits = ask(SearchRequest(query="token"))["hits"]

    assert [(hit["row"]["kind"], hit["field"]) for hit in hits] == [("entry", "input"), ("event", "data.text")]


@pytest.mark.requirement("R-04")
def test_an_empty_history(store: Store, ask: Ask) -> None:
    """A search of an empty history is empty, without an error."""
    answer = ask(SearchRequest(query="x"))

    assert (answer["status"], answer["hits"], answer["page"]["total"]) == ("empty", [], 0)
    assert store.sessions.count() == 0
