"""The project's shared state as it crosses a boundary: context keys, needs, executions (spec 003)."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Json, Shape, Text
from ctxmgr.types.package import Need

ValueType = Literal["string", "integer", "boolean", "json"]
ExecutionStatus = Literal["started", "completed", "failed"]
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


class KeyChanged(Shape):
    """A value that was set, beside the one it replaced."""

    key: Text
    old_value: Json
    new_value: Json
    type: ValueType
    created: bool


class AgentNeed(Shape):
    """What an agent's package must or may hold; the lower the priority the earlier it is served.

    ``pattern`` is ``{agent}/*``, ``{agent}/{name}``, one of ``project_context``, ``task_context``, ``error_context``,
    ``execution_history``, or ``entry:ID``, ``snapshot:ID``, ``continuation:ID``.
    """

    agent: Text
    pattern: Text
    need: Need
    max_tokens: int | None = None
    use_summary: bool = False
    priority: int = 100


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
