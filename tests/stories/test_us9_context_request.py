"""User story 9: an agent that has lost its context asks for it and gets one answer, built from the history alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.types.query import ShowRequest
from tests.builders import write
from tests.frontends import run_json
from tests.recover.runs import ask, call, chain, said, workspace

AGENTS = ("planner", "designer", "coder", "tester", "reviewer")


@pytest.fixture
def five(store: Store) -> Store:
    """Return a store in which five agents worked, with a decision, a change and a failure."""
    store.append([said("s", 0, "Invoices are off by one cent; find out why")])
    store.append(call("s", 0, "decide", {"about": "rounding"}, "half-even, finance insists", agent="planner"))
    store.append(call("s", 1, "sketch", {"of": "invoice"}, "sum first, round last", agent="designer"))
    store.append(call("s", 2, "Edit", {"file_path": "rounding.py", "new_string": "ROUND_HALF_EVEN"}, "ok", agent="coder"))
    store.append(
        call("s", 3, "Bash", {"command": "pytest tests/test_rounding.py"}, error="1 failed: 100 != 101", agent="tester")
    )
    store.append(call("s", 4, "comment", {"on": "rounding.py"}, "looks right", agent="reviewer"))
    return store


@pytest.mark.requirement("US9-1", "FR-017")
@pytest.mark.parametrize("agent", AGENTS)
def test_any_of_five_agents_can_ask(five: Store, agent: str) -> None:
    """Each agent of the workflow can ask for context and is the one that is answered."""
    found = ask(five, session="s", requester=agent)

    assert (found.source, found.request_type, found.target) == ("agentRequest", "INTROSPECT_AGENT_CONTEXT", agent)
    assert set(found.candidates) == set(AGENTS)


@pytest.mark.requirement("US9-2", "SC-006", "AC-1")
def test_all_that_is_needed_is_there(five: Store) -> None:
    """The task, the decision, the change and the failure are in the context, whoever made them."""
    found = ask(five, requester="coder", reason="which rounding was decided", goal="mend rounding.py")
    told = found.context.prompt

    for word in ("off by one cent", "half-even, finance insists", "ROUND_HALF_EVEN", "100 != 101", "sum first"):
        assert word in told


@pytest.mark.requirement("US9-3", "SC-006")
def test_context_links_to_its_sources(five: Store) -> None:
    """Every fact leads back to a record that can be looked up, and each entry is told once."""
    found = ask(five, requester="coder")
    names = [name for fact in found.context.facts for name in fact.entries if "-e" in name]

    assert len(names) == len(set(names)) > 3
    for name in names:
        assert workspace(five).show(ShowRequest(session="s", entry_id=name)).entry.id == name


@pytest.mark.requirement("US9-4", "FR-018", "SC-012", "AC-4")
def test_one_answer(five: Store) -> None:
    """The answer has one populated branch, with the request it answers and the context to go on with."""
    wire = ask(five, requester="coder", reason="lost the plan", goal="finish").to_json()
    branch = wire["returnTo"]["coder"]

    assert [name for name, value in wire["returnTo"].items() if value] == ["coder"]
    assert branch["request"] == {"type": "INTROSPECT_AGENT_CONTEXT", "reason": "lost the plan", "goal": "finish"}
    assert "off by one cent" in branch["context"]


@pytest.mark.requirement("US9-1", "US9-4")
def test_through_the_command_line(store_path: Path) -> None:
    """The command gives the library's answer; a type that does not exist is a usage error that names the two."""
    store = open_store(str(store_path), create=True)
    store.append(chain("s", AGENTS))
    planned = ask(store, requester="coder", reason="lost", goal="finish", plan=True).to_json()
    store.close()
    arguments = ["request", "--from", "coder", "--reason", "lost", "--goal", "finish", "--store", str(store_path), "--json"]
    code, envelope = run_json([*arguments, "--type", "introspect", "--plan"])

    assert code == 0
    assert {**envelope["data"]["continuation"], "id": None} == {**planned, "id": None}
    code, envelope = run_json([*arguments, "--type", "wander"])
    assert code == 2
    assert "introspect or proceed" in envelope["error"]["hint"]


@pytest.mark.requirement("US9-2")
def test_across_sessions_boundaries_of_a_process(store: Store) -> None:
    """What an earlier process of the session did is part of the context that a later one asks for."""
    write(store, "s", ["decide:use TOML -> TOML it is"], agent="planner", process="p1")
    write(store, "s", ["Read:config.py"], agent="coder", process="p2")

    assert "TOML it is" in ask(store, session="s", requester="coder").context.prompt
