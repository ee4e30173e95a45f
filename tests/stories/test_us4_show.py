"""User story 4: one entry, by its place or its id."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import AddNoteRequest, ShowRequest
from tests.builders import at, entry, entry_id, event, result
from tests.frontends import Ask


def _ten(store: Store) -> None:
    for number in range(10):
        fields = {
            "inputType": "AgentRequest",
            "process": "p",
            "turn": 1,
            "step": "m1",
            "task": "t",
            "timeoutMs": 500,
            "meta": {"k": number},
        }
        store.append([
            entry("workflow", number, f"action{number}", {"n": number}, agent="lead", **fields),
            result("workflow", number, [number], durationMs=12.5, usage={"inputTokens": 7}),
        ])  # fmt: skip


@pytest.mark.requirement("US4-1", "FR-010", "T-show", "C-show", "R-02")
def test_the_entry_at_a_place(store: Store, ask: Ask) -> None:
    """Of 10 entries, index=5 returns the one at position 5 with all its details."""
    _ten(store)
    store.append([event("workflow", 0, "thought", "hm", entry=entry_id("workflow", 5))])
    note = ask(AddNoteRequest(entry_indices=[5], content="look"))["note"]

    assert ask(ShowRequest(index=5))["entry"] == {
        "kind": "entry", "index": 5, "id": entry_id("workflow", 5), "session": "workflow", "process": "p", "ts": at(5),
        "agent": "lead", "action": "action5", "inputType": "AgentRequest", "input": {"n": 5}, "status": "ok", "output": [5],
        "error": None, "durationMs": 12.5, "notes": [note], "events": 1, "missing": [], "turn": 1, "step": "m1", "parent": None,
        "task": "t", "timeoutMs": 500.0, "usage": {"inputTokens": 7}, "meta": {"k": 5},
    }  # fmt: skip


@pytest.mark.requirement("US4-1", "FR-010", "C-show")
def test_the_entry_with_an_id(store: Store, ask: Ask) -> None:
    """An entry is found by its id as by its index."""
    _ten(store)

    assert ask(ShowRequest(entry_id=entry_id("workflow", 5))) == ask(ShowRequest(index=5)) == ask(ShowRequest(index=-5))


@pytest.mark.requirement("US4-2", "R-05", "C-show")
def test_an_index_beyond_the_end(store: Store, ask: Ask) -> None:
    """Of 10 entries, index=15 is an error with the message "Index out of bounds"; so is 10."""
    _ten(store)

    for index in (15, 10):
        assert ask(ShowRequest(index=index)) == {"error": "outOfBounds", "message": "Index out of bounds"}
    assert ask(ShowRequest(index=9))["entry"]["index"] == 9


@pytest.mark.requirement("US4-3", "R-04", "R-05")
@pytest.mark.parametrize("index", [0, 5, -1])
def test_any_index_in_an_empty_history(store: Store, ask: Ask, index: int) -> None:
    """In an empty history any index is an error with the message "No history available"."""
    assert ask(ShowRequest(index=index)) == {"error": "noHistory", "message": "No history available"}
    assert store.sessions.count() == 0
