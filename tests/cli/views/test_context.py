"""What a person sees of a context package: where the budget went, what is missing, and no name that steers the terminal."""

from __future__ import annotations

import pytest

from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views import context as views
from ctxmgr.types.context_package import AssembleResponse, ItemExplanation, RequestedItem
from ctxmgr.types.project_state import AgentNeed, Execution
from tests.cli import view_samples as s

DECISION = {
    "id": "art_1", "type": "artifact", "source": "arch", "name": "a.md", "version": 1, "need": "optional", "priority": 1,
    "maxTokens": None, "asked": "full", "askedTokens": 1200, "got": "summary", "tokens": 240, "cost": 300,
    "rule": "noRoomInFull", "reason": "all of it is 1,200 tokens, and 400 were left", "because": "need arch/*",
}  # fmt: skip


METADATA = {
    "version": 3, "assembledAt": "2026-01-31T12:00:00Z", "assembledFor": "dev", "taskId": "T-1", "totalTokens": 500,
    "tokenBudget": 1000, "counter": "estimate", "errorBand": 1.5,
}  # fmt: skip


def sample(text: str = "a.md") -> AssembleResponse:
    """Return a package with one of everything, a text of choice in all of its names."""
    made = {**DECISION, "name": text, "because": text, "reason": f"because {text}"}
    return AssembleResponse.model_validate(
        {
            "id": "p1",
            "package": {
                "metadata": {**METADATA, "assembledFor": text, "taskId": text}, "projectContext": {text: 1},
                "taskContext": {"id": text}, "warnings": [text], "missing": [{"source": "", "name": text}],
                "held": [{"id": "art_2", "source": "arch", "name": text, "package": "p0"}],
            },
            "decisions": [made, {**made, "rule": "duplicate", "got": "omitted"}],
            "budget": [
                {"name": "reserved for the prompt", "tokens": 50},
                {"name": "optional, as summaries", "tokens": 300, "items": 1}, {"name": "left", "tokens": 650},
            ],
        }
    )  # fmt: skip


def test_runs_of_one_day_can_be_told_apart_in_80_columns() -> None:
    """A row keeps the minute of its start and an id that the command takes, whatever else it holds."""
    ids = [f"01a21fb{number}-2b65-7fb0-81d6-eb165d2cec78" for number in range(3)]
    runs = [
        Execution(
            id=identity, session="ctxmgr:project", index=number, agent="parser_developer", status="failed",
            task=f"T-S1-08-00{number}", sprint="S1-08", started_at=f"2026-11-28T0{number}:06:57Z", completed_at=None,
            duration_seconds=62, context_version=12, error="the parser failed at line 45 of the input",
            input_artifacts=[], input_tokens=None, output_artifacts=[], output_tokens=None,
        )
        for number, identity in enumerate(ids)
    ]  # fmt: skip
    lines = s.draw(lambda out: views.show_executions(out, runs), width=80).splitlines()[1:]

    assert [f"2026-11-28 0{number}:06" in line for number, line in enumerate(lines)] == [True] * 3
    assert all(identity.startswith(line.split()[0]) for identity, line in zip(ids, lines, strict=True))
    assert len({line.split()[0] for line in lines}) == 3
    assert all(len(line) <= 80 for line in lines)


def test_a_person_sees_where_the_budget_went() -> None:
    """On a terminal: head, budget with bars, items with reasons, contexts, what is held or missing, warnings."""
    shown = s.draw(lambda out: views.show_package(out, sample(), yaml=False), width=100).splitlines()

    assert shown[0] == "Context for a.md  context version 3  task a.md  package p1"
    assert shown[1] == "500 of 1,000 tokens in 0 items  counted by estimate, within a factor of 1.5"
    assert shown[3:7] == [
        "BUDGET                   TOKENS                                  ITEMS",
        "reserved for the prompt      50  ━━────────────────────────────",
        "optional, as summaries      300  ━━━━━━━━━─────────────────────      1",
        "left                        650  ━━━━━━━━━━━━━━━━━━━━──────────",
    ]
    assert shown[9].split() == ["summary", "arch/a.md", "240", "1,200", "optional", "because", "a.md", "(a.md)"]
    assert [line for line in shown if line in ("Held already", "Missing", "Warnings")] == [
        "Held already",
        "Missing",
        "Warnings",
    ]
    assert sum("a.md" in line for line in shown) == 6
    narrow = s.draw(lambda out: views.show_package(out, sample(), yaml=False), width=40).splitlines()
    assert max(len(line) for line in narrow) <= 40


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\u202egnp", "x" * 300, "字" * 80])
def test_no_name_steers_the_terminal(text: str) -> None:
    """Whatever names, keys and reasons hold, no escape, line break or bidirectional mark of theirs reaches the terminal."""
    item = RequestedItem(
        source="a", name=text, status="success", counter="estimate", content=text, suggestions=[text], reason=text
    )
    why = ItemExplanation(
        item=text, package="p1", agent=text, assembled_at=None, asked=None, got="absent", rule="notThere", reason=text
    )
    need = AgentNeed(agent=text, pattern=text, need="required")
    made = sample(text)

    def show(out: Printer) -> None:
        views.show_package(out, made, yaml=False)
        views.show_package(out, made, yaml=True)
        views.show_request_response(out, [item])
        views.show_item_explanation(out, why)
        views.show_needs(out, [need])
        views.show_removed_needs(out, [need])

    assert not {"\x1b", "\u202e", "\r"} & set(s.draw(show, width=80))
