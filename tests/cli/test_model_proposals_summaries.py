"""A model summarises documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ctxmgr.cli.model_proposals import ModelImprover, make_improver
from ctxmgr.context.candidates import Draft, improve_summary
from ctxmgr.context.summaries import summarise
from ctxmgr.errors import InvalidInput
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.text.tokens import ESTIMATE
from ctxmgr.types.operations import ModelRequest

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

    assert improve_summary(wordy, "plan.md", _TEXT, "markdown", made, ESTIMATE) is None
    taken = improve_summary(brief, "plan.md", _TEXT, "markdown", made, ESTIMATE)
    assert taken is not None
    assert (taken.text, taken.strategy) == ("CSV parser.", f"{made.strategy}+model:scripted")


def test_a_model_has_to_be_there() -> None:
    """Nobody is asked without a model, and the refusal says how to name one."""
    with pytest.raises(InvalidInput, match="no model is configured"):
        make_improver(ModelRequest(), {}, {}, lambda _text: None)


def test_where_documents_go_is_said_first() -> None:
    """The destination is told before anything is sent."""
    heard: list[str] = []
    made = make_improver(ModelRequest(name="small", base_url="http://127.0.0.1:9/v1"), {}, {}, heard.append)

    assert made.name == "model:small"
    assert heard[0].startswith("summaries: ")
    assert "127.0.0.1" in heard[0]
