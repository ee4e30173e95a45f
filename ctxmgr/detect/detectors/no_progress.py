"""Detect runs whose own progress reports say that there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import FindingKind, Observation

LEDGERS = frozenset({"ledger", "progress_ledger"})
IGNORED = "ignored_update"
PROGRESS = "progress"
_MAX = 1_000_000


class _State(NamedTuple):
    stalls: tuple[Step, ...] = ()
    ignored: int = 0
    updates: tuple[Step, ...] = ()


class NoProgressDetector:
    """Counts ledgers that say that there is no progress, or a loop; one that says there is takes one back.

    And counts progress updates that were rejected because nothing had changed, until one is accepted.
    """

    kind: FindingKind = "hung"
    wake: int = Wake.NEVER
    hears = LEDGERS | {IGNORED, PROGRESS}
    watchful = False
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _State | None = None

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Single steps are no statement about progress."""
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when the run has said once too often that it does not move."""
        state = self.state or _State()
        keep = self._settings.window
        if event.type == PROGRESS:
            self.state = state._replace(ignored=0, updates=()) if state.stalls else None
            return None
        if event.type == IGNORED:
            updates = (*state.updates, Step((Call.said(event, IGNORED),)))[-keep:]
            self.state = state = state._replace(ignored=min(state.ignored + _count(event.data), _MAX), updates=updates)
            if state.ignored < self._settings.ignored_updates:
                return None
            facts = (("ignoredUpdates", state.ignored),)
            return Sighting(self.kind, IGNORED, 1, updates, len(updates), 0.7, severity="hung", facts=facts)
        stalled = _stalled(event.data)
        if stalled is None:
            return None
        stalls = (*state.stalls, Step((Call.said(event, "stalled"),)))[-keep:] if stalled else state.stalls[:-1]
        self.state = state._replace(stalls=stalls)
        needed = self._settings.stalled_ledgers
        if not stalled or len(stalls) < needed:
            return None
        return Sighting(self.kind, "ledger", 1, stalls[-needed:], needed, 0.8, severity="hung")

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many reports told of no progress."""
        count = len(self.state.stalls) if self.state else 0
        return Opinion(
            self.kind, "", count, self._settings.stalled_ledgers, "it rests on progress reports, not on single steps",
            "progress reports",
        )  # fmt: skip

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = None


def _count(data: object) -> int:
    count = cast("dict[str, object]", data).get("count") if isinstance(data, dict) else None
    return min(max(count, 1), _MAX) if isinstance(count, int) and not isinstance(count, bool) else 1


def _stalled(data: object) -> bool | None:
    """Return whether a ledger says that the run stalls, None when it says nothing about it."""
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, object]", data)
    if isinstance(fields.get("input"), dict):
        fields = {**fields, **cast("dict[str, object]", fields["input"])}
    progress, loop = _answer(fields.get("is_progress_being_made")), _answer(fields.get("is_in_loop"))
    if progress is None and loop is None:
        return None
    return progress is False or loop is True


def _answer(value: object) -> bool | None:
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("answer")
    return value if isinstance(value, bool) else None
