"""The tool itself says why it refuses. This comes after the classes that find more of the cause in the record."""

from __future__ import annotations

from ctxmgr.diagnose.classes.statements import record_fact
from ctxmgr.diagnose.errors import table as error_table
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.types.finding import Diagnosis

KIND: str = "statedReason"


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the meaning of the tool's own words."""
    return error_table.known_error(KIND, evidence, late=True) or record_fact.find_fact(evidence, late=True)
