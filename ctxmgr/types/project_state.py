"""Models of the state that all agents of a project share: its context keys, the needs of its agents, their executions.

`ctxmgr.access.project_state` reads and changes it; a context package is assembled from it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Json, Shape, Text
from ctxmgr.types.query import Limit, Offset, Page, Request

ValueType = Literal["string", "integer", "boolean", "json"]
NEW_KEYS = ("project_name", "current_sprint", "current_phase")
"""Keys that every project may set without saying that they are new."""


class ContextKey(Shape):
    """One value that all agents share, who set it and when."""

    key: Text
    value: Json
    type: ValueType
    description: Text | None = None
    updated_by: Text | None = None
    updated_at: Text | None = None


class KeyChange(Shape):
    """A value that was set, beside the one it replaced."""

    key: Text
    old_value: Json
    new_value: Json
    type: ValueType
    created: bool


class KeyUpdate(Shape):
    """A value to set: a JSON value of the type, or text that is read as one; without a type the key's own holds."""

    key: Text
    value: Json
    type: ValueType | None = None
    description: Text | None = None


class SetContextRequest(Shape):
    """Values to set, all or none; ``create`` allows keys that the project does not have."""

    updates: Annotated[list[KeyUpdate], Field(min_length=1)]
    author: Text | None = None
    create: bool = False


class SetContextResponse(Shape):
    """What was set, beside what it replaced, in the order asked for."""

    updated: list[KeyChange]


class GetContextRequest(Shape):
    """The keys wanted; all of them when none is named."""

    keys: list[Text] = []


class GetContextResponse(Shape):
    """The keys with their values, ordered by name."""

    status: Literal["ok", "empty"]
    keys: list[ContextKey]


class ContextLogRequest(Shape):
    """Changes of these keys, or of all."""

    keys: list[Text] = []
    offset: Offset = 0
    limit: Limit = 20


class LoggedKeyChange(KeyChange):
    """A value that was set: when, and by whom."""

    at: Text | None
    by: Text | None


class ContextLogResponse(Shape):
    """One page of changes, newest first."""

    status: Literal["ok", "empty"]
    changes: list[LoggedKeyChange]
    page: Page


# The order is that of strength. ``if_exists`` is spec 003's word for ``optional``; both are kept as they were written.
Need = Literal["required", "optional", "if_exists", "reference"]
NEEDS: tuple[Need, ...] = ("required", "optional", "if_exists", "reference")


class AgentNeed(Shape):
    """What an agent's package must or may hold; the lower the priority the earlier it is served.

    ``pattern`` is ``{agent}/*``, ``{agent}/{name}``, one of ``project_context``, ``task_context``, ``error_context``,
    ``execution_history``, ``goal_context``, or ``entry:ID``, ``snapshot:ID``, ``continuation:ID``.
    """

    agent: Text
    pattern: Text
    need: Need
    max_tokens: int | None = None
    use_summary: bool = False
    priority: int = 100


class ChangeNeedsRequest(Shape):
    """Needs to put in force and needs to take away, all or none; an agent has one need for each pattern."""

    add: list[AgentNeed] = []
    remove: list[tuple[Text, Text]] = []


class NeedChangeResult(Shape):
    """The needs that were named, as they are now, and how many were added, changed or removed."""

    needs: list[AgentNeed]
    added: int
    changed: int
    removed: int


class ListNeedsRequest(Shape):
    """The needs of one agent, or of all."""

    agent: Text | None = None


class ListNeedsResponse(Shape):
    """Needs in the order in which they are served."""

    status: Literal["ok", "empty"]
    needs: list[AgentNeed]


ExecutionStatus = Literal["started", "completed", "failed"]


class Execution(Shape):
    """One run of an agent on a task: what it was given, what it produced, how long it took.

    Times are RFC 3339, ``duration_seconds`` is null while it runs. Artifacts are named by id.
    """

    id: Text
    session: Text
    index: int
    agent: Text
    task: Text | None
    sprint: Text | None
    status: ExecutionStatus
    context_version: int | None
    input_artifacts: list[Text]
    input_tokens: int | None
    output_artifacts: list[Text]
    output_tokens: int | None
    started_at: Text | None
    completed_at: Text | None
    duration_seconds: float | None
    error: Text | None


class RecordExecutionRequest(Request):
    """A run that started, or ended; ``execution_id`` of one that started before ends that one.

    Artifacts are named by id or as AGENT/NAME (then the current version is meant). Times are RFC 3339.
    """

    agent: Annotated[Text, Field(min_length=1)]
    status: ExecutionStatus
    execution_id: Text | None = None
    session: Text | None = None
    task: Text | None = None
    sprint: Text | None = None
    context_version: int | None = None
    input_artifacts: list[Text] = []
    input_tokens: Annotated[int, Field(ge=0)] | None = None
    output_artifacts: list[Text] = []
    output_tokens: Annotated[int, Field(ge=0)] | None = None
    started_at: Text | None = None
    completed_at: Text | None = None
    error: Text | None = None


class ListExecutionsRequest(Request):
    """Runs by agent, task, sprint and status, newest first."""

    agent: Text | None = None
    task: Text | None = None
    sprint: Text | None = None
    status: ExecutionStatus | None = None
    offset: Offset = 0
    limit: Limit = 20


class ListExecutionsResponse(Shape):
    """One page of runs."""

    status: Literal["ok", "empty"]
    executions: list[Execution]
    page: Page
