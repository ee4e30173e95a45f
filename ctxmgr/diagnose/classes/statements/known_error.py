"""The tool's words are those of a widely known error, and name their subject."""

from __future__ import annotations

from ctxmgr.diagnose.classes.names import not_found
from ctxmgr.diagnose.errors import table as error_table
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.types.finding import Diagnosis

KIND: str = "knownError"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the meaning of the words."""
    found = error_table.known_error(KIND, evidence, late=False) or error_table.known_success(KIND, evidence)
    if found is None:
        return None
    name = not_found.diagnose(evidence)  # an almost correct name says more than the words
    # What the record says about the name is more precise than the general meaning of the words.
    return None if name is not None and name.confidence == "high" else found
