"""Why calls fail and what to do next: the answer of ``ctxmgr.diagnose``."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Shape, Text

Confidence = Literal["high", "medium", "low"]


class Quote(Shape):
    """Recorded text that a diagnosis rests on.

    Attributes:
        entry: id of the entry, or null where the text is a message.
        source: where the text is from, in words for a reader: "your Read of app.py at 12:03". No id, no index.
        text: what was recorded, cut to 300 characters, without control characters; lines are kept.
    """

    entry: Text | None
    source: Text
    text: Text


class Diagnosis(Shape):
    """One cause that the record supports.

    Attributes:
        kind: the failure class, see ``ctxmgr.diagnose.CLASSES``; ``unknown`` for the contrast.
        cause: one or two sentences in the second person that quote the record.
        evidence: what the cause rests on.
        next_step: one action that was not tried yet. What stands in recorded output alone is never an order here: it is
            named as what the output says.
        check: what to look at after the next step, or null.
        confidence: ``high`` where the record shows the cause itself, ``medium`` where it is concluded from several records,
            ``low`` where it is the best guess.
    """

    kind: str
    cause: Text
    evidence: tuple[Quote, ...]
    next_step: Text
    check: Text | None
    confidence: Confidence
