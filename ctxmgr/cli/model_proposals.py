"""Ask a model to split a goal into tasks, or to write better summaries of documents.

A split is only shown, or used if it is sound. The split by rules and the summary by structure always exist, so a model that
fails costs only time, which is limited.
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
from ctxmgr.recover.model.client import ask
from ctxmgr.recover.model.config import ModelChoice, chosen, describe
from ctxmgr.recover.model.messages import Fence
from ctxmgr.types.goal import GoalPlan, PlannedStep, PlannedTask
from ctxmgr.types.operations import ModelRequest

# Limits of a proposal, because a person has to read it before it counts.
_TASKS, _SUBTASKS = 20, 20
# The beginning of a longer plan says what is to be done. The rest would cost tokens in each question.
_MAX_GOAL_CHARS = 12_000

_SPLIT_RULES = """You split one goal into tasks, and each task into subtasks that an agent can do one after the other.
- Give 2 to {tasks} tasks, each with 1 to {subtasks} subtasks, in the order in which they are to be done.
- A subtask is one thing to do that can be seen to be done: begin it with a verb, at most 12 words.
- Keep every step that the plan names, in its words; add none that the goal does not need.
{fence}"""

# Maximum length of a title, as for the titles of a plan (`ctxmgr.goals.plan.MAX_TITLE`).
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
    """Return the model's split of a goal, or the split by rules if no model is named or its answer is unusable.

    Args:
        rules: the split by rules; it has no tasks if only the goal was given.
        source: the text of the plan, if there is one.
        wanted: which model may be asked, and its limits.
        environment: of the process.
        table: the ``recover.model`` table of the configuration.
        progress: called with the destination of the goal before it is sent.
        model: a pydantic-ai model to ask instead of the named one.

    Raises:
        InvalidInput: the named model can't be asked: a setting is wrong, or a package or a key is missing.
    """
    choice = chosen(wanted, environment, table)
    # No model is named or configured, so nothing leaves this machine.
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
    """Return a proposed task. Steps that the plan marks as done stay done."""
    title = parse_title(task.title)[0]
    names = [name for name in (parse_title(part)[0] for part in task.subtasks) if name]
    parts = [PlannedStep(title=name, done=done.get(name, False)) for name in names]
    # Only the plan may mark steps as done. A wrong claim by the model would make agents skip steps.
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
_MIN_SECONDS = 0.5  # less time is not worth a request

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
    """Ask a model for better summaries, with one time limit for all of them.

    Args:
        choice: the model; its ``seconds`` limit all summaries together.
        model: a pydantic-ai model to ask instead of the named one.
        clock: returns seconds and never goes back.

    Attributes:
        name: key under which summaries are cached.
        failure: why the latest failed answer was unusable, None if all were usable.
    """

    def __init__(self, choice: ModelChoice, model: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = f"model:{choice.name}"
        self.failure: str | None = None
        self._choice = choice
        self._model = model
        self._clock = clock
        self._until = clock() + choice.seconds

    def improve(self, draft: Draft) -> str | None:
        """Return the model's summary, or None if it has none, can't be asked, or no time is left."""
        left = self._until - self._clock()
        # One limit for all documents, because a command with many of them must not take minutes.
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
    """Return a `ModelImprover` for the model that is named or configured.

    Args:
        wanted: which model may be asked, and its limits.
        environment: of the process.
        table: the ``recover.model`` table of the configuration.
        progress: called with the destination of the documents before any is sent.

    Raises:
        InvalidInput: no model is configured, or a setting is wrong.
    """
    choice = chosen(wanted, environment, table)
    if choice is None:
        raise InvalidInput("no model is configured", "name one with --model, or set CTXMGR_MODEL")
    # Report the destination before anything is sent, so that the user can still interrupt.
    progress(f"summaries: {describe(choice, environment).text}")
    return ModelImprover(choice)
