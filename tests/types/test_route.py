"""A continuation names exactly one agent: by construction in Python, by one branch on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ctxmgr.types.route import CONTEXT_MANAGER, Context, Continuation

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name.strip().casefold() != CONTEXT_MANAGER)


def build(**fields: Any) -> Continuation:
    """Return a continuation with these fields."""
    known: dict[str, Any] = {
        "id": "c1", "session": "s", "request_type": "PROCEED", "source": "agentRequest", "target": "coder",
        "candidates": ["coder", "planner"], "target_reason": "it is next", "reason": "review done", "goal": "merge",
        "context": Context(summary="short", facts=[], sections=[], token_count=1, counter="chars/4", prompt="the whole text"),
        "loop": None, "stall": None, "do_not_repeat": [], "alternatives": [], "snapshot": None, "notes": [], "by": "rules",
        "fallback": False, "attempts": 1,
    }  # fmt: skip
    return Continuation(**{**known, **fields})


@pytest.mark.requirement("FR-018", "SC-012", "US10-7", "R-20", "AC-4")
@given(candidates=st.lists(NAMES, min_size=1, max_size=8, unique=True), pick=st.integers(0, 7))
def test_one_branch_is_populated(candidates: list[str], pick: int) -> None:
    """Whatever agents are allowed, ``returnTo`` holds them all, and exactly the target's branch is not null."""
    target = candidates[pick % len(candidates)]
    wire = json.loads(json.dumps(build(target=target, candidates=candidates).to_json()))

    assert list(wire["returnTo"]) == candidates
    assert [name for name, branch in wire["returnTo"].items() if branch is not None] == [target]
    assert wire["target"] == target
    assert "candidates" not in wire


@pytest.mark.requirement("FR-018", "R-20")
@pytest.mark.parametrize(
    "fields",
    [
        {"target": None},
        {"target": ""},
        {"target": ["coder", "planner"]},
        {"target": "tester"},
        {"candidates": []},
        {"candidates": ["coder", "coder"]},
    ],
)
def test_no_or_two_targets_cannot_be_built(fields: dict[str, Any]) -> None:
    """No target, two, or one that is not among the distinct candidates can't be built."""
    with pytest.raises(ValidationError):
        build(**fields)


@pytest.mark.requirement("FR-019", "SC-007", "R-11")
@pytest.mark.parametrize("name", [CONTEXT_MANAGER, "Context-Manager", " context-manager\n"])
def test_the_context_manager_is_no_candidate(name: str) -> None:
    """The context manager is never a target nor a branch, however its name is written."""
    with pytest.raises(ValidationError):
        build(target=name, candidates=[name])
    with pytest.raises(ValidationError):
        build(candidates=["coder", name])


def test_it_cannot_be_changed() -> None:
    """A second target can't be slipped in afterwards."""
    with pytest.raises(ValidationError):
        setattr(build(), "target", "planner")  # noqa: B010


def test_the_branch_carries_request_and_context() -> None:
    """The populated branch holds all that a framework hands on: the request, and the context as one text."""
    wire = build().to_json()

    assert wire["returnTo"]["coder"] == {
        "request": {"type": "PROCEED", "reason": "review done", "goal": "merge"},
        "context": "the whole text",
    }
    assert wire["context"]["prompt"] == build().prompt == "the whole text"
