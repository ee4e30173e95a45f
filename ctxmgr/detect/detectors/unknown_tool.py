"""Detect calls of tools that do not exist."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind

_GAP = 6
"""Steps after which another unknown tool is a new story."""
_TYPES = frozenset({"unknowntool", "toolnotfound", "nosuchtool", "unknownfunction", "toolnotfounderror", "nosuchtoolerror"})
_TOOL = lazy_pattern(
    r"\b(?:unknown|no such|unrecogni[sz]ed|unsupported|invalid) tool\b|\bno tool (?:named|called)\b"
    r"|\btool\b.{1,80}\b(?:not found|does not exist|doesn't exist|is not (?:available|registered|defined))",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(
    r"\b(?:not found|does not exist|unknown function|no such function|is not a (?:known|valid) )", re.IGNORECASE
)


class UnknownToolDetector(StepDetector):
    """Counts failed calls whose error says that there is no such tool, whatever their input."""

    kind: FindingKind = "unknownTool"
    wake = Wake.FAILED
    watchful = False

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when tools that do not exist were called often enough."""
        old: tuple[Step, ...] = self.state or ()
        if old and step.number - old[-1].number > _GAP:
            old = ()
        if not is_unknown_tool(step):
            self.state = old or None
            return None
        needed = self._settings.of(step.action).unknown_rounds
        self.state = calls = (*old, step)[-self._settings.window :]
        if len(calls) < needed:
            return None
        tools = sorted({fingerprints.one_line(call.action, 60) for call in calls})
        return Sighting(self.kind, "unknown tool", 1, calls[-needed:], needed, 0.9, facts=(("tools", tools[:8]),))

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many calls of unknown tools there were."""
        needed = self._settings.of(step.action).unknown_rounds
        if not is_unknown_tool(step):
            return Opinion(self.kind, excerpt(step), 0, needed, "no error that says there is no such tool")
        count = len(self.state or ())
        return Opinion(self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted")


def is_unknown_tool(step: Step) -> bool:
    """Whether every call of the step failed because its tool does not exist."""
    return step.failed and all(
        _is_unknown(call.start.action, call.start.meta, call.error()[:600], _type(call.finish)) for call in step.calls
    )


def _is_unknown(action: str, meta: object, error: str, kind: str) -> bool:
    if kind in _TYPES or (isinstance(meta, dict) and cast("dict[str, object]", meta).get("unknown_tool") is True):
        return True
    if "tool" in error.lower() and _TOOL.search(error):
        return True
    # "a.py not found" is about a file; only an error that names the action itself is about the tool.
    return (
        bool(action)
        and error.strip("`'\" ").lower().startswith((action.lower(), f"function {action.lower()}"))
        and bool(_NAMED.search(error))
    )


def _type(finish: object) -> str:
    error = getattr(finish, "error", None)
    kind = cast("dict[str, object]", error).get("type") if isinstance(error, dict) else None
    return "".join(char for char in kind[:80].lower() if char.isalnum()) if isinstance(kind, str) else ""
