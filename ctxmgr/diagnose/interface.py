"""The interface of a failure class: a kind and one function."""

from __future__ import annotations

from typing import Protocol

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.texts import clean, clip
from ctxmgr.types.finding import Confidence, Diagnosis, Quote


class FailureClass(Protocol):
    """A module that recognises one way in which calls fail.

    ``diagnose`` is a function of the evidence alone, takes at most linear time, never raises, and returns None unless the
    record supports the cause.
    """

    KIND: str

    def diagnose(self, evidence: Evidence, /) -> Diagnosis | None:
        """Return the diagnosis, or None."""
        ...


MOST_CAUSE, MOST_STEP = 560, 460
"""Maximum characters of a cause and of a next step. Both must stand within the first 900 or so of a prompt."""
MOST_ERROR = 240
"""Maximum characters of a failing call's own lines. A prompt shows them between cause and next step."""


def diagnosis(
    kind: str, cause: str, step: str, *quotes: Quote, check: str | None = None, confidence: Confidence = "high"
) -> Diagnosis:
    """Return a diagnosis with bounded texts and without duplicate quotes."""
    evidence = tuple({(quote.source, quote.text): quote for quote in quotes}.values())
    return Diagnosis(
        kind=kind, cause=_sentence(cause, MOST_CAUSE), evidence=evidence[:6], next_step=_sentence(step, MOST_STEP),
        check=None if check is None else _sentence(check, MOST_STEP), confidence=confidence,
    )  # fmt: skip


def _sentence(text: str, limit: int) -> str:
    return clip(clean(text).replace("\n", " "), limit)
