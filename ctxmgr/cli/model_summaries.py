"""Ask a model for better summaries of documents; the summary by structure always exists."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ctxmgr.context.item_texts import Draft
from ctxmgr.errors import InvalidInput
from ctxmgr.light_dataclass import replace
from ctxmgr.recover.model.config import ModelChoice, chosen, describe
from ctxmgr.recover.model.fence import Fence
from ctxmgr.recover.model.single_question import ask
from ctxmgr.types.operations import ModelRequest

_MOST_SHOWN = 24_000
_LEAST_SECONDS = 0.5

_SUMMARY_RULES = """You shorten one {kind} document for an agent that will work from your text alone.
- Keep names, numbers, headings, signatures and decisions exactly as they are written; leave out reasons and repetition.
- Say nothing that the document does not say. At most {tokens} tokens; no preface, no closing words.
- A summary by structure is given too: yours must be as short and say more.
{fence}"""


class Shortened(BaseModel):
    """What a model answers: the summary."""

    model_config = ConfigDict(extra="ignore")

    summary: Annotated[str, Field(min_length=1, max_length=60_000)]


class ModelImprover:
    """Asks a model for better summaries, within one limit of time for all of them.

    Args:
        choice: which model; its ``seconds`` are for all summaries together.
        model: a pydantic-ai model to be asked in place of the one named.
        clock: seconds that only go forward.

    Attributes:
        name: summaries are cached under it.
        failure: why the last answer does not count, None while all do.
    """

    def __init__(self, choice: ModelChoice, model: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = f"model:{choice.name}"
        self.failure: str | None = None
        self._choice = choice
        self._model = model
        self._clock = clock
        self._until = clock() + choice.seconds

    def improve(self, draft: Draft) -> str | None:
        """Return the model's summary, or None when it has none, can't be asked, or no time is left."""
        left = self._until - self._clock()
        if left < _LEAST_SECONDS:
            self.failure = self.failure or "its time was used up"
            return None
        fence = Fence()
        prompt = fence.wrap("document", draft.text[:_MOST_SHOWN], author=draft.name, limit=_MOST_SHOWN)
        prompt += "\nBy structure:\n" + fence.wrap("summary", draft.summary[:_MOST_SHOWN], author=draft.name, limit=_MOST_SHOWN)
        rules = _SUMMARY_RULES.format(kind=draft.kind, tokens=draft.most, fence=fence.rule)
        try:
            answer, failure = ask(replace(self._choice, seconds=left), rules, prompt, Shortened, self._model)
        except InvalidInput as error:
            answer, failure = None, error.message
            self._until = self._clock()  # it would be the same for each
        self.failure = failure or self.failure
        return None if answer is None else answer.summary


def improver_for(
    wanted: ModelRequest, environment: Mapping[str, str], table: Mapping[str, Any], progress: Callable[[str], None]
) -> ModelImprover:
    """Return what asks the model that is meant.

    Args:
        wanted: which model may be asked, and how far.
        environment: of the process.
        table: the configuration's ``recover.model`` table.
        progress: hears where documents are sent, before any is.

    Raises:
        InvalidInput: no model is configured, or a setting is wrong.
    """
    choice = chosen(wanted, environment, table)
    if choice is None:
        raise InvalidInput("no model is configured", "name one with --model, or set CTXMGR_MODEL")
    progress(f"summaries: {describe(choice, environment).text}")
    return ModelImprover(choice)
