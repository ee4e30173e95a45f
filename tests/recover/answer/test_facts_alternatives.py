"""Leads are true, specific, and never a call that was already made in vain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.types.route import Continuation
from tests.builders import entry_id
from tests.recover.runs import call, hung, launched, recover, workspace

ASK = "ask the person who gave the task, and say what is missing"
LAST = f"if that does not help, stop and {ASK}"
"""The advice where no record says what would end a trouble."""


def texts(found: Continuation) -> list[str]:
    """Return the texts of the leads."""
    return [lead.text for lead in found.alternatives]


def failing(given_: Any, error: str, *, start: int = 1, session: str = "s", action: str = "Bash") -> list[dict[str, Any]]:
    """Return a call that fails four times the same way."""
    return [record for number in range(start, start + 4) for record in call(session, number, action, given_, error=error)]


MOVES = ("Read", "Edit", "Bash", "search", "deploy")
STEP = st.tuples(st.sampled_from(MOVES), st.integers(0, 3), st.sampled_from(["ok", "error"]))


@pytest.mark.requirement("US8-4")
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(before=st.lists(STEP, max_size=6), round_=st.lists(STEP, min_size=1, max_size=4, unique_by=lambda step: step[:2]))
def test_no_lead_is_a_call_made_in_vain(before: list[tuple[str, int, str]], round_: list[tuple[str, int, str]]) -> None:
    """Whatever loops after whatever history, no lead proposes a call of the loop, and all that leads cite exists."""
    store = open_store(":memory:", create=True)
    for number, (action, value, ended) in enumerate([*before, *(round_ * 4)]):
        given_ = {"command": f"{action.lower()} <{value}>"} if action == "Bash" else {"file_path": f"src/<{value}>.py"}
        error = f"cannot {action} in src/other{value}.py" if ended == "error" else None
        store.append(call("s", number, action, given_, f"{action} {value}", error=error))
    found = recover(store, force=True)
    rows = workspace(store).list(ListRequest(limit=1_000)).rows

    for step in found.do_not_repeat:
        word = step.input.get("command") or step.input["file_path"]
        assert not any(f'{step.action} "{word}"' in text for text in texts(found))
    assert {name for lead in found.alternatives for name in lead.entries} <= {row.id for row in rows}
    assert len(set(texts(found))) == len(texts(found)) <= 5
    assert found.loop is None or found.alternatives
    store.close()


def test_the_same_call_worked_before(store: Store) -> None:
    """A call that fails now and worked earlier leads to what has changed since."""
    store.append([*call("s", 0, "Bash", {"command": "make"}, "built"), *failing({"command": "make"}, "no rule")])
    lead = recover(store).alternatives[0]

    assert lead.text == "find what has changed since @0, where the same call worked"
    assert lead.entries == [entry_id("s", 0), entry_id("s", 4)]


def test_a_call_in_vain_is_no_form_that_worked(store: Store) -> None:
    """A call of the loop that succeeds each round is not proposed as a form of another that fails each round."""
    for number in range(1, 9, 2):
        store.append(call("s", number, "Bash", {"command": "make build"}, "built"))
        store.append(call("s", number + 1, "Bash", {"command": "make build -j"}, error="no rule"))

    assert texts(recover(store)) == ["ask the person who gave the task, and say what is missing"]


def test_a_call_that_worked_since(store: Store) -> None:
    """A success after the loop, of a finding that is over and chosen by its id, is no sign of what changed before."""
    store.append([*failing({"command": "make"}, "no rule", start=0), *call("s", 4, "Bash", {"command": "make"}, "built")])
    finding = workspace(store).detect(DetectRequest()).verdicts[0].findings[0]

    answer = recover(store, finding=finding.id)
    assert answer.loop is not None
    assert not any("changed since" in text for text in texts(answer))
    assert "changed since" not in answer.prompt


@pytest.mark.parametrize(
    ("worked", "fails", "alike"),
    [
        ("pytest tests/unit", "pytest -q tests", True),
        ("git status", "git push origin", False),
        ("npm install", "npm run dev", False),
        ("python3 -c 'print(1)'", "python3 -m unittest", False),
        ("python3 -m unittest tests.a", "python3 -m unittest tests.b", True),
        ("cd src && ls", "cd src && make", True),
    ],
)
def test_another_form_that_worked(store: Store, worked: str, fails: str, alike: bool) -> None:
    """A form of the same program that worked is a lead; another thing run by the same launcher is not."""
    store.append([*call("s", 0, "Bash", {"command": worked}, "fine"), *failing({"command": fails}, "it failed")])

    assert any("start from Bash" in text for text in texts(recover(store))) is alike


def test_another_form_of_a_tool_call(store: Store) -> None:
    """A successful call of the same tool is a lead when it was about the same thing."""
    store.append(call("s", 0, "query", {"table": "orders", "limit": 5}, "5 rows"))
    store.append(call("s", 1, "query", {"table": "users", "limit": 9}, "9 rows"))
    store.append(failing({"table": "orders", "limit": -1}, "bad limit", start=2, action="query"))
    found = recover(store)

    assert [lead.entries for lead in found.alternatives if "start from" in lead.text] == [[entry_id("s", 0)]]


def test_specific_leads_come_alone(store: Store) -> None:
    """Where the history shows a specific lead, the general one is left out; where it shows none, it stands."""
    store.append([*call("s", 0, "Bash", {"command": "make"}, "built"), *failing({"command": "make"}, "no rule")])
    assert not any("go back" in text for text in texts(recover(store)))

    store.append([*call("t", 0, "Bash", {"command": "ls"}, "x"), *failing({"command": "make"}, "no rule", session="t")])
    assert texts(recover(store, session="t"))[0] == 'go back to @0, Bash "ls", and take another way from there'


def test_nothing_left_to_try(store: Store) -> None:
    """Where the history shows no other way, the only lead is to ask a person."""
    store.append(failing({"command": "make"}, "no rule", start=0))
    found = recover(store)

    assert texts(found) == ["ask the person who gave the task, and say what is missing"]
    assert found.alternatives[0].entries == []


@pytest.mark.requirement("US11-3")
def test_a_call_that_hangs(store: Store) -> None:
    """After a hung call it is to be found out whether it took effect, and how to run it so that it ends."""
    store.append(hung())
    found = texts(recover(store))

    assert found[0].startswith("find out whether @2 took effect")
    assert "time limit" in found[1]
    assert found[2:] == [LAST]


def test_a_call_that_returned_before(store: Store) -> None:
    """A hung call that returned earlier in the session leads to what differs."""
    store.append(call("s", 0, "Bash", {"command": "make"}, "built"))
    store.append(call("s", 1, "Bash", {"command": "make"}, open_=True))

    assert texts(recover(store))[1].startswith("find out what differs from @0")


def test_a_sub_agent_that_is_stuck(store: Store) -> None:
    """Whoever launched a stuck agent is told not to launch it the same way again."""
    store.append(launched())

    assert texts(recover(store))[0].startswith("do the work of @1 without launching it again")


@pytest.mark.requirement("SC-010")
def test_what_is_known_elsewhere(store: Store) -> None:
    """What another agent learned about the subject of an error is a lead, and no person has to be asked."""
    for number in range(8):
        store.append(call("s", number, "Read", {"file_path": f"src/m{number}.py"}, f"def part_{number}(): ..."))
    note = "Uploads to the archive need the role depot-writer."
    store.append(call("s", 8, "Read", {"file_path": "docs/archive.md"}, note, agent="scout"))
    store.append(failing({"command": "put out.zip archive://uploads"}, "archive refused the uploads", start=9))
    found = recover(store)

    assert found.alternatives[0].text.startswith("go by what @8 shows")
    assert found.alternatives[0].entries == [entry_id("s", 8)]
    assert texts(found)[1] == "ask scout, whose last step worked"
    assert not any(ASK in text for text in texts(found))
    assert found.context.unanswered == []
    assert note in found.context.prompt


def test_nothing_is_known_elsewhere(store: Store) -> None:
    """Where no record has to do with a trouble, that is said in the trouble's words, and a person is to be asked."""
    for number in range(8):
        store.append(call("s", number, "Read", {"file_path": f"src/m{number}.py"}, f"def part_{number}(): ..."))
    store.append(failing({"command": "put out.zip archive://uploads"}, "archive refused the uploads", start=8))
    found = recover(store)

    assert texts(found)[-1] == LAST
    assert len(found.context.unanswered) == 1
    assert "archive refused the uploads" in found.context.unanswered[0]
