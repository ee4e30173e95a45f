"""Goal facts for recovery and context packages."""

from __future__ import annotations

from typing import Any, Literal

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.goal_status import NodeStatus

ProbeKind = Literal["fileExists", "fileContains", "command"]


class ProbeResult(Shape):
    """What a probe saw; ``ok`` is null when it could not be asked (a command that is not allowed, no permission)."""

    name: Text
    kind: ProbeKind
    ok: bool | None
    detail: Text | None = None


class GoalSource(Shape):
    """The goal as a source for recovery and context packages: plain facts, no history."""

    session: Text
    goal: Text
    status: NodeStatus
    percent: int
    task: Text | None
    subtask: Text | None
    attempt: int | None
    done: list[Text]
    open: list[Text]
    blocked: list[Text]
    next: Text | None
    next_step: Text | None
    in_flight: list[Text]
    probe_state: list[ProbeResult]
    extra: dict[str, Any] = {}
