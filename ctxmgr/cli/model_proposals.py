"""Ask a model to split a goal into tasks, or for better summaries of documents.

A split is only ever shown, or taken where it is sound: the split by rules and the summary by structure always exist, so a model
that fails costs only its time, which is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ctxmgr.base.light_dataclass import replace
from ctxmgr.context.candidates import Draft
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.plan import parse_title
from ctxmgr.recover.model.config import ModelChoice, chosen, describe
from ctxmgr.recover.model.fence import Fence
from ctxmgr.recover.model.single_question import ask
from ctxmgr.types.goal import GoalPlan, PlannedStep, PlannedTask
from ctxmgr.types.operations import ModelRequest

# Limits of a proposal, which a person has to read before it counts.
_TASKS, _SUBTASKS = 20, 20
# Of a longer plan the beginning says what is to be done; the rest would cost tokens at each question.
_MAX_GOAL_CHARS = 12_000

_SPLIT_RULES = """You split one goal into tasks, and each task into subtasks that an agent can do one after the other.
- Give 2 to {tasks} tasks, each with 1 to {subtasks} subtasks, in the order in which they are to be done.
- A subtask is one thing to do that can be seen to be done: begin it with a verb, at most 12 words.
- Keep every step that the plan names, in its words; add none that the goal does not need.
{fence}"""

# The length up to which a plan's own titles are kept (`ctxmgr.goals.plan.MAX_TITLE`).
Title = Annotated[str, Field(min_length=1, max_length=300)]


class _Task(BaseModel):
    model_config = ConfigDict(extra="ignore")

    title: Title
    subtasks: Annotated[list[Title], Field(max_length=_SUBTASKS)] = []


class Split(BaseModel):
    """What a model answers: tasks with the titles of their subtasks."""

    model_config = ConfigDict(extra="ignore")

    tasks: Annotated[list[_Task], Field(min_length=1, max_length=_TASKS)]


def decompose(
    rules: GoalPlan,
    source: str | None,
    wanted: ModelRequest,
    environment: Mapping[str, str],
    table: Mapping[str, Any],
    progress: Callable[[str], None] | None = None,
    model: Any = None,
) -> GoalPlan:
    """Return the model's split of a goal, or the rules' where no model was named or its answer does not count.

    Args:
        rules: the rules' split of what was given; without tasks when nothing but the goal was.
        source: the plan's own text, if there is one.
        wanted: which model may be asked, and how far.
        environment: of the process.
        table: the configuration's ``recover.model`` table.
        progress: hears where the goal is sent, before it is.
        model: a pydantic-ai model to be asked in place of the one named.

    Raises:
        InvalidInput: the model that was named can't be asked: a setting is wrong, a part or a key is missing.
    """
    choice = chosen(wanted, environment, table)
    # No model was named or configured: nothing leaves this machine.
    if choice is None:
        return rules
    if progress is not None:
        progress(f"splitting the goal: {describe(choice, environment).text}")
    found, failure = _ask_model(choice, rules.goal, source, model)
    if found is None:
        return rules.model_copy(update={"model": choice.name, "failure": failure})
    done = {part.title: part.done for task in rules.tasks for part in (task, *task.subtasks)}
    tasks = [_planned_task(task, done) for task in found.tasks]
    return rules.model_copy(update={"tasks": tasks, "by": "model", "model": choice.name})


def _planned_task(task: _Task, done: Mapping[str, bool]) -> PlannedTask:
    """Return a proposed task; what the plan itself says is done stays done."""
    title = parse_title(task.title)[0]
    names = [name for name in (parse_title(part)[0] for part in task.subtasks) if name]
    parts = [PlannedStep(title=name, done=done.get(name, False)) for name in names]
    # Only the plan may say that something is done: a model that claims it would have steps skipped.
    is_done = done.get(title, False) or (bool(parts) and all(part.done for part in parts))
    return PlannedTask(title=title or "untitled", done=is_done, subtasks=parts)


def _ask_model(choice: ModelChoice, goal: str, source: str | None, model: Any) -> tuple[Split | None, str | None]:
    fence = Fence()
    instructions = _SPLIT_RULES.format(tasks=_TASKS, subtasks=_SUBTASKS, fence=fence.rule)
    prompt = "The goal:\n" + fence.wrap("goal", goal[:_MAX_GOAL_CHARS], author="operator", limit=_MAX_GOAL_CHARS)
    if source:
        prompt += "\nThe plan so far:\n" + fence.wrap(
            "plan", source[:_MAX_GOAL_CHARS], author="operator", limit=_MAX_GOAL_CHARS
        )
    return ask(choice, instructions, prompt, Split, model)


_MAX_DOCUMENT_CHARS = 24_000
_MIN_SECONDS = 0.5  # with less time left, a request is not worth starting

_SUMMARY_RULES = """You shorten one {kind} document for an agent that will work from your text alone.
- Keep names, numbers, headings, signatures and decisions exactly as they are written; leave out reasons and repetition.
- Say nothing that the document does not say. At most {tokens} tokens; no preface, no closing words.
- A summary by structure is given too: yours must be as short and say more.
{fence}"""


class SummaryAnswer(BaseModel):
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
        # The limit is for all documents together: many of them must not make a command take minutes.
        if left < _MIN_SECONDS:
            self.failure = self.failure or "its time was used up"
            return None
        fence = Fence()
        prompt = fence.wrap("document", draft.text[:_MAX_DOCUMENT_CHARS], author=draft.name, limit=_MAX_DOCUMENT_CHARS)
        prompt += "\nBy structure:\n" + fence.wrap(
            "summary", draft.summary[:_MAX_DOCUMENT_CHARS], author=draft.name, limit=_MAX_DOCUMENT_CHARS
        )
        rules = _SUMMARY_RULES.format(kind=draft.kind, tokens=draft.most, fence=fence.rule)
        try:
            answer, failure = ask(replace(self._choice, seconds=left), rules, prompt, SummaryAnswer, self._model)
        except InvalidInput as error:
            answer, failure = None, error.message
            self._until = self._clock()  # a wrong setting fails for every document alike
        self.failure = failure or self.failure
        return None if answer is None else answer.summary


def make_improver(
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
    # Told before anything is sent: who reads it can still interrupt.
    progress(f"summaries: {describe(choice, environment).text}")
    return ModelImprover(choice)
