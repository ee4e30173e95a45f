"""The bytes of a goal's files are pinned, what is read of them too, and what is said of a state file that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.goals.changes import fold
from ctxmgr.goals.state import State
from ctxmgr.log.journal import read
from tests.goals.layout import CASES, FILES, FIXTURES, VIEW, copied, made, shown
from tests.goals.scene import sealed

ENVELOPE = ("v", "generation", "history", "check")
"""Members of the state file that are not of the state."""


def _stored(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / name / "state.json").read_text(encoding="ascii"))


@pytest.mark.requirement("H-state", "H-history")
@pytest.mark.parametrize("name", CASES)
def test_the_bytes_of_the_files_are_pinned(name: str, tmp_path: Path) -> None:
    """The same requests write the same history, state and loops, byte for byte."""
    place = made(name, tmp_path)

    for file in FILES:
        assert (place / file).read_text("ascii") == (FIXTURES / name / file).read_text("ascii"), file


@pytest.mark.parametrize("name", CASES)
def test_pinned_files_are_read(name: str, tmp_path: Path) -> None:
    """Files of this layout are taken as they are, and what is shown of them is pinned."""
    goals = copied(name, tmp_path)

    assert shown(goals) == (FIXTURES / name / VIEW).read_text("ascii")
    assert goals.warnings == []


@pytest.mark.parametrize("name", CASES)
def test_a_pinned_state_is_written_as_it_was_read(name: str) -> None:
    """What is read of a state file is all of it, in its order."""
    body = _stored(name)

    state = {member: value for member, value in body.items() if member not in ENVELOPE}
    assert json.dumps(State.from_json(body).to_json()) == json.dumps(state)


@pytest.mark.parametrize("name", CASES)
def test_a_pinned_history_makes_the_pinned_state(name: str) -> None:
    """Without the state file the history says the same."""
    body, state = _stored(name), State()
    for _, line in zip(range(body["history"]["records"]), read(FIXTURES / name / "history.jsonl"), strict=False):
        fold(state, line.record)

    assert json.dumps(state.to_json()) == json.dumps({key: value for key, value in body.items() if key not in ENVELOPE})


_LEAF: dict[str, Any] = {"id": "t2.1.1", "text": "x", "status": "pending", "minted": 0, "attempts": [], "children": []}
Edit = Callable[[dict[str, Any]], object]

_FIRST = "018f0000-0000-7000-8000-000000000005"
HOSTILE: dict[str, tuple[Edit, str]] = {
    "another version": (lambda body: body.update(v=2), "version 2 is not known"),
    "no generation": (lambda body: body.update(generation=True), "generation is no number"),
    "no history": (lambda body: body.update(history=[]), "no object"),
    "no bytes": (lambda body: body["history"].update(bytes="7"), "bytes is no number"),
    "no session": (lambda body: body.pop("session"), "session is no text"),
    "no goal": (lambda body: body.update(goal=None), "no object"),
    "an unknown status": (lambda body: body["goal"].update(status="odd"), "no node"),
    "no children": (lambda body: body["goal"].pop("children"), "children is no list"),
    "a third level": (lambda body: body["goal"]["children"][0]["children"][0].update(children=[_LEAF]), "no node"),
    "a number as text": (lambda body: body["goal"].update(text=7), "text is no text"),
    "a reason that is none": (lambda body: body["goal"].update(reason=[]), "reason is no text"),
    "minted by halves": (lambda body: body["goal"]["children"][0].update(minted=0.5), "minted is no number"),
    "no attempts": (lambda body: body["goal"].update(attempts={}), "attempts is no list"),
    "an odd attempt": (lambda body: body["goal"].update(attempts=[{"number": 1, "status": "odd"}]), "no attempt"),
    "an empty attempt": (lambda body: body["goal"].update(attempts=[{"status": "done"}]), "number is no number"),
    "an odd block": (lambda body: body["goal"].update(block={"by": "nobody", "reason": "x"}), "no block"),
    "a block without a reason": (lambda body: body["goal"].update(block={"by": "user"}), "reason is no text"),
    "no active": (lambda body: body.update(active=None), "active is no text"),
    "no actions": (lambda body: body.update(actions=_FIRST), "actions is no list"),
    "an action that is none": (lambda body: body["actions"].append(_FIRST), "no object"),
    "no actions in flight": (lambda body: body.pop("inFlight"), "inFlight is no list"),
    "a block of an action that is none": (lambda body: body.update(blockedActions=[7]), "no object"),
    "no outcomes": (lambda body: body.update(outcomes=None), "outcomes is no list"),
    "a loop that is none": (lambda body: body.update(loops=["A"]), "no object"),
    "no counts": (lambda body: body.update(counts=[]), "no object"),
    "a count that is none": (lambda body: body["counts"].update(begun="5"), "begun is no number"),
    "a next step that is none": (lambda body: body.update(nextStep=7), "nextStep is no text"),
    "no probes": (lambda body: body.update(probes=7), "probes is no list"),
    "no epoch": (lambda body: body.update(epoch=None), "epoch is no number"),
    "an owner that is none": (lambda body: body.update(owner="me"), "no object"),
    "no count of the ignored": (lambda body: body.pop("ignored"), "ignored is no number"),
}


@pytest.mark.requirement("H-damage", "R-19")
@pytest.mark.parametrize(("edit", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_sealed_file_that_holds_no_state_is_refused(edit: Edit, why: str, tmp_path: Path) -> None:
    """A state file with a right fingerprint but a wrong member is not used, it is said why, and the history is read."""
    goals = copied("worked", tmp_path)
    body = _stored("worked")
    edit(body)
    (tmp_path / ".agent_context" / "state.json").write_text(sealed(body), encoding="ascii")

    expected: Any = json.loads((FIXTURES / "worked" / VIEW).read_text("ascii"))["state"]
    found = goals.state().to_json()
    assert found["goal"] == expected["goal"]
    assert found["warnings"] == [f"state.json can't be used ({why}); the state is read from the history"]
