"""Why calls fail and what to do next: the answer of ``ctxmgr.diagnose``."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Shape, Text

Confidence = Literal["high", "medium", "low"]


class Quote(Shape):
    """Recorded text: the entry that holds it (null for a message), where it is from in words, and the text itself."""

    entry: Text | None
    source: Text
    text: Text


class Diagnosis(Shape):
    """One cause that the record supports, in the second person, with what it rests on and what to do about it."""

    kind: str
    cause: Text
    evidence: tuple[Quote, ...]
    next_step: Text
    check: Text | None
    confidence: Confidence
