"""One question to a model without tools: the split of a goal, summaries of documents."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import count

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ctxmgr.context.item_texts import Draft, improved
from ctxmgr.context.summaries import summarise
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.plan import Plan, Step, parse_plan
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.single_question import Decomposed, ModelImprover, decompose, improver_for
from ctxmgr.text.tokens import ESTIMATE
from ctxmgr.types.operations import ModelRequest

_SOURCE = "# Ship it\n- [x] build\n- test\n"
_WANTED = ModelRequest(name="scripted", base_url="http://127.0.0.1:9/v1", seconds=5)


def _split(answers: list[str], told: list[str] | None = None, wanted: ModelRequest = _WANTED) -> Decomposed:
    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if told is not None:
            told.append(str(messages))
        return ModelResponse(parts=[TextPart(answers[min(len(messages) // 2, len(answers) - 1)])])

    plan = parse_plan(_SOURCE.encode(), "plan.md")
    return decompose("Ship it", plan, _SOURCE, wanted, {}, {}, model=FunctionModel(answer))


def test_without_a_model_the_rules_answer() -> None:
    """Nobody is asked when no model was named, or models are off."""
    plan = Plan("g", (Step("a"),))

    for wanted in (ModelRequest(), ModelRequest(name="x", off=True)):
        assert decompose("g", plan, None, wanted, {}, {}) == Decomposed(plan, "rules")


def test_a_proposal_of_a_model_keeps_what_is_done() -> None:
    """The model's tasks are proposed as its own; a step that the plan says is done stays done."""
    told: list[str] = []
    found = _split([json.dumps({"tasks": [{"title": "build"}, {"title": "test", "subtasks": ["run it", "read it"]}]})], told)

    assert (found.by, found.model, found.failure) == ("model", "scripted", None)
    assert found.plan.tasks == (Step("build", done=True), Step("test", parts=(Step("run it"), Step("read it"))))
    assert told[0].count('"source": ') == 2
    assert "# Ship it" not in told[0], "what was given stands escaped"


@pytest.mark.parametrize("answer", ["no json", "{}", '{"tasks": []}', json.dumps({"tasks": [{"title": "a"}] * 21})])
def test_what_is_no_plan_leaves_the_rules_split_marked(answer: str) -> None:
    """An answer that is no plan is asked for again; then the rules' split stands, with the reason."""
    found = _split([answer])

    assert (found.by, found.model) == ("rules", "scripted")
    assert found.failure == "it never answered in the form that was asked for"
    assert [task.title for task in found.plan.tasks] == ["build", "test"]


def test_a_corrected_answer_counts() -> None:
    """The model may put right what was no plan at first."""
    found = _split(["sorry", '{"tasks": [{"title": "only", "subtasks": []}]}'])

    assert [task.title for task in found.plan.tasks] == ["only"]


def test_a_model_that_never_answers_is_not_waited_for() -> None:
    """A model that blocks its thread costs the limit and no more."""
    blocked = threading.Event()

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        blocked.wait()
        return ModelResponse(parts=[])

    plan = Plan("g", (Step("a"),))
    wanted = ModelRequest(name="scripted", base_url="http://127.0.0.1:9/v1", seconds=0.3)
    found = decompose("g", plan, None, wanted, {}, {}, model=FunctionModel(answer))
    blocked.set()

    assert found.plan is plan
    assert found.failure == "no answer within 0.3 s"


def test_a_model_that_cannot_be_asked_is_an_error() -> None:
    """A setting that is wrong is told at once: it is no failure of the model."""
    with pytest.raises(InvalidInput):
        decompose("g", Plan("g", ()), None, ModelRequest(name="nosuchprovider:x"), {}, {})


_CHOICE = ModelChoice(name="scripted", base_url="http://127.0.0.1:9/v1", seconds=5)
_TEXT = "# Plan\n\n" + "The parser reads CSV line by line and keeps the header. " * 40
_DRAFT = Draft("plan.md", "markdown", _TEXT, "# Plan\n\nThe parser reads CSV.", 40)


def _improver(answer: str, told: list[str] | None = None, clock: Iterator[float] | None = None) -> ModelImprover:
    def answering(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if told is not None:
            told.append(str(messages))
        return ModelResponse(parts=[TextPart(answer)])

    ticks = clock or (0.0 for _ in count())
    return ModelImprover(_CHOICE, FunctionModel(answering), lambda: next(ticks))


@pytest.mark.requirement("003-P15")
def test_a_models_summary_is_given_back() -> None:
    """The model gets the document and the summary by structure, both fenced, and its words are the answer."""
    told: list[str] = []
    improver = _improver(json.dumps({"summary": "Parser: CSV, header kept."}), told)

    assert improver.improve(_DRAFT) == "Parser: CSV, header kept."
    assert (improver.name, improver.failure) == ("model:scripted", None)
    assert told[0].count('"source": ') == 2


@pytest.mark.parametrize("answer", ["no json", "{}", json.dumps({"summary": ""})])
def test_what_is_no_summary_is_left(answer: str) -> None:
    """An answer in another form counts as none, and the reason is kept."""
    improver = _improver(answer)

    assert improver.improve(_DRAFT) is None
    assert improver.failure == "it never answered in the form that was asked for"


def test_one_limit_of_time_holds_for_all_summaries() -> None:
    """When the time of the choice is used up no further summary is asked for."""
    told: list[str] = []
    improver = _improver(json.dumps({"summary": "short"}), told, iter([0.0, 1.0, 4.9]))

    assert improver.improve(_DRAFT) == "short"
    assert improver.improve(_DRAFT) is None
    assert len(told) == 1
    assert improver.failure == "its time was used up"


def test_a_longer_summary_is_not_taken() -> None:
    """What has more tokens than the summary by structure loses to it."""
    made = summarise("plan.md", _TEXT, "markdown", ESTIMATE)
    wordy, brief = _improver(json.dumps({"summary": "word " * 500})), _improver(json.dumps({"summary": "CSV parser."}))

    assert improved(wordy, "plan.md", _TEXT, "markdown", made, ESTIMATE) is None
    taken = improved(brief, "plan.md", _TEXT, "markdown", made, ESTIMATE)
    assert taken is not None
    assert (taken.text, taken.strategy) == ("CSV parser.", f"{made.strategy}+model:scripted")


def test_a_model_has_to_be_there() -> None:
    """Nobody is asked without a model, and the refusal says how to name one."""
    with pytest.raises(InvalidInput, match="no model is configured"):
        improver_for(ModelRequest(), {}, {}, lambda _text: None)


def test_where_documents_go_is_said_first() -> None:
    """The destination is told before anything is sent."""
    heard: list[str] = []
    made = improver_for(ModelRequest(name="small", base_url="http://127.0.0.1:9/v1"), {}, {}, heard.append)

    assert made.name == "model:small"
    assert heard[0].startswith("summaries: ")
    assert "127.0.0.1" in heard[0]
