"""Why an agent's calls fail and what it can do next: rules over the record. Pure: no store, no clock.

Begin with `diagnose`, below: the first failure class that applies gives the cause, `related.related_records` adds what other
records say. Where no class applies, `contrast` tells what differs. `next_looks` chooses its next look.

| Where | What |
|---|---|
| `interface` | the interface of a failure class, and `diagnosis`, which makes its answer |
| `classes` | the registry, and one failure class a module |
| `evidence` | readers of the record: `Evidence`, calls, messages, files, lists, names |
| `errors` | readers of error texts, and the table of widely known errors: a new error is a row of TOML and no module |
| `related` | other records that bear on a failure, whoever made them with whatever tool |
"""

from __future__ import annotations

from ctxmgr.diagnose.classes import CLASSES
from ctxmgr.diagnose.contrast import contrast, explain_contrast
from ctxmgr.diagnose.evidence import Evidence, Message, messages_of
from ctxmgr.diagnose.interface import FailureClass
from ctxmgr.diagnose.related.related_records import CauseExplanation, gather_explanation
from ctxmgr.types.finding import Diagnosis, Quote


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the most precise cause that the record supports, or None.

    None is an honest answer: `contrast` then tells what differs between the last step that brought something new
    and the repeated ones.
    """
    found = explain(evidence)
    return None if found is None else found.diagnosis


def explain(evidence: Evidence) -> CauseExplanation | None:
    """Return the same in parts, for a reader who is shown the lines of other records."""
    found = next((found for each in CLASSES if (found := each.applies(evidence)) is not None), None)
    return None if found is None else gather_explanation(evidence, found)


__all__ = [
    "CLASSES",
    "CauseExplanation",
    "Diagnosis",
    "Evidence",
    "FailureClass",
    "Message",
    "Quote",
    "contrast",
    "diagnose",
    "explain",
    "explain_contrast",
    "messages_of",
]  # fmt: skip
