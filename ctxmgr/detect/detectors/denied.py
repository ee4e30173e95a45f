"""Detect an agent that keeps asking for what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.types.finding import FindingKind

_GAP = 6
"""Steps after which another refusal is a new story."""
_WORDS = (
    "denied by", "rejected by", "blocked by", "not permitted by", "disallowed by", "forbidden by", "refused by", "declined by",
    "vetoed", "user denied", "user rejected", "user declined", "user refused", "doesn't want to proceed",
    "does not want to proceed", "permission to use", "requires approval", "not allowed by", "violates policy",
    "policy violation", "against policy",
)  # fmt: skip


class DeniedDetector(StepDetector):
    """Counts refusals: of one call, or of one action whatever its input. What the operating system denies is an error."""

    kind: FindingKind = "denied"
    wake = Wake.FAILED

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the step was refused often enough."""
        old: tuple[Step, ...] = self.state or ()
        if old and step.number - old[-1].number > _GAP:
            old = ()
        if not is_denied(step):
            if not step.failed:
                old = tuple(each for each in old if each.action != step.action)
            self.state = old or None
            return None
        settings = self._settings.of(step.action)
        self.state = (*old, step)[-settings.window :]
        same, alike = self._counts(step)
        if len(same) >= settings.denied_rounds:
            return Sighting(self.kind, step.action, 1, same[-settings.denied_rounds :], settings.denied_rounds, 0.9)
        if len(alike) >= settings.denied_varied_rounds:
            return Sighting(
                self.kind, step.action, 1, alike[-settings.denied_varied_rounds :], settings.denied_varied_rounds, 0.8
            )
        return None

    def _counts(self, step: Step) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        alike = tuple(each for each in self.state or () if each.action == step.action)
        return tuple(each for each in alike if each.query == step.query), alike

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the call, or its action, was refused."""
        settings = self._settings.of(step.action)
        if not is_denied(step):
            return Opinion(self.kind, excerpt(step), 0, settings.denied_rounds, "it was not refused")
        same, alike = self._counts(step)
        if len(same) >= settings.denied_rounds or len(same) == len(alike):
            count, needed = len(same), settings.denied_rounds
        else:
            count, needed = len(alike), settings.denied_varied_rounds
        return Opinion(self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted")


def is_denied(step: Step) -> bool:
    """Whether every call of the step was refused, by its status or by what it was told."""
    return step.failed and all(
        (call.finish is not None and call.finish.status == "denied")
        or _says_denied(call.finish and call.finish.output, call.error())
        for call in step.calls
    )


def _says_denied(output: object, error: str) -> bool:
    if isinstance(output, dict) and cast("dict[str, object]", output).get("status") in ("blocked", "denied", "rejected"):
        return True
    head = error[:400].lower()
    return any(words in head for words in _WORDS)
