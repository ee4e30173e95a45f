"""Detect failures that climb from attempts to subtasks to tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.vocabulary import delegates
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

RESULTS = frozenset({"subtask_result", "task_result", "attempt_result"})
_MAX_TASKS = 32
_LEFT_AFTER = 6
_PARTS = lazy_pattern(r"[/.:>]+")
_TASKS = ("task", "task_id", "taskId", "parent", "goal")
_SUBTASKS = ("subtask", "subtask_id", "subtaskId", "subtask_name", "subtaskName")
_NAMES = ("name", "title", "description")
_FAILED = frozenset({"error", "failed", "failure", "fail", "blocked", "denied", "exhausted", "aborted"})
_DONE = frozenset({"ok", "success", "succeeded", "completed", "complete", "done", "passed"})
_QUIET = ("query", "poll", "sleep", "paced", "gesture")


class _Attempts(NamedTuple):
    """The failed attempts at one subtask since its last success; ``by_result`` when results of subtasks say so themselves."""

    failures: tuple[Step, ...]
    by_result: bool


class EscalatingFailureDetector:
    """Counts the failed attempts of each task that entries or results name.

    A result of a subtask is an attempt by its own words, and so is work that was handed over and came back failed. Any
    other failed entry is one only if it was meant to change something: a question that fails is no attempt. Two failed
    attempts put the subtask in doubt (a loop when its results said so); twice as many, or a second subtask of the same task
    in the same state, put the task itself in doubt.
    """

    kind: FindingKind = "escalatingFailure"
    wake: int = Wake.TASK
    hears = RESULTS
    watchful = False
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Attempts] = {}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the step is one failed attempt too many."""
        task = _task_of(step)
        if not task or step.meaning(self._settings.pollers) in _QUIET:
            return None
        return self._note(task, step, step.failed, by_result=False)

    def hear(self, event: Observation) -> Sighting | None:
        """Take the result of a subtask."""
        task, failed = _result(event)
        if failed is None:
            return None
        return self._note(task, Step((Call.said(event, task),)), failed, by_result=True)

    def _note(self, task: str, step: Step, failed: bool, *, by_result: bool) -> Sighting | None:
        old = self.state.get(task, _Attempts((), by_result))
        if not failed:
            self.state = {name: attempts for name, attempts in self.state.items() if name != task}
            return None
        new = _Attempts((*old.failures, step)[-self._settings.window :], by_result or old.by_result)
        kept = {name: attempts for name, attempts in self.state.items() if name != task}
        while len(kept) >= _MAX_TASKS:
            del kept[next(iter(kept))]
        self.state = {**kept, task: new}
        needed = self._settings.escalate_attempts
        if len(new.failures) < needed:
            return None
        # Names like "build/tests" carry their parent: a second subtask that fails under it is a failure of the task.
        parent = _parent(task)
        siblings = sum(
            len(attempts.failures) >= needed for name, attempts in self.state.items() if parent and _parent(name) == parent
        )
        climbed = siblings >= needed or len(new.failures) >= 2 * needed
        facts = (("task", task), ("level", "task" if climbed else "subtask"), ("failedSubtasks", max(1, siblings)))
        return Sighting(
            self.kind, ("task", task), 1, new.failures[-needed:], needed, 0.85 if climbed or new.by_result else 0.6,
            severity="loop" if climbed or new.by_result else "warn", leave=_LEFT_AFTER, facts=facts,
        )  # fmt: skip

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many attempts of the step's task failed."""
        needed = self._settings.escalate_attempts
        task = _task_of(step)
        if not task:
            return Opinion(self.kind, excerpt(step), 0, needed, "the entry names no task")
        count = len(self.state[task].failures) if task in self.state else 0
        return Opinion(
            self.kind, f"task {task[:80]}", count, needed, "seen" if count >= needed else "more failed attempts wanted"
        )

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}


def _task_of(step: Step) -> str:
    """Return the task a step belongs to, or that it hands over; "" when there is none."""
    start = step.first.start
    if start.task is not None:
        return start.task[:200]
    if isinstance(start.input, dict) and len(step.calls) == 1 and delegates(start.action):
        return _name(cast("dict[str, object]", start.input), None)
    return ""


def _parent(task: str) -> str:
    parts = _PARTS.split(task)
    return "/".join(parts[:-1])


def _name(fields: Mapping[str, object], given: object) -> str:
    """Return what the task of a result is called: its own name below that of its parent, else what it was given to do.

    Results are attempts of one subtask only where all of this is equal.
    """
    own = _first(fields, _SUBTASKS) or _first(fields, _NAMES)
    parts = [part for part in (_first(fields, _TASKS), own) if part]
    if not parts:
        parts = [_first(fields, ("id",)) or (fingerprints.canonical(given) or "" if given else "")]
    return "/".join(parts)[:200]


def _first(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, dict):
            value = _first(cast("dict[str, object]", value), ("id", *_NAMES)) or None
        if isinstance(value, str | int) and str(value):
            return str(value)
    return ""


def _result(event: Observation) -> tuple[str, bool | None]:
    """Return which task an event tells of, and whether it failed (None: it does not say)."""
    if not isinstance(event.data, dict):
        return "", None
    data = cast("dict[str, object]", event.data)
    inner = data.get("input")
    fields = {**cast("dict[str, object]", inner), **data} if isinstance(inner, dict) else data
    name = _name(fields, cast("object", inner))
    for key in ("success", "ok", "passed"):
        if isinstance(fields.get(key), bool):
            return name, not fields[key]
    for key in ("result", "status", "outcome", "output"):
        value = fields.get(key)
        if isinstance(value, str) and value.lower() in _FAILED | _DONE:
            return name, value.lower() in _FAILED
    return name, None
