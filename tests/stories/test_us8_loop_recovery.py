"""User story 8: a degenerate loop is found, raised, told and answered with one continuation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.exits import Exit
from ctxmgr.errors import DegenerateLoopError
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest, RecoverRequest
from tests.builders import entry_id
from tests.frontends import invoke, run_json
from tests.recover.runs import call, looped, recover, workspace


@pytest.mark.requirement("US8-1", "FR-002", "R-06")
def test_a_repetition_at_the_threshold_is_raised(store: Store) -> None:
    """The third identical call is raised as an error that says which call, whose and where."""
    for number in range(2):
        store.append(call("s", number, "Bash", {"command": "make"}, error="no rule"))
        workspace(store).require_progress(DetectRequest())
    store.append(call("s", 2, "Bash", {"command": "make"}, error="no rule"))
    with pytest.raises(DegenerateLoopError) as caught:
        workspace(store).require_progress(DetectRequest())
    finding = caught.value.finding

    assert isinstance(finding, Finding)
    assert (finding.count, finding.scope.agent, finding.first) == (3, "coder", entry_id("s", 0))
    assert "make" in str(caught.value)
    assert caught.value.hint == "run 'ctxmgr recover' for one continuation request"


@pytest.mark.requirement("US8-3", "AC-3")
def test_the_pattern_is_identified(store: Store) -> None:
    """The context manager names the repeating actions, their inputs, and where each was made."""
    store.append(looped())
    found = recover(store)

    assert found.source == "stuckHandler"
    assert [(step.action, step.times) for step in found.do_not_repeat] == [("Edit", 4), ("Bash", 4), ("Bash", 4)]
    assert all(step.input and len(step.entries) == 4 for step in found.do_not_repeat)


@pytest.mark.requirement("US8-4")
def test_other_ways_are_suggested(store: Store) -> None:
    """The recovery context describes the loop and suggests ways that were not tried."""
    store.append(looped())
    found = recover(store)

    assert "with the same outcomes each time" in found.context.summary
    assert found.diagnosis is not None
    assert len(found.alternatives) >= 2
    assert len({lead.text for lead in found.alternatives}) == len(found.alternatives)
    assert all(lead.text and lead.basis for lead in found.alternatives)


@pytest.mark.requirement("US8-5", "FR-018", "SC-012")
def test_exactly_one_agent_is_selected(store_path: Path) -> None:
    """The command prints one continuation in which one agent's branch alone is populated."""
    store = open_store(str(store_path), create=True)
    store.append([*call("cycle", 99, "plan", {"goal": 1}, "a plan", agent="planner"), *looped()])
    store.close()
    code, envelope = run_json(["recover", "--store", str(store_path), "--json"])
    continuation = envelope["data"]["continuation"]

    assert code == Exit.OK
    assert envelope["error"] is None
    assert set(continuation["returnTo"]) == {"planner", "coder"}
    assert [name for name, branch in continuation["returnTo"].items() if branch] == [continuation["target"]]


@pytest.mark.requirement("EC-3", "R-11", "US8-5")
def test_exit_codes_of_a_recovery(store_path: Path) -> None:
    """One continuation is 0, nothing wrong 21, no history 3, a running recovery 22, and used up attempts 20."""
    store = open_store(str(store_path), create=True)
    arguments = ["recover", "--store", str(store_path), "--json"]
    answers = [run_json(arguments)]
    store.append(call("s", 0, "Bash", {"command": "make"}, error="no rule"))
    answers += [run_json(arguments), run_json([*arguments, "--force"])]
    store.append([record for number in (1, 2, 3) for record in call("s", number, "Bash", {"command": "make"}, error="no rule")])
    store.leases.take("s", "somebody", store.clock(), 60)
    answers.append(run_json(arguments))
    store.leases.release("s", "somebody")
    answers += [run_json([*arguments, "--to", "context-manager"]), run_json([*arguments, "--plan"])]
    for number in (4, 5, 6):  # the agent goes on in between, in the same loop
        answers.append(run_json(arguments))
        store.append(call("s", number, "Bash", {"command": "make"}, error="no rule"))
    store.close()

    assert [code for code, _ in answers] == [3, 21, 0, 22, 22, 0, 0, 0, 20]
    kinds = [envelope["error"] and envelope["error"]["kind"] for _, envelope in answers]
    assert kinds == ["noHistory", "healthy", None, "refused", "refused", None, None, None, "needsHuman"]
    assert answers[0][1]["error"]["message"] == "No history available"
    assert all(envelope["error"] is None or envelope["error"]["hint"] for _, envelope in answers)


@pytest.mark.requirement("US8-4")
def test_the_page_for_people(store_path: Path) -> None:
    """The page says who continues, what is wrong, what not to repeat and what to try, each of them once."""
    store = open_store(str(store_path), create=True)
    store.append(looped())
    store.close()
    page = invoke(["recover", "--store", str(store_path), "--plan"]).stdout

    assert page.index("Cause") < page.index("Next step") < page.index("continue with coder")
    for heading in ("What is known", "Do not repeat", "Try instead"):
        assert page.count(heading) == 1
    told = page[page.index("continue with coder") :]
    assert told.count("IndexError: list index out of range") == 1


def test_the_finding_and_the_answer_agree(store: Store) -> None:
    """What is recovered is the finding that detection shows."""
    store.append(looped())
    finding = workspace(store).detect(DetectRequest()).verdicts[0].findings[0]
    found = workspace(store).recover(RecoverRequest(plan=True)).continuation

    assert found.loop is not None
    assert (found.loop.finding, found.loop.members, found.loop.reason) == (finding.id, finding.members, finding.reason)
