"""Why an agent's calls fail, and what it can do next: rules over the record. Pure: no store, no clock.

Begin with `diagnose` below. The first failure class with a diagnosis gives the cause, and `related.related_records` adds what
other records say. If no class has one, `contrast` shows what differs between calls, and `next_looks` chooses what to look at
next.

| Where | What |
|---|---|
| `interface` | the interface of a failure class, and `diagnosis`, which builds its answer |
| `classes` | the registry, and one failure class per module |
| `evidence` | readers of the record: `Evidence`, calls, messages, files, lists, names |
| `errors` | readers of error texts, and the table of widely known errors: a new error is a row of TOML and no module |
| `related` | other records about a failure, from any agent and any tool |
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

    None is an honest answer. Then `contrast` shows what differs between the last step that brought something new and the
    repeated ones.
    """
    with evidence.days_named():
        found = explain(evidence)
        return None if found is None else found.diagnosis


def explain(evidence: Evidence) -> CauseExplanation | None:
    """Return the diagnosis in parts, for a reader who sees the lines of other records."""
    found = next((found for each in CLASSES if (found := each.diagnose(evidence)) is not None), None)
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
