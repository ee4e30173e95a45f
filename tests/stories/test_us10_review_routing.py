"""User story 10: review and merge agents look back for themselves, or forward, but never straight back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.exits import Exit
from ctxmgr.errors import RecoveryRefused
from ctxmgr.store import Store, open_store
from tests.frontends import run_json
from tests.recover.runs import ask, call, chain

FLOW = ("planner", "coder", "reviewer", "coder", "reviewer", "merger", "deployer", "coder", "reviewer", "merger")


@pytest.mark.requirement("US10-1", "US10-2", "US10-3", "FR-020")
@pytest.mark.parametrize("agent", ["reviewer", "merger"])
def test_introspection_comes_back_richer(store: Store, agent: str) -> None:
    """A review or merge agent that asks about earlier agents is answered itself, with what they did."""
    store.append(chain("s", FLOW))
    found = ask(store, requester=agent, review=True, reason="filtered too much", goal="decide")

    assert (found.source, found.request_type, found.target) == ("reviewMerge", "INTROSPECT_AGENT_CONTEXT", agent)
    assert "planner_step" in found.context.prompt


@pytest.mark.requirement("US10-4", "US10-5", "US10-6")
@pytest.mark.parametrize(("agent", "downstream"), [("reviewer", "merger"), ("merger", "deployer")])
def test_forwarding_goes_through_the_context_manager(store: Store, agent: str, downstream: str) -> None:
    """What a review or merge agent forwards reaches the agent that follows it, with context rebuilt for that one."""
    store.append(chain("s", FLOW))
    found = ask(store, type="PROCEED", requester=agent, review=True, reason="done", goal="carry on")

    assert (found.source, found.request_type, found.target) == ("reviewMerge", "PROCEED", downstream)
    assert agent not in found.to_json()["returnTo"]
    assert found.context.facts


@pytest.mark.requirement("US10-4", "US10-5")
@pytest.mark.parametrize("agent", ["reviewer", "merger"])
def test_never_straight_back(store: Store, agent: str) -> None:
    """A PROCEED of a review or merge agent to itself is refused with what to do instead."""
    store.append(chain("s", FLOW))
    with pytest.raises(RecoveryRefused) as caught:
        ask(store, type="PROCEED", requester=agent, review=True, to=agent)

    assert caught.value.hint == "name a downstream agent with --to"


@pytest.mark.requirement("US10-6")
def test_the_original_requester_may_be_downstream(store: Store) -> None:
    """The agent whose work was reviewed may be the one that continues, where it is what follows."""
    store.append(chain("s", ("coder", "reviewer", "coder", "reviewer")))

    assert ask(store, type="PROCEED", requester="reviewer", review=True).target == "coder"


@pytest.mark.requirement("US10-7", "FR-018", "SC-012")
@pytest.mark.parametrize("to", ["coder", "merger", "deployer"])
def test_one_of_the_allowed_branches(store: Store, to: str) -> None:
    """Of the branches that a request allows all are there, and the chosen one alone is populated."""
    store.append(chain("s", FLOW))
    allowed = ["coder", "merger", "deployer"]
    wire = ask(store, type="PROCEED", requester="reviewer", return_to=allowed, to=to, review=True).to_json()

    assert list(wire["returnTo"]) == allowed
    assert [name for name, branch in wire["returnTo"].items() if branch is not None] == [to]


@pytest.mark.requirement("US10-4", "US10-6", "FR-020")
def test_through_the_command_line(store_path: Path) -> None:
    """The command forwards a review; with nobody downstream it fails with a hint, to the reviewer itself it refuses."""
    store = open_store(str(store_path), create=True)
    store.append(call("s", 0, "check", {"part": 1}, "fine", agent="reviewer"))
    store.close()
    arguments = [
        "request", "--type", "proceed", "--review", "--from", "reviewer", "--reason", "done", "--goal", "merge",
        "--store", str(store_path), "--json",
    ]  # fmt: skip
    nobody, (back, _), named = (
        run_json(arguments),
        run_json([*arguments, "--to", "reviewer"]),
        run_json([*arguments, "--to", "merger"]),
    )

    assert nobody[0] == Exit.USAGE
    assert "--to" in nobody[1]["error"]["hint"]
    assert back == Exit.REFUSED
    assert named[0] == Exit.OK
    assert list(named[1]["data"]["continuation"]["returnTo"]) == ["merger"]
