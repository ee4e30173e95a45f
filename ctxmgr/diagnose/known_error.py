"""The tool's words are those of a widely known error, and name what it is about."""

from __future__ import annotations

from ctxmgr.diagnose import error_table
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.types.finding import Diagnosis

KIND: str = "knownError"


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return what the words mean."""
    return error_table.known_error(KIND, evidence, late=False)
