"""How a recovery with a real model is judged, tried without one: every rule of form can be broken, and is then told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.llm.histories import HISTORIES, write
from bench.llm.report import rates, single
from bench.llm.trial import Outcome, form_faults, writing_faults
from ctxmgr.log.codec import Record
from ctxmgr.types.operations import RecoverRequest
from ctxmgr.types.route import CONTEXT_MANAGER
from ctxmgr.workspace import Workspace

GOOD: dict[str, Any] = {"returnTo": {"worker": {"request": {}}, "scout": None}, "target": "worker", "by": "model",
                        "fallback": False, "model": {"failure": None}}  # fmt: skip
BEFORE: list[Record] = [{"kind": "entry", "id": "a"}]
WRITTEN: list[Record] = [
    {"kind": "note", "author": CONTEXT_MANAGER, "tags": ["routing"]}, {"kind": "snapshot"}, {"kind": "continuation"},
]  # fmt: skip


@pytest.mark.parametrize("history", HISTORIES, ids=[history.name for history in HISTORIES])
def test_every_history_is_stuck(history: Any, tmp_path: Path) -> None:
    """The rules find the loop of each recorded run and give one continuation, so that a model has something to add to."""
    with Workspace.open(str(write(tmp_path / "history.db", [history])), readonly=True) as workspace:
        continuation = workspace.recover(RecoverRequest(session=history.name, plan=True)).continuation

    assert continuation.loop is not None
    assert continuation.target in ("worker", "scout")


def test_a_good_answer_has_no_faults() -> None:
    """A model's answer, a marked fallback and an answer by the rules that asked no model are all right."""
    fallback = {**GOOD, "by": "rules", "fallback": True, "model": {"failure": "no answer within 30 s"}}

    assert [form_faults(found) for found in (GOOD, fallback, {**GOOD, "by": "rules", "model": None})] == [[], [], []]
    assert writing_faults(BEFORE, [*BEFORE, *WRITTEN]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"returnTo": {"worker": None, "scout": None}},
        {"returnTo": {"worker": {}, "scout": {}}},
        {"returnTo": {"worker": {}, CONTEXT_MANAGER: None}},
        {"target": "scout"},
        {"fallback": True},
        {"model": {"failure": "it was silent"}},
        {"model": {"failure": "it was silent"}, "fallback": True},
    ],
)
def test_a_faulty_form_is_told(change: dict[str, Any]) -> None:
    """No branch, two, the context manager's own, a fallback without a reason, a failure that is not owned up to."""
    assert len(form_faults({**GOOD, **change})) == 1


@pytest.mark.parametrize(
    "after",
    [
        [],
        [{"kind": "entry", "id": "b"}, *WRITTEN],
        [*BEFORE, *WRITTEN, {"kind": "entry"}],
        [*BEFORE, *WRITTEN[:2]],
        [*BEFORE, *WRITTEN, {"kind": "continuation"}],
        [*BEFORE, *WRITTEN, {"kind": "note", "author": "worker", "tags": ["routing"]}],
        [*BEFORE, *WRITTEN, {"kind": "note", "author": CONTEXT_MANAGER, "tags": []}],
    ],
)
def test_a_faulty_record_is_told(after: list[Record]) -> None:
    """History changed, an entry written, no continuation, two, a note of somebody else, a note without a tag."""
    assert len(writing_faults(BEFORE, after)) == 1


def test_what_was_added_decides_what_is_right() -> None:
    """Right is an own answer that adds the one entry, or nothing where none answers; a fallback is never right."""
    port, budget = HISTORIES[0], HISTORIES[-1]
    outcomes = [
        Outcome(port, "lead", own=True, asked=True, added={"port-0"}),
        Outcome(port, "lead", own=True, asked=True, added={"port-1"}),
        Outcome(port, "lead", asked=True, failure="silent", added={"port-0"}),
        Outcome(budget, "lead", own=True, asked=True),
        Outcome(budget, "tools", own=True, asked=True, added={"budget-0"}),
    ]

    assert [outcome.right for outcome in outcomes] == [True, False, False, True, False]
    assert rates(outcomes)[2:] == [
        "| lead | 4 | 4 | 4 | 3 | 2 | 1 | 0.0 |",
        "| tools | 1 | 1 | 1 | 1 | 0 | 0 | 0.0 |",
    ]
    assert "fallback: silent" in single(outcomes)[4]
