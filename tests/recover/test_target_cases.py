"""Who continues, case by case: whose step fails against who makes the change. The cases and their reasons are data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from tests.builders import entry, entry_id, result
from tests.recover.runs import ask, recover, said

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "targets.json").read_text(encoding="utf-8"))


def records(case: dict[str, Any]) -> list[Record]:
    """Return a case's history.

    A step is ``agent|Action:input -> output``; ``!`` before it makes it fail with that message, ``-`` makes it denied, an
    output ``?`` leaves it open, ``^`` behind the agent has it launched by the open step. ``agent:says|text`` is a message.
    """
    told = [said("s", 0, "Get this done and report what you did, please.")]
    number, messages, launcher = 0, 1, None
    for part in case["steps"]:
        for _ in range(1 if isinstance(part, str) else part["times"]):
            for line in [part] if isinstance(part, str) else part["of"]:
                who, _, rest = line.lstrip("!-").partition("|")
                if who.endswith(":says"):
                    told.append(said("s", messages, rest, after=number - 1, type_="message", agent=who[:-5]))
                    messages += 1
                    continue
                call, _, outcome = rest.partition(" -> ")
                action, _, given = call.partition(":")
                parent = launcher if who.endswith("^") else None
                told.append(entry("s", number, action, _input(action, given), agent=who.rstrip("^"), parent=parent))
                if outcome == "?":
                    launcher = entry_id("s", number)
                elif line[0] in "!-":
                    status = "error" if line[0] == "!" else "denied"
                    told.append(result("s", number, status=status, error={"type": "Error", "message": outcome}))
                else:
                    told.append(result("s", number, outcome))
                number += 1
    return told


def _input(action: str, given: str) -> Any:
    if given.startswith("{"):
        return json.loads(given)
    return {"command" if action == "Bash" else "file_path" if action in ("Read", "Write", "Edit") else "name": given}


@pytest.mark.requirement("FR-017", "FR-018")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_who_continues(store: Store, case: dict[str, Any]) -> None:
    """The agent that can end the trouble continues."""
    store.append(records(case))

    assert recover(store, session="s").target == case["expected"], case["why"]


@pytest.mark.requirement("FR-018")
def test_another_agent_is_told_the_failure(store: Store) -> None:
    """Who continues in place of the one that failed reads what failed, to the letter."""
    (case,) = [each for each in CASES if each["name"] == "deployer applies what the builder wrote"]
    store.append(records(case))
    found = recover(store, session="s")

    assert found.target == "builder"
    assert "deployer is going in circles" in found.prompt
    assert "error validating deploy.yaml: spec.replicas: expected integer" in found.prompt


@pytest.mark.requirement("FR-017", "US9-1")
@pytest.mark.parametrize("requester", ["tester", "coder"])
def test_help_depends_on_no_finding(store: Store, requester: str) -> None:
    """Where no loop is found, the failures at the end are the trouble of who asks: told, searched for, and judged."""
    store.append([
        said("s", 0, "Get this done and report what you did, please."),
        entry("s", 0, "Read", {"file_path": "ops/ports.md"}, agent="ops"),
        result("s", 0, "the ledger database listens on port 6543 of ledger-db"),
        entry("s", 1, "Bash", {"command": "psql -h ledger-db ledger -c 'select 1'"}, agent="tester"),
        result("s", 1, status="error", error={"message": "psql: connection to ledger-db port 5432 failed: refused"}),
    ])  # fmt: skip
    found = ask(store, session="s", requester=requester, reason="I can not go on.", goal="report the row counts")

    assert (found.loop, found.stall) == (None, None)
    assert "connection to ledger-db port 5432 failed: refused" in found.prompt
    assert "port 6543" in found.prompt
