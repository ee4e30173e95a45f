"""User story 1: the ordered history of one action or agent."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest, TraceRequest
from tests.builders import at, entry, result
from tests.frontends import Ask

WORKFLOW = ("coordinateWorkflow", "kickOffDiscoveryAgents", "consolidateFindings", "kickOffDiscoveryAgents")


@pytest.mark.requirement("US1-1", "FR-007", "T-trace", "C-trace", "R-02")
def test_an_action_that_ran_twice(store: Store, ask: Ask) -> None:
    """Filtered by kickOffDiscoveryAgents, exactly its 2 of 4 entries are returned in chronological order."""
    store.append([entry("workflow", number, action, agent=f"agent{number % 2}") for number, action in enumerate(WORKFLOW)])

    answer = ask(TraceRequest(action=["kickOffDiscoveryAgents"]))

    assert answer["status"] == "ok"
    assert [(row["index"], row["action"], row["ts"]) for row in answer["entries"]] == [
        (1, "kickOffDiscoveryAgents", at(1)),
        (3, "kickOffDiscoveryAgents", at(3)),
    ]
    assert answer["page"] == {"offset": 0, "limit": 2, "hasMore": False, "nextOffset": None, "total": 2, "totalIsExact": True}


@pytest.mark.requirement("US1-2", "FR-025", "R-03")
def test_an_input_type_among_fifty_entries(store: Store, ask: Ask) -> None:
    """Filtered by input type, only the matching ones of 50 entries are returned."""
    types = ("AgentRequest", "CollectorRequest", "MergeRequest")
    store.append([entry("workflow", number, inputType=types[number % 3]) for number in range(50)])

    answer = ask(TraceRequest(input_type=["CollectorRequest"]))

    assert [row["index"] for row in answer["entries"]] == list(range(1, 50, 3))
    assert {row["inputType"] for row in answer["entries"]} == {"CollectorRequest"}


@pytest.mark.requirement("US1-3", "R-04")
def test_an_empty_history(store: Store, ask: Ask) -> None:
    """A trace of an empty history is an empty result with status "empty"."""
    answer = ask(TraceRequest(action=["kickOffDiscoveryAgents"]))

    assert (answer["status"], answer["entries"], answer["page"]["total"]) == ("empty", [], 0)
    assert ask(TraceRequest())["status"] == "empty"
    assert store.sessions.count() == 0


@pytest.mark.requirement("FR-007", "C-trace", "T-trace")
def test_an_agents_execution(store: Store, ask: Ask) -> None:
    """Filtered by agent, or by agent and action together, only entries of that agent are returned, with their outcome."""
    for number, action in enumerate(WORKFLOW):
        store.append(
            [
                entry("workflow", number, action, agent="discovery" if number % 2 else "lead"),
                result("workflow", number, f"out {number}"),
            ]
        )

    assert [row["output"] for row in ask(TraceRequest(agent=["discovery"]))["entries"]] == ["out 1", "out 3"]
    assert [row["index"] for row in ask(TraceRequest(agent=["lead"], action=["consolidateFindings"]))["entries"]] == [2]
    assert ask(TraceRequest(agent=["lead"], action=["kickOffDiscoveryAgents"]))["status"] == "empty"
    assert [row["index"] for row in ask(TraceRequest(action=["coordinateWorkflow", "consolidateFindings"]))["entries"]] == [
        0,
        2,
    ]


@pytest.mark.requirement("FR-007")
def test_order_is_that_of_the_history(store: Store, ask: Ask) -> None:
    """Entries come in the order in which they were recorded, also where clocks disagree."""
    store.append([entry("workflow", number, ts=at(100 - number)) for number in range(5)])

    assert [row["index"] for row in ask(TraceRequest())["entries"]] == [0, 1, 2, 3, 4]
    assert ask(TraceRequest())["entries"] == ask(ListRequest())["rows"]
