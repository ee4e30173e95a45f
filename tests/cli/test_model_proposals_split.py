"""A model splits a goal into tasks."""

from __future__ import annotations

import json
import threading

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ctxmgr.cli.model_proposals import decompose
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.plan import parse_plan
from ctxmgr.types.goal import GoalPlan, PlannedStep, PlannedTask
from ctxmgr.types.operations import ModelRequest

_SOURCE = "# Ship it\n- [x] build\n- test\n"
_RULES = GoalPlan(goal="g", tasks=[PlannedTask(title="a")], by="rules")
_WANTED = ModelRequest(name="scripted", base_url="http://127.0.0.1:9/v1", seconds=5)


def _split(answers: list[str], told: list[str] | None = None, wanted: ModelRequest = _WANTED) -> GoalPlan:
    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if told is not None:
            told.append(str(messages))
        return ModelResponse(parts=[TextPart(answers[min(len(messages) // 2, len(answers) - 1)])])

    plan = parse_plan(_SOURCE.encode(), "plan.md")
    rules = GoalPlan(goal="Ship it", tasks=list(plan.tasks), by="rules")
    return decompose(rules, _SOURCE, wanted, {}, {}, model=FunctionModel(answer))


def test_without_a_model_the_rules_answer() -> None:
    """Nobody is asked when no model was named, or models are off."""
    for wanted in (ModelRequest(), ModelRequest(name="x", off=True)):
        assert decompose(_RULES, None, wanted, {}, {}) is _RULES


def test_a_proposal_of_a_model_keeps_what_is_done() -> None:
    """The model's tasks are proposed as its own; a step that the plan says is done stays done."""
    told: list[str] = []
    found = _split([json.dumps({"tasks": [{"title": "build"}, {"title": "test", "subtasks": ["run it", "read it"]}]})], told)

    assert (found.by, found.model, found.failure) == ("model", "scripted", None)
    steps = [PlannedStep(title="run it"), PlannedStep(title="read it")]
    assert found.tasks == [PlannedTask(title="build", done=True), PlannedTask(title="test", subtasks=steps)]
    assert told[0].count('"source": ') == 2
    assert "# Ship it" not in told[0], "what was given stands escaped"


@pytest.mark.parametrize("answer", ["no json", "{}", '{"tasks": []}', json.dumps({"tasks": [{"title": "a"}] * 21})])
def test_what_is_no_plan_leaves_the_rules_split_marked(answer: str) -> None:
    """An answer that is no plan is asked for again; then the rules' split stands, with the reason."""
    found = _split([answer])

    assert (found.by, found.model) == ("rules", "scripted")
    assert found.failure == "it never answered in the form that was asked for"
    assert [task.title for task in found.tasks] == ["build", "test"]


def test_a_corrected_answer_counts() -> None:
    """The model may put right what was no plan at first."""
    found = _split(["sorry", '{"tasks": [{"title": "only", "subtasks": []}]}'])

    assert [task.title for task in found.tasks] == ["only"]


def test_a_model_that_never_answers_is_not_waited_for() -> None:
    """A model that blocks its thread costs the limit and no more."""
    blocked = threading.Event()

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        blocked.wait()
        return ModelResponse(parts=[])

    wanted = ModelRequest(name="scripted", base_url="http://127.0.0.1:9/v1", seconds=0.3)
    found = decompose(_RULES, None, wanted, {}, {}, model=FunctionModel(answer))
    blocked.set()

    assert (found.tasks, found.by, found.model) == (_RULES.tasks, "rules", "scripted")
    assert found.failure == "no answer within 0.3 s"


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    """A setting that is wrong is told at once: it is no failure of the model."""
    with pytest.raises(InvalidInput):
        decompose(_RULES, None, ModelRequest(name="nosuchprovider:x"), {}, {})
